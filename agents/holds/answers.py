"""What the coordinator would answer to a command. The command is not given. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256

from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.handling.handlers import CoordinatorHandler, with_argument_schema
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Decision
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId

_LATER = 2**62
"""Offset of an imagined command: it comes after every command that was given."""


@dataclass(frozen=True, slots=True)
class Answers:
    """A target whose coordinator ``ways_out`` can ask.

    Attributes:
        pipeline: The pipeline of the target.
        state: The coordinator's state of the target.
    """

    pipeline: Pipeline
    state: TargetState

    @property
    def target(self) -> TargetTable:
        """The target."""
        return self.state.target

    def answer(
        self, kind: CommandKind, shard: ShardId | None = None, argument: str = ""
    ) -> Decision | None:
        """The decision that the command would lead to now; None if it would lead to none."""
        topic = topics.commands(self.pipeline).name
        command = OperatorCommand(ChangeId(topic, _LATER), self.target, kind, shard, argument)
        return self.answer_to(command)

    def answer_to(self, said: OperatorCommand) -> Decision | None:
        """The same for a whole command. The offset of its id does not matter."""
        said = replace(said, id=ChangeId(said.id.source, _LATER))
        if said.kind is CommandKind.SET_SCHEMA:
            said = with_argument_schema(self.pipeline, said)
        return CoordinatorHandler(self.pipeline).step(self.state, said).decision


def fingerprint(answer: Decision) -> str:
    """A text that is equal for answers that do the same; versions and times do not count."""
    found = (
        answer.outcome,
        answer.reason,
        answer.code,
        [statement.sql for statement in answer.statements],
        answer.released,
        answer.pauses,
        answer.resumes,
        answer.leaves,
        answer.reloads,
        [str(fixup) for fixup in answer.fixups],
        answer.warnings,
    )
    return sha256(repr(found).encode("utf-8", "surrogatepass")).hexdigest()
