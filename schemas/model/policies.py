"""The policies of a route: what becomes of a target in cases that its operator decides."""

from __future__ import annotations

from enum import StrEnum


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
