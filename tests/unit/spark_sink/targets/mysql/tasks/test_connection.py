"""The folds of tasks: what a server loads, and what it cannot hold."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.planning.ranges import RangeTask, ShardStream
from shardmerge.spark_sink.rows.decoding.row_format import JSON_ROWS
from shardmerge.spark_sink.rows.folding import row_batches, row_fold
from shardmerge.spark_sink.rows.folding.keyless import KeylessBatch
from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.rows.folding.row_blocks import RefusedRow
from shardmerge.spark_sink.rows.folding.row_fold import RowFold
from shardmerge.spark_sink.targets.mysql.tasks import connection as connection_module
from shardmerge.spark_sink.targets.mysql.tasks import undo_ranges
from shardmerge.spark_sink.targets.mysql.tasks.bulk import TableShape
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


POINT, SHAPE = ColumnType("point"), "AAAAAAEBAAAAAAAAAAAAAAAAAAAAAAAAAA=="


def with_shapes(*nullable: bool) -> RangeTask:
    """A segment for each: whether its spatial column is nullable."""
    made = task(p=POINT)
    (one,) = made.stream.segments
    segments = []
    for number, may_be_null in enumerate(nullable):
        *others, last = one.columns
        last = replace(last, column=replace(last.column, nullable=may_be_null))
        segments.append(replace(one, start=at(number), columns=(*others, last)))
    return replace(made, stream=replace(made.stream, segments=tuple(segments)))


@pytest.mark.usefixtures("early")
@pytest.mark.parametrize(
    ("nullable", "is_mariadb", "loads"),
    [
        ([False], False, False),
        ([False], True, True),
        ([True], False, True),
        ([True, False], False, False),
        ([False, True], False, False),
    ],
)
def test_no_lines_are_made_for_a_spatial_column_that_mysql_does_not_load(
    nullable: list[bool], is_mariadb: bool, loads: bool
) -> None:
    fold = connection(is_mariadb=is_mariadb).new_fold(with_shapes(*nullable))
    for number in range(1, 4):
        image = {"id": number, "p": {"wkb": SHAPE, "srid": None}}
        assert fold.add(number, row("c", image, at(100 + number)))
    assert (lines(fold) != []) is loads
    assert fold.counts() == (3, 0)


def test_whole_rows_are_written_as_the_tables_shape_says(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[bool] = []
    monkeypatch.setattr(
        connection_module,
        "write_keyless",
        lambda *_, takes_loads: found.append(takes_loads),
    )
    target, batch = TargetTable("m", "t"), KeylessBatch(None, (), (), None)
    for takes_loads in (True, False):
        shape = TableShape(("p",), (), other_unique=False, takes_loads=takes_loads)
        fake = SimpleNamespace(session=None, shape=lambda _, shape=shape: shape)
        assert TaskConnection.write(cast(Any, fake), target, [batch]) == [None]
    assert found == [True, False]


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
