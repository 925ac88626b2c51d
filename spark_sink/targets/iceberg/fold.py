"""The tasks of an Iceberg target: read ranges, keep the last change per key, hand on lines.

The tasks write nothing: the driver turns all lines of a target into one MERGE and one commit. The
lines of a task depend only on its range, exactly to the record, so that Spark may run it again.
Each partition is read up to its end, its gate, a row that cannot be applied, or the round's bound.
A range whose rows are taken back (``barrier.restarts``) is read as a whole, or the shard is held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from shardmerge.connectors.kafka.registry import RegistryAddress
from shardmerge.schemas.model.errors import ContractError, ShardMergeError
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.range_reader import LARGE_FETCH_WAIT_MS, OffsetRange, RowReader
from shardmerge.spark_sink.kafka.range_records import chunks
from shardmerge.spark_sink.kafka.row_avro import row_format
from shardmerge.spark_sink.kafka.shard_demux import open_ranges
from shardmerge.spark_sink.planning.ranges import RangeResult, RangeTask, TaskFailure
from shardmerge.spark_sink.rows.folding.keyless import KeylessBatch
from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.rows.folding.row_blocks import RefusedRow
from shardmerge.spark_sink.rows.folding.row_fold import RowFold
from shardmerge.spark_sink.rows.folding.segment_plan import Refusal
from shardmerge.spark_sink.targets.iceberg.texts.encoders import Unwritable
from shardmerge.spark_sink.targets.iceberg.texts.lines import Columns, lines_of

from .heads import head_of

ROUND_RECORDS = 200_000
"""Most records of one partition in one batch: bounds a worker's memory with any backlog."""
ROUND_BYTES = 128 << 20
NO_KEY = Refusal(
    "the table has no primary key: an Iceberg target finds a row by its key",
    "add a primary key on the shard, or leave the table out of the routes",
    code="SM-1519",
)
SEVERAL_KEYS = Refusal(
    "a snapshot of the table was taken again after its primary key had changed: rows with the old "
    "key and rows with the new key cannot be taken back together",
    "delete the shard's rows in the target by hand, then start the sink with on_truncate = 'keep' "
    "in the shard's route",
    code="SM-1520",
)


@dataclass(frozen=True, slots=True)
class FoldConfig:
    """The addresses and limits that a task needs; picklable."""

    kafka: Kafka
    registry: RegistryAddress | None = None
    round_records: int = ROUND_RECORDS
    round_bytes: int = ROUND_BYTES


@dataclass(frozen=True, slots=True)
class FoldTask:
    """A range task; ``number`` marks its lines, ``columns`` are the table's."""

    number: int
    task: RangeTask
    columns: Columns


@dataclass(frozen=True, slots=True)
class Folded:
    """The outcome of a task.

    Attributes:
        result: The task's result once its lines are committed.
        key: The table's columns that are the key of the lines; empty without lines.
        count: Number of lines.
        groups: Number of the task's batches: at most this many lines have one key. There are
            several batches if the type of the shard's key changed within the range.
    """

    number: int
    result: RangeResult
    key: tuple[str, ...]
    count: int
    groups: int


@dataclass(slots=True)
class _Lane:
    """A task in progress."""

    task: FoldTask
    refusals: dict[int, Refusal] = field(default_factory=dict)
    end_offset: int = 0

    def __post_init__(self) -> None:
        self.end_offset = self.task.task.end_offset

    @property
    def partition(self) -> Partition:
        return self.task.task.place

    @property
    def range(self) -> OffsetRange:
        """The range that is to be read."""
        task = self.task.task
        start, end = task.start_offset, self.end_offset
        return OffsetRange(
            task.topic, task.partition, start, end, task.part, task.stream.tells_moves
        )


@dataclass(slots=True)
class _Read:
    """What was read of a partition so far."""

    fold: RowFold
    reached: int
    undoes: bool = False
    count: int = 0
    size: int = 0
    is_full: bool = False


_readers: dict[Kafka, RowReader] = {}
"""One reader per worker process; Spark keeps its Python workers over tasks."""


def close_readers() -> None:
    """Close the consumer that this process kept open for its tasks."""
    while _readers:
        _readers.popitem()[1].close()


def fold_units(units: Iterable[Sequence[FoldTask]], config: FoldConfig) -> Iterator[str]:
    """The lines of each task, then a head with its outcome: the function for ``mapPartitions``.

    An error becomes the last head: an exception would come back as Java's text of a Python
    traceback.

    Args:
        units: Groups of tasks; the tasks of a group are read together (``ranges.by_reading``).
        config: Of the tasks.
    """
    try:
        for together in _side_by_side(units):
            for folded, lines in fold_ranges(together, config):
                yield from lines
                yield head_of(folded)
    except ShardMergeError as error:
        final = isinstance(error, ContractError)
        yield head_of(TaskFailure(error.message, error.hint, final=final, code=error.code))


def _side_by_side(units: Iterable[Sequence[FoldTask]]) -> Iterator[list[FoldTask]]:
    """The tasks in groups that are read together; a group has no partition in two units."""
    found: list[FoldTask] = []
    partitions: set[Partition] = set()
    for unit in units:
        if (whole := unit[0].task.place.whole) in partitions:
            yield found
            found, partitions = [], set()
        found += unit
        partitions.add(whole)
    if found:
        yield found


