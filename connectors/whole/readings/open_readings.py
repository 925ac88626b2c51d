"""Which shards have to be read as a whole, and which commands tell of it. Pure.

A fold over the records of the ddl and the commands topic (``schemas.records.awaited_readings``). It
does not depend on their order, and a repeated record changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.records.awaited_readings import AwaitedReadings
from shardmerge.schemas.records.decisions import Decision, Outcome
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId


@dataclass(frozen=True, order=True, slots=True)
class Wanted:
    """A shard that has to be read as a whole.

    Attributes:
        target: Whose shard.
        shard: Which table.
        version: Of the decision that asks for it. A later request makes earlier readings void.
    """

    target: TargetTable
    shard: ShardId
    version: int


@dataclass(slots=True)
class OpenReadings:
    """The readings that are asked for, the commands that tell of them, and the decisions.

    Args:
        commands_topic: Its name is the source of the commands' ids.
    """

    commands_topic: str
    _awaited: dict[TargetTable, AwaitedReadings] = field(default_factory=dict)
    _told: dict[int, TargetTable] = field(default_factory=dict)
    _answers: dict[int, Decision] = field(default_factory=dict)
    _undecided: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    _decided: dict[str, set[int]] = field(default_factory=dict)

    def take(self, decision: Decision) -> None:
        """Take a record of the ddl topic."""
        self._count(decision.id)
        if decision.id.source == self.commands_topic:
            self._answers[decision.id.offset] = decision
        if decision.target is not None:
            self._awaited.setdefault(decision.target, AwaitedReadings()).take(decision)

    def take_command(self, offset: int, command: OperatorCommand) -> None:
        """Take the record of the commands topic at that offset."""
        if command.kind is CommandKind.RELOADED:
            self._told[offset] = command.target

    def wanted(self) -> tuple[Wanted, ...]:
        """The shards that have to be read now; sorted.

        No shard of a target is among them while a command that tells of its readings is not
        answered: if the answer accepts these, another reading would bring the rows twice.
        """
        waiting = {t for offset, t in self._told.items() if offset not in self._answers}
        return tuple(
            sorted(
                Wanted(target, shard, version)
                for target, awaited in self._awaited.items()
                if target not in waiting
                for shard, version in awaited.latest().items()
            )
        )

    def unanswered(self) -> Mapping[int, TargetTable]:
        """The commands that tell of readings and have no answer yet, by their offsets."""
        return {o: target for o, target in self._told.items() if o not in self._answers}

    def refused(self, offset: int) -> str | None:
        """Why the command at that offset is refused; None where it is not, or not answered yet."""
        answer = self._answers.get(offset)
        return answer.reason if answer is not None and answer.outcome is Outcome.REFUSED else None

    def is_decided(self, source: str, offset: int) -> bool:
        """Whether the schema change at that offset of a source's topic has all its decisions."""
        return offset in self._decided.get(source, ())

    def _count(self, change: ChangeId) -> None:
        if self.is_decided(change.source, change.offset):
            return
        seen = self._undecided.setdefault((change.source, change.offset), set())
        seen.add(change.ordinal)
        if len(seen) == change.count:
            del self._undecided[change.source, change.offset]
            self._decided.setdefault(change.source, set()).add(change.offset)
