"""Counts inserts that replaced an existing row with the same primary key. Pure.

A shard's table grows by the rows created less the rows deleted. If writing these rows makes the
target grow by less, at least as many of them as the difference replaced existing rows, usually of
another shard. The real number can be higher: if another shard has deleted such a row meanwhile, the
target grows by one more than the shard's table.
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
"""Seconds between two warnings about one shard."""
HINT = (
    "another shard has rows with the same primary keys, or they stayed when a table was dropped: "
    "origin columns in the target's keys (in_keys) keep them apart, "
    "see docs/how-to/origin-columns.md"
)


@dataclass(frozen=True, slots=True)
class ShardWrites:
    """What one transaction writes for a shard.

    Attributes:
        growth: By how many rows the shard's table grew; None when the target's growth cannot be
            compared with that.
    """

    batches: Sequence[Batch | KeylessBatch]
    growth: int | None

    @classmethod
    def of(cls, folds: Sequence[RowFold]) -> ShardWrites:
        """What the folds of a shard's partitions write; at least one. Raises ``RefusedRow``."""
        first, *others = folds
        return cls(first.batches(others), _sum(fold.growth for fold in folds))

    def key_collisions(self, grown: Iterator[int | None]) -> int:
        """At least this many inserts replaced existing rows.

        Args:
            grown: By how many rows the target grew with each batch, over all shards. The numbers
                of this shard's batches are taken from it.
        """
        actual = _sum(islice(grown, len(self.batches)))
        return 0 if self.growth is None or actual is None else max(0, self.growth - actual)


@dataclass(frozen=True, slots=True)
class CollisionCount:
    """How many rows of a shard replaced existing rows since the sink started."""

    target: TargetTable
    shard: ShardId
    rows: int


class KeyCollisions:
    """The sums for each shard since the sink started.

    In a shard with several partitions, one partition may be ahead of a TRUNCATE in another. Its
    rows then replace the shard's own old rows, which the TRUNCATE has removed on the shard. So the
    collisions of such a shard are pending until everything is applied that its topic had by then.

    Attributes:
        rows: Shard → how many of its rows replaced existing rows; only shards with some.
    """

    def __init__(self) -> None:
        self.rows: dict[ShardId, int] = {}
        self._targets: dict[ShardId, TargetTable] = {}
        self._pending: dict[ShardId, dict[int, int]] = {}
        self._told: dict[ShardId, tuple[float, int]] = {}

    def take(self, target: TargetTable, shard: ShardId, rows: int, progress: RowProgress) -> None:
        """Add the collisions that a task has counted.

        Args:
            target: The task's target.
            shard: The task's shard.
            rows: At least this many inserts replaced existing rows.
            progress: How far rows are applied, with the watermarks that the task was planned by.
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
        """Drop what is pending for a shard that was emptied: it may have replaced its own rows."""
        self._pending.pop(shard, None)

    def due(self, progress: RowProgress, now: float) -> list[CollisionCount]:
        """The counts to warn about now; ``now``: seconds of any clock."""
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
