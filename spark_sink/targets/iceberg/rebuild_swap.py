"""Gives an Iceberg target the rows of its shadow, and removes what a rebuild leaves.

A catalog need not be able to rename tables (the ``hadoop`` catalog is not). So the target's table
stays, with its snapshots and rights, and gets the shadow's files:

1. The target is closed, and the shadow's sink has applied what the target has, and ended.
2. ``exchange`` writes a snapshot of the target that has the shadow's files and none of the
   target's. One commit makes it the current one. The same commit brings the shadow's columns, its
   state (offsets, journal, loads), takes the mark of the closed table away, and tags the snapshot
   from before. So the state moves with the rows. If the commit is not made, no metadata knows the
   snapshot.
3. ``take_over`` drops the shadow, whose files the target has now. Then it stores that the rebuild
   is in place, and forgets what drift was known of the table before. The pipeline's sink notices
   that by ``IcebergStore.marks``, and reads its state anew. Until then the record tells it that
   the target is closed.

The commit of step 2 sets an epoch that is later than the sink's. So a writer that does not know of
the swap is refused, whatever it missed.
"""

from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.model.errors import ConfigError, TargetError
from shardmerge.schemas.records.decisions import Decision
from shardmerge.spark_sink.barrier.closing import Closing
from shardmerge.spark_sink.process.failpoints import reach
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord, Stage
from shardmerge.spark_sink.targets.iceberg.texts.stored_loads import (
    load_key,
    load_text,
    loads_in,
)
from shardmerge.spark_sink.targets.iceberg.texts.stored_rebuilds import (
    control_of_shadow,
    swapped_state,
    tag_of,
)

from .rebuild_store import IcebergRebuildStore, check_unpartitioned
from .staging import discard, new_id, snapshot_of_files
from .store import IcebergStore, repeated
from .tables import IcebergTable, Moved


class IcebergRebuildSwap:
    """See ``rebuild_interface.RebuildSwap``.

    Args:
        store: The pipeline's, of the thread that calls the methods.
        rebuilds: Its rebuilds.
    """

    def __init__(self, store: IcebergStore, rebuilds: IcebergRebuildStore) -> None:
        self._store, self._rebuilds = store, rebuilds
        self._placed = f"shardmerge.{store.pipeline}.rebuilt"

    def old_name(self, record: RebuildRecord) -> str:
        """See the protocol: it is a snapshot of the target."""
        return f"{record.target} VERSION AS OF '{tag_of(record)}'"

    def is_exchanged(self, record: RebuildRecord) -> bool:
        """See the protocol."""
        return self._has(self._store.catalog.load(record.target), record)

    def exchange(self, record: RebuildRecord) -> None:
        """See the protocol; the state moves in the same commit."""
        repeated(lambda: self._exchange(record))
        reach("exchanged")

    def take_over(self, record: RebuildRecord, renewal: Decision | None = None) -> RebuildRecord:
        """See the protocol; no new table has decisions of its own."""
        assert renewal is None
        swapped = replace(record, stage=Stage.SWAPPED)
        self._drop_shadow(record, with_files=False)
        self._rebuilds.keep_placed(swapped)
        return swapped

    def drop_shadow(self, record: RebuildRecord) -> RebuildRecord:
        """See the protocol."""
        # An exchange that is still on its way finds the target open, and ends.
        self._rebuilds.reopen(record.target)
        table = self._store.catalog.load(record.target)
        if self._has(table, record):
            raise ConfigError(
                f"the new table of {record.target} is in its place already",
                hint="run the command without --abort: it completes the swap",
                code="SM-6514",
            )
        self._drop_shadow(record, with_files=True)
        aborted = replace(record, stage=Stage.ABORTED)
        self._rebuilds.keep(aborted)
        return aborted

    def drop_old(self, record: RebuildRecord) -> RebuildRecord:
        """See the protocol: ``shardmerge target expire`` removes the files."""
        repeated(lambda: self._store.catalog.load(record.target).commit({}, untag=tag_of(record)))
        ended = replace(record, stage=Stage.ENDED)
        self._rebuilds.keep(ended)
        return ended

    def _exchange(self, record: RebuildRecord) -> None:
        catalog, own = self._store.catalog, self._rebuilds.of_shadow(record)
        table = catalog.load(record.target)
        if self._has(table, record):
            return
        state = self._store.state_of(table)
        if state.closed is not Closing.SWAPPING:
            raise TargetError(
                f"{record.target} is open again: another call has given the rebuild up",
                hint="see how far it is: run the command again",
                code="SM-6530",
            )
        check_unpartitioned(table)
        shadow, old = catalog.load(record.shadow.table), table.snapshot_id
        snapshot = snapshot_of_files(table, shadow, new_id())
        reach("exchange-staged")
        epoch = max(self._store.epoch(), state.epoch) + 1
        after = swapped_state(state, own.state_of(shadow), record.version, epoch, table.sequence)
        layout = shadow.layout
        try:
            table.commit(
                {
                    **self._store.properties(after),
                    **self._given_loads(record, shadow),
                    self._placed: str(record.number),
                },
                layout=replace(layout, last_id=max(layout.last_id, table.layout.last_id)),
                publish=snapshot,
                tag=None if old is None else (tag_of(record), old),
            )
        except Moved:
            discard(table, snapshot)
            raise

    def _given_loads(self, record: RebuildRecord, shadow: IcebergTable) -> dict[str, str]:
        """The pipeline's sink must know that no topic has the rows that were loaded."""
        name = record.sink_name(self._store.pipeline)
        return {
            load_key(self._store.pipeline, load.shard): load_text(
                replace(load, target=record.target)
            )
            for load in loads_in(name, shadow.properties())
        }

    def _has(self, table: IcebergTable, record: RebuildRecord) -> bool:
        return int(table.property(self._placed) or 0) >= record.number

    def _drop_shadow(self, record: RebuildRecord, *, with_files: bool) -> None:
        catalog, shadow = self._store.catalog, record.shadow.table
        catalog.drop(shadow, with_files=with_files)
        catalog.drop(control_of_shadow(shadow), with_files=True)
        catalog.drop_namespace(shadow.database)
