"""Attempts to read a snapshot that overlap, on SQLite; ``FOR UPDATE`` is the servers' matter."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shardmerge.schemas.model.errors import TargetError
from shardmerge.spark_sink.loading.load_state import Load
from shardmerge.spark_sink.sources.chunk_task import ChunkTask, chunk_task
from shardmerge.spark_sink.targets.mysql.load_store import LoadStore
from shardmerge.spark_sink.targets.mysql.session import MySqlSession
from shardmerge.spark_sink.targets.mysql.stage_store import StageStore
from shardmerge.spark_sink.targets.mysql.tasks.connection import TaskConnection
from shardmerge.spark_sink.targets.mysql.tasks.staging import StageWriter, copy_rows
from tests.unit.spark_sink.loading.loads import at
from tests.unit.spark_sink.targets.mysql.test_stage_store import Staging

from .test_snapshot_task import snapshot_order

PIECE = 2


class Session(Staging):
    """``stalls`` runs once, when the next transaction has ended."""

    can_load = is_mariadb = is_tidb = False

    def __init__(self) -> None:
        super().__init__()
        self.stalls: Callable[[], object] | None = None
        self.rows = 5
        self.copied: list[str] = []

    @contextmanager
    def transaction(self) -> Iterator[None]:
        yield
        stalls, self.stalls = self.stalls, None
        if stalls is not None:
            stalls()

    def query(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        if "information_schema.COLUMNS" in sql:
            return []
        if "MAX(shardmerge_row)" in sql:
            (after,) = re.findall(r"shardmerge_row > (\d+)", sql)
            return [(min(int(after) + PIECE, self.rows) if int(after) < self.rows else None,)]
        return super().query(sql, values)

    def execute_strictly(self, sql: str) -> int:
        (piece,) = re.findall(r"shardmerge_row > (\d+) AND s.shardmerge_row <= (\d+)", sql)
        self.copied.append("-".join(piece))
        return 0


class Line:
    """A load of a snapshot whose chunk is given out, and its target."""

    def __init__(self) -> None:
        order = snapshot_order()
        self.session = Session()
        # The columns do not matter here.
        self.task = replace(chunk_task(order), staged=())
        self.store = LoadStore(cast(MySqlSession, self.session), "control", "p")
        self.load = replace(order.load, chunks=(order.chunk,), is_planned=True)
        self.store.keep(None, self.load)
        self.stages = StageStore(cast(MySqlSession, self.session), "control", "p")

    @property
    def connection(self) -> TaskConnection:
        config = SimpleNamespace(control_database="control", pipeline="p")
        control = SimpleNamespace(fence=lambda *_: None)
        made = SimpleNamespace(
            session=self.session,
            config=config,
            control=control,
            round_records=PIECE,
            shape=lambda _: None,
        )
        return cast(TaskConnection, made)

    def begin(self, task: ChunkTask | None = None) -> StageWriter:
        writer = StageWriter(self.connection)
        assert writer.begin(task or self.task)
        return writer

    @property
    def current(self) -> str:
        found = self.stages.current(self.load)
        assert found is not None
        return found[0]


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    yield made
    made.session.database.close()


def test_an_attempt_drops_the_tables_of_those_before_it(line: Line) -> None:
    line.begin()
    (first,) = line.session.tables
    line.begin()
    assert line.session.tables == [line.current] != [first]


def test_an_attempt_that_stalls_leaves_the_table_of_the_next_one(line: Line) -> None:
    line.session.stalls = line.begin
    line.begin()
    # The one that stalled has gone on, and does not count any more.
    assert line.current in line.session.tables


def is_read(line: Line) -> Load:
    line.begin()
    read = line.load.finish(0, 5, 40, at(70))
    line.store.keep(line.load, read)
    return read


def test_a_copy_ends_between_two_pieces_when_the_sink_stops(line: Line) -> None:
    is_read(line)
    copied = line.session.copied
    assert not copy_rows(line.task, at(70), line.connection, lambda: len(copied) == 2)
    assert copied == ["0-2", "2-4"]
    assert line.stages.current(line.load) == (line.current, 4)
    assert copy_rows(line.task, at(70), line.connection, lambda: False)
    assert copied[2:] == ["4-5"]


def test_a_snapshot_whose_table_is_gone_cannot_be_copied(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_read(line)
    gone = TargetError("Table 'control.staged_1' doesn't exist [1146]", number=1146, code="SM-3101")
    query = line.session.query

    def refused(sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        if "MAX(shardmerge_row)" in sql:
            raise gone
        return query(sql, values)

    monkeypatch.setattr(line.session, "query", refused)
    with pytest.raises(TargetError, match="are not beside the target any more") as raised:
        copy_rows(line.task, at(70), line.connection, lambda: False)
    assert raised.value.code == "SM-1627"
    gone.number = 1205
    with pytest.raises(TargetError) as raised:
        copy_rows(line.task, at(70), line.connection, lambda: False)
    assert raised.value is gone, "any other error stays what it is"
