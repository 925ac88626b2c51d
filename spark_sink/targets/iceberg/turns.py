"""Who writes to a table next: batches of changed rows, or chunks of first loads.

A staged snapshot can be published only while its parent is the table's current snapshot. So of two
writers that stage at the same time, one works in vain. Within the driver they take turns instead.
Batches come first: a batch waits for one chunk at most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

from shardmerge.schemas.model.names import TargetTable


class TableTurns:
    """The turns of one process's writers. Any thread may call the methods."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._taken: set[TargetTable] = set()
        self._batches: Counter[TargetTable] = Counter()

    @contextmanager
    def of_batch(self, table: TargetTable) -> Iterator[None]:
        """A turn of a batch."""
        with self._changed:
            self._batches[table] += 1
            self._changed.wait_for(lambda: table not in self._taken)
            self._batches[table] -= 1
            self._taken.add(table)
        yield from self._turn(table)

    @contextmanager
    def of_chunk(self, table: TargetTable) -> Iterator[None]:
        """A turn of a chunk; batches that wait have theirs before."""
        with self._changed:
            self._changed.wait_for(lambda: table not in self._taken and not self._batches[table])
            self._taken.add(table)
        yield from self._turn(table)

    def _turn(self, table: TargetTable) -> Iterator[None]:
        try:
            yield
        finally:
            with self._changed:
                self._taken.discard(table)
                self._changed.notify_all()
