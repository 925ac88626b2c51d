"""The interface between ``shardmerge rebuild`` and a kind of target.

A rebuild fills a *shadow* of a target with a sink of its own, and puts it in the target's place. A
kind of target keeps the rebuilds, and the state of the shadow's sink, where it keeps the pipeline's
state. Each method may be repeated after a crash, and raises ``TargetError``, with ``retryable``
when the target is away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.decisions import Decision
from shardmerge.spark_sink.loading.load_state import Load
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord


class RebuildStore(Protocol):
    """The rebuilds of one pipeline."""

    def is_prepared(self) -> bool:
        """Whether there is a place for them: a sink of this version makes it."""
        ...

    def latest(self, target: TargetTable) -> RebuildRecord | None:
        """The target's latest rebuild; None without one."""
        ...

    def next_number(self) -> int:
        """The number of the pipeline's next rebuild."""
        ...

    def keep(self, record: RebuildRecord) -> None:
        """Store a record; it replaces the one with the same number."""
        ...

    def begin(self, record: RebuildRecord, loads: Sequence[Load]) -> None:
        """Store a new rebuild, and the state with which the shadow's sink begins.

        Args:
            record: The rebuild.
            loads: The loads that fill the shadow.
        """
        ...

    def is_begun(self, record: RebuildRecord) -> bool:
        """Whether ``begin`` has stored everything, for a rebuild that is open."""
        ...

    def loads(self, record: RebuildRecord) -> list[Load]:
        """The latest load of each shard that fills the shadow."""
        ...

    def events_behind(self, record: RebuildRecord) -> int:
        """How many offsets the target has applied and the shadow has not, over all partitions."""
        ...

    def statements_behind(self, record: RebuildRecord) -> int:
        """How many statements the target has executed and the shadow has not."""
        ...


class RebuildSwap(Protocol):
    """Ends rebuilds of one pipeline. The target is closed before ``exchange``."""

    def old_name(self, record: RebuildRecord) -> str:
        """What people write for the table from before, after the swap."""
        ...

    def is_exchanged(self, record: RebuildRecord) -> bool:
        """Whether the shadow is in the target's place."""
        ...

    def exchange(self, record: RebuildRecord) -> None:
        """Put the shadow in the target's place, unless that was done."""
        ...

    def take_over(self, record: RebuildRecord, renewal: Decision | None = None) -> RebuildRecord:
        """Complete the swap: the pipeline has the shadow's state, and the target is open.

        Args:
            record: The rebuild.
            renewal: The decision that puts a table with decisions of its own in the target's place;
                None for a table that has the target's decisions.

        Returns:
            The record as it is stored now.
        """
        ...

    def drop_shadow(self, record: RebuildRecord) -> RebuildRecord:
        """Abort a rebuild whose tables have not changed places; returns the stored record."""
        ...

    def drop_old(self, record: RebuildRecord) -> RebuildRecord:
        """Drop the table from before; returns the stored record."""
        ...
