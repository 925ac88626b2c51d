"""The tasks of ordered shards end, whatever a round has room for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.range_reader import OffsetRange, Records
from shardmerge.spark_sink.planning.ordered_partitions import PartitionClosure
from shardmerge.spark_sink.planning.ranges import RangeTask, ShardStream
from shardmerge.spark_sink.rows.decoding.row_format import JSON_ROWS
from shardmerge.spark_sink.rows.folding.row_fold import RowFold
from shardmerge.spark_sink.targets.mysql.tasks.connection import TaskConnection
from shardmerge.spark_sink.targets.mysql.tasks.ordered_ranges import apply_ordered
from tests.unit.spark_sink.row_events import SHARD, at, row, segment

SEGMENT = segment(id=ColumnType("varchar", 20))
STREAM = ShardStream(SHARD, TargetTable("m", "t"), (SEGMENT,), None, 2, ordered=True)
BINDINGS = {"id#1": Binding("id#1", "id")}


class Cursor:
    def __init__(self, logs: Sequence[Sequence[bytes]], ranges: Sequence[OffsetRange]) -> None:
        self.logs = logs
        self.open = {r.place: r for r in ranges}
        self.at = {r.place: r.start for r in ranges}

    @property
    def is_open(self) -> bool:
        return bool(self.open)

    def read(self, most: int = 1) -> list[Records]:
        found = []
        for place in list(self.open):
            offset = self.at[place]
            found.append(Records(place, [offset], [self.logs[place.number][offset]]))
            self.at[place] += 1
            if self.at[place] == self.open[place].end:
                del self.open[place]
        return found

    def reached(self, place: Partition) -> int:
        return self.at[place]

    def is_reading(self, place: Partition) -> bool:
        return place in self.open

    def leave(self, place: Partition) -> None:
        self.open.pop(place, None)


class Connection:
    """Gives up after so many looks at the session: the task goes round in circles."""

    rows = JSON_ROWS

    def __init__(self, *logs: Sequence[bytes], round_records: int) -> None:
        self.logs = logs
        self.round_records = round_records
        self.config = SimpleNamespace(round_bytes=1 << 20)
        self.looks = 0

    def check_safe(self) -> None:
        pass

    @property
    def reader(self) -> Any:
        return SimpleNamespace(kept={}, seen={}, open=lambda ranges: Cursor(self.logs, ranges))

    def new_fold(self, task: RangeTask, refusals: Any) -> RowFold:
        return TaskConnection.new_fold(cast(Any, self), task, refusals)

    @property
    def session(self) -> Any:
        self.looks += 1
        assert self.looks < 1_000, "it never ends"

        @contextmanager
        def transaction() -> Iterator[None]:
            yield

        return SimpleNamespace(can_load=False, transaction=transaction)

    @property
    def control(self) -> Any:
        def advance_all(moves: Iterable[object]) -> None:
            list(moves)

        return SimpleNamespace(fence=lambda epoch, target: None, advance_all=advance_all)

    def known_shape(self, target: object) -> None:
        return None

    def write(self, target: object, batches: Sequence[object]) -> list[None]:
        return [None for _ in batches]


def logs(*places: Iterable[int]) -> list[list[bytes]]:
    return [[row("c", {"id": str(pos)}, at(pos)) for pos in of_lane] for of_lane in places]


SHORT = (
    (range(100, 110), range(200, 240)),
    ((5, PartitionClosure(10, 10)), (20, PartitionClosure(40, 40))),
)
"""Of 10 early rows in lane 0 its share has 5, before 40 late ones in lane 1."""
BEYOND = (
    (range(100, 105), range(200, 240)),
    ((5, PartitionClosure(5, 5)), (40, PartitionClosure(0, 40))),
)
"""A large transaction came between the ends and the watermarks."""


@pytest.mark.parametrize(
    ("places", "ranges"), [SHORT, BEYOND], ids=["another lane is short", "much is beyond the ends"]
)
def test_a_task_ends_although_its_lanes_are_full(
    places: Sequence[range], ranges: Sequence[tuple[int, PartitionClosure]]
) -> None:
    connection = Connection(*logs(*places), round_records=8)
    tasks = [
        RangeTask("t", number, 0, end, STREAM, BINDINGS, 1, -1, step)
        for number, (end, step) in enumerate(ranges)
    ]
    results = apply_ordered(tasks, cast(Any, connection))
    assert [r.next_offset for r in results] == [5, 0]
