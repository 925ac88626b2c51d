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

Several connections. A TiDB takes rows the faster the more connections write, each in transactions
of some thousand rows (``benchmarks/tidb_load.py``). So there a worker applies several units of
tasks side by side (``task_runs``), each by a connection of its own, in rounds that are smaller
(``ApplyConfig.for_kind``). What is promised does not change:

* a round is a transaction as before. Its offsets go from where its rows begin to where they end, so
  more and smaller rounds only add places at which a crash can leave them;
* a unit has whole readings of partitions, and all partitions of an ordered shard. Units were always
  applied side by side, by different workers: that two of them write no common row of a shard, and
  that the last writer wins where shards share a key, holds whoever applies them;
* each connection fences the epoch by itself, in each of its transactions (``control``): a driver
  that was replaced commits nothing more, on whichever connection.

What one connection would write in one transaction is never parted over several: rows would be
visible whose offset is not, a row without a key would come twice after a crash, and of two shards'
rows with one key the older could win.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from shardmerge.schemas.model.errors import TargetError
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.range_records import chunks
from shardmerge.spark_sink.kafka.shard_demux import Cursor, open_ranges
from shardmerge.spark_sink.planning.ranges import RangeResult, RangeTask
from shardmerge.spark_sink.rows.folding.row_blocks import RefusedRow
from shardmerge.spark_sink.rows.folding.row_fold import RowFold

from .bulk import lines_for
from .connection import ApplyConfig, TaskConnection, kept_connection
from .ordered_ranges import apply_ordered
from .refused_rows import find_refused
from .rounds import Lane, NotTogether, RefusedRound, Round, collector_resting, commit
from .undo_ranges import take_back


def apply_tasks(tasks: Iterable[RangeTask], config: ApplyConfig) -> Iterator[RangeResult]:
    """Apply ranges: the function of ``RDD.mapPartitions``.

    Neighbours of one target are applied together, unless they are of one partition and not read
    together, or are to be ordered, or to be taken back, and others are not. Also called directly
    by the driver for a batch too small to be worth a job.

    Raises:
        TargetError, StackError, ContractError: The batch must be planned anew from the stored
            offsets; results yielded before are committed.
    """
    with kept_connection(config) as connection:
        for together in _neighbours(tasks):
            apply = apply_together if together[0].closure is None else apply_ordered
            apply = take_back if together[0].stream.undoes else apply
            yield from apply(together, connection)


def _neighbours(tasks: Iterable[RangeTask]) -> Iterator[list[RangeTask]]:
    found: list[RangeTask] = []
    readings: dict[Partition, int] = {}
    places: set[Partition] = set()
    for task in tasks:
        # All partitions of an ordered shard are of one reading of their topic.
        whole = task.place.whole if task.closure is None else Partition(task.topic, -1)
        if found and (
            task.place in places
            or readings.get(whole, task.reading) != task.reading
            or task.stream.target != found[0].stream.target
            or task.writer_epoch != found[0].writer_epoch
            or (task.closure is None) != (found[0].closure is None)
            or task.stream.undoes != found[0].stream.undoes
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
    lanes = [Lane.of(task) for task in tasks]
    with collector_resting():
        if len(lanes) > 1:
            with suppress(NotTogether):
                _apply(lanes, connection)
        for lane in lanes:
            while not lane.done:
                try:
                    _apply([lane], connection)
                except RefusedRow as refused:
                    lane.refusals[refused.offset] = refused.refusal
    return [lane.result for lane in lanes]


def _apply(lanes: Sequence[Lane], connection: TaskConnection) -> None:
    """Apply rounds until the lanes are done, smaller ones where a round was too large.

    Raises:
        RefusedRow: A row of the only lane cannot be applied.
        NotTogether: A row of one of several lanes cannot be applied.
    """
    while True:
        size = connection.round_records
        try:
            return _apply_rounds(lanes, connection)
        except TargetError:
            if connection.round_records == size:
                raise
            # What was read ahead is read again: the lanes stand at what is committed.


def _apply_rounds(lanes: Sequence[Lane], connection: TaskConnection) -> None:
    cursor = open_ranges(connection.reader, [lane.range for lane in lanes], connection.rows)
    while not all(lane.done for lane in lanes):
        rounds = _read(lanes, cursor, connection)
        try:
            commit(rounds, connection)
        except (RefusedRow, RefusedRound) as refused:
            if len(lanes) > 1:
                raise NotTogether from refused
            if isinstance(refused, RefusedRow):
                raise
            only = rounds[0]
            raise find_refused(
                only.lane.task, only.start, only.next_offset, connection, refused.error
            ) from refused
        for r in rounds:
            r.take()
            r.lane.done = not cursor.is_reading(r.lane.partition)


def _read(lanes: Sequence[Lane], cursor: Cursor, connection: TaskConnection) -> list[Round]:
    session = connection.session
    lines_of = lines_for(session) if session.can_load else None
    folds = {
        lane.partition: RowFold(
            lane.task.stream,
            lane.task.bindings,
            lane.refusals,
            connection.rows,
            lines_of,
            partition=lane.task.partition,
        )
        for lane in lanes
        if not lane.done
    }
    sizes = dict.fromkeys(folds, 0)
    for records, size in chunks(cursor, connection.round_records, connection.config.round_bytes):
        sizes[records.partition] += size
        if not folds[records.partition].add_all(records.offsets, records.values):
            cursor.leave(records.partition)
    return [
        Round(
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
