"""The task: reads offset ranges, stops at gates, writes to the target, commits its offsets.

Theory of operation of ``apply_range``. A range is applied in rounds of bounded size; each round
is one transaction that holds its rows and the compare-and-set of the partition's offset.

1. Read and fold records until the range's end, a gate, a row that cannot be applied, or the
   round's bound.
2. In one transaction: check the writer epoch, move the offset, write. A deadlock, or a lock
   wait that is too long, repeats it.
3. When the target refuses a row, look for the first row whose prefix of the round is refused
   (each probe is rolled back); fold again up to just before it: the row is held.

A crash at any place leaves the offset and the rows as of the last committed round: running the
range again from the stored offset loses nothing and repeats nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from confluent_kafka import Consumer

from shardmerge.schemas.errors import TargetError
from shardmerge.schemas.names import TargetTable

from .control import Advance, ControlStore
from .keyless import KeylessBatch
from .range_reader import RangeCursor, row_consumer
from .ranges import RangeResult, RangeTask
from .row_batches import RefusedRow
from .row_fold import RowFold
from .segment_plan import Refusal
from .targets.bulk import TableShape, Written, read_shape, write_batch, write_keyless
from .targets.mysql import DEADLOCK, LOCK_WAIT_TIMEOUT, LOST, MySqlAddress, MySqlSession

ROUND_RECORDS = 100_000
"""Most records of one round: bounds the memory of a task whatever the backlog."""
ROUND_BYTES = 64 << 20
_ATTEMPTS = 5

_HINTS = {
    1062: "another row has this unique key, perhaps of another shard: change one of them, "
    "or drop the unique key on the target's shards",
    1048: "the target's column must accept NULL",
    1452: "the target has a foreign key that the row does not meet: drop it on the target",
    1451: "another table refers to the row: drop that foreign key on the target",
    1146: "the target table is missing: somebody dropped it",
    1054: "the target lacks a column that was made for this row: somebody changed the target",
    1153: "raise max_allowed_packet on the target",
    1301: "raise max_allowed_packet on the target",
}


@dataclass(frozen=True, slots=True)
class ApplyConfig:
    """What a task needs to know of the world; picklable."""

    bootstrap_servers: str
    target: MySqlAddress
    control_database: str
    pipeline: str
    lock_wait_timeout_s: int = 30
    round_records: int = ROUND_RECORDS
    round_bytes: int = ROUND_BYTES


class TaskConnection:
    """A consumer and a target session, kept by a worker process over tasks and batches."""

    def __init__(self, config: ApplyConfig) -> None:
        self.config = config
        self.session = MySqlSession(config.target, lock_wait_timeout_s=config.lock_wait_timeout_s)
        self.control = ControlStore(self.session, config.control_database, config.pipeline)
        self._consumer: Consumer | None = None
        self._shapes: dict[TargetTable, tuple[int, TableShape]] = {}

    def cursor(self, task: RangeTask, start: int, end: int) -> RangeCursor:
        """Records of the task's partition in ``[start, end)``."""
        if self._consumer is None:
            self._consumer = row_consumer(self.config.bootstrap_servers)
        return RangeCursor(self._consumer, task.topic, task.partition, start, end)

    def shape(self, target: TargetTable) -> TableShape:
        """The target's keys, looked up once per statement that the sink executed on it."""
        executed = self.control.executed_statements(target)
        known = self._shapes.get(target)
        if known is None or known[0] != executed:
            known = (executed, read_shape(self.session, target))
            self._shapes[target] = known
        return known[1]

    def close(self) -> None:
        """Close both; what is used again connects again."""
        self.session.close()
        self._shapes.clear()
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()


@dataclass(frozen=True, slots=True)
class _Round:
    """What one round reads: ``fold`` of the records in ``[start, next_offset)``."""

    start: int
    next_offset: int
    fold: RowFold
    more: bool


_connections: dict[ApplyConfig, TaskConnection] = {}
"""One per worker process: Spark keeps its Python workers over tasks."""


def apply_tasks(tasks: Iterable[RangeTask], config: ApplyConfig) -> Iterator[RangeResult]:
    """Apply ranges one after the other: the function of ``RDD.mapPartitions``.

    Also called directly by the driver for a batch too small to be worth a job.

    Raises:
        TargetError, StackError, ContractError: The batch must be planned anew from the stored
            offsets; results yielded before are committed.
    """
    connection = _connections.get(config)
    if connection is None:
        connection = _connections[config] = TaskConnection(config)
    for task in tasks:
        try:
            yield apply_range(task, connection)
        except Exception:
            # Whatever state the connections are in: the next task makes new ones.
            connection.close()
            raise


def close_connections() -> None:
    """Close what this process kept open for its tasks."""
    while _connections:
        _connections.popitem()[1].close()


