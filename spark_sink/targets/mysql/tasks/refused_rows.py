"""Finds the row that the target refuses among many that were written together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

from shardmerge.schemas.model.errors import StackError, TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.range_reader import OffsetRange
from shardmerge.spark_sink.kafka.range_records import records_in
from shardmerge.spark_sink.planning.ranges import RangeTask
from shardmerge.spark_sink.rows.decoding.row_envelope import DELETE, UndecodableRow
from shardmerge.spark_sink.rows.folding.row_blocks import RefusedRow
from shardmerge.spark_sink.rows.folding.segment_plan import Refusal
from shardmerge.spark_sink.targets.mysql.server_errors import TRANSACTION_TOO_LARGE

from .connection import TaskConnection

DUPLICATE_KEY = 1062
_NO_COLUMN = 1054
_NO_TABLE = (1049, 1146)
"""The server has no such database, or no such table in it."""
_HINTS = {
    DUPLICATE_KEY: "another row has this unique key, perhaps of another shard: change one of them, "
    "or drop the unique key on the target's shards",
    1048: "the target's column must accept NULL",
    1452: "the target has a foreign key that the row does not meet: drop it on the target",
    1451: "another table refers to the row: drop that foreign key on the target",
    1153: "raise max_allowed_packet on the target",
    1301: "raise max_allowed_packet on the target",
    8004: "raise txn-total-size-limit of the target's TiDB",
    8025: "raise txn-entry-size-limit of the target's TiDB",
    8175: "raise tidb_mem_quota_query on the target",
    8176: "raise tidb_server_memory_limit on the target",
}


def find_refused(
    task: RangeTask, start: int, end: int, connection: TaskConnection, cause: TargetError
) -> RefusedRow | TargetError:
    """Find by bisection the first row of ``[start, end)`` that the target refuses.

    That is the last row of the shortest prefix of the range that is refused. The range is read
    again, and every probe is rolled back. If the whole range is accepted now, no row was the cause:
    ``cause`` is returned as retryable.
    """
    wanted = OffsetRange(task.topic, task.partition, start, end, task.part, task.stream.tells_moves)
    records = list(records_in(connection.reader, wanted, connection.rows))
    target = task.stream.target

    def probe(count: int) -> TargetError | RefusedRow | None:
        return _probe([(task, records[:count])], connection)

    found = _first(len(records), probe, target)
    if found is None:
        cause.retryable = True
        return cause
    index, refusal = found
    return RefusedRow(records[index][0], refusal)


Prefix: TypeAlias = tuple[RangeTask, tuple[list[int], list[bytes]], list[SourcePosition]]
"""First records of a partition of an ordered shard: task, offsets and values, positions."""


def find_refused_ordered(
    prefixes: Sequence[Prefix], connection: TaskConnection
) -> tuple[Partition, RefusedRow] | None:
    """Find by bisection the first row, in binlog order, that the target refuses.

    Every probe is rolled back. None when all records are accepted now.
    """
    # At one position the delete of a primary-key update comes before its create.
    order = sorted(
        (place.sort_key, not _is_delete(value, connection), number, index)
        for number, (_, (_, values), places) in enumerate(prefixes)
        for index, (value, place) in enumerate(zip(values, places, strict=True))
    )

    def probe(count: int) -> TargetError | RefusedRow | None:
        counts = Counter(number for _, _, number, _ in order[:count])
        shorter = [
            (task, [*zip(offsets[: counts[n]], values[: counts[n]], strict=True)])
            for n, (task, (offsets, values), _) in enumerate(prefixes)
            if counts[n]
        ]
        return _probe(shorter, connection)

    found = _first(len(order), probe, prefixes[0][0].stream.target)
    if found is None:
        return None
    first, refusal = found
    _, _, number, index = order[first]
    task, (offsets, _), _ = prefixes[number]
    return task.place, RefusedRow(offsets[index], refusal)


def _first(
    records: int, probe: Callable[[int], TargetError | RefusedRow | None], target: TargetTable
) -> tuple[int, Refusal] | None:
    """The index of the first record that is refused, and why; None when none is.

    Args:
        records: How many records there are.
        probe: Count → the error of writing the first ``count`` records; None without one.
        target: The table that they are written to.
    """
    good, bad = 0, records
    error = probe(bad)
    if error is None:
        return None
    while bad - good > 1:
        middle = (good + bad) // 2
        found = probe(middle)
        if found is None:
            good = middle
        else:
            bad, error = middle, found
    return bad - 1, error.refusal if isinstance(error, RefusedRow) else refusal_of(error, target)


def _is_delete(value: bytes, connection: TaskConnection) -> bool:
    try:
        return connection.rows.decode(value).op == DELETE
    except (UndecodableRow, StackError):
        return False


def refusal_of(error: TargetError, target: TargetTable) -> Refusal:
    """Why a row cannot be applied, and what the operator can do.

    Args:
        error: The answer of the target's server to the write.
        target: The table that the row is written to.
    """
    command = f"`shardmerge schema --pipeline FILE --target {target}`"
    if error.number in _NO_TABLE:
        return Refusal(
            f"the target's server misses a table or database that the row needs: {error.message}",
            f"if it is {target}: {command} prints its CREATE TABLE. Execute that on the target: "
            "the waiting rows go on by themselves. Then `shardmerge command reread` brings the "
            "rows again that were in it, shard by shard. If it is another table, a trigger or a "
            "view of the target names it",
            code="SM-1526",
        )
    if error.number == _NO_COLUMN:
        return Refusal(
            f"the target's server misses a column that the row needs: {error.message}",
            f"somebody changed {target}, or one of its triggers names the column: {command} prints "
            "the table as it must be. Add the column: the waiting rows go on by themselves",
            code="SM-1527",
        )
    if error.code == "SM-3108":
        return Refusal(
            f"the target refuses the row: {error.message}",
            "the target's rows are not those that the shard had. Load the target anew while it "
            f"serves: `shardmerge rebuild {target}`; or have the table read again as a whole: "
            "`shardmerge command reread`",
            code="SM-3108",
        )
    hint = _HINTS.get(error.number, "change the row on the shard, or what the target accepts")
    return Refusal(
        f"the target refuses the row: {error.message}",
        hint,
        error.number == DUPLICATE_KEY,
        code="SM-1515",
    )


class _RollBack(Exception):
    """Ends a probe's transaction."""


def _probe(
    prefixes: Sequence[tuple[RangeTask, list[tuple[int, bytes]]]], connection: TaskConnection
) -> TargetError | RefusedRow | None:
    """The error of writing a shard's records; None when the target accepts them. Rolled back."""
    folds = []
    for task, records in prefixes:
        fold = connection.new_fold(task, loads=False)
        fold.add_all([offset for offset, _ in records], [value for _, value in records])
        folds.append(fold)
    if not folds:
        return None
    try:
        batches = folds[0].batches(folds[1:])
        with connection.session.transaction():
            connection.write(prefixes[0][0].stream.target, batches)
            raise _RollBack
    except _RollBack:
        return None
    except RefusedRow as error:
        return error
    except TargetError as error:
        if error.retryable and error.number not in TRANSACTION_TOO_LARGE:
            raise
        return error
