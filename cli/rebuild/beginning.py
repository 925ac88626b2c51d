"""Begins a rebuild: waits until the target is at rest, and plans its shadow."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from shardmerge.cli.views.picture import Picture
from shardmerge.connectors.clock import now_ms
from shardmerge.connectors.formats.stored_record import iso_time
from shardmerge.schemas.model.errors import ConfigError, ContractError, TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.origin import NO_ORIGIN, Origin
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.topics import RowTopics
from shardmerge.schemas.records.decisions import JoinedSchema, Outcome, TargetStatement
from shardmerge.schemas.target.dialects.dialect import CannotRender
from shardmerge.schemas.target.dialects.dialects import dialect_of
from shardmerge.spark_sink.barrier.decisions import Decisions, StatementKey, TargetDecisions
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord, Stage, shadow_table
from shardmerge.spark_sink.rebuilding.rebuild_rules import (
    Obstacle,
    change_refused,
    held_shards,
    obstacles,
    shadow_loads,
)
from shardmerge.spark_sink.rebuilding.route_changes import is_route_of
from shardmerge.spark_sink.rebuilding.shadow import Shadow, creation_of, for_shadow

from .own_decisions import OwnDecisions
from .rebuilt_target import RebuiltTarget

_PAUSE_S = 1.0
_NO_ORIGIN = Obstacle(
    "SM-6531",
    "the rebuild of an Iceberg target cannot change its origin columns",
    "stop the sink, and merge the shards as another pipeline, whose routes have the new origin "
    "columns, into another table",
)


@dataclass(frozen=True, slots=True)
class Changes:
    """What a rebuild is to change in the target's route.

    Attributes:
        where: The condition; None to leave it as it is.
        origin: The origin columns; None to leave them as they are.
    """

    where: str | None = None
    origin: Origin | None = None

    def __bool__(self) -> bool:
        return self != Changes()


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
    server: RebuiltTarget,
    read: Callable[[], Picture],
    *,
    by: str,
    only_source_rows: bool,
    changes: Changes,
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
        changes: What the route is to have.
        patience_s: How long to wait for obstacles that end by themselves, in seconds.

    Returns:
        The rebuild, or why none begins.

    Raises:
        ConfigError: There is no such target.
        StackError: Kafka does not answer.
        TargetError: The target does not answer, or refuses.
    """
    until = time.monotonic() + patience_s
    has_own = pipeline.target.catalog is None
    if changes.origin is not None and not has_own:
        return (_NO_ORIGIN,)
    while True:
        picture = read()
        known = decided_for(picture, target)
        # Read after the decisions: a statement of a later decision shows that there is one.
        executed = server.executed(pipeline.name, target)
        is_anew = has_own and (changes.origin is not None or bool(held_shards(known)))
        found = obstacles(
            known,
            executed,
            pipeline.routes,
            only_source_rows=only_source_rows,
            may_be_held=is_anew,
        )
        is_whole = picture.joined[target].version == known.version
        if not found and is_whole and all(key.version <= known.version for key in executed):
            break
        lasting = any(not each.passes for each in found)
        if lasting or (found and time.monotonic() > until):
            return found
        time.sleep(_PAUSE_S)
    where = changes.where
    refused = change_refused(known, pipeline.routes, where) if changes else None
    if refused is not None:
        return (refused,)
    number, settings = server.store.next_number(), pipeline.target
    shadow = shadow_table(settings.control_database, number, target)
    made: _Made | Obstacle
    if is_anew:
        made = _made_anew(pipeline, target, shadow, picture.joined[target], changes.origin)
        if isinstance(made, Obstacle):
            return (made,)
    else:
        made = _Made(_as_decided(server, pipeline, known, executed, shadow), None)
    rule = next((rule for rule in pipeline.routes if is_route_of(rule, target)), None)
    record = RebuildRecord(
        number,
        target,
        Stage.BUILDING,
        known.version,
        made.creation,
        settings.control_database,
        by,
        iso_time(now_ms()),
        only_source_rows,
        where,
        rule.where if rule is not None else "",
        made.origin,
        # If several routes lead to the target, the rebuild changes none of them.
        rule.policies.origin if rule is not None else made.origin or NO_ORIGIN,
    )
    server.store.begin(record, shadow_loads(known, shadow))
    return record


@dataclass(frozen=True, slots=True)
class _Made:
    """How a shadow is made.

    Attributes:
        creation: See ``Shadow``.
        origin: See ``RebuildRecord``.
    """

    creation: tuple[TargetStatement, ...]
    origin: Origin | None


def _as_decided(
    server: RebuiltTarget,
    pipeline: Pipeline,
    known: TargetDecisions,
    executed: Collection[StatementKey],
    shadow: TargetTable,
) -> tuple[TargetStatement, ...]:
    """The statements that make a shadow as its target was decided.

    Raises:
        TargetError: There is no such table, or this kind of server cannot have it.
    """
    table, settings = server.decided_table(known, executed), pipeline.target
    if table is None:
        raise TargetError(
            f"{known.target} is decided, and its table was never made",
            hint="`shardmerge status` shows what its first statement waits for",
            code="SM-6503",
        )
    made = dialect_of(settings.kind, settings.version).create_table(shadow, table)
    if isinstance(made, CannotRender):
        raise TargetError(made.reason, hint=made.hint, code=made.code)
    return creation_of(known, executed, made)


def _made_anew(
    pipeline: Pipeline,
    target: TargetTable,
    table: TargetTable,
    joined: JoinedSchema,
    origin: Origin | None,
) -> _Made | Obstacle:
    """The statements that make a shadow from the shards' present schemas, or why there is none.

    Raises:
        StackError: Kafka does not answer.
        ContractError: The target's log is not whole, or other decisions than the agents' follow
            from it.
    """
    own = OwnDecisions(pipeline, target, joined.version, origin)
    own.read()
    fold = own.fold
    state, beginning = fold.joined, fold.beginning
    if state is None or beginning is None or (state.schema, state.columns) != (
        joined.schema,
        joined.columns,
    ):  # fmt: skip
        raise ContractError(
            f"the log of {target} does not lead to what the agents decided",
            hint="see what differs: `shardmerge replay --verify`",
            code="SM-6527",
        )
    if origin is not None and origin.position != state.policies.origin.position:
        return Obstacle(
            "SM-6524",
            "a rebuild cannot change the origin column `position`",
            "leave `position` as it is",
        )
    if beginning.outcome is Outcome.REFUSED:
        return Obstacle("SM-6524", beginning.reason, beginning.hint)
    shadow = Shadow(target, table, joined.version, ())
    creation = tuple(for_shadow(statement, shadow) for statement in beginning.statements)
    return _Made(creation, fold.origin)
