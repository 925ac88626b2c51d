"""Finds the row that the target refuses among many that were written together."""

from __future__ import annotations

from shardmerge.schemas.errors import TargetError
from shardmerge.spark_sink.dealing import open_ranges
from shardmerge.spark_sink.range_reader import OffsetRange
from shardmerge.spark_sink.ranges import RangeTask
from shardmerge.spark_sink.row_blocks import RefusedRow
from shardmerge.spark_sink.row_fold import RowFold
from shardmerge.spark_sink.segment_plan import Refusal

from .connection import TaskConnection

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


def find_refused(
    task: RangeTask, start: int, end: int, connection: TaskConnection, cause: TargetError
) -> RefusedRow | TargetError:
    """The first row whose prefix of ``[start, end)`` the target refuses, by bisection.

    Reads the range again; every probe is rolled back. When the whole range is accepted now, the
    error was not a row's: it is returned as it is, to be tried again.
    """
    wanted = OffsetRange(task.topic, task.partition, start, end, task.part)
    cursor = open_ranges(connection.reader, [wanted], connection.rows)
    records: list[tuple[int, bytes]] = []
    while cursor.is_open:
        for some in cursor.read():
            both = zip(some.offsets, some.values, strict=True)
            records += [(offset, value) for offset, value in both if value is not None]
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
    fold = RowFold(task.stream, task.bindings, rows=connection.rows)
    fold.add_all([offset for offset, _ in records], [value for _, value in records])
    try:
        with connection.session.transaction():
            connection.write(task.stream.target, fold.batches())
            raise _RollBack
    except _RollBack:
        return None
    except TargetError as error:
        if error.retryable:
            raise
        return error
