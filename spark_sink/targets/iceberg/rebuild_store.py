"""The rebuilds of a pipeline with an Iceberg target, and the state of the sink that fills a shadow.

The records are a property of the control table. The shadow is a table in a namespace of its own,
with a control table beside it. It keeps its sink's state in its properties, as every table does.
Its data files are where the target's are.

``begin`` stores the record first, then makes the shadow. So a crash leaves nothing that no record
tells of: ``is_begun`` says whether the shadow is whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.spark_sink.barrier.closing import Closing
from shardmerge.spark_sink.barrier.decisions import StatementKey
from shardmerge.spark_sink.loading.load_state import Load
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord
from shardmerge.spark_sink.targets.iceberg.texts.layout_changes import created, new_layout
from shardmerge.spark_sink.targets.iceberg.texts.stored import StoredState
from shardmerge.spark_sink.targets.iceberg.texts.stored_loads import load_key, load_text
from shardmerge.spark_sink.targets.iceberg.texts.stored_rebuilds import (
    REBUILDS,
    control_of_shadow,
    events_behind,
    executed_in,
    first_state,
    kept,
    rebuilds_of,
    rebuilds_text,
    shadow_columns,
    shadow_properties,
    statements_behind,
)

from .ddl.drift_store import without_drift
from .load_store import IcebergLoadStore
from .store import IcebergStore, repeated
from .tables import IcebergTable


def check_unpartitioned(target: IcebergTable) -> None:
    """Check that the files of a new table, which has no partitions, can become the target's.

    Raises:
        TargetError: Somebody has partitioned the target.
    """
    if target.is_partitioned:
        raise TargetError(
            f"{target.name} is partitioned, and its new table is not",
            hint="drop the partition fields first (ALTER TABLE … DROP PARTITION FIELD), and add "
            "them again after the rebuild",
            code="SM-6529",
        )


class IcebergRebuildStore:
    """See ``rebuild_interface.RebuildStore``.

    Args:
        store: The pipeline's, of the thread that calls the methods.
    """

    def __init__(self, store: IcebergStore) -> None:
        self._store = store

    def is_prepared(self) -> bool:
        """See the protocol."""
        control = self._store.catalog.find(self._store.control)
        return control is not None and control.property(REBUILDS) is not None

    def latest(self, target: TargetTable) -> RebuildRecord | None:
        """See the protocol."""
        of_target = [each for each in self._store.rebuilds() if each.target == target]
        return of_target[-1] if of_target else None

    def next_number(self) -> int:
        """See the protocol."""
        return max((each.number for each in self._store.rebuilds()), default=0) + 1

    def keep(self, record: RebuildRecord) -> None:
        """See the protocol."""
        self._keep(record, lambda control: {})

    def keep_placed(self, record: RebuildRecord) -> None:
        """As ``keep``, for a rebuild that is in place: drift from before is that of other rows."""
        self._keep(record, lambda control: without_drift(control, record.target))

    def _keep(
        self, record: RebuildRecord, more: Callable[[IcebergTable], Mapping[str, str]]
    ) -> None:
        def store() -> None:
            control = self._store.catalog.load(self._store.control)
            records = kept(rebuilds_of(control.property(REBUILDS)), record)
            control.commit({REBUILDS: rebuilds_text(records), **more(control)})

        repeated(store)

    def begin(self, record: RebuildRecord, loads: Sequence[Load]) -> None:
        """See the protocol."""
        catalog, own = self._store.catalog, self.of_shadow(record)
        target = catalog.load(record.target)
        check_unpartitioned(target)
        [statement] = record.creation
        decided = created(statement.actions)
        assert decided is not None
        self.keep(record)
        of_target = self._store.state_of(target)
        columns = shadow_columns(new_layout(decided), target.layout, of_target.decided)
        properties = shadow_properties(target.properties(), target.data_folder)
        format_version = {"format-version": str(target.format_version)}
        shadow = record.shadow.table
        catalog.create(shadow, columns.layout, {**properties, **format_version})
        own.begin(shadow, self._store.row_topics())
        state = first_state(of_target, record.version, columns)
        name = record.sink_name(self._store.pipeline)
        of_loads = {load_key(name, load.shard): load_text(load) for load in loads}
        # ``create`` gives the columns other ids.
        catalog.load(shadow).commit({**of_loads, **own.properties(state)}, layout=columns.layout)

    def is_begun(self, record: RebuildRecord) -> bool:
        """See the protocol."""
        return bool(self.loads(record))  # stored in the last commit of ``begin``

    def of_shadow(self, record: RebuildRecord) -> IcebergStore:
        """The store of the sink that fills a shadow."""
        catalog = self._store.catalog
        name = record.sink_name(self._store.pipeline)
        return IcebergStore(lambda: catalog, control_of_shadow(record.shadow.table), name)

    def loads(self, record: RebuildRecord) -> list[Load]:
        """See the protocol."""
        return IcebergLoadStore(self.of_shadow(record)).loads()

    def events_behind(self, record: RebuildRecord) -> int:
        """See the protocol."""
        return events_behind(self._target_state(record), self._shadow_state(record))

    def statements_behind(self, record: RebuildRecord) -> int:
        """See the protocol."""
        of_target, of_shadow = self._target_state(record), self._shadow_state(record)
        return statements_behind(of_target, of_shadow, record.version)

    def executed(self, name: str, table: TargetTable) -> set[StatementKey]:
        """See ``RebuiltTarget``."""
        store = self._store
        own = IcebergStore(lambda: store.catalog, store.control, name)
        found = store.catalog.find(table)
        return set() if found is None else executed_in(own.state_of(found))

    def close_for_swap(self, target: TargetTable) -> None:
        """Forbid the sink to change the target: its next commit finds the mark, and is refused.

        Raises:
            TargetError: The catalog is away (``retryable``).
        """
        self._mark(target, Closing.SWAPPING)

    def reopen(self, target: TargetTable) -> None:
        """Allow the sink to change the target again.

        Raises:
            TargetError: The catalog is away (``retryable``).
        """
        self._mark(target, None)

    def _mark(self, target: TargetTable, why: Closing | None) -> None:
        def mark() -> None:
            table = self._store.catalog.load(target)
            state = self._store.state_of(table)
            if state.closed is not why:
                table.commit(self._store.properties(replace(state, closed=why)))

        repeated(mark)

    def _target_state(self, record: RebuildRecord) -> StoredState:
        return self._store.state_of(self._store.catalog.load(record.target))

    def _shadow_state(self, record: RebuildRecord) -> StoredState:
        table = self._store.catalog.find(record.shadow.table)
        return StoredState() if table is None else self.of_shadow(record).state_of(table)
