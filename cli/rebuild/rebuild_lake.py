"""Reads and changes an Iceberg target for a rebuild, with a Spark in this process."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace

from shardmerge.cli.validation.inputs.applied_offsets import Applied
from shardmerge.cli.validation.inputs.lake_server import LakeServer, applied_offsets
from shardmerge.cli.validation.inputs.server_rows import ServerRows
from shardmerge.connectors.kafka.lease_group import lease_group
from shardmerge.schemas.model.errors import StackError, TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.target.table_state import executed_state
from shardmerge.spark_sink.barrier.decisions import StatementKey, TargetDecisions
from shardmerge.spark_sink.driver.lease_keeper import LeaseKeeper
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord
from shardmerge.spark_sink.rebuilding.route_changes import routes_in_force
from shardmerge.spark_sink.targets.iceberg.lease import SILENCE_S, GroupLease
from shardmerge.spark_sink.targets.iceberg.rebuild_store import IcebergRebuildStore
from shardmerge.spark_sink.targets.iceberg.rebuild_swap import IcebergRebuildSwap
from shardmerge.spark_sink.targets.iceberg.target import IcebergTarget

_LEASE_S = 2 * SILENCE_S
"""Seconds to wait for a call that was killed to be out of its group."""


class RebuildLake:
    """See ``RebuiltTarget``.

    Args:
        settings: Of Spark.
        pipeline: Its target's kind is ``iceberg``.
        target: The target.
        lake: An open target with its Spark; None to open one.

    Attributes:
        store: The rebuilds of the pipeline.
        swap: Ends rebuilds.
    """

    def __init__(
        self,
        settings: SinkSettings,
        pipeline: Pipeline,
        target: TargetTable,
        lake: IcebergTarget | None = None,
    ) -> None:
        self._pipeline, self._target = pipeline, target
        self._lake = lake or IcebergTarget(settings, pipeline)
        self._lake.spark.begin()
        self.store = IcebergRebuildStore(self._lake.state)
        self.swap = IcebergRebuildSwap(self._lake.state, self.store)

    def check_sink(self) -> None:
        """See the protocol."""
        if not self.store.is_prepared():
            raise StackError(
                "the control table of the pipeline knows no rebuilds, so the sink would not notice "
                "that a target has other rows",
                hint="start the sink of this version: it prepares the table",
                code="SM-6513",
            )

    def in_force(self, pipeline: Pipeline) -> Pipeline:
        """See the protocol."""
        routes = routes_in_force(pipeline.routes, self._lake.state.route_changes())
        return replace(pipeline, routes=routes)

    def is_cut_over(self) -> bool:
        """See the protocol: no application writes to an Iceberg target."""
        return False

    @contextmanager
    def held(self) -> Iterator[None]:
        """See the protocol. Kafka keeps the lease, as it does for the sink (``GroupLease``)."""
        group = lease_group(f"{self._pipeline.name}~{self._target}")
        topic = topics.ddl(self._pipeline).name
        lease = GroupLease(self._pipeline.kafka, group, topic, lambda: 0)
        try:
            if not lease.wait(_LEASE_S):
                raise TargetError(
                    "another shardmerge rebuild of this target is running",
                    retryable=True,
                    hint="wait for it, and run the command again",
                    code="SM-3105",
                )
            keeper = LeaseKeeper(lease)
            keeper.start()
            try:
                yield
            finally:
                keeper.stop()
        finally:
            lease.close()

    def close_for_swap(self) -> None:
        """See the protocol."""
        self.store.close_for_swap(self._target)

    def reopen(self) -> None:
        """See the protocol."""
        self.store.reopen(self._target)

    def executed(self, name: str, table: TargetTable) -> set[StatementKey]:
        """See the protocol."""
        return self.store.executed(name, table)

    def decided_table(
        self, known: TargetDecisions, executed: Collection[StatementKey]
    ) -> TableSchema | None:
        """See the protocol: the decisions have the statements."""
        actions = [
            statement.actions for key, statement in known.statements.items() if key in executed
        ]
        return executed_state(actions, self._target, ServerContext()).schema

    def rows(self, pipeline: Pipeline) -> ServerRows:
        """See the protocol."""
        return ServerRows(pipeline, LakeServer(self._lake, owned=False))

    def applied(self, pipeline: Pipeline, record: RebuildRecord) -> Applied:
        """See the protocol."""
        return applied_offsets(self.store.of_shadow(record))

    def close(self) -> None:
        """See the protocol: Spark ends."""
        self._lake.close()
