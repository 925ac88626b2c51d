"""The folds of tasks: what a server loads, and what it cannot hold."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.planning.ranges import RangeTask, ShardStream
from shardmerge.spark_sink.rows.decoding.row_format import JSON_ROWS
from shardmerge.spark_sink.rows.folding import row_batches, row_fold
from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.rows.folding.row_blocks import RefusedRow
from shardmerge.spark_sink.rows.folding.row_fold import RowFold
from shardmerge.spark_sink.targets.mysql.tasks import undo_ranges
from shardmerge.spark_sink.targets.mysql.tasks.connection import TaskConnection
from tests.unit.spark_sink.row_events import INT, SHARD, at, row, segment

NUMBER = "5.066837196502553e99"
ENUM = ColumnType("enum", elements=("0", "1"))


def task(**columns: Any) -> RangeTask:
    stream = ShardStream(SHARD, TargetTable("m", "t"), (segment(**{"id": INT, **columns}),), None)
    bindings = {f"{n}#1": Binding(f"{n}#1", n) for n in ("id", *columns)}
    return RangeTask("t", 0, 0, 9, stream, bindings, 1, -1)


def connection(*, is_mariadb: bool) -> Any:
    session = SimpleNamespace(can_load=True, is_mariadb=is_mariadb)
    config = SimpleNamespace(compiled_code=True)
    fake = SimpleNamespace(rows=JSON_ROWS, session=session, config=config, reader=None)
    fake.new_fold = lambda *args, **options: TaskConnection.new_fold(
        cast(Any, fake), *args, **options
    )
    return fake


def lines(fold: RowFold) -> list[bytes]:
    [batch] = fold.batches()
    assert isinstance(batch, Batch)
    return [*batch.upserts[0].lines]


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are many."""
    for module in (row_fold, row_batches):
        monkeypatch.setattr(module, "SETTLED_ROWS", 1)
    monkeypatch.setattr(row_batches, "LINES_FROM_ROWS", 1)


@pytest.mark.usefixtures("early")
def test_lines_are_what_the_server_reads() -> None:
    for is_mariadb in (False, True):
        fold = connection(is_mariadb=is_mariadb).new_fold(task(j=ColumnType("json")))
        fold.add(1, row("c", {"id": 1, "j": NUMBER}, at(1)))
        [line] = [found.decode() for found in lines(fold)]
        assert line.startswith("1\t") and float(line[2:]) == float(NUMBER)
        assert (line == f"1\t{NUMBER}") is is_mariadb


def test_rows_that_are_taken_back_are_folded_like_others(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[RangeTask] = []
    fake = connection(is_mariadb=True)
    new_fold = fake.new_fold

    def noted(wanted: RangeTask) -> RowFold:
        made.append(wanted)
        fold: RowFold = new_fold(wanted)
        return fold

    fake.new_fold = noted
    monkeypatch.setattr(undo_ranges, "open_ranges", lambda *_: None)
    monkeypatch.setattr(undo_ranges, "chunks", lambda _: ())
    undo_ranges._read([task()], fake)
    assert made == [task()]


@pytest.mark.parametrize("loads", [False, True])
def test_an_enum_value_that_the_server_cannot_store_is_refused_by_its_offset(loads: bool) -> None:
    fold = connection(is_mariadb=False).new_fold(task(e=ENUM), loads=loads)
    for offset, value in enumerate(("1", "", "0")):
        fold.add(offset, row("c", {"id": offset, "e": value}, at(offset + 1)))
    with pytest.raises(RefusedRow) as refused:
        fold.batches()
    assert refused.value.offset == 1 and "index 0" in refused.value.refusal.reason
