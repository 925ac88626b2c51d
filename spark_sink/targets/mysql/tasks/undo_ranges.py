"""The tasks that take back a shard's rows, because all of them come again (``restarts``).

All rows of a shard's tasks are one transaction, which moves its partitions from the ends of their
ranges to the starts. If the target does not take a transaction of that size, it moves them part of
the way. If a row cannot be taken back, nothing of the shard moves, and the shard is held.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.spark_sink.kafka.range_reader import OffsetRange
from shardmerge.spark_sink.kafka.range_records import chunks
from shardmerge.spark_sink.kafka.shard_demux import open_ranges
from shardmerge.spark_sink.planning.ranges import RangeResult, RangeTask, RowHold
from shardmerge.spark_sink.rows.folding.row_blocks import RefusedRow
from shardmerge.spark_sink.rows.folding.row_fold import Stop

from .connection import TaskConnection
from .rounds import Lane, RefusedRound, Round, commit


def take_back(tasks: Sequence[RangeTask], connection: TaskConnection) -> list[RangeResult]:
    """Take the rows of ranges back.

    Args:
        tasks: Of one target; their streams have ``undoes``.
        connection: Kept open between tasks.

    Returns, Raises:
        As ``apply_together``.
    """
    by_shard: dict[ShardId, list[RangeTask]] = {}
    for task in tasks:
        by_shard.setdefault(task.stream.shard, []).append(task)
    return [result for some in by_shard.values() for result in _take_back(some, connection)]


def _take_back(tasks: Sequence[RangeTask], connection: TaskConnection) -> list[RangeResult]:
    most = max(1, connection.round_records // len(tasks))
    tasks = [
        replace(task, start_offset=max(task.start_offset, task.end_offset - most)) for task in tasks
    ]
    rounds = _read(tasks, connection)
    stops = [r.fold.end for r in rounds if r.fold.end is not None]
    if stops:
        return _held(rounds, stops[0])
    try:
        commit(rounds, connection)
    except (RefusedRow, RefusedRound) as refused:
        return _held(rounds, _refusal(rounds, refused))
    for r in rounds:
        r.take()
    return [r.lane.result for r in rounds]


def _read(tasks: Sequence[RangeTask], connection: TaskConnection) -> list[Round]:
    lanes = {task.place: Lane.of(task) for task in tasks}
    folds = {place: connection.new_fold(lane.task) for place, lane in lanes.items()}
    ranges = [
        OffsetRange(
            t.topic, t.partition, t.start_offset, t.end_offset, t.part, t.stream.tells_moves
        )
        for t in tasks
    ]
    sizes = dict.fromkeys(lanes, 0)
    cursor = open_ranges(connection.reader, ranges, connection.rows)
    for records, size in chunks(cursor):
        sizes[records.partition] += size
        if not folds[records.partition].add_all(records.offsets, records.values):
            cursor.leave(records.partition)
    return [
        Round(
            lane,
            lane.task.end_offset,
            lane.task.start_offset,
            folds[place],
            folds[place].counts(),
            sizes[place],
        )
        for place, lane in lanes.items()
    ]


def _held(rounds: Sequence[Round], stop: Stop) -> list[RangeResult]:
    """The results when nothing moved; the first one has the reason."""
    results = [r.lane.result for r in rounds]
    results[0] = replace(results[0], hold=stop.hold)
    return results


def _refusal(rounds: Sequence[Round], refused: RefusedRow | RefusedRound) -> Stop:
    lane = rounds[0].lane
    if isinstance(refused, RefusedRow):
        offset, refusal = refused.offset, refused.refusal
        reason, hint, code = refusal.reason, refusal.hint, refusal.code
    else:
        error = refused.error
        offset, reason, hint, code = lane.task.start_offset, error.message, error.hint, error.code
    position: SourcePosition = lane.task.stream.segments[-1].start
    reason = f"its rows in the target cannot be taken back: {reason}"
    hold = RowHold(lane.task.stream.shard, position, offset, reason, hint, code=code)
    return Stop(offset, position, hold)
