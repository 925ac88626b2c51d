"""The tasks: read offset ranges, stop at gates, write to the target, commit their offsets.

Theory of operation. A worker applies its tasks of one target together, in rounds of bounded size. A
round reads from all partitions of the tasks, and is one transaction: it holds the rows, and the
compare-and-set of the offset of every partition that moved.

1. Read and fold records until the ranges' ends, gates, rows that cannot be applied, or the
   round's bound. The rows of all partitions of one shard are written together, sorted by primary
   key, so that they go through the target's index once.
2. In one transaction: check the writer epoch, write the rows, move the offsets. The transaction is
   repeated after a deadlock, a lock wait that is too long, or a lost connection.
3. When a value does not fit, or the target refuses a row, the tasks are applied one by one
   instead. For one task the first refused row is searched for by bisection; each probe is rolled
   back. Then the task is folded again up to just before that row, and the row is held.

A crash at any point leaves the offsets and the rows as of the last committed round: running the
ranges again from the stored offsets loses nothing and repeats nothing.

Several connections. A TiDB takes rows faster when more connections write, each in transactions of
some thousand rows (``benchmarks/tidb_load.py``). So for a TiDB a worker applies several units of
tasks side by side (``task_runs``), each by a connection of its own, in smaller rounds
(``ApplyConfig.for_kind``). The guarantees stay the same:

* A round is still one transaction. Its offsets move from where its rows begin to where they end, so
  smaller rounds only add points at which a crash can leave the offsets.
* A unit has whole readings of partitions, and all partitions of an ordered shard. Different workers
  have always applied units side by side. It does not matter who applies them: two units never write
  the same row of a shard, and if shards share a key, the last writer wins.
* Each connection fences the epoch in each of its transactions (``control``). So a driver that was
  replaced commits nothing more on any connection.

The content of one transaction is never split over several connections. Otherwise rows would be
visible without their offset, a row without a key would come twice after a crash, and of two shards'
rows with one key the older one could win.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from shardmerge.schemas.model.errors import TargetError
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.range_records import chunks
from shardmerge.spark_sink.kafka.shard_demux import Cursor, open_ranges
from shardmerge.spark_sink.planning.ranges import RangeResult, RangeTask
from shardmerge.spark_sink.rows.folding.row_blocks import RefusedRow

from .connection import ApplyConfig, NotSafe, TaskConnection, always, idle_connection
from .ordered_ranges import apply_ordered
from .refused_rows import find_refused
from .rounds import Lane, NotTogether, RefusedRound, Round, collector_resting, commit
from .undo_ranges import take_back


def apply_tasks(
    tasks: Iterable[RangeTask], config: ApplyConfig, is_safe: Callable[[], bool] = always
) -> Iterator[RangeResult]:
    """Apply ranges: the work of a unit, in a Spark worker or in the driver.

    Neighbouring tasks of one target are applied together. They are not if they belong to one
    partition without being read together, or if only some of them are ordered or take rows back.
    Rows that are not safe when they could be committed are left, without a result.

    Raises:
        TargetError, StackError, ContractError: The batch must be planned anew from the stored
            offsets; results yielded before are committed.
    """
    with idle_connection(config) as connection:
        connection.is_safe = is_safe
        try:
            for together in _neighbours(tasks):
                apply = apply_together if together[0].closure is None else apply_ordered
                apply = take_back if together[0].stream.undoes else apply
                results = apply(together, connection)
                # Also those who committed nothing, since a row cannot be applied.
                connection.check_safe()
                yield from results
        except NotSafe:
            return


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
        tasks: At least one, all of one target. They are of different partitions, or of parts of one
            partition that are read together.
        connection: Kept open between tasks.

    Returns:
        For each task what was committed. Running the same tasks again raises ``WriterReplaced``,
        because the stored offsets have moved.

    Raises:
        WriterReplaced: Another writer took over or moved an offset.
        TargetError: The target cannot be written now (``retryable``).
        ContractError: A range's start does not exist any more.
        StackError: Kafka cannot be read.
        NotSafe: The rows may not be committed.
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
    """Apply rounds until the lanes are done; if a round is too large, the next ones are smaller.

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
            # The lanes are at the committed offsets: records that were read ahead are read again.


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
    folds = {
        lane.partition: connection.new_fold(lane.task, lane.refusals)
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
