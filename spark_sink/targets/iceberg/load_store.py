"""The stored first loads of one pipeline: see ``texts.stored_loads``.

A load is a property of its target's table. Before the table is there, it is a property of the
control table. No chunk is read then, so no rows depend on it.

As everything else, a load is stored by a compare-and-set of a table's metadata that checks the
writer epoch. So a chunk's rows are published only if its load is still the one that was read: the
driver's step that moves a base, or gives a chunk to another reader, changes the same metadata.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.spark_sink.loading.load_state import Load
from shardmerge.spark_sink.targets.iceberg.texts.stored_loads import (
    latest_loads,
    load_key,
    load_of,
    load_text,
    loads_in,
    stepped,
)

from .store import IcebergStore, repeated
from .tables import IcebergTable

Step = tuple[Load | None, Load]


class IcebergLoadStore:
    """The loads of a pipeline.

    Args:
        store: The pipeline's, of the thread that calls the methods.
    """

    def __init__(self, store: IcebergStore) -> None:
        self._store = store

    def loads(self) -> list[Load]:
        """Each shard's latest load, by shard.

        Raises:
            TargetError: The catalog is away (``retryable``).
        """
        store = self._store
        control = store.catalog.find(store.control)
        if control is None:
            return []
        tables = [store.catalog.find(name) for name in store.tables()]
        return latest_loads(
            self._loads_in(control),
            [load for table in tables if table is not None for load in self._loads_in(table)],
        )

    def keep(self, epoch: int, steps: Sequence[Step]) -> None:
        """Store steps of loads, those of a table in one commit.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The catalog is away (``retryable``).
        """
        by_target: dict[TargetTable, list[Step]] = {}
        for step in steps:
            by_target.setdefault(step[1].target, []).append(step)
        for target, of_target in by_target.items():
            repeated(lambda t=target, s=of_target: self._keep(epoch, t, s))  # type: ignore[misc]

    def _keep(self, epoch: int, target: TargetTable, steps: Sequence[Step]) -> None:
        store = self._store
        table = store.catalog.find(target) if target in store.tables() else None
        if table is None:
            control = store.fenced_control(epoch)
            control.commit(self._after(control, steps))
        else:
            state = store.fenced(table, epoch)
            table.commit({**store.properties(state), **self._after(table, steps)})

    def stored(self, table: IcebergTable, shard: ShardId) -> Load | None:
        """A shard's load in a reading of its target's table; None without one."""
        text = table.property(load_key(self._store.pipeline, shard))
        return None if text is None else load_of(text)

    def properties(self, load: Load) -> dict[str, str]:
        """A load as table properties."""
        return {load_key(self._store.pipeline, load.shard): load_text(load)}

    def _after(self, table: IcebergTable, steps: Sequence[Step]) -> dict[str, str]:
        after = dict[str, str]()
        for before, load in steps:
            after |= self.properties(stepped(self.stored(table, load.shard), before, load))
        return after

    def _loads_in(self, table: IcebergTable) -> list[Load]:
        return loads_in(self._store.pipeline, table.properties())
