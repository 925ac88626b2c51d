"""What one sink applies, and under which name it keeps its state. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Decision

from .shadow import Shadow, shadow_decision


@dataclass(frozen=True, slots=True)
class Merge:
    """A pipeline, or one target of it that is rebuilt.

    Attributes:
        pipeline: Has the topics, the sources and the routes.
        state_name: Stands for the pipeline in the control tables.
        shadow: The table that is filled; None for a sink that applies everything.
        decided: Gives each decision of the topic as it is decided for a shadow that has decisions
            of its own; None for every other sink.
    """

    pipeline: Pipeline
    state_name: str
    shadow: Shadow | None = None
    decided: Callable[[Decision], Decision] | None = None

    def as_read(self, decision: Decision) -> Decision:
        """A decision of the topic as this sink has to follow it."""
        if self.decided is not None:
            return self.decided(decision)
        return decision if self.shadow is None else shadow_decision(decision, self.shadow)
