"""Reads from the target's server what the sink of a shadow has to apply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Decision
from shardmerge.spark_sink.rebuilding.merge import Merge
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord
from shardmerge.spark_sink.rebuilding.route_changes import routes_in_force

from .control import ControlStore
from .rebuild_store import RebuildStore
from .session import MySqlAddress, MySqlSession

OwnDecisions: TypeAlias = Callable[[Pipeline, RebuildRecord], Callable[[Decision], Decision]]
"""A pipeline and a rebuild of it → a function for ``Merge.decided``."""


def shadow_merge(pipeline: Pipeline, target: TargetTable, own: OwnDecisions) -> Merge:
    """The rebuild of a target that has begun.

    The sink itself reads the shards, whoever brought the target's first rows. It looks for no
    changes by hand on the shadow.

    Args:
        pipeline: Of the target.
        target: The target.
        own: Finds out what is decided for a shadow that has decisions of its own.

    Raises:
        ConfigError: No rebuild of this target is under way.
        TargetError: The target does not answer (``retryable``).
    """
    server = pipeline.target
    session = MySqlSession(MySqlAddress.of(server))
    try:
        control = ControlStore(session, server.control_database, pipeline.name)
        store = RebuildStore(session, control, server.control_database, pipeline.name)
        record = store.latest(target) if store.is_prepared() else None
        changes = control.route_changes() if record is not None else []
    finally:
        session.close()
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
