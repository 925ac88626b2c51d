"""The control table of rebuilds, and the state of the sink that fills a shadow.

The shadow's sink keeps its state in the same control tables, under a name of its own
(``RebuildRecord.sink_name``). ``begin`` makes this state. The row partitions of the target stand
where the pipeline's own sink has applied them: whatever was before, the shards' tables have it, and
their loads bring it.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.plain import dump, load
from shardmerge.spark_sink.loading.load_state import Load
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord
from shardmerge.spark_sink.rebuilding.route_changes import RouteChange

from .control import ControlStore
from .load_store import LoadStore
from .session import MySqlAddress, MySqlSession
from .stage_store import StageStore

OFFSET_TABLES = {
    "offsets": "topic, partition_number",
    "shared_offsets": "topic, partition_number, shard_source, shard_database, shard_table",
}
"""Table of offsets → its key without the pipeline."""
OF_TARGET = "pipeline = %s AND target_database = %s AND target_table = %s"
"""The condition for a target's rows in a control table."""


class RebuildStore:
    """The rebuilds of one pipeline.

    Args:
        session: A session without an open transaction.
        control: The control tables of the pipeline, on the same session.
        control_database: Their database.
        pipeline: The pipeline's name.
    """

    def __init__(
        self, session: MySqlSession, control: ControlStore, control_database: str, pipeline: str
    ) -> None:
        self._session, self._control = session, control
        self._database, self._pipeline = control_database, pipeline
        self._table = control.table("rebuilds")

    def is_prepared(self) -> bool:
        """Whether the table is there: a sink of this version makes it."""
        return bool(
            self._session.query(
                "SELECT 1 FROM information_schema.TABLES"
                " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = 'rebuilds'",
                (self._database,),
            )
        )

    def latest(self, target: TargetTable) -> RebuildRecord | None:
        """The target's latest rebuild; None without one."""
        rows = self._session.query(
            f"SELECT record FROM {self._table} WHERE {OF_TARGET} ORDER BY number DESC LIMIT 1",
            (self._pipeline, target.database, target.table),
        )
        return load(RebuildRecord, str(rows[0][0]).encode()) if rows else None

    def next_number(self) -> int:
        """The number of the pipeline's next rebuild."""
        ((last,),) = self._session.query(
            f"SELECT COALESCE(MAX(number), 0) FROM {self._table} WHERE pipeline = %s",
            (self._pipeline,),
        )
        return int(last) + 1

    def keep(self, record: RebuildRecord) -> None:
        """Store a record; it replaces the one with the same number."""
        target = record.target
        self._session.execute(
            f"REPLACE INTO {self._table}"
            " (pipeline, number, target_database, target_table, stage, record)"
            " VALUES (%s, %s, %s, %s, %s, %s)",
            (
                self._pipeline,
                record.number,
                target.database,
                target.table,
                record.stage.value,
                dump(record).decode(),
            ),
        )

    def begin(self, record: RebuildRecord, loads: Sequence[Load]) -> None:
        """Store a new rebuild, and the state with which the shadow's sink begins.

        Args:
            record: The rebuild.
            loads: The loads that fill the shadow.

        Raises:
            TargetError: The target cannot be written now (``retryable``).
        """
        session, name, table = self._session, record.sink_name(self._pipeline), record.shadow.table
        store = LoadStore(session, self._database, name)
        store.prepare()
        StageStore(session, self._database, name).prepare()
        of_target = (self._pipeline, record.target.database, record.target.table)
        with session.transaction():
            for offsets, key in OFFSET_TABLES.items():
                where = self._control.table(offsets)
                session.execute(
                    f"INSERT INTO {where} (pipeline, {key}, next_offset, target_database,"
                    " target_table, row_events, rows_written, rows_deleted)"
                    f" SELECT %s, {key}, next_offset, %s, %s, 0, 0, 0 FROM {where}"
                    f" WHERE {OF_TARGET}",
                    (name, table.database, table.table, *of_target),
                )
            topics = self._control.table("row_topics")
            session.execute(
                f"INSERT INTO {topics} (pipeline, topic, topic_id, partitions)"
                f" SELECT %s, topic, topic_id, partitions FROM {topics} WHERE pipeline = %s",
                (name, self._pipeline),
            )
            # Negative ordinals are marks: these rows were taken out of the target before.
            journal = self._control.table("ddl_journal")
            session.execute(
                f"INSERT INTO {journal} (pipeline, target_database, target_table, version, ordinal,"
                " state, statement, actions, error)"
                " SELECT %s, %s, %s, version, ordinal, state, statement, actions, error"
                f" FROM {journal} WHERE {OF_TARGET} AND ordinal < 0"
                " AND version > 0 AND version <= %s",
                (name, table.database, table.table, *of_target, record.version),
            )
            for each in loads:
                store.keep(None, each)
            self.keep(record)

    def is_begun(self, record: RebuildRecord) -> bool:
        """See ``rebuild_interface``: the record and the state are stored in one transaction."""
        return record.is_open

    def loads(self, record: RebuildRecord) -> list[Load]:
        """The latest load of each shard that fills the shadow."""
        store = LoadStore(self._session, self._database, record.sink_name(self._pipeline))
        return list({each.shard: each for each in store.loads()}.values())

    def events_behind(self, record: RebuildRecord) -> int:
        """How many offsets the target has applied and the shadow has not, over all partitions."""
        name, behind = record.sink_name(self._pipeline), 0
        target = record.target
        for offsets, key in OFFSET_TABLES.items():
            table = self._control.table(offsets)
            same = " AND ".join(f"s.{column} = t.{column}" for column in key.split(", "))
            ((found,),) = self._session.query(
                "SELECT COALESCE(SUM(GREATEST(CAST(t.next_offset AS SIGNED) -"
                " COALESCE(s.next_offset, 0), 0)), 0)"
                f" FROM {table} t LEFT JOIN {table} s ON s.pipeline = %s AND {same}"
                " WHERE t.pipeline = %s AND t.target_database = %s AND t.target_table = %s",
                (name, self._pipeline, target.database, target.table),
            )
            behind += int(found)
        return behind

    def statements_behind(self, record: RebuildRecord) -> int:
        """How many statements the target has executed and the shadow has not."""
        table, shadow, target = (
            self._control.table("ddl_journal"),
            record.shadow.table,
            record.target,
        )
        ((count,),) = self._session.query(
            f"SELECT COUNT(*) FROM {table} t LEFT JOIN {table} s ON s.pipeline = %s"
            " AND s.target_database = %s AND s.target_table = %s AND s.version = t.version"
            " AND s.ordinal = t.ordinal AND s.state = 'done'"
            " WHERE t.pipeline = %s AND t.target_database = %s AND t.target_table = %s"
            " AND t.version > %s AND t.state = 'done' AND s.version IS NULL",
            (
                record.sink_name(self._pipeline),
                shadow.database,
                shadow.table,
                self._pipeline,
                target.database,
                target.table,
                record.version,
            ),
        )
        return int(count)


def latest_of_server(
    pipeline: Pipeline, target: TargetTable
) -> tuple[RebuildRecord | None, list[RouteChange]]:
    """A target's latest rebuild, and what earlier ones of the pipeline have changed in routes.

    Raises:
        TargetError: The target does not answer (``retryable``).
    """
    server = pipeline.target
    session = MySqlSession(MySqlAddress.of(server))
    try:
        control = ControlStore(session, server.control_database, pipeline.name)
        store = RebuildStore(session, control, server.control_database, pipeline.name)
        record = store.latest(target) if store.is_prepared() else None
        return record, control.route_changes() if record is not None else []
    finally:
        session.close()
