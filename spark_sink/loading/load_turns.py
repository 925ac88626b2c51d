"""Which chunks are read next, under limits for each source. Pure.

Chunks of a source's shards are given out in turn: a shard with fewer running chunks comes first. So
small shards are complete early, and their rows begin to flow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from .load_state import ChunkState, Load


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """Limits of a source.

    Attributes:
        connections: How many chunks are read at once.
        rows_per_s: Most rows a second, over all its shards; None for no limit.
    """

    connections: int = 4
    rows_per_s: int | None = None


@dataclass(frozen=True, slots=True)
class RateBudget:
    """How many rows of a source may still be read now: a token bucket that holds one second.

    A chunk may be given out while the budget is positive, whatever the chunk's size. Its rows are
    subtracted when their number is known, so the budget can become negative. Then nothing is given
    out until time has made it positive again.

    Attributes:
        rows: How many rows are left.
        at: The moment at which that was so, in seconds.
    """

    rows: float
    at: float

    def later(self, now: float, rows_per_s: int) -> RateBudget:
        """The budget at a later moment, in seconds."""
        gained = max(0.0, now - self.at) * rows_per_s
        return RateBudget(min(float(rows_per_s), self.rows + gained), max(now, self.at))

    def without(self, rows: int) -> RateBudget:
        """The budget after rows were read."""
        return replace(self, rows=self.rows - rows)


@dataclass(frozen=True, order=True, slots=True)
class ChunkTurn:
    """A chunk to give out: an index into the loads, and the chunk's number."""

    load: int
    number: int


def next_chunks(
    loads: Sequence[Load],
    ready: Sequence[bool],
    limits: Mapping[str, LoadLimits],
    budgets: Mapping[str, RateBudget],
    most: int,
) -> tuple[ChunkTurn, ...]:
    """The chunks to give out now.

    Args:
        loads: All loads.
        ready: For each of them whether its chunks may be given out (``load_rules.may_give_out``).
        limits: Source → its limits; one that is not listed has the default ones.
        budgets: Source → what it may read now; one that is not listed has no bound.
        most: Most chunks at once over all sources, those that run included.
    """
    free: dict[str, int] = {}
    running = [len(load.running) for load in loads]
    for load in loads:
        source = load.shard.source
        free.setdefault(source, limits.get(source, LoadLimits()).connections)
        free[source] -= len(load.running)
    for source, budget in budgets.items():
        if budget.rows <= 0:
            free[source] = 0
    left = most - sum(running)
    waiting = [
        [c.number for c in reversed(load.chunks) if c.state is ChunkState.PLANNED] if may else []
        for load, may in zip(loads, ready, strict=True)
    ]
    found: list[ChunkTurn] = []
    while left > 0:
        open_now = [n for n, load in enumerate(loads) if waiting[n] and free[load.shard.source] > 0]
        if not open_now:
            break
        chosen = min(open_now, key=lambda n: (running[n], loads[n].shard))
        found.append(ChunkTurn(chosen, waiting[chosen].pop()))
        running[chosen] += 1
        free[loads[chosen].shard.source] -= 1
        left -= 1
    return tuple(found)
