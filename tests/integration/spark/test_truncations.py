"""TRUNCATE TABLE of a shard, on a real Kafka and a real target; the source is played."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.policies import RowsPolicy
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.records.decisions import Binding, StatementKind, TargetStatement
from shardmerge.spark_sink.driver.loop import Driver
from tests.breadth import with_further
from tests.integration.spark.played_line import Line, rest, until


@pytest.fixture(params=with_further(False, True), ids=["own topics", "one topic"])
def line(stack: LocalStack, request: pytest.FixtureRequest) -> Iterator[Line]:
    with closing(Line(stack, shared=request.param)) as line:
        yield line


def started(line: Line) -> Driver:
    driver = line.start()
    rest(driver)
    return driver


def shown(line: Line) -> list[int]:
    return [row[0] for row in line.content()]


def with_origin(line: Line, *tables: str, partitions: int = 1) -> list[ShardId]:
    """Shards of a target that has an origin column, as the coordinator makes them."""
    shards = [line.shard(table, partitions) for table in tables]
    line.begin()
    changes = [(shard, line.change(), line.here()) for shard in shards]
    line.commit()
    sql = (
        f"CREATE TABLE {line.target.sql} (`id` int NOT NULL, `a` int, "
        "`f` varchar(194) COLLATE utf8mb4_bin NOT NULL, PRIMARY KEY (`id`))"
    )
    binds = (Binding("id#1", "id"), Binding("a#1", "a"), Binding("@shard", "f"))
    create = TargetStatement(sql, StatementKind.EXPANDING, "", ("table",), binds)
    for number, (shard, offset, place) in enumerate(changes):
        statements = [create] if number == 0 else []
        line.decide(shard, offset, place, "id a @shard", *statements)
    return shards


def test_only_the_rows_of_the_truncated_shard_go(line: Line) -> None:
    one, two = with_origin(line, "a", "b")
    line.begin()
    line.rows(one, {"id": 1, "a": 1}, {"id": 2, "a": 2})
    line.rows(two, {"id": 11, "a": 1})
    line.truncation(one)
    line.rows(one, {"id": 3, "a": 3}, {"id": 1, "a": 9})
    line.commit()
    driver = started(line)
    until(driver, lambda: shown(line) == [1, 3, 11])
    assert line.content()[0] == (1, 9, str(one))
    line.begin()
    line.truncation(two)
    line.truncation(one)
    line.rows(one, {"id": 4, "a": 4})
    line.commit()
    until(driver, lambda: shown(line) == [4])


def test_rows_behind_it_in_other_partitions_come_again(line: Line) -> None:
    [one, two] = with_origin(line, "a", "b", partitions=3)
    driver = started(line)
    line.begin()
    line.rows(one, {"id": 1, "a": 1}, partition=0)
    line.rows(one, {"id": 2, "a": 2}, partition=1)
    line.rows(two, {"id": 11, "a": 1})
    line.commit()
    until(driver, lambda: shown(line) == [1, 2, 11])
    line.begin()
    line.truncation(one, partition=2)
    line.rows(one, {"id": 3, "a": 3}, {"id": 4, "a": 4}, partition=0)
    line.truncation(one, partition=0)
    line.rows(one, {"id": 5, "a": 5}, {"id": 2, "a": 6}, partition=1)
    line.commit()
    until(driver, lambda: shown(line) == [2, 5, 11])
    rest(driver)
    assert shown(line) == [2, 5, 11]
    stored = line.session.query(
        f"SELECT SUM(next_offset) FROM `{line.pipeline.target.control_database}`.offsets"
        " WHERE topic LIKE '%%.a'"
    )
    rest(line.start())
    assert shown(line) == [2, 5, 11]
    assert stored == line.session.query(
        f"SELECT SUM(next_offset) FROM `{line.pipeline.target.control_database}`.offsets"
        " WHERE topic LIKE '%%.a'"
    )


def test_a_shard_that_was_always_alone_needs_no_origin_column(line: Line) -> None:
    [shard] = line.make("a")
    line.begin()
    line.rows(shard, {"id": 1, "a": 1})
    line.truncation(shard)
    line.rows(shard, {"id": 2, "a": 2})
    line.commit()
    until(started(line), lambda: line.content() == [(2, 2)])


def test_a_shard_whose_rows_nobody_knows_stands_until_its_route_keeps_them(
    stack: LocalStack,
) -> None:
    keep = RoutingRule(".*", ".*", ".*", "m", "t", on_truncate=RowsPolicy.KEEP)
    with closing(Line(stack)) as line:
        one, two = line.make("a", "b")
        line.begin()
        line.rows(one, {"id": 1, "a": 1})
        line.truncation(one)
        line.rows(one, {"id": 2, "a": 2})
        line.rows(two, {"id": 3, "a": 3})
        line.commit()
        driver = started(line)
        until(driver, lambda: shown(line) == [1, 3])
        rest(driver)
        assert shown(line) == [1, 3]
        line.route(keep)
        until(started(line), lambda: shown(line) == [1, 2, 3])


def test_rows_of_many_transactions_are_deleted(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardmerge.spark_sink.targets.mysql.ddl.journal.ROWS_AT_A_TIME", 10)
    one, two = with_origin(line, "a", "b")
    line.begin()
    line.rows(one, *({"id": n, "a": n} for n in range(95)))
    line.rows(two, {"id": 100, "a": 1})
    line.truncation(one)
    line.commit()
    until(started(line), lambda: shown(line) == [100])
