"""How far the rows of all shards are applied, as the driver knows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from shardmerge.schemas.model.errors import TargetClosed, TargetError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.spark_sink.barrier.applied import Applied, CatchUp, LoadPlace, RowProgress
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.intake import Intake
from shardmerge.spark_sink.kafka.offsets import ask_again
from shardmerge.spark_sink.planning.ranges import Advance, RangeResult
from shardmerge.spark_sink.rows.folding.key_collisions import KeyCollisions
from shardmerge.spark_sink.targets.interface import WriterState

_STORE_IDLE_S, _STORE_IDLE_SHARE, _STORE_IDLE_LATEST_S = 1.0, 50, 5.0
"""The offsets of idle shards are stored after so many seconds, and after so many times the time
that it took; but not later than after the last number of seconds, because comparisons and swaps
wait for them."""


class AppliedRows:
    """Keeps the offsets that the target has stored, and the results of the batches since.

    Args:
        intake: Tells where the row partitions end.
        control: Stores the offsets; only this object and the batches move them.
        epoch: Of this writer.

    Attributes:
        counts: Target → row events applied to it.
        written: Target → rows that this process has written to it.
        collisions: How many rows of each shard replaced other rows.
        loads: Where first loads stand; ``LoadRuns`` says it.
        unapplied: The partitions whose safe ends are not what is applied.
        moves: How often a partition has moved.
        is_stale: Whether nobody knows what became of a transaction: what the target has stored may
            be another offset.
    """

    def __init__(self, intake: Intake, control: WriterState, epoch: int) -> None:
        self._intake = intake
        self._control = control
        self._epoch = epoch
        self._applied: dict[Partition, Applied] = {}
        self._catch_up = CatchUp()
        self.counts: dict[TargetTable, int] = {}
        self.written: Counter[TargetTable] = Counter()
        self.collisions = KeyCollisions()
        self.loads: Mapping[ShardId, LoadPlace] = {}
        self.unapplied: dict[Partition, None] = {}
        self.moves = 0
        self.is_stale = False
        self._store_idle_at = 0.0

    def load(self) -> None:
        """Take what is committed in the target; raises ``TargetError``."""
        for partition, offset in self._control.offsets().items():
            known = self._applied.get(partition)
            if known is None or known.offset != offset:
                self._set(partition, Applied(offset), before=known.offset if known else 0)
        self.counts = self._control.rows()
        self.is_stale = False

    def renew(self) -> None:
        """Take what is committed, if nobody knows that; raises ``TargetError``."""
        if self.is_stale:
            self.load()

    @property
    def progress(self) -> RowProgress:
        """How far rows are applied, with the latest watermarks; offsets in it change with this."""
        intake = self._intake
        return RowProgress(
            self._applied,
            intake.watermarks,
            self._catch_up.caught_up,
            intake.scans,
            self.loads,
            intake.idle,
        )

    def look(self) -> None:
        """Take the latest reading of the partitions' ends, and what is safe since."""
        self._catch_up.look(self._intake.looked_at, self._intake.watermarks, self.progress.at)
        for partition in self._intake.newly_safe:
            self._compare(partition)

    def take(self, result: RangeResult) -> tuple[TargetTable, ShardId]:
        """Take what a task committed; returns the target and the shard of its rows."""
        partition = result.place
        now = Applied(result.next_offset, result.next_position)
        self._set(partition, now, before=result.start_offset)
        [(target, shard)] = self._intake.decisions.streams[partition.stream]
        self.counts[target] = self.counts.get(target, 0) + result.rows
        self.written[target] += result.written
        self.collisions.take(target, shard, result.key_collisions, self.progress)
        return target, shard

    def move(self, moves: Sequence[Advance]) -> None:
        """Set partitions to other offsets, in one transaction.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target cannot be written now (``retryable``).
        """
        stored = self.progress.stored
        if moves:
            self._store([replace(m, start_offset=stored(m.place)) for m in moves])
        for move in moves:
            self._set(move.place, Applied(move.next_offset), before=move.start_offset)

    def store_idle(self, now: float) -> None:
        """Store where the idle shards of shared topics stand, now and then.

        So a sink that starts need not read again what they have passed, and whoever reads the
        stored offsets sees that they go on.

        Args:
            now: Monotonic seconds.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target cannot be written now (``retryable``).
        """
        if now < self._store_idle_at:
            return
        progress, moves = self.progress, dict[TargetTable, list[Advance]]()
        for part in self._intake.idle:
            stored, at = progress.stored(part), progress.at(part).offset
            owners = self._intake.decisions.streams.get(part.stream, ())
            if at > stored and len(owners) == 1:
                topic, number, shard = part
                target = owners[0][0]
                move = Advance(topic, number, stored, at, target, 0, 0, 0, shard)
                moves.setdefault(target, []).append(move)
        for target, of_target in moves.items():
            # A closed target is left alone: its offsets may change places with another table's.
            with suppress(TargetClosed):
                self._store(of_target, target)
                self._applied.update((m.place, Applied(m.next_offset)) for m in of_target)
        again = ask_again(now, _STORE_IDLE_S, _STORE_IDLE_SHARE)
        self._store_idle_at = min(again, now + _STORE_IDLE_LATEST_S)

    def _store(self, moves: Sequence[Advance], target: TargetTable | None = None) -> None:
        try:
            self._control.move(self._epoch, moves, target)
        except TargetClosed:
            raise
        except TargetError:
            # If the answer to a COMMIT was lost, the offsets may have moved.
            self.is_stale = True
            raise

    def _set(self, partition: Partition, now: Applied, *, before: int) -> None:
        """Take a partition's new offset; one that went back has not caught up any more."""
        self._applied[partition] = now
        self.moves += 1
        if partition.shard is not None:
            self._leave_base(partition)
        self._compare(partition)
        if now.offset < before:
            self._catch_up.forget(partition)

    def _leave_base(self, part: Partition) -> None:
        """Take that a part was moved away from its partition's base; its rows go on there."""
        intake = self._intake
        if part in intake.idle:
            intake.barriers.pass_over(part, intake.idle.offset(part))
        intake.idle.moved(part)

    def _compare(self, partition: Partition) -> None:
        """Note whether a partition has safe rows that are not applied, or the other way round."""
        end = self._intake.barriers.safe_ends.get(partition)
        if end is None or end == self.progress.at(partition).offset:
            self.unapplied.pop(partition, None)
            if end is not None and partition.shard is not None:
                self._intake.rest(partition)
        else:
            self.unapplied[partition] = None
