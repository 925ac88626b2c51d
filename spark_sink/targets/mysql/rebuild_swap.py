"""Lets a shadow and its target change places, and removes what a rebuild leaves.

The steps of a swap; each may be repeated after a crash:

1. The target is closed (``cutover_store.close_for_swap``): no transaction and no statement of the
   pipeline's sink is open on it, and none can begin.
2. The shadow's sink applies what the target has applied, and ends. If the shadow has decisions of
   its own, the coordinator decides now that it takes the target's place.
3. ``exchange`` renames both tables in one statement.
4. ``take_over`` gives the shadow's state to the pipeline, and opens the target again, in one
   transaction. The pipeline's sink notices it by ``ControlStore.marks``, and reads its state anew.
   The same transaction begins another writer epoch: what the sink has planned before is refused, if
   a long batch has kept it from noticing that the target was closed.

Between 3 and 4 the names of the tables tell that the third step was done.
"""

from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import TargetTable, quote_identifier
from shardmerge.schemas.records.decisions import Decision
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord, Stage
from shardmerge.spark_sink.targets.interface import JournalEntry

from .control import ControlStore
from .control_tables import TABLES, TIDB_ONLY, qualified
from .ddl.entries import Entries, JournalStatement
from .load_store import LOAD_TABLES, OF_LOAD, LoadStore, load_place
from .rebuild_store import OF_TARGET, OFFSET_TABLES, RebuildStore
from .session import MySqlSession
from .stage_store import STAGE_TABLES, StageStore

_COUNTS = ("row_events", "rows_written", "rows_deleted")
_KEPT = frozenset({"rebuilds"})


