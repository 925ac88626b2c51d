"""The tasks: read offset ranges, stop at gates, write to the target, commit their offsets.

Theory of operation. The tasks of one target that a worker has are applied side by side: one read
of all their partitions, one transaction for what it gave. Their work is done in rounds of bounded
size; each round is one transaction that holds its rows and the compare-and-set of the offset of
every partition that moved.

1. Read and fold records until the ranges' ends, gates, rows that cannot be applied, or the
   round's bound. What partitions of one shard give is written as one: sorted by primary key, it
   goes through the target's index once.
2. In one transaction: check the writer epoch, write, move the offsets. A deadlock, or a lock
   wait that is too long, repeats it.
3. When a value does not fit or the target refuses a row, the tasks are applied one by one
   instead. Of one task the first row is looked for whose prefix of the round is refused (each
   probe is rolled back); it is folded again up to just before it: the row is held.

A crash at any place leaves the offsets and the rows as of the last committed round: running the
ranges again from the stored offsets loses nothing and repeats nothing.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from shardmerge.schemas.errors import TargetError
from shardmerge.schemas.names import ShardId
from shardmerge.spark_sink.dealing import Cursor, open_ranges
from shardmerge.spark_sink.failpoints import reach
from shardmerge.spark_sink.keyless import KeylessBatch
from shardmerge.spark_sink.partitions import Partition
from shardmerge.spark_sink.range_reader import OffsetRange
from shardmerge.spark_sink.ranges import Advance, RangeResult, RangeTask
from shardmerge.spark_sink.row_batches import Batch
from shardmerge.spark_sink.row_blocks import RefusedRow
from shardmerge.spark_sink.row_fold import RowFold
from shardmerge.spark_sink.segment_plan import Refusal

from .bulk import load_lines
from .connection import ApplyConfig, TaskConnection, kept_connection
from .refused_rows import find_refused
from .session import DEADLOCK, LOCK_WAIT_TIMEOUT, LOST

_ATTEMPTS = 5


@dataclass(slots=True)
class _Lane:
    """A task on its way. ``result``: what is committed; ``done``: that is all of it."""

    task: RangeTask
    result: RangeResult
    refusals: dict[int, Refusal] = field(default_factory=dict)
    done: bool = False

    @property
    def partition(self) -> Partition:
        return self.task.place

    @property
    def range(self) -> OffsetRange:
        """What is not applied yet."""
        task, start = self.task, self.result.next_offset
        return OffsetRange(task.topic, task.partition, start, task.end_offset, task.part)


@dataclass(frozen=True, slots=True)
class _Round:
    """What one round of a task is: ``fold`` of the records in ``[start, next_offset)``.

    Attributes:
        counts: Rows to write, rows to delete.
        read_bytes: Size of the records' values.
    """

    lane: _Lane
    start: int
    next_offset: int
    fold: RowFold
    counts: tuple[int, int]
    read_bytes: int


class _NotTogether(Exception):
    """One of several tasks cannot be applied: which one is not known."""


def apply_tasks(tasks: Iterable[RangeTask], config: ApplyConfig) -> Iterator[RangeResult]:
    """Apply ranges: the function of ``RDD.mapPartitions``.

    Neighbours of one target are applied together, unless they are of one partition and not read
    together. Also called
    directly by the driver for a batch too small to be worth a job.

    Raises:
        TargetError, StackError, ContractError: The batch must be planned anew from the stored
            offsets; results yielded before are committed.
    """
    connection = kept_connection(config)
    for together in _neighbours(tasks):
        try:
            yield from apply_together(together, connection)
        except Exception:
            # Whatever state the connections are in: the next task makes new ones.
            connection.close()
            raise


def _neighbours(tasks: Iterable[RangeTask]) -> Iterator[list[RangeTask]]:
    found: list[RangeTask] = []
    readings: dict[Partition, int] = {}
    places: set[Partition] = set()
    for task in tasks:
        whole = task.place.whole
        if found and (
            task.place in places
            or readings.get(whole, task.reading) != task.reading
            or task.stream.target != found[0].stream.target
            or task.writer_epoch != found[0].writer_epoch
        ):
            yield found
            found, readings, places = [], {}, set()
        found.append(task)
        readings[whole] = task.reading
        places.add(task.place)
    if found:
        yield found


def apply_together(tasks: Sequence[RangeTask], connection: TaskConnection) -> list[RangeResult]:
    """Apply the rows of ranges, each up to its end, a gate or a row that cannot be applied.

    Args:
        tasks: Of one target and different partitions, or parts of one that are read together; one
            at least.
        connection: What is kept open over tasks.

    Returns:
        What was committed of each. Running the same tasks again raises ``TargetError``, because
        the stored offsets moved.

    Raises:
        TargetError: Another writer took over or moved an offset; or the target cannot be
            written now (``retryable``).
        ContractError: A range's start does not exist any more.
        StackError: Kafka cannot be read.
    """
    lanes = [
        _Lane(
            task,
            RangeResult(
                task.topic,
                task.partition,
                task.start_offset,
                task.start_offset,
                None,
                0,
                0,
                0,
                part=task.part,
            ),
        )
        for task in tasks
    ]
    with _collector_resting():
        if len(lanes) > 1:
            with suppress(_NotTogether):
                _apply(lanes, connection)
        for lane in lanes:
            while not lane.done:
                try:
                    _apply([lane], connection)
                except RefusedRow as refused:
                    lane.refusals[refused.offset] = refused.refusal
    return [lane.result for lane in lanes]


@contextmanager
def _collector_resting() -> Iterator[None]:
    """Rows hold no cycles: the collector would look at every one again and again, for nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _apply(lanes: Sequence[_Lane], connection: TaskConnection) -> None:
    """Apply rounds until the lanes are done.

    Raises:
        RefusedRow: A row of the only lane cannot be applied.
        _NotTogether: A row of one of several lanes cannot be applied.
    """
    cursor = open_ranges(connection.reader, [lane.range for lane in lanes], connection.rows)
    while not all(lane.done for lane in lanes):
        rounds = _read(lanes, cursor, connection)
        _commit([r for r in rounds if r.next_offset > r.start], connection)
        for r in rounds:
            upserted, deleted = r.counts
            result, end = r.lane.result, r.fold.end
            r.lane.result = replace(
                result,
                next_offset=r.next_offset,
                next_position=end.position if end else None,
                hold=end.hold if end else None,
                truncated=end.truncated if end else False,
                rows=result.rows + r.fold.rows,
                written=result.written + upserted,
                deleted=result.deleted + deleted,
                read_bytes=result.read_bytes + r.read_bytes,
            )
            r.lane.done = not cursor.is_reading(r.lane.partition)


