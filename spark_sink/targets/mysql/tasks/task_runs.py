"""The task function that Spark's Python workers run, and the driver for small batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from shardmerge.schemas.model.errors import ContractError, ShardMergeError
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.planning.ranges import RangeResult, RangeTask, TaskFailure

from .apply_ranges import apply_tasks
from .connection import ApplyConfig, always


def run_tasks(
    units: Iterable[Sequence[RangeTask]],
    config: ApplyConfig,
    is_safe: Callable[[], bool] = always,
) -> Iterator[RangeResult | TaskFailure]:
    """Apply ranges, unit by unit; an error becomes the last value instead of an exception.

    Tasks of a unit that have the same target are applied together. Several units are applied side
    by side, by as many connections as the configuration says; each connection ends with an error of
    its own. This is the function for ``mapPartitions``: an exception there would lose the results
    before it, and come back as Java's text of a Python traceback. ``is_safe``: see ``Batches``.
    """
    if config.connections == 1:
        yield from _run(units, config, is_safe)
        return
    waiting = list(units)
    if len(waiting) < 2:
        yield from _run(waiting, config, is_safe)
        return
    # Each thread takes the next unit when it has ended one; a list's iterator is safe for that.
    shared = iter(waiting)
    count = min(config.connections, len(waiting))
    with ThreadPoolExecutor(count, "writer") as pool:
        running = [pool.submit(lambda: list(_run(shared, config, is_safe))) for _ in range(count)]
        for ended in running:
            yield from ended.result()


def _run(
    units: Iterable[Sequence[RangeTask]], config: ApplyConfig, is_safe: Callable[[], bool]
) -> Iterator[RangeResult | TaskFailure]:
    unit: Sequence[RangeTask] = ()
    done: set[Partition] = set()
    try:
        for unit in units:
            for result in apply_tasks(unit, config, is_safe):
                done.add(result.place)
                yield result
    except ShardMergeError as error:
        # A unit's results come in the order of its tasks' targets.
        target = next((task.stream.target for task in unit if task.place not in done), None)
        final = isinstance(error, ContractError)
        yield TaskFailure(error.message, error.hint, final=final, target=target, code=error.code)
