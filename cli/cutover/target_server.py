"""Reads and changes the target's table and its control tables for a cut-over."""

from __future__ import annotations

from shardmerge.schemas.model.errors import ConfigError, StackError
from shardmerge.schemas.model.names import TargetTable, quote_identifier
from shardmerge.schemas.model.tables import Column, TableSchema
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.plain import dump, load
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.cutover_store import CutoverStore
from shardmerge.spark_sink.targets.mysql.ddl.introspection import (
    schema_of,
    server_context,
    show_create,
)
from shardmerge.spark_sink.targets.mysql.rebuild_store import RebuildStore
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession

from .record import CutoverRecord


class TargetServer:
    """One target, over one connection.

    Args:
        pipeline: The pipeline of the target.
        target: The target.

    Attributes:
        store: The control table with the target's cut-over.
    """

    def __init__(self, pipeline: Pipeline, target: TargetTable) -> None:
        where = pipeline.target
        self._target = target
        wait_s = pipeline.sink.lock_wait_timeout_s
        address = MySqlAddress.of(where)
        self._session = MySqlSession(address, lock_wait_timeout_s=wait_s)
        self._control = ControlStore(self._session, where.control_database, pipeline.name)
        self.store = CutoverStore(self._session, self._control, pipeline.name, target, wait_s)
        self._database, self._name = where.control_database, pipeline.name

    def check_sink(self) -> None:
        """Check that the table ``cutovers`` exists: a sink that knows cut-overs makes it.

        Raises:
            StackError: The table does not exist.
        """
        if not self._session.query(
            "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s"
            " AND TABLE_NAME = 'cutovers'",
            (self._database,),
        ):
            raise StackError(
                f"database {self._database} of the target has no table cutovers, so the sink "
                "cannot be told to stop writing",
                hint="start the sink of this version: it makes the table",
                code="SM-6719",
            )

    def check_no_rebuild(self) -> None:
        """Check that no rebuild of the target is under way.

        Raises:
            ConfigError: One is.
        """
        rebuilds = RebuildStore(self._session, self._control, self._database, self._name)
        latest = rebuilds.latest(self._target) if rebuilds.is_prepared() else None
        if latest is not None and latest.is_open:
            raise ConfigError(
                f"a rebuild of {self._target} is under way",
                hint="complete it with `shardmerge rebuild`, or end it with --abort",
                code="SM-6515",
            )

    def record(self) -> tuple[CutoverRecord, bool]:
        """The stored record, and whether the target is closed."""
        text, closed = self.store.read()
        return (load(CutoverRecord, text.encode()) if text else CutoverRecord()), closed

    def handed_over(self) -> set[str]:
        """The targets of the pipeline that were cut over."""
        return {str(target) for target in self._control.closed_targets()}

    def keep(self, record: CutoverRecord) -> None:
        """Store a record."""
        self.store.keep(dump(record).decode())

    def table(self) -> TableSchema | None:
        """The target's table as it is now; None without one."""
        context = server_context(self._session, self._target.database)
        return schema_of(show_create(self._session, self._target), context)

    def largest(self, column: Column | None) -> int:
        """The largest value of an integer column; 0 without rows, and for any other column."""
        if column is None or not column.type.is_integer:
            return 0
        name = quote_identifier(column.name)
        ((value,),) = self._session.query(f"SELECT MAX({name}) FROM {self._target.sql}")
        return 0 if value is None else int(value)

    def execute(self, sql: str) -> None:
        """Execute a statement on the target's table."""
        self._session.execute(sql)

    def close(self) -> None:
        """End the connection."""
        self._session.close()