def _read(lanes: Sequence[_Lane], cursor: Cursor, connection: TaskConnection) -> list[_Round]:
    config = connection.config
    lines_of = load_lines if connection.session.can_load else None
    folds = {
        lane.partition: RowFold(
            lane.task.stream, lane.task.bindings, lane.refusals, connection.rows, lines_of
        )
        for lane in lanes
        if not lane.done
    }
    count = size = 0
    sizes = dict.fromkeys(folds, 0)
    while cursor.is_open and count < config.round_records and size < config.round_bytes:
        for records in cursor.read(config.round_records - count):
            count += len(records.values)
            read = sum(map(len, filter(None, records.values)))
            size += read
            sizes[records.partition] += read
            if not folds[records.partition].add_all(records.offsets, records.values):
                cursor.leave(records.partition)
    return [
        _Round(
            lane,
            lane.result.next_offset,
            fold.end.offset if fold.end is not None else cursor.reached(lane.partition),
            fold,
            fold.counts(),
            sizes[lane.partition],
        )
        for lane in lanes
        if (fold := folds.get(lane.partition)) is not None
    ]


def _commit(rounds: Sequence[_Round], connection: TaskConnection) -> None:
    """Write rounds and move their offsets, in one transaction.

    Raises:
        RefusedRow: A row of the only round cannot be applied.
        _NotTogether: A row of one of several rounds cannot be applied.
        TargetError: See ``apply_together``.
    """
    if not rounds:
        return
    try:
        batches = _batches(rounds)
    except RefusedRow:
        if len(rounds) > 1:
            raise _NotTogether from None
        raise
    session, control = connection.session, connection.control
    task, uncertain = rounds[0].lane.task, False
    reach("rows-read")
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with session.transaction():
                control.fence(task.writer_epoch)
                if uncertain and control.offset_of(task.place) == rounds[0].next_offset:
                    return
                connection.write(task.stream.target, batches)
                reach("rows-written")
                control.advance_all(_advance(r) for r in rounds)
                reach("offsets-moved")
        except TargetError as error:
            if attempt == _ATTEMPTS or not _repeats(error):
                if not error.statement or error.retryable:
                    raise
                if len(rounds) > 1:
                    raise _NotTogether from error
                only = rounds[0]
                raise find_refused(task, only.start, only.next_offset, connection, error) from error
            # COMMIT may have been lost, or only its acknowledgement.
            uncertain = error.number in LOST
            time.sleep(0.05 * attempt)
        else:
            reach("committed")
            return


def _batches(rounds: Sequence[_Round]) -> list[Batch | KeylessBatch]:
    by_shard: dict[ShardId, list[RowFold]] = {}
    for r in rounds:
        by_shard.setdefault(r.lane.task.stream.shard, []).append(r.fold)
    return [batch for first, *others in by_shard.values() for batch in first.batches(others)]


def _repeats(error: TargetError) -> bool:
    return error.number in LOST or error.number in (DEADLOCK, LOCK_WAIT_TIMEOUT)


def _advance(current: _Round) -> Advance:
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
