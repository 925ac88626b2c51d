"""Which shards of shared partitions a round has to look at.

Theory of operation. Each shard of a shared topic has an offset of its own. To move thousands of
them with each batch would take most of the sink's time, and mostly few shards have rows. So the
sink reads what such a partition got since the last look, the *window*, before it plans. It looks
only at the shards that are named there. All other shards that had no row left have none now, up to
the end of the window: this one offset, the partition's *base*, stands for all of them
(``IdleParts``).

A base begins with a round that looks at all shards of the partition, and moves with each window.
Whoever is named is looked at from the window's start, and is not idle again before its rows are
applied. So a shard that is held, new, or behind for another reason keeps an offset of its own.

A window that is too large, or a record that does not say its shard, names all shards. Partitions of
ordered streams have no base, because the ends of such a stream move together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from shardmerge.schemas.model.names import ShardId
from shardmerge.spark_sink.barrier.barrier import Barriers
from shardmerge.spark_sink.barrier.partitions import IdleParts, Partition
from shardmerge.spark_sink.planning.partial_looks import FEW

from .window import ReadWindows, Window


@dataclass(slots=True)
class Found:
    """What the windows of a round show.

    Attributes:
        named: Parts to look at. None of them is idle.
        moved: The whole partitions whose base has moved, or begun.
        blocked: Whole partition that has more records which cannot be read yet → its base.
    """

    named: set[Partition] = field(default_factory=set)
    moved: set[Partition] = field(default_factory=set)
    blocked: dict[Partition, int] = field(default_factory=dict)


class WindowLooks:
    """Moves the bases.

    Args:
        read: Reads windows; None where bases are not used.
        idle: The bases, and the parts that stand at them.
        barriers: Get the ends of parts that are not idle any more.
        few: With fewer shards in a partition all of them are looked at.
    """

    def __init__(
        self, read: ReadWindows | None, idle: IdleParts, barriers: Barriers, few: int = FEW
    ) -> None:
        self._read = read
        self._idle = idle
        self._barriers = barriers
        self._few = few

    def look(
        self,
        parts: Mapping[Partition, Collection[Partition]],
        looked: Collection[Partition] | None,
        ends: Mapping[Partition, int],
        stable: dict[Partition, int],
        ask: Callable[[Iterable[Partition]], Mapping[Partition, int]],
    ) -> Found:
        """Take new ends.

        Args:
            parts: Whole partition of a shared topic → its parts; without those of ordered streams.
            looked: The whole partitions without a base all of whose parts are looked at in this
                round; None: all of them.
            ends: Whole partition → its high watermark.
            stable: Whole partition → its stable end, as far as asked in this round. Those that are
                asked for here are added.
            ask: Asks Kafka for stable ends.

        Raises:
            ContractError, StackError: As ``ReadWindows``, or Kafka does not answer.
        """
        found = Found()
        if self._read is None:
            return found
        bases = self._idle.bases
        beginning = [
            whole
            for whole, own in parts.items()
            if whole not in bases and len(own) >= self._few and (looked is None or whole in looked)
        ]
        grown = [whole for whole, base in bases.items() if ends.get(whole, 0) > base]
        if lacking := {*beginning, *grown} - stable.keys():
            stable.update(ask(lacking))
        windows = {p: (bases[p], stable[p]) for p in grown if stable[p] > bases[p]}
        read = self._read(windows) if windows else {}
        for whole, (base, end) in windows.items():
            window = read.get(whole, Window(end, None))
            named: Iterable[Partition] = parts[whole]
            if window.names is not None:
                named = (Partition(*whole[:2], ShardId(*name)) for name in window.names)
            for part in named:
                found.named.add(part)
                if self._idle.wake(part, base):
                    self._barriers.pass_over(part, base)
            bases[whole] = window.end
            found.moved.add(whole)
        found.blocked = {p: bases[p] for p in grown if p not in windows}
        for whole in beginning:
            bases[whole] = stable[whole]
        found.moved.update(beginning)
        return found

    def keep(self, parts: Mapping[Partition, object]) -> None:
        """End the bases of all whole partitions but some."""
        for whole in [whole for whole in self._idle.bases if whole not in parts]:
            for part, base in self._idle.end(whole):
                self._barriers.pass_over(part, base)
