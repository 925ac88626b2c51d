"""Opens the kind of target that the pipeline file names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.rebuilding.merge import Merge
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord
from shardmerge.spark_sink.rebuilding.route_changes import RouteChange
from shardmerge.spark_sink.targets.iceberg.rebuild_store import IcebergRebuildStore
from shardmerge.spark_sink.targets.iceberg.target import IcebergTarget
from shardmerge.spark_sink.targets.mysql.rebuild_store import latest_of_server
from shardmerge.spark_sink.targets.mysql.target import MySqlTarget

from .interface import Target


def open_target(settings: SinkSettings, merge: Merge) -> Target:
    """The target of what a sink applies; nothing is connected or started yet."""
    pipeline = merge.pipeline
    if pipeline.target.kind == "iceberg":
        shadow = None if merge.shadow is None else merge.shadow.table
        return IcebergTarget(settings, pipeline, state_name=merge.state_name, shadow=shadow)
    return MySqlTarget(settings, replace(pipeline, name=merge.state_name))


def latest_rebuild(
    settings: SinkSettings, pipeline: Pipeline, target: TargetTable
) -> tuple[RebuildRecord | None, Sequence[RouteChange]]:
    """A target's latest rebuild, and what earlier rebuilds of the pipeline have changed in routes.

    Raises:
        TargetError: The target does not answer (``retryable``).
    """
    if pipeline.target.kind != "iceberg":
        return latest_of_server(pipeline, target)
    lake = IcebergTarget(settings, pipeline)
    try:
        store = IcebergRebuildStore(lake.state)
        if not store.is_prepared():
            return None, ()
        return store.latest(target), lake.state.route_changes()
    finally:
        lake.close()
