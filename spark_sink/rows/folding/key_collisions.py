"""Rows that took the place of others under one primary key: by how much a table grew tells. Pure.

A shard's table grew by the rows that were created less those that were deleted. Where its rows let
the target grow by less, so many of them at least took the place of rows that were there: of another
shard, as a rule. It may be more: a row that another shard deleted meanwhile lets the target grow
once more than the shard's table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.spark_sink.barrier.applied import RowProgress

from .keyless import KeylessBatch
from .row_batches import Batch
from .row_fold import RowFold

TELL_S = 10.0
"""Seconds between two warnings of one shard."""
HINT = (
    "another shard has rows with the same primary keys, or they stayed when a table was dropped: "
    "origin columns in the target's keys (in_keys) keep them apart, "
    "see docs/how-to/origin-columns.md"
)


@dataclass(frozen=True, slots=True)
class ShardWrites:
    """What one transaction writes of a shard.

    Attributes:
        growth: By how many rows the shard's table grew; None where that tells nothing.
    """

    batches: Sequence[Batch | KeylessBatch]
    growth: int | None

    @classmethod
    def of(cls, folds: Sequence[RowFold]) -> ShardWrites:
        """Of folds of the shard's partitions, one at least; raises ``RefusedRow``."""
        first, *others = folds
        return cls(first.batches(others), _sum(fold.growth for fold in folds))

    def key_collisions(self, grown: Iterator[int | None]) -> int:
        """How many rows were written over others, at least.

        Args:
            grown: By how many rows the target grew with each batch; as many are taken from it.
        """
        actual = _sum(islice(grown, len(self.batches)))
        return 0 if self.growth is None or actual is None else max(0, self.growth - actual)


@dataclass(frozen=True, slots=True)
class CollisionCount:
    """Rows of a shard that were written over others since the sink started."""

    target: TargetTable
    shard: ShardId
    rows: int

    @property
    def facts(self) -> dict[str, object]:
        """For a log."""
        return {"target": str(self.target), "shard": str(self.shard), "rows": self.rows}


class KeyCollisions:
    """Sums by shard since the sink started.

    Of a shard with several partitions one may be ahead of a TRUNCATE in another: its rows are
    written over those that the TRUNCATE will turn out to have taken away. So what such a shard
    wrote over others counts when everything that was there by then is applied.

    Attributes:
        rows: Shard → rows written over others; only those that have some.
    """

    def __init__(self) -> None:
        self.rows: dict[ShardId, int] = {}
        self._targets: dict[ShardId, TargetTable] = {}
        self._pending: dict[ShardId, dict[int, int]] = {}
        self._told: dict[ShardId, tuple[float, int]] = {}

    def take(self, target: TargetTable, shard: ShardId, rows: int, progress: RowProgress) -> None:
        """Note how many rows a task wrote over others.

        Args:
            target: Whose.
            shard: Whose rows.
            rows: How many, at least.
            progress: As it was when the task began.
        """
        if not rows:
            return
        self._targets[shard] = target
        if len(progress.partitions_of(shard)) == 1:
            self._add(shard, rows)
        else:
            pending, following = self._pending.setdefault(shard, {}), progress.watermarks.number + 1
            pending[following] = pending.get(following, 0) + rows

    def forget(self, shard: ShardId) -> None:
        """A shard was emptied: what is pending may be its own rows of before."""
        self._pending.pop(shard, None)

    def due(self, progress: RowProgress, now: float) -> list[CollisionCount]:
        """What is to be told of now; ``now``: seconds of any clock."""
        for shard in list(self._pending):
            self._settle(shard, progress)
        found = []
        for shard, rows in self.rows.items():
            told_at, told = self._told.get(shard, (now - TELL_S, 0))
            if rows > told and now - told_at >= TELL_S:
                self._told[shard] = now, rows
                found.append(CollisionCount(self._targets[shard], shard, rows))
        return found

    def _settle(self, shard: ShardId, progress: RowProgress) -> None:
        reached = [progress.caught_up.get(p) for p in progress.partitions_of(shard)]
        upto = min((r.number if r is not None else -1 for r in reached), default=-1)
        pending = self._pending[shard]
        for reading in [number for number in pending if number <= upto]:
            self._add(shard, pending.pop(reading))
        if not pending:
            del self._pending[shard]

    def _add(self, shard: ShardId, rows: int) -> None:
        self.rows[shard] = self.rows.get(shard, 0) + rows


def _sum(numbers: Iterable[int | None]) -> int | None:
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total
