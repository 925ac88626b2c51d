"""Reads from a target what the sink of a shadow has to apply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Decision
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.rebuilding.merge import Merge
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord
from shardmerge.spark_sink.rebuilding.route_changes import routes_in_force

from .kinds import latest_rebuild

OwnDecisions: TypeAlias = Callable[[Pipeline, RebuildRecord], Callable[[Decision], Decision]]
"""A pipeline and a rebuild of it → a function for ``Merge.decided``."""


def shadow_merge(
    settings: SinkSettings, pipeline: Pipeline, target: TargetTable, own: OwnDecisions
) -> Merge:
    """The rebuild of a target that has begun.

    The sink itself reads the shards, whoever brought the target's first rows. It looks for no
    changes by hand on the shadow.

    Args:
        settings: Of the process.
        pipeline: Of the target.
        target: The target.
        own: Finds out what is decided for a shadow that has decisions of its own.

    Raises:
        ConfigError: No rebuild of this target is under way.
        TargetError: The target does not answer (``retryable``).
    """
    record, changes = latest_rebuild(settings, pipeline, target)
    if record is None or not record.is_open:
        raise ConfigError(
            f"no rebuild of {target} is under way",
            hint="begin one with `shardmerge rebuild`",
            code="SM-6501",
        )
    sources = tuple(replace(source, snapshot="spark") for source in pipeline.sources)
    sink = replace(pipeline.sink, drift_interval_s=0)
    routes = routes_in_force(pipeline.routes, [*changes, *record.changes])
    loaded = replace(pipeline, sources=sources, sink=sink, routes=routes)
    decided = own(loaded, record) if record.origin is not None else None
    return Merge(loaded, record.sink_name(pipeline.name), record.shadow, decided)
