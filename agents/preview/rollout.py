"""A rollout: the statements that somebody wants to execute on sources, in their order."""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.schemas.model.names import ShardId


@dataclass(frozen=True, slots=True)
class RolloutStep:
    """One statement on one source.

    Attributes:
        shard: Its source executes the statement, with its database as the default database. The
            statement itself says which tables it concerns.
        sql: One statement, without its delimiter.
        origin: Where it is written, such as ``V2__add.sql:3``; "" when it comes from no file.
        condition: What decides whether the statement is executed at all, and is known only to the
            tool that executes it, such as ``changeset anna:3: context:test``; "" for none.
    """

    shard: ShardId
    sql: str
    origin: str = ""
    condition: str = ""


@dataclass(frozen=True, slots=True)
class TableFile:
    """A CREATE TABLE statement that describes a table as it is before the rollout.

    Attributes:
        shard: Gives the table's source and database. The table's name stands in the statement.
        sql: The statement.
        origin: As in ``RolloutStep``.
    """

    shard: ShardId
    sql: str
    origin: str = ""
