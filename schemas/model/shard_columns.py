"""Columns of shards: with their identity, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass

from .tables import Column


@dataclass(frozen=True, slots=True)
class Lineage:
    """Where a column of the schema after a change comes from.

    ``before`` is its name before the change, "" when the change added it (a column dropped and
    added again in one statement is new, although the name is the same).
    """

    name: str
    before: str


@dataclass(frozen=True, slots=True)
class ShardColumn:
    """A column of a shard with its identity.

    Attributes:
        id: ``<name at birth>#<generation>``, unique in the target. Renames keep it; a column
            that no shard has any more and that comes back gets the next generation. Of an origin
            column: see ``origin.OriginPart``. "" where the column's values are left out.
        column: Its definition on the shard.
    """

    id: str
    column: Column
