"""The target's server, as a cut-over needs it: its table, its control tables, and statements."""

from __future__ import annotations

from shardmerge.schemas.model.errors import StackError
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
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession

from .record import CutoverRecord


class TargetServer:
    """One target, over one connection.

    Args:
        pipeline: Its pipeline.
        target: The target.

    Attributes:
        store: Its cut-over's control table.
    """

    def __init__(self, pipeline: Pipeline, target: TargetTable) -> None:
        where = pipeline.target
        self._target = target
        wait_s = pipeline.sink.lock_wait_timeout_s
        address = MySqlAddress(where.host, where.port, where.user, where.password, where.tls)
        self._session = MySqlSession(address, lock_wait_timeout_s=wait_s)
        self._control = ControlStore(self._session, where.control_database, pipeline.name)
        self.store = CutoverStore(self._session, self._control, pipeline.name, target, wait_s)
        self._database = where.control_database

    def check_sink(self) -> None:
        """Check that a sink that knows cut-overs has become the writer of this target.

        Raises:
            StackError: None has.
        """
        if not self._session.query(
            "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s"
            " AND TABLE_NAME = 'cutovers'",
            (self._database,),
        ):
            raise StackError(
                f"database {self._database} of the target has no table cutovers, so the sink that "
                "wrote there cannot be told to stop",
                hint="start the sink of this version once; it makes the table",
                code="SM-6719",
            )

    def record(self) -> tuple[CutoverRecord, bool]:
        """What is stored, and whether the target is closed."""
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
        """The greatest value of a column, rounded up; 0 without rows or column."""
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
