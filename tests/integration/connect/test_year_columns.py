"""A table that Debezium 3.6.1 cannot read on MySQL 8.0.15: YEAR beside whole bytes of numbers.

Nothing in the connector's configuration lets it pass. What does is the table's definition, for
later rows, and for those in the binlog an offset behind their transaction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from shardmerge.connectors.connect_rest import ConnectRest
from shardmerge.connectors.deploy import deploy_connectors
from shardmerge.connectors.source_config import connector_config
from shardmerge.schemas.year_columns import is_misread

from .conftest import Play
from .one_connector import OneConnector, connected
from .test_connectors import wait_for_snapshot

READ = (("int",) * 7 + ("year",), ("year", "varchar(5)"), ("int",) * 8, ("year", "double"))
MISREAD = (
    ("int",) * 8 + ("year",),
    ("int",) * 7 + ("year", "year"),
    ("decimal(5,1)",) * 8 + ("year",),
)
AT_A_TABLE_MAP = re.compile(r"eventType=TABLE_MAP.*nextPosition=(\d+)")


@pytest.fixture
def line(play: Play, rest: ConnectRest) -> Iterator[OneConnector]:
    with connected(play, rest) as line:
        line.query(f"CREATE TABLE `{play.database}`.t (id INT PRIMARY KEY)")
        line.query(f"CREATE DATABASE `{play.database}_else`")
        deploy_connectors(play.pipeline, rest)
        wait_for_snapshot(play)
        yield line


def test_the_rule_tells_the_tables_at_whose_rows_the_connector_stops(
    play: Play, line: OneConnector
) -> None:
    with play.reader(play.topic("t")) as topic:
        for number, types in enumerate(READ):
            _fill(play, line, f"read{number}", types)
            last = line.write()
        assert topic.ids(last) == list(range(1, last + 1))
        for number, types in enumerate(MISREAD):
            gtid = _fill(play, line, f"misread{number}", types)
            last = line.write()
            assert AT_A_TABLE_MAP.search(line.wait_failed().reason(20))
            line.pass_over(gtid)
            assert topic.ids(1) == [last], "every row of other tables comes"

    names = [[re.sub(r"\(.*", "", kind) for kind in types] for types in (*READ, *MISREAD)]
    assert [is_misread(types) for types in names] == [False] * len(READ) + [True] * len(MISREAD)


def test_no_failure_handling_of_debezium_passes_over_such_a_table_and_another_type_does(
    play: Play, line: OneConnector, rest: ConnectRest
) -> None:
    with play.reader(play.topic("t")) as topic:
        gtid = _fill(play, line, "films", MISREAD[0])
        last = line.write()
        first = line.wait_failed()
        config = connector_config(play.pipeline, play.pipeline.sources[0])
        for handling in ("warn", "ignore"):
            rest.create_or_update(
                line.name, config | {"event.processing.failure.handling.mode": handling}
            )
            rest.wait_running(line.name, past=first)
            assert AT_A_TABLE_MAP.search(line.wait_failed().reason(20)), handling
        rest.create_or_update(line.name, config)
        line.pass_over(gtid)
        assert topic.ids(1) == [last]

        line.query(f"ALTER TABLE `{play.database}_else`.films MODIFY c8 SMALLINT")
        line.query(f"INSERT INTO `{play.database}_else`.films () VALUES ()")
        last = line.write()
        assert topic.ids(1) == [last]


def _fill(play: Play, line: OneConnector, table: str, types: tuple[str, ...]) -> str:
    """Make a table that nobody captures, insert a row, and return that row's GTID."""
    name = f"`{play.database}_else`.{table}"
    columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(types))
    line.query(f"CREATE TABLE {name} ({columns})")
    ((before,),) = line.query("SELECT @@global.gtid_executed")
    line.query(f"INSERT INTO {name} () VALUES ()")
    ((gtid,),) = line.query(f"SELECT GTID_SUBTRACT(@@global.gtid_executed, '{before}')")
    return str(gtid)
