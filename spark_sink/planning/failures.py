"""The targets whose batches fail, for reports to people; nothing waits because of them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.progress import FailureProgress
from shardmerge.spark_sink.barrier.partitions import Partition

from .ranges import RangeTask, TaskFailure

Failing = Mapping[TargetTable, FailureProgress]
"""Target whose latest batch did not end → what is reported about the failure, without its time."""


def failing_after(
    before: Failing,
    tasks: Sequence[RangeTask],
    done: Collection[Partition],
    failures: Sequence[TaskFailure],
    busy: Collection[TargetTable] = (),
) -> dict[TargetTable, FailureProgress]:
    """The failing targets after a batch. A target is left out as soon as all its tasks ended.

    A task may not have begun because a task of another target failed. It did not end either, so its
    target gets that failure, with the name of the other target.

    Args:
        before: The failing targets before the batch.
        tasks: Of the batch.
        done: Partitions for which the batch has results.
        failures: Of the batch.
        busy: Targets that had no tasks because a statement runs on them: they keep their failure.
    """
    found = {target: before[target] for target in busy if target in before}
    left: dict[TargetTable, set[Partition]] = {}
    if failures:
        for task in tasks:
            if task.place not in done:
                left.setdefault(task.stream.target, set()).add(task.place.whole)
    for target, places in left.items():
        failure = next((f for f in failures if f.target == target), failures[0])
        known = before.get(target)
        found[target] = FailureProgress(
            failure.message if failure.target in (None, target) else _others(failure),
            failure.hint,
            _some(places),
            known.times + 1 if known else 1,
            code=failure.code,
        )
    return found


def _others(failure: TaskFailure) -> str:
    return f"the batch ended with a failure of {failure.target}: {failure.message}"


def _some(places: Collection[Partition]) -> str:
    first, more = str(min(places)), len(places) - 1
    return f"{first} and {more} more" if more else first
