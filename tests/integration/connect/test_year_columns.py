"""Tables with YEAR beside whole bytes of numbers on MySQL 8.0.15: every row arrives as it is.

Debezium 3.6.1 by itself stops at the TABLE_MAP of such a table, captured or not. With the jar of
``connectors/java`` on its worker it reads them all.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shardmerge.connectors.binlog.binlog_events import RowsEvent
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.year_columns import is_misread
from shardmerge.connectors.deploy import deploy_connectors
from shardmerge.connectors.sources.source_binlog import SourceBinlog
from shardmerge.local.servers.stack import LocalStack
from tests.breadth import further, with_further

from .conftest import Play, other_worker
from .one_connector import OneConnector, connected
from .test_connectors import wait_for_snapshot

READ = (("int",) * 7 + ("year",), ("year", "varchar(5)"), ("int",) * 8, ("year", "double"))
MISREAD = (
    ("int",) * 8 + ("year",),
    ("int",) * 7 + ("year", "year"),
    ("decimal(5,1)",) * 8 + ("year",),
)
AT_A_TABLE_MAP = re.compile(r"eventType=TABLE_MAP.*nextPosition=(\d+)")

Value = tuple[str, str, object]
"""A column's type, the value in SQL, and the same value as Debezium gives it."""
NUMBERS: tuple[Value, ...] = (
    ("TINYINT UNSIGNED", "255", 255),
    ("TINYINT", "-128", -128),
    ("SMALLINT UNSIGNED", "65535", 65535),
    ("MEDIUMINT UNSIGNED", "16777215", 16777215),
    ("INT UNSIGNED", "4294967295", 4294967295),
    ("BIGINT UNSIGNED", "18446744073709551615", 18446744073709551615),
    ("BIGINT", "-9223372036854775808", -9223372036854775808),
    ("DECIMAL(5,1) UNSIGNED", "9999.9", "9999.9"),
)
YEARS: tuple[Value, ...] = (("YEAR", "2155", 2155), ("YEAR", "0", 0), ("YEAR", "1901", 1901))
TOLD_BEHIND: tuple[Value, ...] = (
    ("VARCHAR(9)", "'ä€'", "ä€"),
    ("VARCHAR(9) CHARACTER SET latin1", "'ä€'", "ä€"),
    ("CHAR(5) CHARACTER SET utf16", "'Ωb'", "Ωb"),
    ("TEXT CHARACTER SET cp1251", "'Жж'", "Жж"),
    ("ENUM('x','ä')", "'ä'", "ä"),
    ("ENUM('é','z') CHARACTER SET latin1", "'é'", "é"),
    ("SET('a','b','ö')", "'a,ö'", "a,ö"),
    ("JSON", """'{"k": [1, null]}'""", '{"k": [1, null]}'),
    (
        "POINT",
        "POINT(1, 2)",
        {"x": 1.0, "y": 2.0, "wkb": "AQEAAAAAAAAAAADwPwAAAAAAAABA", "srid": None},
    ),
    ("BIT(10)", "b'1000000001'", "AQI="),
    ("VARBINARY(4)", "0x00ff10", "AP8Q"),
)
"""What the optional metadata tells something about behind the numbers' signs, or nothing."""
TABLES: dict[str, tuple[str, tuple[Value, ...]]] = {
    "films": ("PRIMARY KEY (id)", (*NUMBERS[:7], YEARS[0])),
    "two_years": ("PRIMARY KEY (id)", (YEARS[1], *NUMBERS[:6], YEARS[2])),
    "keyless": ("KEY (id)", (YEARS[2], *NUMBERS[:7])),
    "wide": ("PRIMARY KEY (c16, c0)", (*NUMBERS, *NUMBERS[:7], YEARS[1], *TOLD_BEHIND)),
    "many_years": ("PRIMARY KEY (id, c24(3))", (*YEARS * 5, *NUMBERS, *TOLD_BEHIND)),
    "as_ever": ("PRIMARY KEY (id)", (NUMBERS[0], YEARS[0], *TOLD_BEHIND)),
}


@pytest.fixture
def line(play: Play, rest: ConnectRest) -> Iterator[OneConnector]:
    with connected(play, rest) as line:
        _prepare(play, line)
        deploy_connectors(play.pipeline, rest)
        wait_for_snapshot(play)
        yield line


@pytest.fixture
def bare_rest(stack: LocalStack, tmp_path: Path) -> Iterator[ConnectRest]:
    """A worker whose Debezium lacks the jar, in a cluster of its own."""
    with other_worker(stack, tmp_path, "bare") as rest:
        yield rest


@pytest.mark.parametrize("metadata", with_further("MINIMAL", "FULL"))
def test_every_change_of_such_a_table_arrives_as_it_is(
    play: Play, line: OneConnector, metadata: str
) -> None:
    assert [t for t in TABLES if not is_misread(_names(v[0] for v in _columns(t)))] == ["as_ever"]
    ((before,),) = line.query("SELECT @@global.binlog_row_metadata")
    line.query(f"SET GLOBAL binlog_row_metadata = {metadata}")
    try:
        for name in TABLES:
            _write(play, line, name)
    finally:
        line.query(f"SET GLOBAL binlog_row_metadata = {before}")

    for name in TABLES:
        first: dict[str, object] = {f"c{n}": v[2] for n, v in enumerate(_columns(name))}
        first = {"id" if c == "c0" else c: v for c, v in first.items()}
        with play.reader(play.topic(name)) as topic:
            changes = [_change(topic.next()) for _ in range(3)]
        second = dict(first, note="later")
        first["note"] = None
        assert changes == [("c", None, first), ("u", first, second), ("d", second, None)], name


