"""Columns of shards with their identities, and their lineage in a schema change."""

from __future__ import annotations

from dataclasses import dataclass

from .tables import Column


@dataclass(frozen=True, slots=True)
class Lineage:
    """Which column of the schema before a change a column after it is.

    Attributes:
        name: The column's name after the change.
        before: Its name before the change; "" when the change added it. A column that one statement
            drops and adds again is new, although its name is the same.
    """

    name: str
    before: str


@dataclass(frozen=True, slots=True)
class ShardColumn:
    """A column of a shard with its identity.

    Attributes:
        id: ``<name when added>#<generation>``, unique in the target. A rename keeps it. When all
            shards have dropped a column and one adds it again, it gets the next generation. For an
            origin column see ``origin.OriginPart``. "" when the column's values are left out.
        column: Its definition on the shard.
    """

    id: str
    column: Column
