"""How far a load is, how fast it goes, and how long it still takes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .load_state import ChunkState, Load, LoadKind

LOADED_FIRST = "SM-1615"
"""Code of the reason why rows wait while their shard is loaded."""
_WINDOW_S = 30.0
"""The rate is that of this many last seconds: limits, other load and wide rows change it."""


@dataclass(frozen=True, slots=True)
class LoadedRows:
    """How many rows were loaded at a moment, which is given in seconds."""

    at: float
    rows: int


@dataclass(frozen=True, slots=True)
class LoadEstimate:
    """What a progress bar shows.

    Attributes:
        rows: Loaded rows.
        total: About how many rows there are; never fewer than ``rows``.
        rows_per_s: 0.0 when it is not known yet.
        rest_s: Seconds that are left; None when that is not known.
    """

    rows: int
    total: int
    rows_per_s: float
    rest_s: float | None

    @property
    def share(self) -> float:
        """The share that is loaded, from 0.0 to 1.0."""
        return 1.0 if self.total == 0 else self.rows / self.total


def rows_of(load: Load) -> int:
    """How many rows are loaded."""
    return sum(chunk.rows for chunk in load.chunks if chunk.state is ChunkState.DONE)


def load_text(load: Load) -> str:
    """What a shard's rows wait for, in words for people."""
    if load.is_proven:
        return f"its first load has read {rows_of(load)} rows: they are copied into the target"
    if load.is_read:
        return (
            f"its first load has read {rows_of(load)} rows: it waits until all schema changes up "
            "to there are known"
        )
    if load.kind is LoadKind.SNAPSHOT and load.running:
        return "its rows are loaded first: they are read as of one moment"
    done = sum(chunk.state is ChunkState.DONE for chunk in load.chunks)
    chunks = f"{done} of {len(load.chunks)} chunks" if load.is_planned else f"{done} chunks"
    return f"its rows are loaded first: {chunks}, {rows_of(load)} rows, are in the target"


def total_of(load: Load, table_rows: int) -> int:
    """About how many rows a shard has.

    When all chunks are known, those that are not read count like the average of those that are.
    Until then the server's estimate counts, unless more rows are loaded already.

    Args:
        load: The shard's.
        table_rows: The server's estimate (``chunk_queries.table_statistics``).
    """
    rows = rows_of(load)
    done = sum(chunk.state is ChunkState.DONE for chunk in load.chunks)
    if load.is_void or load.is_read:
        return rows
    if not load.is_planned or not done:
        return max(table_rows, rows)
    return rows + round(rows / done * (len(load.chunks) - done))


def estimate(
    loads: Sequence[tuple[Load, int]], history: Sequence[LoadedRows], now: float
) -> LoadEstimate:
    """The progress of several loads together.

    Args:
        loads: Each with the server's estimate of its rows.
        history: What was loaded when, in order of time; of a run of one driver.
        now: The moment for which it is estimated, in seconds.
    """
    rows = sum(rows_of(load) for load, _ in loads)
    total = sum(total_of(load, table_rows) for load, table_rows in loads)
    rate = _rate(history, now)
    if rows >= total:
        return LoadEstimate(rows, rows, rate, 0.0)
    return LoadEstimate(rows, total, rate, (total - rows) / rate if rate > 0 else None)


def _rate(history: Sequence[LoadedRows], now: float) -> float:
    """Rows a second, from the last point before the window on, or from the first point on."""
    if not history:
        return 0.0
    before = [point for point in history if point.at <= now - _WINDOW_S]
    first, last = (before[-1] if before else history[0]), history[-1]
    seconds = now - first.at
    return max(0, last.rows - first.rows) / seconds if seconds > 0 else 0.0
