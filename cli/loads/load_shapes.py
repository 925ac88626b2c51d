"""The values that ``shardmerge load --json`` prints. Pure; see ``cli.views.shapes``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShownLoad:
    """How far the first load of a shard is.

    Attributes:
        shard: As ``SOURCE/DATABASE.TABLE``.
        complete: Whether all its rows are in the target.
        rows: How many of its rows are in the target.
        total: About how many rows it has. While not all chunks are known, this is the server's
            estimate.
        chunks_done: How many chunks of its table are in the target.
        chunks: How many chunks its table has; null while not all of them are known.
    """

    shard: str
    complete: bool
    rows: int
    total: int
    chunks_done: int
    chunks: int | None


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """All loads together, once a second with ``--watch``.

    Attributes:
        rows: How many rows are in the target.
        total: About how many rows there are.
        rows_per_s: How many rows a second were loaded lately.
        rest_s: About how many seconds are left; null while that is not known.
    """

    rows: int
    total: int
    rows_per_s: float
    rest_s: float | None