def fold_ranges(
    tasks: Sequence[FoldTask], config: FoldConfig
) -> Iterator[tuple[Folded, list[str]]]:
    """The outcome and the lines of each task; the tasks have different partitions or parts.

    Raises:
        ContractError: A range's start does not exist any more.
        StackError: Kafka cannot be read.
    """
    lanes = [_Lane(task) for task in tasks]
    reader = _readers.get(config.kafka)
    if reader is None:
        reader = _readers[config.kafka] = RowReader(config.kafka, LARGE_FETCH_WAIT_MS)
    try:
        read = _read(lanes, reader, config)
        for lane in lanes:
            found = _outcome_and_lines(lane, read.pop(lane.partition))
            while found is None:
                found = _outcome_and_lines(lane, _read([lane], reader, config)[lane.partition])
            yield found
    except Exception:
        # The consumer's state is unknown, so the next task makes a new one.
        close_readers()
        raise


def _read(lanes: Sequence[_Lane], reader: RowReader, config: FoldConfig) -> dict[Partition, _Read]:
    rows = row_format(config.registry)
    cursor = open_ranges(reader, [lane.range for lane in lanes], rows)
    read = {
        lane.partition: _Read(
            RowFold(lane.task.task.stream, lane.task.task.bindings, lane.refusals, rows),
            lane.task.task.start_offset,
            lane.task.task.stream.undoes,
        )
        for lane in lanes
    }
    for records, _ in chunks(cursor):
        state = read[records.partition]
        if state.undoes:
            goes_on = state.fold.add_all(records.offsets, records.values)
        else:
            goes_on = _take(state, records.offsets, records.values, config)
        if not goes_on:
            cursor.leave(records.partition)
    for lane in lanes:
        state = read[lane.partition]
        if state.fold.end is not None:
            state.reached = state.fold.end.offset
        elif not state.is_full:
            state.reached = cursor.reached(lane.partition)
    return read


def _take(
    read: _Read, offsets: Sequence[int], values: Sequence[bytes | None], config: FoldConfig
) -> bool:
    """Fold records; False when no more records of the partition are wanted."""
    if read.is_full:
        return False
    sizes = list(accumulate((len(v) if v else 0 for v in values), initial=read.size))[1:]
    # At least one record is taken, however large it is: otherwise nothing would ever move.
    room = max(config.round_records - read.count, 0)
    fit = sum(size <= config.round_bytes for size in sizes[:room])
    if read.count == 0:
        fit = max(fit, 1)
    if fit < len(values):
        read.is_full = True
        read.reached = offsets[fit]
    read.count += fit
    read.size = sizes[fit - 1] if fit else read.size
    return read.fold.add_all(offsets[:fit], values[:fit]) and not read.is_full


def _outcome_and_lines(lane: _Lane, read: _Read) -> tuple[Folded, list[str]] | None:
    """Outcome and lines of what was read; None when it has to be read again to another end."""
    task, fold = lane.task.task, read.fold
    try:
        batches = fold.batches()
    except RefusedRow as refused:
        lane.refusals[refused.offset] = refused.refusal
        return None
    keys = [batch.key if isinstance(batch, Batch) else () for batch in batches]
    if task.stream.undoes and len(set(keys)) > 1 and not lane.refusals:
        lane.refusals[fold.first_offsets()[0]] = SEVERAL_KEYS
        return None
    if task.stream.undoes and fold.end is not None:
        return Folded(lane.task.number, _not_taken_back(task, fold), (), 0, 0), []
    if keys and any(key != keys[0] for key in keys):
        # The shard got another primary key here: later rows need another MERGE.
        lane.end_offset = fold.first_offsets()[next(n for n, k in enumerate(keys) if k != keys[0])]
        return None
    lines: list[str] = []
    try:
        for group, batch in enumerate(batches):
            if isinstance(batch, KeylessBatch):
                raise Unwritable(NO_KEY.reason, NO_KEY.hint, NO_KEY.code)
            lines += lines_of(lane.task.number, group, batch, lane.task.columns)
    except Unwritable as error:
        _refuse(lane, fold, error)
        return None
    end = fold.end
    result = RangeResult(
        task.topic,
        task.partition,
        task.stands_at,
        task.start_offset if task.stream.undoes else read.reached,
        end.position if end else None,
        fold.rows,
        *fold.counts(),
        hold=end.hold if end else None,
        truncated=end.truncated if end else False,
        read_bytes=read.size,
        part=task.part,
    )
    return Folded(lane.task.number, result, keys[0] if keys else (), len(lines), len(keys)), lines


def _not_taken_back(task: RangeTask, fold: RowFold) -> RangeResult:
    at, stop = task.stands_at, fold.end
    assert stop is not None
    return RangeResult(
        task.topic, task.partition, at, at, None, 0, 0, 0, hold=stop.hold, part=task.part
    )


def _refuse(lane: _Lane, fold: RowFold, error: Unwritable) -> None:
    """Note the refusal of the first row that does not fit."""
    for offset, batch in fold.one_by_one():
        try:
            list(lines_of(0, 0, batch, lane.task.columns))
        except Unwritable as found:
            lane.refusals[offset] = Refusal(found.reason, found.hint, code=found.code)
            return
    # Rows without a key are not kept as single changes, so the first row is refused.
    lane.refusals[fold.first_offsets()[0]] = Refusal(error.reason, error.hint, code=error.code)
