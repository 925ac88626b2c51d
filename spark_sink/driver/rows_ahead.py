"""Rows that are written while Kafka is asked whether they are safe.

Theory of operation. When a round has seen nothing but new rows, Kafka nearly always answers that
the sink has read all schema changes and decisions already. So the round assumes this answer, plans,
and writes the rows in a transaction that stays open. ``is_safe`` is asked before each commit. It
waits for the answer, and settles the barrier as always. If the rows are not safe, nothing is
committed, and the next round plans with what is known then.

If the plan has anything to do but to apply such rows, the round waits for the answer first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.intake import Intake
from shardmerge.spark_sink.planning.plan import BatchPlan, plan
from shardmerge.spark_sink.planning.sink_state import SinkState


class RowsAhead:
    """Plans rows ahead of Kafka's answer, and says whether they may be committed.

    Args:
        intake: Has asked Kafka.
        settle: Takes which ends are safe when the answer was taken.
    """

    def __init__(self, intake: Intake, settle: Callable[[], object]) -> None:
        self._intake = intake
        self._settle = settle
        self._is_safe: bool | None = True
        self._ends: dict[Partition, int] = {}
        self._error: ShardMergeError | None = None

    def begin_round(self) -> None:
        """Forget the last round, and its question; what is planned without ``plan`` is safe."""
        self._is_safe, self._error = True, None
        self._intake.questions.drop()

    def plan(self, state: SinkState, most: int) -> tuple[BatchPlan, SinkState] | None:
        """A plan for rows whose barrier Kafka still has to tell.

        Args:
            state: As it is without Kafka's answer.
            most: Bound of the plan's rows, in offsets.

        Returns:
            The plan, and the state for which it is made. None when no answer is awaited, or the
            plan would do more: then the answer is taken.

        Raises:
            StackError, BarrierRegressed: The answer is needed, and is none, or is wrong.
        """
        question = self._intake.questions.awaited
        if question is None:
            return None
        ends = question.ends
        known = state.unapplied if state.unapplied is not None else state.safe_ends
        foreseen = replace(
            state,
            safe_ends={**state.safe_ends, **ends},
            unapplied={**dict.fromkeys(known), **dict.fromkeys(ends)},
        )
        batch = plan(self._intake.decisions, foreseen, most)
        if _only_applies_rows(batch) and {task.topic for task in batch.tasks} <= question.topics:
            self._is_safe, self._ends = None, ends
            return batch, foreseen
        self._intake.questions.take()
        self._settle()
        return None

    def is_safe(self) -> bool:
        """Whether the planned rows may be committed. Waits for Kafka's answer, the first time."""
        if self._is_safe is None:
            intake = self._intake
            try:
                intake.questions.take()
                self._settle()
            except ShardMergeError as error:
                self._is_safe, self._error = False, error
            else:
                # A topic that was made anew is compared before anything is applied.
                safe = intake.barriers.safe_ends
                self._is_safe = not intake.described.news and all(
                    safe.get(partition, 0) >= end for partition, end in self._ends.items()
                )
        return self._is_safe

    def check(self) -> None:
        """Raise the error with which Kafka's answer, or what it tells, has come."""
        if self._error is not None:
            raise self._error


def _only_applies_rows(batch: BatchPlan) -> bool:
    return bool(batch.tasks) and not (
        batch.due_truncations or batch.restarts or any(target.ready for target in batch.targets)
    )
