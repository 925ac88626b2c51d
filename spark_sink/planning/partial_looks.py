"""Which partitions' ends a round asks for: all of them, or those that may have grown. Pure.

Theory of operation. Kafka's answer about thousands of partitions takes a second, and a round's
rows would wait for it. So a round of a calm sink asks only for the partitions that are *warm*: in
which a record was seen to arrive, or which had grown, some seconds ago at most. From time to time,
and whenever something depends on it, a round asks for all. In between, a round asks for the
partitions of shards that have just come, too. A partition that is not asked for keeps its end. That
is sound: an end that was read later than another one proves as much, and all ends keep the number
of the reading in which all were asked for, and the number of the decisions that it covers.

Rows that end a wait of a calm sink need no question: who has read a committed record knows that the
partition can be read up to behind it (``SeenEnds``). Such an end proves nothing new about others,
and neither does a round that leaves the commit marker behind such rows for later.

A calm sink whose wait would have ended with any row, and did not, need not ask at all, except once
a second.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from shardmerge.spark_sink.barrier.partitions import Partition

FEW = 100
"""Of so few partitions, or parts of them, all ends are asked for in every round that asks."""
_WARM_S = 5.0
"""Seconds for which a partition stays warm."""
_LATEST_S = 1.0
"""Of few partitions, all ends are asked for at least once in so many seconds."""
_CALM_SHARE, _AWAITED_SHARE = 50, 3
"""All ends are asked for again after this many times the time that the answer took: while nothing
depends on it, and while statements or rows wait for what it shows."""


class PartialLooks:
    """Decides for each round; times are monotonic seconds."""

    def __init__(self) -> None:
        self._warm: dict[Partition, float] = {}
        self._asked_at = self._took_s = 0.0
        self._looked_at = float("-inf")

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
            parts: How many partitions there are. Each shard's part of a shared one counts, and so
                does a topic that does not exist yet.
            now: The present time.
            is_calm: Whether nothing waits for a new reading of all ends.
        """
        share = _CALM_SHARE if is_calm else _AWAITED_SHARE
        if parts < FEW or now >= self._asked_at + share * self._took_s:
            return None
        self._warm = {p: at for p, at in self._warm.items() if now - at < _WARM_S}
        some = frozenset(p for p in self._warm if p in known)
        return some if 2 * len(some) < max(len(known), FEW) else None

    def may_rest(self, now: float) -> bool:
        """Whether a round need not ask for any end, if nothing can have arrived."""
        return now < self._looked_at + _LATEST_S

    def looked(self, now: float) -> None:
        """Note a round that takes ends."""
        self._looked_at = now

    def is_due(self, now: float) -> bool:
        """Whether a round must ask for all ends, although nothing waits for them."""
        return now >= self._asked_at + max(_LATEST_S, _CALM_SHARE * self._took_s)

    def took(self, began: float, now: float) -> None:
        """Note that all ends were asked for, and when."""
        self._asked_at, self._took_s = now, now - began


_MARKER_S = 0.4
"""Seconds for which one offset behind the rows that were seen last counts as their commit marker.
Without it each row that comes alone would cost a second transaction, which moves the offset."""