class RebuildSwap:
    """Ends rebuilds of one pipeline.

    Args:
        session: A session without an open transaction.
        control: The control tables of the pipeline, on the same session.
        store: The rebuilds, on the same session.
        control_database: The database of the control tables.
        pipeline: The pipeline's name.
    """

    def __init__(
        self,
        session: MySqlSession,
        control: ControlStore,
        store: RebuildStore,
        control_database: str,
        pipeline: str,
    ) -> None:
        self._session, self._control, self._store = session, control, store
        self._database, self._pipeline = control_database, pipeline

    def old_name(self, record: RebuildRecord) -> str:
        """See ``rebuild_interface``."""
        return str(record.old)

    def is_exchanged(self, record: RebuildRecord) -> bool:
        """Whether the two tables have changed places."""
        return not self._exists(record.shadow.table) and self._exists(record.old)

    def exchange(self, record: RebuildRecord) -> None:
        """Rename the target's table and the shadow in one statement, unless that was done.

        Raises:
            TargetError: The target refuses it.
        """
        if self.is_exchanged(record):
            return
        old, shadow, target = record.old, record.shadow.table, record.target
        self._session.execute(
            f"CREATE DATABASE IF NOT EXISTS {quote_identifier(old.database)} CHARACTER SET utf8mb4"
        )
        self._session.execute(
            f"RENAME TABLE {target.sql} TO {old.sql}, {shadow.sql} TO {target.sql}"
        )

    def take_over(self, record: RebuildRecord, renewal: Decision | None = None) -> RebuildRecord:
        """Give the shadow's state to the pipeline, and open the target.

        Args:
            record: The rebuild.
            renewal: The decision that puts a table with decisions of its own in the target's place;
                None for a table that has the target's decisions.

        Returns:
            The record as it is stored now.

        Raises:
            TargetError: The target cannot be written now (``retryable``).
        """
        swapped = replace(record, stage=Stage.SWAPPED)
        # An earlier version may have begun the rebuild.
        LoadStore(self._session, self._database, self._pipeline).prepare()
        with self._session.transaction():
            self._lock_epochs(record)
            # A task that was planned for the table before fits the new one's offsets, too.
            self._control.next_epoch()
            self._give_offsets(record)
            if renewal is None:
                self._give_journal(record)
            else:
                self._note_renewal(record, renewal)
            self._give_loads(record)
            for name in ("drift", "cutovers"):
                self._session.execute(
                    f"DELETE FROM {self._control.table(name)} WHERE {OF_TARGET}",
                    self._of(record.target),
                )
            left = self._forget(record)
            self._store.keep(swapped)
        self._stages(record).drop(left)
        self._drop_database(record.shadow.table)
        return swapped

    def drop_shadow(self, record: RebuildRecord) -> RebuildRecord:
        """Abort a rebuild whose tables have not changed places; returns the stored record.

        Raises:
            TargetError: The target cannot be written now (``retryable``).
        """
        aborted = replace(record, stage=Stage.ABORTED)
        self._drop(record.shadow.table)
        # Whoever is killed behind the transaction leaves at most what was begun meanwhile.
        stages = self._stages(record)
        stages.drop(stages.tables())
        with self._session.transaction():
            self._lock_epochs(record)
            self._session.execute(
                f"DELETE FROM {self._control.table('cutovers')} WHERE {OF_TARGET} AND closed = 2",
                self._of(record.target),
            )
            left = self._forget(record)
            self._store.keep(aborted)
        stages.drop(left)
        return aborted

    def drop_old(self, record: RebuildRecord) -> RebuildRecord:
        """Drop the old table; returns the stored record."""
        ended = replace(record, stage=Stage.ENDED)
        self._drop(record.old)
        self._store.keep(ended)
        return ended

    def _lock_epochs(self, record: RebuildRecord) -> None:
        """Within a transaction: neither sink stores anything meanwhile, or begins a snapshot."""
        self._control.lock_epoch()
        name = record.sink_name(self._pipeline)
        ControlStore(self._session, self._database, name).lock_epoch()

    def _give_offsets(self, record: RebuildRecord) -> None:
        """Partitions that only the shadow knows become the target's, too."""
        name, target = record.sink_name(self._pipeline), record.target
        for offsets, key in OFFSET_TABLES.items():
            table = self._control.table(offsets)
            counts = ", ".join(_COUNTS)
            added = ", ".join(f"{c} = {table}.{c} + VALUES({c})" for c in _COUNTS)
            self._session.execute(
                f"INSERT INTO {table} (pipeline, {key}, next_offset, target_database,"
                f" target_table, {counts})"
                f" SELECT * FROM (SELECT %s, {key}, next_offset, %s, %s, {counts} FROM {table}"
                " WHERE pipeline = %s) s"
                f" ON DUPLICATE KEY UPDATE next_offset = VALUES(next_offset), {added}",
                (self._pipeline, target.database, target.table, name),
            )

    def _give_journal(self, record: RebuildRecord) -> None:
        """What was executed behind the version at which the shadow was planned."""
        journal, shadow = self._control.table("ddl_journal"), record.shadow.table
        self._session.execute(
            f"DELETE FROM {journal} WHERE {OF_TARGET} AND version > %s",
            (*self._of(record.target), record.version),
        )
        self._session.execute(
            f"UPDATE {journal} SET statement = REPLACE(statement, %s, %s), pipeline = %s,"
            f" target_database = %s, target_table = %s, changed_at = changed_at WHERE {OF_TARGET}"
            " AND version > %s",
            (
                shadow.sql,
                record.target.sql,
                *self._of(record.target),
                record.sink_name(self._pipeline),
                shadow.database,
                shadow.table,
                record.version,
            ),
        )

    def _note_renewal(self, record: RebuildRecord, renewal: Decision) -> None:
        """The target's own statements were executed, up to the one that made its new table."""
        entries, target = Entries(self._session, self._control.table("ddl_journal")), record.target
        for ordinal, each in enumerate(renewal.statements):
            place = (*self._of(target), renewal.version, ordinal)
            statement = JournalStatement(each.sql, each.actions)
            entries.store(place, statement, JournalEntry("done"), None)

    def _give_loads(self, record: RebuildRecord) -> None:
        """The pipeline's sink must know that no topic has the rows that were loaded."""
        own = LoadStore(self._session, self._database, self._pipeline)
        shadow = LoadStore(self._session, self._database, record.sink_name(self._pipeline))
        for each in shadow.loads():
            given = replace(each, target=record.target)
            place = load_place(self._pipeline, given)
            self._session.execute(f"DELETE FROM {own.table('load_chunks')} WHERE {OF_LOAD}", place)
            own.keep(None, given)

    def _stages(self, record: RebuildRecord) -> StageStore:
        return StageStore(self._session, self._database, record.sink_name(self._pipeline))

    def _forget(self, record: RebuildRecord) -> list[str]:
        """Remove the state of the shadow's sink. A task of it that still runs is refused then.

        Returns:
            Its tables beside the shadow, which are to be dropped behind the transaction.
        """
        name = record.sink_name(self._pipeline)
        left = self._stages(record).tables()
        left_out = _KEPT if self._session.is_tidb else _KEPT | TIDB_ONLY
        for table in (*(TABLES.keys() - left_out), *LOAD_TABLES, *STAGE_TABLES):
            self._session.execute(
                f"DELETE FROM {qualified(self._database, table)} WHERE pipeline = %s", (name,)
            )
        return left

    def _of(self, target: TargetTable) -> tuple[str, str, str]:
        return (self._pipeline, target.database, target.table)

    def _exists(self, table: TargetTable) -> bool:
        return bool(
            self._session.query(
                "SELECT 1 FROM information_schema.TABLES"
                " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
                (table.database, table.table),
            )
        )

    def _drop(self, table: TargetTable) -> None:
        self._session.execute(f"DROP TABLE IF EXISTS {table.sql}")
        self._drop_database(table)

    def _drop_database(self, table: TargetTable) -> None:
        """Drop the database of a rebuild, unless somebody has put a table there."""
        if self._session.query(
            "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s LIMIT 1",
            (table.database,),
        ):
            return
        try:
            self._session.execute(f"DROP DATABASE IF EXISTS {quote_identifier(table.database)}")
        except TargetError as error:
            if error.retryable:
                raise
            # Without the right to drop it, an empty database stays. It does no harm.
