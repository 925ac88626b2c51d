"""One round: the folded records of one or more partitions, and the transaction that writes them.

Theory of operation of a small round (``_write_at_once``). Statement by statement, a round of one
row waits for six answers, one after the other. So the server gets the same statements, in the same
order, in one message. It executes them one by one, and stops at the first error. COMMIT is sent
when every answer was checked:

* the fence, as always (``control``);
* the number of statements that were executed on the table: it tells that the table's keys are those
  with which the rows' statements were made;
* each row's statement has no warning, and each offset moved;
* the rows are safe (``check_safe``): Kafka may tell that while the target executes the message.

Where an answer is another one, or the target refuses a statement, the transaction is rolled back,
and ``commit`` writes the round statement by statement. That finds out what it is, and tells it. So
there is one place where errors are judged.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from shardmerge.schemas.model.errors import TargetError, TargetLost
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.range_reader import OffsetRange
from shardmerge.spark_sink.planning.ranges import Advance, RangeResult, RangeTask
from shardmerge.spark_sink.process.failpoints import reach
from shardmerge.spark_sink.rows.folding.key_collisions import ShardWrites
from shardmerge.spark_sink.rows.folding.keyless import KeylessBatch
from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.rows.folding.row_fold import RowFold
from shardmerge.spark_sink.rows.folding.segment_plan import Refusal
from shardmerge.spark_sink.targets.mysql.control import check_fence
from shardmerge.spark_sink.targets.mysql.server_errors import CONFLICTS, LOST, TRANSACTION_TOO_LARGE
from shardmerge.spark_sink.targets.mysql.server_notes import Answer, Statement

from .bulk import TableShape, Write, writes_of
from .connection import TaskConnection

_ATTEMPTS = 5
_MOST_ROWS, _MOST_MOVES, _MOST_CHARACTERS = 100, 20, 64 << 10
"""A larger round is not quick anyway, and would be sent twice if its target refused a row."""


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
        NotSafe: The rows may not be committed.
    """
    rounds = [r for r in rounds if r.next_offset != r.start]
    if not rounds:
        return
    writes = {shard: ShardWrites.of(folds) for shard, folds in _by_shard(rounds).items()}
    batches = [batch for of_shard in writes.values() for batch in of_shard.batches]
    key_collisions: Mapping[ShardId, int] = {}
    session, control = connection.session, connection.control
    task, uncertain = rounds[0].lane.task, False
    epoch, target, moves = task.writer_epoch, task.stream.target, [_advance(r) for r in rounds]
    reach("rows-read")
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            at_once = None if attempt > 1 else _write_at_once(task, moves, batches, connection)
            if at_once is not None:
                key_collisions = _collisions(writes, at_once)
            else:
                connection.check_safe()
                with session.transaction():
                    control.fence(epoch, target)
                    if uncertain and control.offset_of(task.place) == rounds[0].next_offset:
                        _note(rounds, key_collisions)
                        return
                    key_collisions = _collisions(writes, connection.write(target, batches))
                    reach("rows-written")
                    control.advance_all(moves)
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
            uncertain |= error.number in LOST
            time.sleep(0.05 * attempt)
        else:
            reach("committed")
            _note(rounds, key_collisions)
            return


class _Unexpected(Exception):
    """An answer is not as expected: the transaction is rolled back."""


def _write_at_once(
    task: RangeTask,
    moves: Sequence[Advance],
    batches: Sequence[Batch | KeylessBatch],
    connection: TaskConnection,
) -> list[int | None] | None:
    """Write the rows of a round and move its offsets, in one transaction of two messages.

    Args:
        task: One of the round's.
        moves: Of the round's partitions.
        batches: The rows.
        connection: Writes.

    Returns:
        For each batch by how many rows the table grew at most; None when it is not known. None
        when nothing was written: the round is not small, or something is not as expected.

    Raises:
        WriterReplaced: Another writer took over.
        TargetClosed: The target was cut over.
        TargetError: The target cannot be written now (``retryable``).
        NotSafe: The rows may not be committed.
    """
    target = task.stream.target
    known = connection.known_shape(target) if batches else None
    if known is None or len(moves) > _MOST_MOVES:
        return None
    executed, shape = known
    writes = _few_writes(target, shape, batches, connection)
    if not writes:
        return None
    control, each = connection.control, [write for of_batch in writes for write in of_batch]
    # Shards without rows move together, by queries of their own.
    are_plain = all(move.part is None or move.rows for move in moves)
    first = [
        control.fence_query(target),
        control.count_query(target),
        *(Statement(write.sql) for write in each),
        *(control.advance_update(move) for move in moves if are_plain),
    ]
    try:
        with connection.session.transaction(first) as answers:
            check_fence(answers[0].rows, task.writer_epoch, target)
            _check(answers[1:], executed, len(each))
            reach("rows-written")
            if not are_plain:
                control.advance_all(moves)
            connection.check_safe()
            reach("offsets-moved")
    except _Unexpected:
        return None
    except TargetError as error:
        if error.retryable or isinstance(error, TargetLost):
            raise
        return None
    left = iter(answers[2:])
    grown = [sum(write.grown(next(left).changed) for write in of_batch) for of_batch in writes]
    return [found if connection.is_counted else None for found in grown]


def _few_writes(
    target: TargetTable,
    shape: TableShape,
    batches: Sequence[Batch | KeylessBatch],
    connection: TaskConnection,
) -> list[list[Write]]:
    """The statements of each batch; empty if there is none, or they are not for one message."""
    blocks = []
    for batch in batches:
        if isinstance(batch, KeylessBatch):
            return []
        blocks += [*batch.upserts, *filter(None, [batch.deletes])]
    if sum(block.rows for block in blocks) > _MOST_ROWS:
        return []
    session = connection.session
    writes = [
        list(writes_of(session, target, shape, batch))
        for batch in batches
        if isinstance(batch, Batch)
    ]
    each = [write for of_batch in writes for write in of_batch]
    most = min(_MOST_CHARACTERS, session.max_packet // 8)
    if any(write.loaded for write in each) or sum(len(write.sql) for write in each) > most:
        return []
    return writes


def _check(answers: Sequence[Answer], executed: int, writes: int) -> None:
    """Check the answers behind the fence's.

    Raises:
        _Unexpected: One is not as expected.
    """
    ((found,),) = answers[0].rows
    of_writes, of_moves = answers[1 : 1 + writes], answers[1 + writes :]
    if (
        int(found) != executed
        or any(answer.warnings for answer in of_writes)
        or any(answer.changed != 1 for answer in of_moves)
    ):
        raise _Unexpected


def _by_shard(rounds: Sequence[Round]) -> dict[ShardId, list[RowFold]]:
    by_shard: dict[ShardId, list[RowFold]] = {}
    for r in rounds:
        by_shard.setdefault(r.lane.task.stream.shard, []).append(r.fold)
    return by_shard


def _collisions(
    writes: Mapping[ShardId, ShardWrites], grown: Sequence[int | None]
) -> dict[ShardId, int]:
    """Shard → how many inserts replaced rows, by how many rows the table grew with each batch."""
    left = iter(grown)
    return {shard: of_shard.key_collisions(left) for shard, of_shard in writes.items()}


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
    task, stored = current.lane.task, current.start
    if current.start == task.stands_at and task.stored_offset is not None:
        stored = task.stored_offset
    return Advance(
        task.topic,
        task.partition,
        stored,
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
