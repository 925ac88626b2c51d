"""Which row the target refuses, and what the operator is told about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.planning.ranges import RangeTask, ShardStream
from shardmerge.spark_sink.rows.decoding.row_format import JSON_ROWS
from shardmerge.spark_sink.rows.folding.row_fold import RowFold
from shardmerge.spark_sink.targets.mysql.tasks.connection import TaskConnection
from shardmerge.spark_sink.targets.mysql.tasks.refused_rows import find_refused_ordered, refusal_of
from tests.unit.spark_sink.row_events import SHARD, at, row, segment

TARGET = TargetTable("merged", "t")
STREAM = ShardStream(SHARD, TARGET, (segment(id=ColumnType("varchar", 20)),), None, 2, ordered=True)
TASK = RangeTask("t", 0, 0, 3, STREAM, {"id#1": Binding("id#1", "id")}, 1, -1)
SCHEMA = "`shardmerge schema --pipeline FILE --target merged.t`"
# As MySQL 8.0.36 says it, with the number that the session puts before.
NO_TABLE = TargetError("1146 Table 'merged.t' doesn't exist", number=1146, code="SM-3104")


class Connection:
    """To a server that answers every write of rows with one error."""

    rows = JSON_ROWS
    config = SimpleNamespace(round_bytes=1 << 20)

    def __init__(self, error: TargetError) -> None:
        self._error = error

    def new_fold(self, task: RangeTask, **more: Any) -> RowFold:
        return TaskConnection.new_fold(cast(Any, self), task, **more)

    @property
    def session(self) -> Any:
        @contextmanager
        def transaction() -> Iterator[None]:
            yield

        return SimpleNamespace(can_load=False, transaction=transaction)

    def write(self, target: object, batches: object) -> None:
        raise self._error


def test_a_missing_table_holds_the_first_row_and_says_how_to_bring_it_back() -> None:
    places = [at(pos) for pos in (100, 110, 120)]
    values = [row("c", {"id": str(pos)}, at(pos)) for pos in (100, 110, 120)]

    found = find_refused_ordered(
        [(TASK, ([0, 1, 2], values), places)], cast(Any, Connection(NO_TABLE))
    )

    assert found is not None
    place, refused = found
    assert (place, refused.offset, refused.refusal.code) == (TASK.place, 0, "SM-1526")
    assert "misses a table or database that the row needs: 1146 Table 'merged.t' doesn't exist" in (
        refused.refusal.reason
    )
    assert f"if it is merged.t: {SCHEMA} prints its CREATE TABLE" in refused.refusal.hint
    assert "`shardmerge command reread` brings the rows again" in refused.refusal.hint
    assert "change the row" not in refused.refusal.hint


@pytest.mark.parametrize(
    ("number", "code", "told"),
    [
        (1049, "SM-1526", SCHEMA),
        (1054, "SM-1527", SCHEMA),
        (1062, "SM-1515", "another row has this unique key"),
        (3819, "SM-1515", "change the row on the shard, or what the target accepts"),
    ],
)
def test_the_hint_fits_what_the_server_said(number: int, code: str, told: str) -> None:
    found = refusal_of(TargetError("said so", number=number, code="SM-3104"), TARGET)
    assert (found.code, found.collides) == (code, number == 1062)
    assert told in found.hint
    assert found.reason.endswith(": said so")


def test_a_row_that_is_not_there_to_be_removed_names_the_rebuild() -> None:
    found = refusal_of(TargetError("a row is to be removed once", code="SM-3108"), TARGET)
    assert (found.code, found.collides) == ("SM-3108", False)
    assert f"`shardmerge rebuild {TARGET}`" in found.hint