def test_rows_of_such_tables_that_nobody_captures_are_passed_over(
    play: Play, line: OneConnector
) -> None:
    tables = [("int",) * n + ("year",) * years for n in range(1, 18) for years in (1, 2, 9)]
    assert sum(map(is_misread, tables)) > 20
    with play.reader(play.topic("t")) as topic:
        for number, types in enumerate(tables):
            _fill(play, line, f"t{number}", types)
            last = line.write()
        assert topic.ids(last) == list(range(1, last + 1))


# The library connects by a name that its driver has given up.
@pytest.mark.filterwarnings("ignore:'db' is deprecated:DeprecationWarning")
@pytest.mark.parametrize("metadata", with_further("MINIMAL", "FULL"))
def test_a_repair_counts_the_rows_of_such_a_table(play: Play, metadata: str) -> None:
    binlog = SourceBinlog(play.pipeline.sources[0])
    start = binlog.end()
    with play.sql() as run:
        run(f"SET GLOBAL binlog_row_metadata = {metadata}")
        try:
            for number, name in enumerate(TABLES):
                columns = ", ".join(f"c{n} {v[0]}" for n, v in enumerate(_columns(name)))
                run(f"CREATE TABLE {name} ({columns})")
                values = ", ".join(v[1] for v in _columns(name))
                run(f"INSERT INTO {name} VALUES {', '.join([f'({values})'] * (number + 2))}")
        finally:
            run("SET GLOBAL binlog_row_metadata = MINIMAL")

    logged = binlog.logged(start.file, start.pos)
    events = [event for event in logged if isinstance(event, RowsEvent)]
    assert [event.table for event in events] == [f"{play.database}.{name}" for name in TABLES]
    assert [binlog.number_of_rows(event) for event in events] == [2, 3, 4, 5, 6, 7]


@further
def test_without_the_jar_the_connector_stops_at_the_tables_that_the_rule_tells(
    play: Play, bare_rest: ConnectRest
) -> None:
    connect = dataclasses.replace(play.pipeline.connect, url=bare_rest.url, exact_values=False)
    bare = dataclasses.replace(play, pipeline=dataclasses.replace(play.pipeline, connect=connect))
    with connected(bare, bare_rest) as line, bare.reader(bare.topic("t")) as topic:
        _prepare(bare, line)
        deploy_connectors(bare.pipeline, bare_rest)
        wait_for_snapshot(bare)
        for number, types in enumerate(READ):
            _fill(bare, line, f"read{number}", types)
            last = line.write()
        assert topic.ids(last) == list(range(1, last + 1))
        for number, types in enumerate(MISREAD):
            gtid = _fill(bare, line, f"misread{number}", types)
            last = line.write()
            assert AT_A_TABLE_MAP.search(line.wait_failed().reason(20))
            line.pass_over(gtid)
            assert topic.ids(1) == [last], "every row of other tables comes"
        bare_rest.delete(line.name)

    expected = [False] * len(READ) + [True] * len(MISREAD)
    assert [is_misread(_names(types)) for types in (*READ, *MISREAD)] == expected


def _columns(table: str) -> tuple[Value, ...]:
    """The columns of a captured table but its last, ``note``; the first is ``id``."""
    return (("INT", "7", 7), *TABLES[table][1])


def _names(types: Any) -> list[str]:
    """``DECIMAL(5,1) UNSIGNED`` → ``decimal``."""
    return [re.split(r"[ (]", kind)[0].lower() for kind in types]


def _prepare(play: Play, line: OneConnector) -> None:
    line.query(f"CREATE TABLE `{play.database}`.t (id INT PRIMARY KEY)")
    line.query(f"CREATE DATABASE `{play.database}_else`")


def _write(play: Play, line: OneConnector, table: str) -> None:
    """Make a captured table, insert a row, change it and delete it."""
    name = f"`{play.database}`.{table}"
    columns = ["id INT", *(f"c{n} {v[0]}" for n, v in enumerate(_columns(table)) if n)]
    key = TABLES[table][0].replace("c0", "id")
    line.query(f"CREATE TABLE {name} ({', '.join(columns)}, note VARCHAR(9), {key})")
    line.query(f"INSERT INTO {name} VALUES ({', '.join(v[1] for v in _columns(table))}, NULL)")
    line.query(f"UPDATE {name} SET note = 'later'")
    line.query(f"DELETE FROM {name}")


def _change(event: dict[str, Any]) -> tuple[str, object, object]:
    return event["op"], event["before"], event["after"]


def _fill(play: Play, line: OneConnector, table: str, types: tuple[str, ...]) -> str:
    """Make a table that nobody captures, insert a row, and return that row's GTID."""
    name = f"`{play.database}_else`.{table}"
    columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(types))
    line.query(f"CREATE TABLE {name} ({columns})")
    ((before,),) = line.query("SELECT @@global.gtid_executed")
    line.query(f"INSERT INTO {name} () VALUES ()")
    ((gtid,),) = line.query(f"SELECT GTID_SUBTRACT(@@global.gtid_executed, '{before}')")
    return str(gtid)
