"""What the coordinator would answer to a command; nothing is changed. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.handling.handlers import CoordinatorHandler
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Decision
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId

_LATER = 2**62
"""Offset of a command that is only thought of: after every command that was given."""


@dataclass(frozen=True, slots=True)
class Answers:
    """A target whose coordinator can be asked, as ``ways_out`` does.

    Attributes:
        pipeline: Whose target it is.
        state: The target's.
    """

    pipeline: Pipeline
    state: TargetState

    @property
    def target(self) -> TargetTable:
        """Which target."""
        return self.state.target

    def answer(
        self, kind: CommandKind, shard: ShardId | None = None, argument: str = ""
    ) -> Decision | None:
        """The answer to a command that is given now."""
        topic = topics.commands(self.pipeline).name
        command = OperatorCommand(ChangeId(topic, _LATER), self.target, kind, shard, argument)
        return CoordinatorHandler(self.pipeline).step(self.state, command).decision
