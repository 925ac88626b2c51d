"""What an operator tells a target's coordinator, as a record of the schema-log."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.tables import TableSchema

from .schema_changes import ChangeId


class CommandKind(StrEnum):
    """What an operator can tell a target's coordinator; ``shard`` and ``argument`` by kind."""

    SKIP = "skip"
    """The held change of ``shard`` does not count: the target does not follow it."""
    REPLACE = "replace"
    """The held change of ``shard`` counts as the ALTER TABLE ``argument`` would."""
    SET_SCHEMA = "set-schema"
    """``shard`` has the schema of the CREATE TABLE ``argument`` from its last change on."""
    UNLOCK_EXECUTE = "unlock-execute"
    """What waits first for the DDL lock on ``shard`` is executed without the others."""
    UNLOCK_DISCARD = "unlock-discard"
    """It is skipped on all shards that made it."""
    DISABLE = "disable"
    """The target's schema stays as it is until ``enable``."""
    ENABLE = "enable"
    """The difference that came together meanwhile is emitted."""
    PAUSE = "pause"
    """The rows of ``shard`` wait until ``resume``."""
    RESUME = "resume"
    REREAD = "reread"
    """The table of ``shard`` is read again."""
    RELOADED = "reloaded"
    """Tables without a primary key were read as a whole: ``argument`` says where (``reloads``). The
    watchdog gives it, nobody else."""
    LEAVE = "leave"
    """``shard`` counts no more: its server is gone, say. "delete": its rows in the target go."""
    SET_MODE = "set-mode"
    """The target moves in mode ``argument``, whatever its routes say; "" is as they say."""
    SET_POLICY = "set-policy"
    """``argument`` is ``name=value`` of a route's policy, which counts instead of the route's."""


@dataclass(frozen=True, slots=True)
class OperatorCommand:
    """What an operator decided: the coordinator checks it against the state and answers it.

    Attributes:
        id: ``source`` is the name of the commands topic; the offset is filled in by the tracker,
            when it takes the command from there into the schema-log.
        shard: None where the kind concerns the whole target.
        argument: See ``CommandKind``.
        schema: What the tracker read from the argument of ``set-schema``.
        error: Why the tracker could not, "" otherwise.
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

    def __str__(self) -> str:
        parts = [self.kind.value, str(self.shard or ""), self.argument]
        return " ".join(part for part in parts if part)
