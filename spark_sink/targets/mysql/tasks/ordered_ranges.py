"""The tasks of shards whose partitions are ordered (``planning.ordered_partitions``).

Theory of operation. One call of the task function gets all partitions of a shard. In rounds of
bounded size it

1. fills the lanes with records, each up to its share of the round's bound;
2. folds the lanes up to the position up to which all of them are complete (``ordered_fold``);
3. writes the result in one transaction, which moves the offsets of all partitions.

When the target refuses a row, the first refused row in binlog order is searched for. The shard is
held there, and no partition goes further. Several shards of one target are read and written
together, and one by one when a row is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import ShardId
from shardmerge.spark_sink.kafka.range_reader import OffsetRange
from shardmerge.spark_sink.kafka.range_records import chunks
from shardmerge.spark_sink.kafka.shard_demux import open_ranges
from shardmerge.spark_sink.planning.ranges import RangeResult, RangeTask
from shardmerge.spark_sink.rows.folding.ordered_fold import LaneFold, LaneRecords, ShardLanes
from shardmerge.spark_sink.rows.folding.row_blocks import RefusedRow
from shardmerge.spark_sink.rows.folding.row_fold import RowFold

from .connection import TaskConnection
from .refused_rows import find_refused_ordered
from .rounds import Lane, NotTogether, RefusedRound, Round, collector_resting, commit


def apply_ordered(tasks: Sequence[RangeTask], connection: TaskConnection) -> list[RangeResult]:
    """Apply the ranges of shards, as far as they are complete, up to gates and refused rows.

    Args:
        tasks: Of one target. For each shard they have all partitions with rows below their bounds
            that have not reached the shard's stop.
        connection: Kept open between tasks.

    Returns, Raises:
        As ``apply_together``.
    """
    by_shard: dict[ShardId, list[RangeTask]] = {}
    for task in tasks:
        by_shard.setdefault(task.stream.shard, []).append(task)
    shards = [_Shard.of(some, connection) for some in by_shard.values()]
    with collector_resting():
        if len(shards) > 1:
            with suppress(NotTogether):
                _apply(shards, connection)
        for shard in shards:
            _apply([shard], connection)
    return [lane.result for shard in shards for lane in shard.lanes]


@dataclass(slots=True)
class _Shard:
    """A shard in progress; ``lanes`` and ``records.lanes`` have the same order.

    Attributes:
        is_over: Whether no more of the tasks' ranges can be applied now.
    """

    lanes: list[Lane]
    records: ShardLanes
    is_over: bool = False

    @classmethod
    def of(cls, tasks: Sequence[RangeTask], connection: TaskConnection) -> _Shard:
        """The state of a shard before its first round."""
        lanes = [Lane.of(task) for task in tasks]
        records = []
        for task in tasks:
            assert task.closure is not None
            start, end = task.start_offset, task.end_offset
            stream = task.stream
            records.append(
                LaneRecords(
                    stream.shard,
                    start,
                    end,
                    task.closure,
                    connection.rows,
                    kept_from=stream.kept_from,
                )
            )
        return cls(lanes, ShardLanes(records))

    def fold(self, connection: TaskConnection) -> list[LaneFold | None]:
        def new_fold(number: int) -> RowFold:
            lane, records = self.lanes[number], self.records.lanes[number]
            return connection.new_fold(lane.task, {**records.refusals, **lane.refusals})

        return self.records.fold(new_fold)

    def rounds(self, folds: Sequence[LaneFold | None]) -> list[Round]:
        rounds = []
        for lane, records, fold in zip(self.lanes, self.records.lanes, folds, strict=True):
            if fold is not None:
                start, size = lane.result.next_offset, records.bytes_of(fold.count)
                rounds.append(
                    Round(lane, start, fold.next_offset, fold.fold, fold.fold.counts(), size)
                )
        return rounds

    def take(
        self, folds: Sequence[LaneFold | None], rounds: Sequence[Round], *, goes_on: bool
    ) -> None:
        """Note what is committed; ``goes_on``: whether this round has read records."""
        for r in rounds:
            r.take()
        self.records.take(folds)
        moved = any(r.next_offset > r.start for r in rounds)
        stopped = any(fold is not None and fold.is_stopped for fold in folds)
        # A full lane is not read. It may wait for records that the tasks may not read now.
        self.is_over = stopped or not (moved or goes_on)


def _apply(shards: Sequence[_Shard], connection: TaskConnection) -> None:
    """Apply rounds until the shards are over.

    Raises:
        NotTogether: A row of one of several shards cannot be applied.
    """
    while todo := [shard for shard in shards if not shard.is_over]:
        was_read = _read(todo, connection)
        folds = [shard.fold(connection) for shard in todo]
        rounds = [shard.rounds(some) for shard, some in zip(todo, folds, strict=True)]
        try:
            commit([r for some in rounds for r in some], connection)
        except (RefusedRow, RefusedRound) as refused:
            if len(shards) > 1:
                raise NotTogether from refused
            _refuse(todo[0], folds[0], connection, refused)
            continue
        for shard, of_shard, of_rounds in zip(todo, folds, rounds, strict=True):
            shard.take(of_shard, of_rounds, goes_on=was_read)


def _refuse(
    shard: _Shard,
    folds: Sequence[LaneFold | None],
    connection: TaskConnection,
    refused: RefusedRow | RefusedRound,
) -> None:
    """Find the row that cannot be applied, so that the next round ends before it.

    Raises:
        TargetError: All rows are accepted now: to be tried again (``retryable``).
    """
    prefixes = [
        (lane.task, records.first(fold.count), records.places(fold.count))
        for lane, records, fold in zip(shard.lanes, shard.records.lanes, folds, strict=True)
        if fold is not None
    ]
    found = find_refused_ordered(prefixes, connection)
    if found is None:
        if isinstance(refused, RefusedRound):
            refused.error.retryable = True
            raise refused.error
        raise TargetError(
            refused.refusal.reason,
            retryable=True,
            hint=refused.refusal.hint,
            code=refused.refusal.code,
        )
    place, row = found
    lane = next(lane for lane in shard.lanes if lane.task.place == place)
    lane.refusals[row.offset] = row.refusal


def _read(shards: Sequence[_Shard], connection: TaskConnection) -> bool:
    """Fill the lanes, each up to its share of a round; returns whether any had to be read."""
    lanes = {
        lane.partition: records
        for shard in shards
        for lane, records in zip(shard.lanes, shard.records.lanes, strict=True)
        if not records.is_ended
    }
    telling = {
        lane.partition for shard in shards for lane in shard.lanes if lane.task.stream.tells_moves
    }
    most_records = max(1, connection.round_records // max(1, len(lanes)))
    most_bytes = connection.config.round_bytes // max(1, len(lanes))

    def is_full(records: LaneRecords) -> bool:
        return len(records) >= most_records or records.size >= most_bytes

    reading = {
        place: records
        for place, records in lanes.items()
        if records.reached < records.end and not is_full(records)
    }
    if not reading:
        return False
    ranges = [
        OffsetRange(
            place.topic,
            place.number,
            records.reached,
            records.end,
            place.shard,
            place in telling,
        )
        for place, records in reading.items()
    ]
    cursor = open_ranges(connection.reader, ranges, connection.rows)
    full = set()
    for some, _ in chunks(cursor):
        place, records = some.partition, reading[some.partition]
        records.extend(some.offsets, some.values)
        if is_full(records) and cursor.is_reading(place):
            full.add(place)
            cursor.leave(place)
    for place, records in reading.items():
        records.reached = cursor.reached(place)
        if place not in full:
            # If a transaction is open below the end, the lane is read only up to it now.
            records.end = records.reached
    return True
