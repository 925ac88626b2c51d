"""The commands that were given to a pipeline's targets, with the coordinator's answers. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.decisions import Decision, Outcome
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId

MAX_COMMANDS = 2_000
"""Commands of a pipeline that are kept, and answers; the newest ones."""


@dataclass(frozen=True, slots=True)
class AnsweredCommand:
    """A command.

    Attributes:
        command: The command; its id has the offset in the commands topic.
        answer: The coordinator's decision about it; None as long as there is none.
    """

    command: OperatorCommand
    answer: Decision | None


@dataclass(slots=True)
class CommandLog:
    """Commands and answers, which come from two topics, so in any order."""

    _commands: dict[ChangeId, OperatorCommand] = field(default_factory=dict)
    _answers: dict[ChangeId, Decision] = field(default_factory=dict)
    _switches: dict[TargetTable, dict[ChangeId, OperatorCommand]] = field(default_factory=dict)
    """Target → its commands ``disable`` and ``enable``."""

    def add_command(self, command: OperatorCommand) -> None:
        """Note a command; its id must have the offset in the commands topic."""
        if command.kind in (CommandKind.DISABLE, CommandKind.ENABLE):
            self._switches.setdefault(command.target, {})[command.id] = command
        self._commands[command.id] = command
        if len(self._commands) > MAX_COMMANDS:
            del self._commands[min(self._commands)]

    def add_answer(self, decision: Decision) -> None:
        """Note a decision if it is the answer to a command."""
        if "." not in decision.id.source:
            return  # it is about a source's schema change: names of sources have no point
        self._answers[decision.id] = decision
        if len(self._answers) > MAX_COMMANDS:
            del self._answers[min(self._answers)]

    def of(self, target: TargetTable) -> tuple[AnsweredCommand, ...]:
        """The commands to a target, newest first."""
        found = sorted(i for i, command in self._commands.items() if command.target == target)
        return tuple(
            AnsweredCommand(self._commands[i], self._answers.get(i)) for i in reversed(found)
        )

    def disabled(self, target: TargetTable) -> AnsweredCommand | None:
        """The command ``disable`` that counts now, with its answer; None without one."""
        switches = self._switches.get(target, {})
        for i in sorted(switches, reverse=True):
            answer = self._answers.get(i)
            if answer is not None and answer.outcome is not Outcome.REFUSED:
                disables = switches[i].kind is CommandKind.DISABLE
                return AnsweredCommand(switches[i], answer) if disables else None
        return None
