"""Shards whose tables are read again as a whole, on a real Kafka and a real target.

The sources, the coordinator and the watchdog are played.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records.decisions import StatementKind
from shardmerge.schemas.records.reloads import Reload
from shardmerge.spark_sink.planning import range_tasks
from tests.breadth import with_further
from tests.integration.spark.played_line import Line, rest, until
from tests.integration.spark.test_restarts import content, images, read, stands, started

REKEY = "ALTER TABLE TARGET DROP PRIMARY KEY, ADD PRIMARY KEY (`a`)"


@pytest.fixture(params=with_further(False, True), ids=["own topics", "one topic"])
def line(stack: LocalStack, request: pytest.FixtureRequest) -> Iterator[Line]:
    with closing(Line(stack, shared=request.param, ordered=True)) as line:
        yield line


def read_whole(line: Line, rows: dict[ShardId, list[dict[str, Any]]]) -> list[Reload]:
    """Rows that the connectors of its own read; what is still to come of before comes behind."""
    place = line.here()
    read(line, place, 5_001, rows, partitions=2)
    return [Reload(shard, place, 5_000) for shard in rows]


def without_keys(line: Line, *rows: list[dict[str, Any]]) -> list[ShardId]:
    shards = [line.shard(name, 2) for name in "abc"[: len(rows)]]
    line.describe(line.here(), 1_000, *shards, key="")
    line.begin()
    for shard, some in zip(shards, rows, strict=True):
        line.rows(shard, *some)
    line.commit()
    return shards


def test_a_target_without_keys_is_emptied_once_for_all_its_shards(line: Line) -> None:
    one, two = without_keys(line, images(7, 7, 8), images(7))
    driver = started(line)
    until(driver, lambda: len(line.content()) == 4)

    line.ask_whole(one, two)
    rest(driver)
    line.begin()
    line.deletions(one, {"id": 99, "a": 9})  # of a row that the target does not have so
    line.commit()
    late = line.here()
    reloads = read_whole(line, {one: images(7, 8, a=2), two: images(7, 9)})
    line.begin()
    line.reads(one, {"id": 55, "a": 1}, place=late, ts_ms=1)  # of before the reading
    line.rows(one, {"id": 10, "a": 1})
    line.commit()
    rest(driver)
    assert content(line) == [(7, 1), (7, 1), (7, 1), (8, 1)], "nothing moves before it is told"
    line.tell_whole(*reloads)

    wanted = [(7, 1), (7, 2), (8, 2), (9, 1), (10, 1)]
    until(driver, lambda: content(line) == wanted)
    rest(driver)
    rest(line.start())
    assert content(line) == wanted


def test_a_shard_that_stands_at_a_row_goes_on(line: Line) -> None:
    (one,) = without_keys(line, images(7, 8))
    driver = started(line)
    line.begin()
    line.deletions(one, {"id": 9, "a": 1})
    line.commit()
    until(driver, lambda: any("to be removed" in reason for reason in stands(driver)))

    line.ask_whole(one)
    rest(driver)
    line.tell_whole(*read_whole(line, {one: images(8)}))

    until(driver, lambda: content(line) == [(8, 1)])
    assert stands(driver) == []


@pytest.mark.parametrize("point", ["begun", "emptied"])
def test_a_sink_that_dies_meanwhile_goes_on(
    line: Line, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    one, two = without_keys(line, images(7, 7, 8), images(7))
    driver = started(line)
    until(driver, lambda: len(line.content()) == 4)
    line.ask_whole(one, two)
    reloads = read_whole(line, {one: images(7), two: images(9)})
    line.tell_whole(*reloads)
    noted: list[int] = []

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    note = driver._removals._restarts._journal.note

    def noting(target: Any, version: int, ordinal: int, text: str) -> None:
        noted.append(ordinal)
        if (point == "emptied") == (len(noted) == 2):
            note(target, version, ordinal, text) if point == "begun" else None
            dies()
        note(target, version, ordinal, text)

    monkeypatch.setattr(driver._removals._restarts._journal, "note", noting)
    with pytest.raises(KeyboardInterrupt):
        until(driver, lambda: content(line) == [(7, 1), (9, 1)])
    other = line.start()
    until(other, lambda: content(line) == [(7, 1), (9, 1)])
    rest(other)
    assert content(line) == [(7, 1), (9, 1)]


def test_rows_go_one_by_one_where_another_shard_keeps_its_own(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new key of one shard; the other has made the change before, with values of its own."""
    monkeypatch.setattr(range_tasks, "CHUNK", 3)
    one, two = line.make("a", "b", partitions=2)
    line.begin()
    for number in range(1, 9):
        line.rows(one, {"id": number, "a": 0}, partition=number % 2)
    line.rows(two, {"id": 100, "a": 50})
    line.commit()
    driver = started(line)
    until(driver, lambda: len(line.content()) == 9)

    line.begin()
    changed, place = line.change(), line.here()
    line.commit()
    line.decide(
        one, changed, place, "id a", line.statement(REKEY, StatementKind.SWITCHING), key="a",
        reloads=(Reload(one, place),),
    )  # fmt: skip
    line.begin()
    line.rows(one, {"id": 1, "a": 3}, {"id": 2, "a": 4})
    line.commit()

    wanted = [(1, 3), (2, 4), (100, 50)]
    until(driver, lambda: content(line) == wanted)
    rest(driver)
    assert line.session.query(f"SHOW KEYS FROM {line.target.sql}")[0][4] == "a"


def test_rows_of_a_shard_that_left_are_not_taken_for_those_of_another(line: Line) -> None:
    one, two = without_keys(line, images(7, 8), images(7))
    driver = started(line)
    until(driver, lambda: len(line.content()) == 3)
    line.begin()
    gone, place = line.change(), line.here()
    line.commit()
    line.decide(two, gone, place, "", live=False)
    line.ask_whole(one)
    line.tell_whole(*read_whole(line, {one: images(8)}))

    until(driver, lambda: any("shards that left" in reason for reason in stands(driver)))
    assert len(line.content()) == 3
