from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

import pymysql
import pytest

from shardmerge.cli.validation.inputs import applied_offsets, line_passing
from shardmerge.cli.validation.inputs.line_passing import LinePassing
from shardmerge.connectors.formats.stored_record import Extent
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from tests.recorded import Recorded
from tests.unit.cli.views.pictures import ONE

END = SourcePosition(0, "binlog.000010", 500, 0)
BEHIND = {"file": "binlog.000009", "pos": 9_000}
AT_END = {"file": "binlog.000010", "pos": 500}
TOPIC = "s1.shop.tbl1"
LATE = ShardId("s1", "shop", "tbl2")


class Rest:
    def __init__(self, offsets: list[Mapping[str, Any] | None]) -> None:
        self.offsets = offsets

    def offset(self, _: str) -> Mapping[str, Any] | None:
        return self.offsets.pop(0) if len(self.offsets) > 1 else self.offsets[0]

    def close(self) -> None:
        pass


class Reader:
    def __init__(self, end: int) -> None:
        self.end = end

    def extents(self, topics: Sequence[str]) -> list[Extent]:
        assert list(topics) == [TOPIC]
        return [Extent(TOPIC, 0, 0, self.end, self.end), Extent(TOPIC, 1, 0, 0, 0)]


class Cursor:
    """Answers with the sink's stored offsets, a later one each time."""

    def __init__(self, stored: list[int], shared: bool, lacks_late: bool) -> None:
        self.stored, self.shared, self.lacks_late = stored, shared, lacks_late
        self.sql = ""

    def execute(self, sql: str, _: object) -> None:
        self.sql = sql

    def fetchall(self) -> list[tuple[object, ...]]:
        if self.shared != ("shared_offsets" in self.sql):
            return []
        stored = self.stored.pop(0) if len(self.stored) > 1 else self.stored[0]
        if not self.shared:
            return [(TOPIC, 0, stored)]
        late = [] if self.lacks_late else [(TOPIC, 0, 7, "s1", "shop", "tbl2")]
        return [
            (TOPIC, 0, 0, "s9", "held", "t"),
            (TOPIC, 0, stored, "s1", "shop", "tbl1"),
            *late,
        ]


def passing(
    monkeypatch: pytest.MonkeyPatch,
    offsets: list[Mapping[str, Any] | None],
    end: int,
    stored: list[int],
    *,
    shared: bool = False,
    lacks_late: bool = False,
) -> bool:
    @contextmanager
    def reader(_: object) -> Iterator[Reader]:
        yield Reader(end)

    cursor = Cursor(stored, shared, lacks_late)

    @contextmanager
    def server(_: object) -> Iterator[Cursor]:
        yield cursor

    monkeypatch.setattr(line_passing, "_PAUSE_S", 0.001)
    monkeypatch.setattr(line_passing, "connect_rest", lambda _: Rest(offsets))
    monkeypatch.setattr(line_passing, "topic_reader", reader)
    monkeypatch.setattr(applied_offsets, "mysql_cursor", server)
    pipeline = Recorded(2, "optimistic").pipeline
    if shared:
        routes = tuple(replace(route, row_topic=TOPIC) for route in pipeline.routes)
        pipeline = replace(pipeline, routes=routes)
    line = LinePassing(pipeline, [ONE, LATE] if shared else [ONE], 0.2)
    return line.passed({"s1": END})


def test_the_connector_then_the_sink_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert passing(monkeypatch, [None, BEHIND, AT_END], 7, [0, 6, 7])


def test_of_a_shared_topic_the_offsets_of_the_compared_shards_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert passing(monkeypatch, [AT_END], 7, [6, 7], shared=True)
    assert not passing(monkeypatch, [AT_END], 7, [6], shared=True)
    assert not passing(monkeypatch, [AT_END], 7, [7], shared=True, lacks_late=True), (
        "a shard that has just come, and nothing of which is applied"
    )


def test_a_connector_that_stays_behind_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not passing(monkeypatch, [BEHIND], 7, [7])
    assert not passing(monkeypatch, [{**AT_END, "snapshot": True}], 7, [7])


def test_a_sink_that_stays_behind_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not passing(monkeypatch, [AT_END], 7, [6])


def test_an_empty_topic_is_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    assert passing(monkeypatch, [AT_END], 0, [0])


def test_a_target_that_does_not_answer_is_an_error_with_a_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def server(_: object) -> NoReturn:
        raise pymysql.OperationalError(2003, "Can't connect")

    with monkeypatch.context() as patched:
        patched.setattr(applied_offsets, "mysql_cursor", server)
        line = LinePassing(Recorded(2, "optimistic").pipeline, [ONE], 0.2)
        with pytest.raises(StackError, match="Can't connect") as caught:
            line._is_applied({(TOPIC, 0): 7})
    assert caught.value.code == "SM-4411"
