"""Reads from the target's server what the sink of a shadow has to apply."""

from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.rebuilding.changed_where import routes_in_force
from shardmerge.spark_sink.rebuilding.merge import Merge

from .control import ControlStore
from .rebuild_store import RebuildStore
from .session import MySqlAddress, MySqlSession


def shadow_merge(pipeline: Pipeline, target: TargetTable) -> Merge:
    """The rebuild of a target that has begun.

    The sink itself reads the shards, whoever brought the target's first rows. It looks for no
    changes by hand on the shadow.

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
        changes = control.changed_wheres() if record is not None else []
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
    if record.changed_where is not None:
        changes.append(record.changed_where)
    routes = routes_in_force(pipeline.routes, changes)
    loaded = replace(pipeline, sources=sources, sink=sink, routes=routes)
    return Merge(loaded, record.sink_name(pipeline.name), record.shadow)
