"""Reads and changes the target's server for a rebuild."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import replace

from shardmerge.cli.validation.inputs.applied_offsets import Applied, control_offsets
from shardmerge.cli.validation.inputs.server_rows import ServerRows
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.barrier.decisions import StatementKey, TargetDecisions
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord
from shardmerge.spark_sink.rebuilding.route_changes import routes_in_force
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.cutover_store import CutoverStore
from shardmerge.spark_sink.targets.mysql.ddl.compared_tables import TableComparer
from shardmerge.spark_sink.targets.mysql.ddl.entries import Entries
from shardmerge.spark_sink.targets.mysql.rebuild_store import RebuildStore
from shardmerge.spark_sink.targets.mysql.rebuild_swap import RebuildSwap
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession


class RebuildServer:
    """One target, over one connection.

    Args:
        pipeline: The pipeline of the target.
        target: The target.

    Attributes:
        store: The rebuilds of the pipeline.
        swap: Ends rebuilds.
        marks: The mark that closes the target.
    """

    def __init__(self, pipeline: Pipeline, target: TargetTable) -> None:
        where, self._name, self._target = pipeline.target, pipeline.name, target
        wait_s = pipeline.sink.lock_wait_timeout_s
        address = MySqlAddress.of(where)
        session = self._session = MySqlSession(address, lock_wait_timeout_s=wait_s)
        control = self._control = ControlStore(session, where.control_database, self._name)
        self._journal = control.table("ddl_journal")
        self.marks = CutoverStore(session, control, self._name, target, wait_s)
        self.store = RebuildStore(session, control, where.control_database, self._name)
        self.swap = RebuildSwap(session, control, self.store, where.control_database, self._name)

    def check_sink(self) -> None:
        """Check that the sink knows rebuilds.

        Raises:
            StackError: The table ``rebuilds`` does not exist.
        """
        if not self.store.is_prepared():
            raise StackError(
                "the control database of the target has no table rebuilds, so the sink would not "
                "notice that a target's table is another one",
                hint="start the sink of this version: it makes the table",
                code="SM-6513",
            )

    def in_force(self, pipeline: Pipeline) -> Pipeline:
        """The pipeline, with the routes that the targets' tables have."""
        routes = routes_in_force(pipeline.routes, self._control.route_changes())
        return replace(pipeline, routes=routes)

    def is_cut_over(self) -> bool:
        """Whether the target is cut over, or a cut-over has begun."""
        record, closed = self.marks.read()
        return closed or bool(record)

    def held(self) -> AbstractContextManager[None]:
        """See ``RebuiltTarget``."""
        return self.marks.held()

    def close_for_swap(self) -> None:
        """See ``RebuiltTarget``."""
        self.marks.close_for_swap()

    def reopen(self) -> None:
        """See ``RebuiltTarget``."""
        self.marks.reopen()

    def executed(self, name: str, table: TargetTable) -> set[StatementKey]:
        """What the journal notes as executed on a table, marks included.

        Args:
            name: The pipeline, or what stands for it (``RebuildRecord.sink_name``).
            table: The target, or its shadow.
        """
        return {
            StatementKey(version, ordinal)
            for (at, version, ordinal), entry in Entries(self._session, self._journal)
            .load(name)
            .items()
            if at == table and entry.state == "done"
        }

    def decided_table(
        self, known: TargetDecisions, executed: Collection[StatementKey]
    ) -> TableSchema | None:
        """See ``RebuiltTarget``: the journal has the statements."""
        comparer = TableComparer(self._session, self._journal, self._name)
        return comparer.compare(self._target).expected.schema

    def rows(self, pipeline: Pipeline) -> ServerRows:
        """See ``RebuiltTarget``."""
        return ServerRows(pipeline)

    def applied(self, pipeline: Pipeline, record: RebuildRecord) -> Applied:
        """See ``RebuiltTarget``."""
        return control_offsets(replace(pipeline, name=record.sink_name(pipeline.name)))

    def close(self) -> None:
        """End the connection."""
        self._session.close()
