"""The policies of a route: what happens to a target in the cases that its owner decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import get_type_hints

from .origin import NO_ORIGIN, Origin


class Mode(StrEnum):
    """How the shards of a target change their schemas.

    In optimistic mode every shard changes its schema when it likes. In pessimistic mode a change
    takes the target's DDL lock: it waits until every live shard has made it.
    """

    OPTIMISTIC = "optimistic"
    PESSIMISTIC = "pessimistic"


class RenamePolicy(StrEnum):
    """What happens to a column that one shard renames before the others, in optimistic mode.

    ``map``: the target's column is renamed at once. Rows of shards that still have the old name are
    written into it too.
    ``hold``: the shard is held until the others have renamed the column too.
    ``copy``: the target's column is renamed at once, and a column with the old name is added for
    the rows of the other shards. When all have renamed theirs, its values are copied into the
    renamed column and it is dropped.
    """

    MAP = "map"
    HOLD = "hold"
    COPY = "copy"


class RowsPolicy(StrEnum):
    """What happens to a shard's rows in the target when the shard loses them without row events.

    That happens with TRUNCATE TABLE, and when a shard's table is dropped.
    """

    KEEP = "keep"
    DELETE = "delete"


class RowOperation(StrEnum):
    """What happened to rows of a shard, as a route's ``ignore`` names it.

    An UPDATE that changes a primary key is an ``update``, although it comes as two records, a
    delete and a create. Reading a row, by a snapshot or again, is none of them.
    """

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    TRUNCATE = "truncate"


class ExistingRows(StrEnum):
    """What happens to rows that DDL changed without row events and that no statement can correct.

    ``reread``: the shard's table is read again. ``accept``: they stay different until they are
    written again. ``hold``: the shard is paused until an operator resumes it.
    """

    REREAD = "reread"
    ACCEPT = "accept"
    HOLD = "hold"


class Keyless(StrEnum):
    """What happens to shards without a primary key.

    ``count``: equal rows cannot be told apart, so the target gets as many copies of each row as the
    shards have. ``refuse``: a shard that would leave the target without a primary key is held.
    """

    COUNT = "count"
    REFUSE = "refuse"


class TypePolicy(StrEnum):
    """Which types of one column can be joined.

    ``wide``: two types can be joined when some type holds all values of both exactly.
    ``published``: they must be of one family and have the same sign, character set and collation;
    only utf8mb3 can be joined with utf8mb4.
    """

    WIDE = "wide"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class RoutePolicies:
    """What a route of the pipeline file says about the decisions for its target.

    A routing rule has this record, every schema change of a shard carries it, and the target's
    state stores it. A field whose type is a ``StrEnum`` needs no code elsewhere: its name is the
    key of ``[[routes]]`` in the pipeline file, the field in the schema-change record and the name
    for ``shardmerge command set-policy``.

    Attributes:
        mode: Whether the shards change their schemas independently or under a lock.
        renames: What happens to a column that one shard renames before the others.
        origin: Columns of the target that say which shard a row came from.
        on_drop: What happens to the rows of a shard whose table is dropped, or renamed so that it
            is no shard any more.
        existing_rows: What happens to rows that DDL changed without row events.
        keyless: What happens to shards without a primary key.
        types: Which types of one column can be joined.
    """

    mode: Mode = Mode.OPTIMISTIC
    renames: RenamePolicy = RenamePolicy.MAP
    origin: Origin = NO_ORIGIN
    on_drop: RowsPolicy = RowsPolicy.KEEP
    existing_rows: ExistingRows = ExistingRows.REREAD
    keyless: Keyless = Keyless.COUNT
    types: TypePolicy = TypePolicy.WIDE


def _choices() -> Mapping[str, type[StrEnum]]:
    hints = get_type_hints(RoutePolicies)
    kinds = {field.name: hints[field.name] for field in fields(RoutePolicies)}
    return {name: kind for name, kind in kinds.items() if issubclass(kind, StrEnum)}


CHOICES: Mapping[str, type[StrEnum]] = _choices()
"""The policies that are a choice of words: name → the enum of the words."""

SETTABLE: Mapping[str, type[StrEnum]] = {
    name: kind for name, kind in CHOICES.items() if name != "mode"
}
"""The policies that ``set-policy`` can set for a target; the mode has ``set-mode``."""

DEFAULT_POLICIES = RoutePolicies()
"""The policies of a route that sets none."""

EARLIEST_POLICIES = RoutePolicies(types=TypePolicy.PUBLISHED)
"""The values of the policies that an older record or an older stored state lacks.
Before ``types`` existed, all types were joined by the published order."""
