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
from shardmerge.schemas.model.names import TargetTable
from shardmerge.spark_sink.loading.load_state import Load
from shardmerge.spark_sink.planning.chunk_orders import ChunkEnd, ChunkResult
from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.rows.folding.row_blocks import Block
from shardmerge.spark_sink.sources.chunk_task import ChunkTask, chunk_task
from shardmerge.spark_sink.targets.mysql.load_store import LoadStore
from shardmerge.spark_sink.targets.mysql.session import MySqlSession
from shardmerge.spark_sink.targets.mysql.stage_store import StageStore
from shardmerge.spark_sink.targets.mysql.tasks import staging
from shardmerge.spark_sink.targets.mysql.tasks.connection import TaskConnection
from shardmerge.spark_sink.targets.mysql.tasks.staging import StageWriter, copy_rows
from tests.unit.spark_sink.loading.loads import SHARD, at
from tests.unit.spark_sink.targets.mysql.test_stage_store import Staging

from .test_snapshot_task import snapshot_order

PIECE = 2
ROWS = Batch((), None, (Block((), (), (), (), 1),))


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
        if "COLUMN_TYPE" in sql:
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
        self._task = replace(chunk_task(order), staged=())
        self.store = LoadStore(cast(MySqlSession, self.session), "control", "p")
        self.load = replace(order.load, chunks=(order.chunk,))
        self.store.keep(None, self.load)
        self.stages = StageStore(cast(MySqlSession, self.session), "control", "p")

    @property
    def task(self) -> ChunkTask:
        """For the attempt for which the chunk is given out."""
        return replace(self._task, attempt=self.load.chunks[0].given)

    def give_out_again(self) -> None:
        self.step(self.load.give_back(0).begin(0))

    def step(self, after: Load) -> None:
        self.store.keep(self.load, after)
        self.load = after

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

    def begin(self) -> StageWriter:
        writer = StageWriter(self.connection)
        assert writer.begin(self.task)
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


def test_an_attempt_whose_table_another_one_dropped_is_not_wanted_any_more(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(session: Session, table: TargetTable, batch: object) -> None:
        if table.table not in session.tables:
            raise TargetError("Table doesn't exist [1146]", number=1146, code="SM-3101")

    monkeypatch.setattr(staging, "write_keyless", write)
    first, task = line.begin(), line.task
    assert first.add(task, ROWS)
    line.give_out_again()
    second = line.begin()
    assert not first.add(task, ROWS)
    assert second.add(line.task, ROWS)
    line.stages.drop([line.current])
    with pytest.raises(TargetError) as raised:
        second.add(line.task, ROWS)
    assert raised.value.number == 1146, "nobody knows why it is gone"


DONE = ChunkResult(SHARD, 0, ChunkEnd.DONE, 1, 1, at(70))


@pytest.mark.parametrize(
    "goes_on",
    [lambda late, task: late.add(task, ROWS), lambda late, task: late.finish(task, DONE)],
    ids=["add", "finish"],
)
def test_an_attempt_that_is_not_wanted_any_more_leaves_no_table(
    line: Line, monkeypatch: pytest.MonkeyPatch, goes_on: Callable[[StageWriter, ChunkTask], bool]
) -> None:
    def another_begins() -> None:
        line.give_out_again()
        line.begin()

    monkeypatch.setattr(staging, "write_keyless", lambda *_: None)
    task, line.session.stalls = line.task, another_begins
    late = line.begin()
    assert len(line.session.tables) == 2, "the late one has made its table"
    assert not goes_on(late, task)
    assert line.session.tables == [line.current]


def is_read(line: Line) -> None:
    line.begin()
    line.step(line.load.finish(0, 5, 40, at(70)))


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
