"""The values that ``shardmerge load --json`` prints. Pure; see ``shapes``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShownLoad:
    """How far the first load of a shard is.

    Attributes:
        shard: As ``SOURCE/DATABASE.TABLE``.
        complete: Whether all its rows are in the target.
        rows: So many are.
        total: About so many it has; the server's estimate while the parts are not all known.
        parts_done: So many parts of the table are in the target.
        parts: So many it has; null while they are not all known.
    """

    shard: str
    complete: bool
    rows: int
    total: int
    parts_done: int
    parts: int | None


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """All loads together, once a second with ``--watch``.

    Attributes:
        rows: So many are in the target.
        total: About so many there are.
        rows_per_s: Rows a second of late.
        rest_s: About so many seconds are left; null while nobody can say.
    """

    rows: int
    total: int
    rows_per_s: float
    rest_s: float | None