def apply_range(task: RangeTask, connection: TaskConnection) -> RangeResult:
    """Apply the rows of a range, up to its end, a gate or a row that cannot be applied.

    Returns:
        What was committed. Running the same task again raises ``TargetError``, because the
        stored offset moved.

    Raises:
        TargetError: Another writer took over or moved the offset; or the target cannot be
            written now (``retryable``).
        ContractError: The range's start does not exist any more.
        StackError: Kafka cannot be read.
    """
    result = RangeResult(
        task.topic, task.partition, task.start_offset, task.start_offset, None, 0, 0, 0
    )
    refusals: dict[int, Refusal] = {}
    cursor: RangeCursor | None = None
    while True:
        start = result.next_offset
        if cursor is None:
            cursor = connection.cursor(task, start, task.end_offset)
        current = _read(task, connection.config, cursor, start, refusals)
        try:
            written = _commit(task, current, connection)
        except RefusedRow as refused:
            refusals[refused.offset] = refused.refusal
            cursor = None
            continue
        result = replace(
            result,
            next_offset=current.next_offset,
            rows=result.rows + current.fold.rows,
            written=result.written + written.upserted,
            deleted=result.deleted + written.deleted,
        )
        if end := current.fold.end:
            return replace(result, next_position=end.position, hold=end.hold)
        if not current.more:
            return result


def _read(
    task: RangeTask,
    config: ApplyConfig,
    cursor: RangeCursor,
    start: int,
    refusals: dict[int, Refusal],
) -> _Round:
    fold = RowFold(task.stream, task.bindings, refusals)
    size = 0
    for count, (offset, value) in enumerate(cursor, 1):
        if not fold.add(offset, value):
            assert fold.end is not None
            return _Round(start, fold.end.offset, fold, more=False)
        size += len(value) if value is not None else 0
        if count >= config.round_records or size >= config.round_bytes:
            return _Round(start, cursor.reached, fold, more=cursor.reached < task.end_offset)
    return _Round(start, cursor.reached, fold, more=False)


def _commit(task: RangeTask, current: _Round, connection: TaskConnection) -> Written:
    """Write a round and move the offset, in one transaction.

    Raises:
        RefusedRow: A row of the round cannot be applied.
        TargetError: See ``apply_range``.
    """
    if current.next_offset == current.start:
        return Written()
    session, control = connection.session, connection.control
    uncertain = False
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with session.transaction():
                control.fence(task.writer_epoch)
                if (
                    uncertain
                    and control.offset_of(task.topic, task.partition) == current.next_offset
                ):
                    return _counts(current)
                written = _write(task, current.fold, connection)
                control.advance(_advance(task, current, written))
        except TargetError as error:
            if attempt == _ATTEMPTS or not _repeats(error):
                if error.statement and not error.retryable:
                    raise _find_refused(task, current, connection, error) from error
                raise
            # COMMIT may have been lost, or only its acknowledgement.
            uncertain = error.number in LOST
            time.sleep(0.05 * attempt)
        else:
            return written
    raise AssertionError("the last attempt returns or raises")


def _repeats(error: TargetError) -> bool:
    return error.number in LOST or error.number in (DEADLOCK, LOCK_WAIT_TIMEOUT)


def _write(task: RangeTask, fold: RowFold, connection: TaskConnection) -> Written:
    target = task.stream.target
    batches = fold.batches()
    upserted = deleted = 0
    if batches:
        shape = connection.shape(target)
        for batch in batches:
            if isinstance(batch, KeylessBatch):
                written = write_keyless(connection.session, target, batch)
            else:
                written = write_batch(connection.session, target, shape, batch)
            upserted += written.upserted
            deleted += written.deleted
    return Written(upserted, deleted)


def _counts(current: _Round) -> Written:
    """What a round that was committed wrote."""
    batches = current.fold.batches()
    upserted = deleted = 0
    for batch in batches:
        if isinstance(batch, KeylessBatch):
            upserted += batch.added.rows if batch.added is not None else 0
            deleted += sum(batch.removed_counts)
        else:
            upserted += sum(block.rows for block in batch.upserts)
            deleted += batch.deletes.rows if batch.deletes is not None else 0
    return Written(upserted, deleted)


def _advance(task: RangeTask, current: _Round, written: Written) -> Advance:
    return Advance(
        task.topic,
        task.partition,
        current.start,
        current.next_offset,
        task.stream.target,
        current.fold.rows,
        written.upserted,
        written.deleted,
    )


def _find_refused(
    task: RangeTask, current: _Round, connection: TaskConnection, cause: TargetError
) -> RefusedRow | TargetError:
    """The first row whose prefix of the round the target refuses, by bisection.

    Reads the round again; every probe is rolled back. When the whole round is accepted now, the
    error was not a row's: it is returned as it is, to be tried again.
    """
    records = [
        (offset, value)
        for offset, value in connection.cursor(task, current.start, current.next_offset)
        if value is not None
    ]
    good, bad = 0, len(records)
    error = _probe(task, records[:bad], connection)
    if error is None:
        cause.retryable = True
        return cause
    while bad - good > 1:
        middle = (good + bad) // 2
        found = _probe(task, records[:middle], connection)
        if found is None:
            good = middle
        else:
            bad, error = middle, found
    hint = _HINTS.get(error.number, "change the row on the shard, or what the target accepts")
    return RefusedRow(
        records[bad - 1][0], Refusal(f"the target refuses the row: {error.message}", hint)
    )


class _RollBack(Exception):
    """Ends a probe's transaction."""


def _probe(
    task: RangeTask, records: list[tuple[int, bytes]], connection: TaskConnection
) -> TargetError | None:
    """The target's error for these records; None when it accepts them. Nothing is kept."""
    fold = RowFold(task.stream, task.bindings)
    for offset, value in records:
        fold.add(offset, value)
    try:
        with connection.session.transaction():
            _write(task, fold, connection)
            raise _RollBack
    except _RollBack:
        return None
    except TargetError as error:
        if error.retryable:
            raise
        return error