class SeenEnds:
    """The ends of partitions as far as records were seen there; times are monotonic seconds.

    Two such readings never follow one another: the ends are asked for in between.

    Attributes:
        behind_markers: Whole partition → the offset behind the commit marker of the records that
            were seen last. An end that has grown to there shows no row that nobody has seen.
    """

    def __init__(self) -> None:
        self.behind_markers: dict[Partition, int] = {}
        self._seen: dict[Partition, tuple[int, float]] = {}
        self._was_seen = False

    def take(
        self,
        arrived: Mapping[Partition, int],
        known: Mapping[Partition, int],
        now: float,
        *,
        is_calm: bool,
    ) -> bool:
        """Whether the ends of a round are those of the records that ended its wait.

        Args:
            arrived: Whole partition → the offset behind the last committed record seen there; 0
                where that is not known.
            known: Whole partition → the end that is known. It is that of rows seen now if they
                were written, and not committed yet, when it was asked for. If one is beyond what
                was seen, something else happened than that rows came.
            now: The present time.
            is_calm: Whether nothing waits for a new reading of all ends.
        """
        if not is_calm:
            self._seen.clear()
        self._was_seen = (
            is_calm
            and bool(arrived)
            and not self._was_seen
            and all(known.get(partition, end + 1) <= end for partition, end in arrived.items())
        )
        if self._was_seen:
            self._seen.update((partition, (end, now)) for partition, end in arrived.items())
            self.behind_markers.update((p, end + 1) for p, end in arrived.items())
        return self._was_seen

    def may_have_markers(self, now: float) -> bool:
        """Whether a commit marker may be behind rows that were just seen, and can wait."""
        return any(now - at < _MARKER_S for _, at in self._seen.values())

    def forget(self) -> None:
        """Note that all ends were asked for: markers are among them."""
        self._seen.clear()

    def but_markers(self, ends: Mapping[Partition, int], now: float) -> dict[Partition, int]:
        """Ends that were asked for, without the commit markers behind rows that were just seen.

        Args:
            ends: Whole partition → its end.
            now: The present time.
        """
        found = dict(ends)
        for partition, (seen, at) in list(self._seen.items()):
            if now - at >= _MARKER_S or ends.get(partition, seen) > seen + 1:
                del self._seen[partition]
            elif partition in found:
                found[partition] = min(found[partition], seen)
        return found


def parts_of(
    whole: Collection[Partition],
    listed: Mapping[Partition, str],
    parts: Mapping[Partition, Collection[Partition]],
    but: Collection[Partition] = (),
) -> Mapping[Partition, str]:
    """The partitions that are, or are parts of, some whole ones.

    Args:
        whole: The whole ones.
        listed: Every partition of rows → its source.
        parts: Whole partition of a shared topic → its parts among ``listed``.
        but: Whole partitions whose parts are left out.
    """
    found = {partition: listed[partition] for partition in whole if partition in listed}
    for shared in whole if parts else ():
        if shared not in but:
            found.update((part, listed[part]) for part in parts.get(shared, ()))
    return found


class Behind:
    """The partitions that have grown beyond their safe ends, by their sources."""

    def __init__(self) -> None:
        self._of_source: dict[str, dict[Partition, None]] = {}

    def __bool__(self) -> bool:
        return any(self._of_source.values())

    def __contains__(self, partition: Partition) -> bool:
        return any(partition in partitions for partitions in self._of_source.values())

    def partitions(self, but_of: Collection[str]) -> dict[Partition, str]:
        """The partitions → their sources, but for some sources."""
        return {
            partition: source
            for source, partitions in self._of_source.items()
            if source not in but_of
            for partition in partitions
        }

    def take(
        self,
        looked_at: Mapping[Partition, str],
        ends: Mapping[Partition, int],
        safe_ends: Mapping[Partition, int],
    ) -> None:
        """Take new ends.

        Args:
            looked_at: The partitions whose ends were just read → their sources.
            ends: Whole partition → its high watermark.
            safe_ends: Partition → its safe end (``barrier``).
        """
        for partition, source in looked_at.items():
            grown = ends[partition.whole] > safe_ends.get(partition, 0)
            of_source = self._of_source.setdefault(source, {})
            if grown:
                of_source[partition] = None
            else:
                of_source.pop(partition, None)

    def settled(
        self, source: str, ends: Mapping[Partition, int], safe_ends: Mapping[Partition, int]
    ) -> None:
        """Forget those of a source that have reached their ends; its safe ends have moved."""
        of_source = self._of_source.get(source, {})
        for partition in [p for p in of_source if ends.get(p.whole, 0) <= safe_ends.get(p, 0)]:
            del of_source[partition]

    def keep(self, listed: Collection[Partition]) -> None:
        """Forget the partitions that are not listed any more."""
        for source, partitions in self._of_source.items():
            self._of_source[source] = dict.fromkeys(p for p in partitions if p in listed)
