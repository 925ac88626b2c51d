"""One round: the folded records of one or more partitions, and the transaction that writes them."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from shardmerge.schemas.model.errors import TargetError, TargetLost
from shardmerge.schemas.model.names import ShardId
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.range_reader import OffsetRange
from shardmerge.spark_sink.planning.ranges import Advance, RangeResult, RangeTask
from shardmerge.spark_sink.process.failpoints import reach
from shardmerge.spark_sink.rows.folding.key_collisions import ShardWrites
from shardmerge.spark_sink.rows.folding.row_fold import RowFold
from shardmerge.spark_sink.rows.folding.segment_plan import Refusal
from shardmerge.spark_sink.targets.mysql.server_errors import CONFLICTS, LOST, TRANSACTION_TOO_LARGE

from .connection import TaskConnection

_ATTEMPTS = 5


@dataclass(slots=True)
class Lane:
    """A task in progress. ``result``: what is committed so far; ``done``: nothing more follows."""

    task: RangeTask
    result: RangeResult
    refusals: dict[int, Refusal] = field(default_factory=dict)
    done: bool = False

    @classmethod
    def of(cls, task: RangeTask) -> Lane:
        """The lane of a task that has not begun."""
        start = task.stands_at
        result = RangeResult(
            task.topic, task.partition, start, start, None, 0, 0, 0, part=task.part
        )
        return cls(task, result)

    @property
    def partition(self) -> Partition:
        """The partition, or the shard's part of it, that this is a lane of."""
        return self.task.place

    @property
    def range(self) -> OffsetRange:
        """The part of the task's range that is not applied yet."""
        task, start = self.task, self.result.next_offset
        return OffsetRange(
            task.topic,
            task.partition,
            start,
            task.end_offset,
            task.part,
            task.stream.tells_moves,
        )


@dataclass(frozen=True, slots=True)
class Round:
    """One round of a task: ``fold`` has the records in ``[start, next_offset)``.

    Attributes:
        counts: Rows to write, rows to delete.
        read_bytes: Size of the records' values.
    """

    lane: Lane
    start: int
    next_offset: int
    fold: RowFold
    counts: tuple[int, int]
    read_bytes: int

    def take(self) -> None:
        """Note in the lane that the round is committed."""
        upserted, deleted = self.counts
        result, end = self.lane.result, self.fold.end
        self.lane.result = replace(
            result,
            next_offset=self.next_offset,
            next_position=end.position if end else None,
            hold=end.hold if end else None,
            truncated=end.truncated if end else False,
            rows=result.rows + self.fold.rows,
            written=result.written + upserted,
            deleted=result.deleted + deleted,
            read_bytes=result.read_bytes + self.read_bytes,
        )


class NotTogether(Exception):
    """One of several tasks, or shards, cannot be applied; it is not known which one."""


class RefusedRound(Exception):
    """The target refuses a row of a round; it is not known which one."""

    def __init__(self, error: TargetError) -> None:
        super().__init__(error)
        self.error = error


def commit(rounds: Sequence[Round], connection: TaskConnection) -> None:
    """Write rounds of one target and move their offsets, in one transaction.

    The transaction is repeated after a deadlock or another conflict, a lock wait that is too long,
    or a lost connection. The number of rows that replaced others is noted in the lanes.

    Raises:
        RefusedRow: A value cannot be converted.
        RefusedRound: The target refuses a row.
        WriterReplaced: Another writer took over or moved an offset.
        TargetClosed: The target was cut over.
        TargetError: The target cannot be written now (``retryable``), or does not take that many
            rows at once: the next rounds are smaller.
    """
    rounds = [r for r in rounds if r.next_offset != r.start]
    if not rounds:
        return
    writes = {shard: ShardWrites.of(folds) for shard, folds in _by_shard(rounds).items()}
    batches = [batch for of_shard in writes.values() for batch in of_shard.batches]
    key_collisions: Mapping[ShardId, int] = {}
    session, control = connection.session, connection.control
    task, uncertain = rounds[0].lane.task, False
    reach("rows-read")
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with session.transaction():
                control.fence(task.writer_epoch, task.stream.target)
                if uncertain and control.offset_of(task.place) == rounds[0].next_offset:
                    _note(rounds, key_collisions)
                    return
                grown = iter(connection.write(task.stream.target, batches))
                key_collisions = {shard: w.key_collisions(grown) for shard, w in writes.items()}
                reach("rows-written")
                control.advance_all(_advance(r) for r in rounds)
                reach("offsets-moved")
        except TargetError as error:
            if error.number in TRANSACTION_TOO_LARGE:
                if connection.shrink_rounds(sum(r.fold.rows for r in rounds)):
                    raise
                raise RefusedRound(error) from error
            if attempt == _ATTEMPTS or not _repeats(error):
                if error.retryable or isinstance(error, TargetLost):
                    raise
                raise RefusedRound(error) from error
            # The COMMIT may have been lost, or only its acknowledgement.
            uncertain = error.number in LOST
            time.sleep(0.05 * attempt)
        else:
            reach("committed")
            _note(rounds, key_collisions)
            return


def _by_shard(rounds: Sequence[Round]) -> dict[ShardId, list[RowFold]]:
    by_shard: dict[ShardId, list[RowFold]] = {}
    for r in rounds:
        by_shard.setdefault(r.lane.task.stream.shard, []).append(r.fold)
    return by_shard


def _note(rounds: Sequence[Round], key_collisions: Mapping[ShardId, int]) -> None:
    """Add the counts to the first lane of each shard."""
    left = dict(key_collisions)
    for r in rounds:
        if found := left.pop(r.lane.task.stream.shard, 0):
            result = r.lane.result
            r.lane.result = replace(result, key_collisions=result.key_collisions + found)


def _repeats(error: TargetError) -> bool:
    return error.number in LOST | CONFLICTS


def _advance(current: Round) -> Advance:
    task = current.lane.task
    return Advance(
        task.topic,
        task.partition,
        current.start,
        current.next_offset,
        task.stream.target,
        current.fold.rows,
        *current.counts,
        part=task.part,
    )


@contextmanager
def collector_resting() -> Iterator[None]:
    """Pause garbage collection: rows form no cycles, and the collector would scan them in vain."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
