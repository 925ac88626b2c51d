"""Which partitions' ends a round asks for: all of them, or those that may have grown. Pure.

Theory of operation. Kafka's answer about thousands of partitions takes a second, and a round's
rows would wait for it. So a round of a calm sink asks only for the partitions that are *warm*: in
which a record was seen to arrive, or which had grown, some seconds ago at most. From time to time,
and whenever something depends on it, a round asks for all. A partition that is not asked for keeps
its end. That is sound: an end that was read later than another one proves as much, and all ends
keep the number of the reading in which all were asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from shardmerge.spark_sink.barrier.partitions import Partition

FEW = 100
"""Of so few partitions, or parts of them, all ends are asked for in every round."""
_WARM_S = 5.0
"""Seconds for which a partition stays warm."""
_CALM_SHARE, _AWAITED_SHARE = 50, 3
"""All ends are asked for again after this many times the time that the answer took: while nothing
depends on it, and while statements or rows wait for what it shows."""


class PartialLooks:
    """Decides for each round; times are monotonic seconds."""

    def __init__(self) -> None:
        self._warm: dict[Partition, float] = {}
        self._asked_at = self._took_s = 0.0

    def warm(self, partitions: Iterable[Partition], now: float) -> None:
        """Note the whole partitions that have grown, or in which records may have arrived."""
        for partition in partitions:
            self._warm[partition] = now

    def wanted(
        self, known: Collection[Partition], parts: int, now: float, *, is_calm: bool
    ) -> frozenset[Partition] | None:
        """The whole partitions to ask for; None for all of them.

        Args:
            known: The whole partitions whose ends are known since the last look at all.
            parts: How many partitions there are, where each shard's part of a shared one counts.
            now: The present time.
            is_calm: Whether nothing waits for a new reading of all ends.
        """
        share = _CALM_SHARE if is_calm else _AWAITED_SHARE
        if parts < FEW or now >= self._asked_at + share * self._took_s:
            return None
        self._warm = {p: at for p, at in self._warm.items() if now - at < _WARM_S}
        some = frozenset(p for p in self._warm if p in known)
        return some if 2 * len(some) < len(known) else None

    def took(self, began: float, now: float) -> None:
        """Note that all ends were asked for, and when."""
        self._asked_at, self._took_s = now, now - began


def parts_of(
    whole: Collection[Partition] | None, listed: Mapping[Partition, str]
) -> Mapping[Partition, str]:
    """The partitions that are, or are parts of, some whole ones.

    Args:
        whole: The whole ones; None for all.
        listed: Every partition of rows → its source.
    """
    if whole is None:
        return listed
    if all(partition in listed for partition in whole):
        return {partition: listed[partition] for partition in whole}
    return {p: source for p, source in listed.items() if p.whole in whole}


def behind(
    partitions: Mapping[Partition, str],
    listed: Collection[Partition],
    ends: Mapping[Partition, int],
    safe_ends: Mapping[Partition, int],
) -> dict[Partition, str]:
    """Those of some partitions that have grown beyond their safe ends, with their sources.

    Args:
        partitions: The partitions → their sources.
        listed: Every partition of rows.
        ends: Whole partition → its high watermark.
        safe_ends: Partition → its safe end (``barrier``).
    """
    return {
        partition: source
        for partition, source in partitions.items()
        if partition in listed and ends[partition.whole] > safe_ends.get(partition, 0)
    }
