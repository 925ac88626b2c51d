"""The last plan, and whether another one would be the same. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from .plan import BatchPlan
from .sink_state import SinkState


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and the state from which it was made.

    To plan for thousands of shards takes a while, and mostly nothing has changed.

    Attributes:
        decided: How many decisions had been read.
        moves: How often the offset of a partition had moved.
    """

    batch: BatchPlan
    state: SinkState
    decided: int
    moves: int

    @property
    def is_calm(self) -> bool:
        """Whether nothing waits for more than new rows, decisions, or an operator.

        A statement that is not executed, and a shard that waits for one, may wait for a reading of
        the row topics' ends. A held shard waits for a decision.
        """
        return not (
            self.batch.due_truncations
            or self.batch.restarts
            or self.state.truncations
            or self.state.is_loading
            or any(
                target.open or any(not stop.held for stop in target.stops.values())
                for target in self.batch.targets
            )
        )

    def holds_for(self, state: SinkState, decided: int, moves: int) -> bool:
        """Whether a plan for a later state, with so many decisions and moves, is this one.

        No end of a partition may have changed since; the caller knows.
        """
        before = self.state
        return (
            self.is_calm
            and (decided, moves) == (self.decided, self.moves)
            and not self.batch.tasks
            and state.rows.watermarks is before.rows.watermarks
            and not (state.truncations or state.is_loading or state.ordered or state.busy)
            and not (before.busy or before.ordered)
            and state.closed == before.closed
            and state.resting == before.resting
        )
