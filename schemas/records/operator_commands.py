"""What an operator tells a target's coordinator, as a record of the schema-log."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.origin import Origin
from shardmerge.schemas.model.tables import TableSchema

from . import plain
from .schema_changes import ChangeId


class CommandKind(StrEnum):
    """What an operator can tell a target's coordinator; ``shard`` and ``argument`` by kind."""

    SKIP = "skip"
    """The target ignores the held change of ``shard``."""
    REPLACE = "replace"
    """The held change of ``shard`` counts as if it were the ALTER TABLE in ``argument``."""
    SET_SCHEMA = "set-schema"
    """From its last change on, ``shard`` has the schema of the CREATE TABLE in ``argument``."""
    UNLOCK_EXECUTE = "unlock-execute"
    """The first change of ``shard`` that waits for the DDL lock is executed; it does not wait for
    the other shards any more."""
    UNLOCK_DISCARD = "unlock-discard"
    """The first change of ``shard`` that waits for the DDL lock is skipped on all shards that made
    it."""
    DISABLE = "disable"
    """The target's schema stays as it is until ``enable``."""
    ENABLE = "enable"
    """The changes that the shards made while the target was disabled are emitted."""
    PAUSE = "pause"
    """The rows of ``shard`` wait until ``resume``."""
    RESUME = "resume"
    REREAD = "reread"
    """The table of ``shard`` is read again."""
    RELOADED = "reloaded"
    """Tables without a primary key were read as a whole: ``argument`` says at which positions
    (``reloads``). Only the watchdog gives this command."""
    LOAD_AGAIN = "load-again"
    """The sink takes the rows of ``shard`` out of the target, and reads its table itself. Only
    ``shardmerge load again`` gives this command."""
    LEAVE = "leave"
    """``shard`` is no live shard any more, for example because its server is gone. With "delete" as
    ``argument`` its rows are deleted from the target."""
    SET_MODE = "set-mode"
    """The target is in mode ``argument`` whatever its routes say; "": in the mode of its routes."""
    SET_POLICY = "set-policy"
    """``argument`` is ``name=value`` of a policy: this value counts instead of the route's."""
    ADOPT = "adopt"
    """What somebody changed on the target's table by hand counts as decided: ``argument`` is a
    ``drift.Adoptions`` as JSON. Only ``shardmerge drift adopt`` gives this command."""
    RENEW = "renew"
    """A table that a rebuild has filled takes the target's place: ``argument`` is a
    ``Renewal`` as JSON. Only ``shardmerge rebuild`` gives this command."""


@dataclass(frozen=True, slots=True)
class OperatorCommand:
    """An operator's command. The coordinator checks it against the state and answers it.

    Attributes:
        id: ``source`` is the name of the commands topic. The tracker fills in the offset when it
            copies the command from there into the schema-log.
        shard: None where the kind concerns the whole target.
        argument: See ``CommandKind``.
        schema: The schema that the tracker read from the argument of ``set-schema``.
        error: Why the tracker could not read it; "" otherwise.
        code: Of the error, see ``schemas.codes``; "" without an error.
        by: Who gave it, for people.
        ts_ms: When, for people.
    """

    id: ChangeId
    target: TargetTable
    kind: CommandKind
    shard: ShardId | None = None
    argument: str = ""
    schema: TableSchema | None = None
    error: str = ""
    by: str = ""
    ts_ms: int = 0
    code: str = ""

    def __str__(self) -> str:
        parts = [self.kind.value, str(self.shard or ""), self.argument]
        return " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Renewal:
    """A rebuilt table, as the command ``renew`` describes it, which puts it in its target's place.

    It is the command's argument, as JSON.

    Attributes:
        rebuild: Number of the rebuild in its pipeline.
        version: Of the target's latest decision that the table follows.
        origin: The table's origin columns.
    """

    rebuild: int
    version: int
    origin: Origin

    def __str__(self) -> str:
        return plain.dump(self).decode()

    @classmethod
    def read(cls, text: str) -> Renewal:
        """Parse a command's argument.

        Raises:
            ContractError: The text is not the JSON of a ``Renewal``.
        """
        return plain.load(cls, text.encode())
