"""One target for a rebuild, whatever its kind."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from shardmerge.cli.endings import imported
from shardmerge.cli.validation.inputs.applied_offsets import Applied
from shardmerge.cli.validation.inputs.server_rows import ServerRows
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.barrier.decisions import StatementKey, TargetDecisions
from shardmerge.spark_sink.process.settings import settings_from
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord
from shardmerge.spark_sink.targets.rebuild_interface import RebuildStore, RebuildSwap

from .rebuild_server import RebuildServer


class RebuiltTarget(Protocol):
    """One target."""

    @property
    def store(self) -> RebuildStore:
        """The rebuilds of the pipeline."""
        ...

    @property
    def swap(self) -> RebuildSwap:
        """Ends rebuilds."""
        ...

    def check_sink(self) -> None:
        """Check that the sink knows rebuilds.

        Raises:
            StackError: It does not, or none has run yet.
        """
        ...

    def in_force(self, pipeline: Pipeline) -> Pipeline:
        """The pipeline, with the routes that the targets' tables have."""
        ...

    def is_cut_over(self) -> bool:
        """Whether the target is cut over, or a cut-over has begun."""
        ...

    def held(self) -> AbstractContextManager[None]:
        """Keep other calls of ``cutover`` and ``rebuild`` for this target out meanwhile.

        Raises:
            TargetError: Another call is running.
        """
        ...

    def close_for_swap(self) -> None:
        """Forbid the sink to change the target, and wait until its last change has ended.

        Raises:
            TargetError: A change did not end in time (``retryable``).
        """
        ...

    def reopen(self) -> None:
        """Allow the sink to change the target again; raises ``TargetError``."""
        ...

    def executed(self, name: str, table: TargetTable) -> set[StatementKey]:
        """What is noted as executed on a table, marks included.

        Args:
            name: The pipeline, or what stands for it (``RebuildRecord.sink_name``).
            table: The target, or its shadow.
        """
        ...

    def decided_table(
        self, known: TargetDecisions, executed: Collection[StatementKey]
    ) -> TableSchema | None:
        """The target's table as the executed statements make it, whatever somebody changed.

        Args:
            known: Everything decided for the target.
            executed: What is executed of it.

        Raises:
            TargetError: The target does not answer (``retryable``).
        """
        ...

    def rows(self, pipeline: Pipeline) -> ServerRows:
        """Reads the shards and the target for a comparison; the caller closes it."""
        ...

    def applied(self, pipeline: Pipeline, record: RebuildRecord) -> Applied:
        """Reads how far the shadow is."""
        ...

    def close(self) -> None:
        """End what was opened."""
        ...


def rebuilt_target(pipeline: Pipeline, path: Path, target: TargetTable) -> RebuiltTarget:
    """Open the target of a pipeline. An Iceberg target is read by a Spark in this process.

    Args:
        pipeline: The pipeline.
        path: Its file.
        target: The target.
    """
    if pipeline.target.catalog is None:
        return RebuildServer(pipeline, target)
    module = imported("shardmerge.cli.rebuild.rebuild_lake", "spark")
    settings = settings_from(["--pipeline", str(path)], os.environ)
    opened: RebuiltTarget = module.RebuildLake(settings, pipeline, target)
    return opened
