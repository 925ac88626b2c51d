"""What runs in Spark's Python workers, and in the driver for small batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from shardmerge.schemas.errors import ContractError, ShardMergeError
from shardmerge.spark_sink.ranges import RangeResult, RangeTask, TaskFailure

from .apply_ranges import apply_tasks
from .connection import ApplyConfig


def run_tasks(
    units: Iterable[Sequence[RangeTask]], config: ApplyConfig
) -> Iterator[RangeResult | TaskFailure]:
    """Apply ranges, unit by unit; an error becomes the last value instead of an exception.

    The tasks of a unit that are of one target are applied together. The function of
    ``mapPartitions``: an exception there would lose the results before it and come back as Java's
    text of a Python traceback.
    """
    try:
        for tasks in units:
            yield from apply_tasks(tasks, config)
    except ShardMergeError as error:
        yield TaskFailure(error.message, error.hint, final=isinstance(error, ContractError))
