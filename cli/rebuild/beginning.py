"""Begins a rebuild: waits until the target is at rest, and plans its shadow."""

from __future__ import annotations

import time
from collections.abc import Callable

from shardmerge.cli.views.picture import Picture
from shardmerge.connectors.formats.stored_record import iso_time
from shardmerge.schemas.model.errors import ConfigError, TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.topics import RowTopics
from shardmerge.schemas.target.dialects.dialect import CannotRender
from shardmerge.schemas.target.dialects.dialects import dialect_of
from shardmerge.spark_sink.barrier.decisions import Decisions, TargetDecisions
from shardmerge.spark_sink.rebuilding.changed_where import is_route_of
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord, Stage, shadow_table
from shardmerge.spark_sink.rebuilding.rebuild_rules import (
    Obstacle,
    obstacles,
    shadow_loads,
    where_refused,
)
from shardmerge.spark_sink.rebuilding.shadow import creation_of

from .rebuild_server import RebuildServer

_PAUSE_S = 1.0


def decided_for(picture: Picture, target: TargetTable) -> TargetDecisions:
    """Everything decided for a target.

    Raises:
        ConfigError: There is no such target.
    """
    decisions = Decisions(RowTopics(picture.pipeline.routes))
    for each in picture.of_target(target).values():
        decisions.add(each.decision)
    known = decisions.targets.get(target)
    if known is None or not known.version:
        names = ", ".join(sorted(map(str, picture.joined))) or "none"
        raise ConfigError(f"no target is called {target}", hint=f"known: {names}", code="SM-5601")
    return known


def begin(
    pipeline: Pipeline,
    target: TargetTable,
    server: RebuildServer,
    read: Callable[[], Picture],
    *,
    by: str,
    only_source_rows: bool,
    where: str | None,
    patience_s: float,
) -> RebuildRecord | tuple[Obstacle, ...]:
    """Store a new rebuild, with the state from which the shadow's sink begins.

    Args:
        pipeline: The pipeline of the target, with the conditions that are in force.
        target: The target.
        server: Its server.
        read: Reads what the topics say.
        by: Who orders it.
        only_source_rows: Whether the new table may lack rows that no shard has.
        where: The condition that the route is to have; None to leave it as it is.
        patience_s: How long to wait for obstacles that end by themselves, in seconds.

    Returns:
        The rebuild, or why none begins.

    Raises:
        ConfigError: There is no such target.
        StackError: Kafka does not answer.
        TargetError: The target does not answer, or refuses.
    """
    until = time.monotonic() + patience_s
    while True:
        known = decided_for(read(), target)
        # Read after the decisions: a statement of a later decision shows that there is one.
        executed = server.executed(pipeline.name, target)
        found = obstacles(known, executed, pipeline.routes, only_source_rows=only_source_rows)
        if not found and all(key.version <= known.version for key in executed):
            break
        lasting = any(not each.passes for each in found)
        if lasting or (found and time.monotonic() > until):
            return found
        time.sleep(_PAUSE_S)
    if where is not None and (refused := where_refused(known, pipeline.routes, where)) is not None:
        return (refused,)
    table = server.decided_table()
    if table is None:
        raise TargetError(
            f"{target} is decided, and its table was never made",
            hint="`shardmerge status` shows what its first statement waits for",
            code="SM-6503",
        )
    number, settings = server.store.next_number(), pipeline.target
    shadow = shadow_table(settings.control_database, number, target)
    made = dialect_of(settings.kind, settings.version).create_table(shadow, table)
    if isinstance(made, CannotRender):
        raise TargetError(made.reason, hint=made.hint, code=made.code)
    record = RebuildRecord(
        number,
        target,
        Stage.BUILDING,
        known.version,
        creation_of(known, executed, made),
        settings.control_database,
        by,
        iso_time(round(time.time() * 1000)),
        only_source_rows,
        where,
        next((rule.where for rule in pipeline.routes if is_route_of(rule, target)), ""),
    )
    server.store.begin(record, shadow_loads(known, shadow))
    return record
