"""Snapshots that begin again, on a real Kafka and a real target; the source is played."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.policies import RowsPolicy
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.spark_sink.driver.loop import Driver
from shardmerge.spark_sink.planning import range_tasks
from tests.breadth import with_further
from tests.integration.spark.played_line import Line, rest, until

KEEP = RoutingRule(".*", ".*", ".*", "m", "t", on_truncate=RowsPolicy.KEEP)
Images = list[dict[str, Any]]


@pytest.fixture(params=with_further(False, True), ids=["own topics", "one topic"])
def line(stack: LocalStack, request: pytest.FixtureRequest) -> Iterator[Line]:
    with closing(Line(stack, shared=request.param, ordered=True)) as line:
        yield line


def images(*ids: int, a: int = 1) -> Images:
    return [{"id": number, "a": a} for number in ids]


def read(
    line: Line, place: SourcePosition, ms: int, rows: dict[ShardId, Images], partitions: int = 1
) -> None:
    """Rows that a snapshot reads, over all partitions."""
    line.begin()
    for shard, some in rows.items():
        for number, image in enumerate(some):
            line.reads(shard, image, place=place, ts_ms=ms, partition=number % partitions)
    line.commit()


def content(line: Line) -> list[tuple[Any, ...]]:
    return [tuple(row[:2]) for row in sorted(line.content())]


def started(line: Line) -> Driver:
    driver = line.start()
    rest(driver)
    return driver


def stands(driver: Driver) -> list[str]:
    return [held.hold.reason for held in driver._holds._held.values()]


@pytest.mark.parametrize("origin", [False, True], ids=["keys", "origin"])
@pytest.mark.parametrize("moves", [False, True], ids=["one place", "another place"])
def test_what_an_interrupted_snapshot_brought_and_the_new_one_lacks_goes(
    line: Line, monkeypatch: pytest.MonkeyPatch, origin: bool, moves: bool
) -> None:
    monkeypatch.setattr(range_tasks, "CHUNK", 3)
    one, two = line.shard("a", 3), line.shard("b", 3)
    first = line.here()
    line.describe(first, 1_000, one, two, origin=origin)
    read(line, first, 1_001, {one: images(*range(1, 21)), two: images(101, 102)}, partitions=3)
    driver = started(line)
    until(driver, lambda: len(line.content()) == 22)

    place = line.here() if moves else first
    line.describe(place, 2_000, one, two, origin=origin)
    read(line, place, 2_001, {one: images(3, 4, 5, 30, a=2), two: images(102, 103)}, partitions=3)
    line.begin()
    line.rows(one, {"id": 31, "a": 3}, partition=1)
    line.commit()
    wanted = [(3, 2), (4, 2), (5, 2), (30, 2), (31, 3), (102, 1), (103, 1)]
    until(driver, lambda: content(line) == wanted)
    rest(driver)
    rest(line.start())
    assert content(line) == wanted


@pytest.mark.parametrize("moves", [False, True], ids=["one place", "another place"])
def test_without_a_key_as_many_rows_go_as_came(
    line: Line, monkeypatch: pytest.MonkeyPatch, moves: bool
) -> None:
    monkeypatch.setattr(range_tasks, "KEYLESS_CHUNK", 4)
    one, two = line.shard("a", 3), line.shard("b", 3)
    first = line.here()
    line.describe(first, 1_000, one, two, key="")
    same = images(*[7] * 12, 8, 8)
    read(line, first, 1_001, {one: same, two: images(7, 9)}, partitions=3)
    driver = started(line)
    until(driver, lambda: len(line.content()) == 16)

    place = line.here() if moves else first
    line.describe(place, 2_000, one, two, key="")
    read(line, place, 2_001, {one: images(*[7] * 5, 8, 8, 8), two: images(7, 9)}, partitions=3)
    wanted = [(7, 1)] * 6 + [(8, 1)] * 3 + [(9, 1)]
    until(driver, lambda: content(line) == wanted)
    rest(driver)
    rest(line.start())
    assert content(line) == wanted


def test_a_sink_that_dies_while_it_takes_rows_back_goes_on_with_that(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_tasks, "KEYLESS_CHUNK", 2)
    one, two = line.shard("a"), line.shard("b")
    first = line.here()
    line.describe(first, 1_000, one, two, key="")
    read(line, first, 1_001, {one: images(*range(20)), two: images(50)})
    driver = started(line)
    until(driver, lambda: len(line.content()) == 21)
    place = line.here()
    line.describe(place, 2_000, one, two, key="")
    read(line, place, 2_001, {one: images(1, 2), two: images(50)})
    for _ in range(40):
        count = len(line.content())
        if count == 3 and content(line) == [(1, 1), (2, 1), (50, 1)]:
            break
        until(line.start(), lambda count=count: len(line.content()) != count)  # type: ignore[misc]
    rest(line.start())
    assert content(line) == [(1, 1), (2, 1), (50, 1)]


def test_a_table_that_is_empty_by_then_is_emptied(line: Line) -> None:
    one, two = line.shard("a"), line.shard("b")
    first = line.here()
    line.describe(first, 1_000, one, two)
    read(line, first, 1_001, {one: images(1, 2), two: images(11)})
    driver = started(line)
    until(driver, lambda: len(line.content()) == 3)
    place = line.here()
    line.describe(place, 2_000, one, two)
    read(line, place, 2_001, {two: images(12)})
    until(driver, lambda: content(line) == [(12, 1)])


def test_a_shard_that_is_alone_is_emptied_by_one_statement(line: Line) -> None:
    one = line.shard("a", 2)
    first = line.here()
    line.describe(first, 1_000, one, key="")
    read(line, first, 1_001, {one: images(1, 1, 2)}, partitions=2)
    driver = started(line)
    until(driver, lambda: len(line.content()) == 3)
    line.begin()
    line.rows(one, {"id": 3, "a": 1})
    line.commit()
    until(driver, lambda: len(line.content()) == 4)
    place = line.here()
    line.describe(place, 2_000, one, key="")
    read(line, place, 2_001, {one: images(1, 2, 2)}, partitions=2)
    until(driver, lambda: content(line) == [(1, 1), (2, 1), (2, 1)])


def test_rows_stay_where_no_snapshot_was_to_read_any(line: Line) -> None:
    line.pipeline = replace(
        line.pipeline,
        sources=tuple(replace(s, snapshot_mode="recovery") for s in line.pipeline.sources),
    )
    one, two = line.shard("a"), line.shard("b")
    first = line.here()
    line.describe(first, 1_000, one, two)
    read(line, first, 1_001, {one: images(1, 2), two: images(11)})
    driver = started(line)
    until(driver, lambda: len(line.content()) == 3)
    line.describe(line.here(), 2_000, one, two)
    line.begin()
    line.rows(one, {"id": 3, "a": 1})
    line.commit()
    until(driver, lambda: content(line) == [(1, 1), (2, 1), (3, 1), (11, 1)])


def test_a_shard_stands_where_a_description_came_without_the_snapshot(line: Line) -> None:
    one, two = line.shard("a"), line.shard("b")
    first = line.here()
    line.describe(first, 1_000, one, two)
    read(line, first, 1_001, {one: images(1, 2), two: images(11)})
    driver = started(line)
    until(driver, lambda: len(line.content()) == 3)
    line.describe(line.here(), 2_000, one, two)
    line.begin()
    line.rows(one, {"id": 3, "a": 1})
    line.commit()
    until(driver, lambda: any("without one of a snapshot" in why for why in stands(driver)))
    assert len(line.content()) == 3
    line.route(KEEP)
    until(line.start(), lambda: content(line) == [(1, 1), (2, 1), (3, 1), (11, 1)])


def test_rows_without_a_key_that_the_binlog_changed_hold_their_shard(line: Line) -> None:
    one, two = line.shard("a"), line.shard("b")
    first = line.here()
    line.describe(first, 1_000, one, two, key="")
    read(line, first, 1_001, {one: images(1, 2), two: images(11)})
    line.begin()
    line.rows(one, {"id": 3, "a": 1})
    line.commit()
    driver = started(line)
    until(driver, lambda: len(line.content()) == 4)
    place = line.here()
    line.describe(place, 2_000, one, two, key="")
    read(line, place, 2_001, {one: images(4), two: images(12)})
    until(driver, lambda: any("without a primary key" in why for why in stands(driver)))
    until(driver, lambda: content(line) == [(1, 1), (2, 1), (3, 1), (12, 1)])
    # As the hint says.
    line.session.execute(f"DELETE FROM {line.target.sql} WHERE id < 10")
    line.route(KEEP)
    until(line.start(), lambda: content(line) == [(4, 1), (12, 1)])


def test_a_snapshot_taken_again_on_purpose_takes_what_the_binlog_brought_too(line: Line) -> None:
    one, two = line.shard("a"), line.shard("b")
    first = line.here()
    line.describe(first, 1_000, one, two)
    read(line, first, 1_001, {one: images(1, 2), two: images(11)})
    line.begin()
    line.rows(one, *images(3, 4))
    line.deletions(one, {"id": 1, "a": 1})
    line.commit()
    driver = started(line)
    until(driver, lambda: content(line) == [(2, 1), (3, 1), (4, 1), (11, 1)])
    place = line.here()
    line.describe(place, 2_000, one, two)
    read(line, place, 2_001, {one: images(2, 3, a=5), two: images(11)})
    until(driver, lambda: content(line) == [(2, 5), (3, 5), (11, 1)])
