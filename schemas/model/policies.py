"""The policies of a route: what becomes of a target in cases that its operator decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import get_type_hints

from .origin import NO_ORIGIN, Origin


class Mode(StrEnum):
    """How the shards of a target move.

    In optimistic mode every shard changes its schema when it likes. In pessimistic mode a change
    takes the target's DDL lock: it waits until every live shard has made it.
    """

    OPTIMISTIC = "optimistic"
    PESSIMISTIC = "pessimistic"


class RenamePolicy(StrEnum):
    """What becomes of a column that one shard renames before the others, in optimistic mode.

    ``map``: the target's column is renamed at once, the others' rows go there under their name.
    ``hold``: the shard is held until the others have renamed it too.
    ``copy``: the target's column is renamed at once and added again under its old name, for the
    others' rows; when all have renamed it, its values are copied and it is dropped.
    """

    MAP = "map"
    HOLD = "hold"
    COPY = "copy"


class RowsPolicy(StrEnum):
    """What becomes of a shard's rows in the target when the shard has them no longer.

    Rows go and no row event tells: TRUNCATE TABLE, and a shard's table that is dropped.
    """

    KEEP = "keep"
    DELETE = "delete"


class ExistingRows(StrEnum):
    """What becomes of rows that DDL changed without row events, where no statement can mend them.

    ``reread``: the shard's table is read again. ``accept``: they stay different until they are
    written again. ``hold``: the shard is paused until an operator resumes it.
    """

    REREAD = "reread"
    ACCEPT = "accept"
    HOLD = "hold"


class Keyless(StrEnum):
    """What becomes of shards without a primary key.

    ``count``: equal rows cannot be told apart, so the target gets as many of each as the shards
    have. ``refuse``: a shard that would leave the target without a primary key is held.
    """

    COUNT = "count"
    REFUSE = "refuse"


class TypePolicy(StrEnum):
    """Which types of one column go together.

    ``wide``: those that some type holds both exactly. ``published``: only those inside one family,
    with one sign and, but for utf8mb3 in utf8mb4, one character set and collation.
    """

    WIDE = "wide"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class RoutePolicies:
    """What a route of the pipeline file says about the decisions for its target.

    A routing rule has this record, every schema change of a shard carries it, and the target's
    state keeps it. A field whose type is a ``StrEnum`` needs nothing else to travel: its name is
    the key of ``[[routes]]`` in the pipeline file, the field in the schema-change record and the
    name for ``shardmerge command set-policy``.

    Attributes:
        mode: Whether the shards change their schemas independently or under a lock.
        renames: What becomes of a column that one shard renames before the others.
        origin: Columns of the target that say which shard a row came from.
        on_drop: What becomes of the rows of a shard whose table is dropped, or renamed so that it
            is a shard no longer.
        existing_rows: What becomes of rows that DDL changed without row events.
        keyless: What becomes of shards without a primary key.
        types: Which types of one column go together.
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
"""The policies that are one of several words: their names and words."""

SETTABLE: Mapping[str, type[StrEnum]] = {
    name: kind for name, kind in CHOICES.items() if name != "mode"
}
"""Those that an operator can set for a target with ``set-policy``; the mode has ``set-mode``."""

DEFAULT_POLICIES = RoutePolicies()
"""Those of a route that says nothing about them."""

EARLIEST_POLICIES = RoutePolicies(types=TypePolicy.PUBLISHED)
"""What is assumed where an older record or an older stored state does not have a policy. Before
``types`` existed, all types were joined by the published order."""
