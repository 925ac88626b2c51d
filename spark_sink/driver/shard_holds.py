"""The shards that wait at a row which cannot be applied, until it is tried again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.planning.ranges import RowHold

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class _Held:
    hold: RowHold
    retry_at: float


class ShardHolds:
    """What holds shards, by the partition of the row. In memory only: a new try finds it again.

    Args:
        retry_s: Seconds after which a held row is tried again.
        clock: Monotonic seconds.
    """

    def __init__(self, retry_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._retry_s = retry_s
        self._clock = clock
        self._held: dict[Partition, _Held] = {}

    def hold(self, partition: Partition, hold: RowHold) -> None:
        """Hold a shard; log it unless it was held for the same reason before."""
        before = self._held.get(partition)
        self._held[partition] = _Held(hold, self._clock() + self._retry_s)
        if before is None or before.hold != hold:
            log.error(
                "shard_held",
                shard=hold.shard,
                topic=partition.topic,
                partition=partition.number,
                offset=hold.offset,
                position=hold.position,
                reason=hold.reason,
                hint=hold.hint,
                code=hold.code,
            )

    def release(self, partitions: Iterable[Partition]) -> None:
        """Forget the holds of these partitions: nothing holds their rows any more."""
        for partition in partitions:
            self._held.pop(partition, None)

    def resting(self) -> dict[ShardId, SourcePosition]:
        """Shard whose row is not to be tried again yet → position of the row."""
        now = self._clock()
        return {h.hold.shard: h.hold.position for h in self._held.values() if now < h.retry_at}

    def by_shard(self) -> dict[ShardId, RowHold]:
        """Held shard → its hold, also when it is time to try the row again."""
        return {held.hold.shard: held.hold for held in self._held.values()}
