"""The tracker: one schema-change event in, what it does to each routed shard out.

Pure: no clock, no randomness, no I/O; equal input gives equal output.

Theory of operation, for one event:

1. A snapshot only describes: its CREATE statements count, its other statements are not executed.
2. The statement is parsed and applied to the tracked tables. All tables of the source are tracked,
   routed or not, since a RENAME can bring any of them under a shard's name.
3. Our columns of a table are compared with those that Debezium's own parser sees. If the names
   differ, the table's schema is unknown. Only if the statement changed the table and the numbers of
   columns differ, our reading of the text counts (``Tracking._cross_check`` says why).
4. A table whose schema cannot be told becomes ``Unknown``: every later change of it is an error
   too, until a CREATE TABLE or a snapshot describes it anew.
5. Each routed table that changed gives one SchemaChange; arriving shards come before changed ones
   and these before leaving ones, so that a renamed shard's columns are never dropped in between.
   An event that gives none gives an ``ignored`` decision with the reason.

Debezium splits a RENAME of several tables into one record per table; each record names all tables
that exist after the statement (measured). gh-ost and pt-online-schema-change end with such a
RENAME. A table whose old name a later record gives to another table does not leave: the later
record changes it.

A connector that is restarted right behind a statement reads the statement's transaction again if
the server has GTIDs, and gives its records again (measured, Debezium 3.6.1). They are
recognised by the statement's GTID or position, and ignored; else a column would be added twice.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import cast

from shardmerge.connectors.debezium.envelope import SchemaChangeEvent
from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.lattice.left_out_columns import lineage_without, without_columns
from shardmerge.schemas.model.errors import SourceError, UnsupportedDDL
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.policies import RoutePolicies
from shardmerge.schemas.model.shard_columns import Lineage
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.pipeline.routing import RoutingRule, matches_of, route, rule_of
from shardmerge.schemas.records.decisions import Decision, Outcome
from shardmerge.schemas.records.operator_commands import OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId, SchemaChange

from .event_tables import TableEffect
from .statements import Tracking
from .tracked import LastStatement, Parted, Tracked
from .unknown_schemas import defect_of_ours

_REPEATED = "the connector was restarted right behind the statement, and gave it again"


@dataclass(frozen=True, slots=True)
class TrackResult:
    """What one event does.

    Attributes:
        puts: Tables (and databases) whose tracked value changed; None: forget it.
        changes: One per routed shard and target, with their identities.
        ignored: The answer to an event without changes; None when there are changes.
        last: The source's last statement after the event; None: none yet.
    """

    puts: Mapping[ShardId, Tracked | None]
    changes: tuple[SchemaChange, ...]
    ignored: Decision | None
    last: LastStatement | None = None


def track(
    schemas: Mapping[ShardId, Tracked],
    event: SchemaChangeEvent,
    rules: Sequence[RoutingRule],
    context: ServerContext,
    last: LastStatement | None = None,
) -> TrackResult:
    """Fold one event into the tracked tables.

    Args:
        schemas: Every tracked table before the event. Looked up by key; iterated only for
            statements that concern a whole database.
        event: Events of one source come in the order of their offsets, each once.
        rules: Routing rules.
        context: How the event's server reads a statement.
        last: The source's last statement before the event; None: none yet.
    """
    if context.lower_names:
        event = _in_lower_case(event)
    now = last
    parted: tuple[Parted, ...] = ()
    given: tuple[str, ...] = ()
    if not event.snapshot:
        now = _with(last, event)
        if now == last:
            return TrackResult({}, (), _ignored(event, _REPEATED), last)
        parted = last.parted if last is not None else ()
        given = now.given
    left = parted if last is None or now is None or last.place != now.place else ()
    before = _with_parted(schemas, parted)
    tracking = Tracking(before, event, context, given, left)
    try:
        if last is not None and event.position < last.position and not event.snapshot:
            tracking.cannot_tell(_went_back(last, event))
        else:
            tracking.run()
    except Exception as defect:  # whatever it is, only the shards that it concerns shall stand
        tracking = Tracking(before, event, context, given, left)
        tracking.cannot_tell(defect_of_ours(defect))
    if now is not None and not event.snapshot:
        waiting = [p for p in (*parted, *tracking.parted) if p not in left]
        waiting = [p for p in waiting if tracking.tables.puts.get(p.shard) is None]
        now = replace(now, given=tuple(tracking.given), parted=tuple(waiting))
    changes = _schema_changes(tracking, rules)
    ignored = None if changes else _ignored(event, _why_ignored(tracking, rules))
    return TrackResult(tracking.tables.puts, changes, ignored, now)


def _in_lower_case(event: SchemaChangeEvent) -> SchemaChangeEvent:
    """The event as of a server whose names are read in lower case, as Debezium writes them."""
    tables = tuple(
        replace(change, database=change.database.lower(), table=change.table.lower())
        for change in event.tables
    )
    return replace(event, database=event.database.lower(), table=event.table.lower(), tables=tables)


def _with(last: LastStatement | None, event: SchemaChangeEvent) -> LastStatement:
    """The last statement when the event has come: unchanged if the event came before."""
    place = event.gtid or str(event.position)
    digest = _digest(event.database, event.table, event.ddl)
    if last is None or last.place != place:
        # After one that went back, others from before the latest one may follow.
        furthest = event.position if last is None else max(last.position, event.position)
        return LastStatement(place, furthest, (digest,))
    return last if digest in last.records else replace(last, records=(*last.records, digest))


def _with_parted(
    schemas: Mapping[ShardId, Tracked], parted: Sequence[Parted]
) -> Mapping[ShardId, Tracked]:
    """The tables, with those whose old names a later record may give to others."""
    if not parted:
        return schemas
    there: dict[ShardId, Tracked] = {p.shard: p.schema for p in parted}
    return ChainMap(there, cast("MutableMapping[ShardId, Tracked]", schemas))


def _went_back(last: LastStatement, event: SchemaChangeEvent) -> SourceError:
    return SourceError(
        f"the binlog of {event.source} went back from {last.position} to {event.position}",
        hint="the connector reads another server, or the server's binlog was begun anew: rows and "
        "statements have no order any more. Raise the epoch of the source in the pipeline file, "
        "`shardmerge connect apply`, then for each table that is held `shardmerge command "
        "set-schema` and `shardmerge load again`",
        code="SM-1107",
    )


def _digest(*texts: str) -> str:
    data = "\0".join(texts).encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=8).hexdigest()


def command_with_schema(command: OperatorCommand, context: ServerContext | None) -> OperatorCommand:
    """The command ``set-schema`` with the schema that it tells, or with why it tells none.

    Args:
        command: Its argument is a CREATE TABLE; the table's name in it does not count.
        context: How the shard's server reads a statement; None when no source has its name.
    """
    if context is None:
        return replace(
            command, error=f"{command.shard}: the pipeline has no such source", code="SM-1315"
        )
    try:
        statement = parse(command.argument, context)
        if not isinstance(statement, CreateTable):
            return replace(command, error="the statement is no CREATE TABLE", code="SM-1310")
        return replace(command, schema=apply_create(statement, context))
    except SourceError as error:
        return replace(command, error=error.message, code=error.code)


def command_without_left_out_columns(
    command: OperatorCommand, rules: Sequence[RoutingRule]
) -> OperatorCommand:
    """A command without the columns that the shard's route leaves out of the told schema."""
    rule = rule_of(rules, command.shard) if command.shard is not None else None
    if command.schema is None or rule is None:
        return command
    try:
        return replace(command, schema=without_columns(command.schema, rule.leave_out))
    except UnsupportedDDL as error:
        return replace(
            command, schema=None, error=f"{error.message}: {error.hint}", code=error.code
        )


def _schema_changes(tracking: Tracking, rules: Sequence[RoutingRule]) -> tuple[SchemaChange, ...]:
    """The changes of all routed shards, in the order in which they are sent."""
    found: list[tuple[tuple[int, ShardId, TargetTable], SchemaChange]] = []
    for shard, effect in tracking.tables.effects.items():
        matches = matches_of(rules, shard)
        targets = tuple(dict.fromkeys(target for _, target in matches))
        for target in targets:
            rule, _ = matches[0]
            change = _change(tracking, shard, effect, target, rule.policies)
            change = _without_left_out(change, rule.leave_out)
            if change.after is not None and (fault := rule.group_fault(shard)):
                change = _unfit(change, fault)
            if len(targets) > 1:
                change = _ambiguous(change, targets)
            if not (change.before or change.after or change.error or _was_there(tracking, shard)):
                continue  # made and gone within the statement
            found.append(((_rank(change), shard, target), change))
    found.sort(key=lambda item: item[0])
    return tuple(
        _identified(change, ordinal, len(found)) for ordinal, (_, change) in enumerate(found)
    )


def _was_there(tracking: Tracking, shard: ShardId) -> bool:
    return tracking.tables.before.get(shard) is not None


def _change(
    tracking: Tracking,
    shard: ShardId,
    effect: TableEffect,
    target: TargetTable,
    policies: RoutePolicies,
) -> SchemaChange:
    earlier, later = tracking.tables.before.get(shard), tracking.tables.puts.get(shard)
    before = earlier if isinstance(earlier, TableSchema) else None
    after = later if isinstance(later, TableSchema) else None
    lineage: tuple[Lineage, ...] = ()
    if before is not None and after is not None:
        lineage = effect.lineage if effect.lineage is not None else _by_name(before, after)
    return SchemaChange(
        id=ChangeId(tracking.event.source, tracking.event.offset),
        target=target,
        shard=shard,
        position=tracking.event.position,
        before=before,
        after=after,
        lineage=lineage,
        actions=tuple(effect.actions),
        ddl=tracking.event.ddl,
        snapshot=tracking.event.snapshot,
        error=effect.error,
        hint=effect.hint,
        code=effect.code,
        ts_ms=tracking.event.ts_ms,
        policies=policies,
    )


def _without_left_out(change: SchemaChange, leave_out: str) -> SchemaChange:
    """The change without the columns that its route leaves out."""
    if not leave_out:
        return change
    try:
        before = change.before and without_columns(change.before, leave_out)
    except UnsupportedDDL:
        before = None  # the shard has been held since it got that schema
    try:
        after = change.after and without_columns(change.after, leave_out)
        lineage = lineage_without(change.lineage, before, after)
    except UnsupportedDDL as error:
        return replace(
            change,
            before=before,
            after=None,
            lineage=(),
            error=error.message,
            hint=error.hint,
            code=error.code,
        )
    return replace(change, before=before, after=after, lineage=lineage)


def _why_ignored(tracking: Tracking, rules: Sequence[RoutingRule]) -> str:
    """Why the event gave no change, for people."""
    unrouted = sorted(str(s) for s in tracking.tables.effects if not route(rules, s))
    if unrouted:
        return f"no routing rule matches {', '.join(unrouted)}"
    return tracking.reason or "it concerns no table"


def _by_name(before: TableSchema, after: TableSchema) -> tuple[Lineage, ...]:
    """Lineage of a table that is described anew or replaced: columns are the same by name."""
    return tuple(
        Lineage(column.name, same.name if (same := before.column(column.name)) else "")
        for column in after.columns
    )


def _ambiguous(change: SchemaChange, targets: Sequence[TargetTable]) -> SchemaChange:
    return replace(
        change,
        after=None,
        lineage=(),
        error=f"routing rules send {change.shard} to {', '.join(map(str, targets))}",
        hint="make the patterns of the pipeline's routes exclude each other",
        code="SM-1109",
    )


def _unfit(change: SchemaChange, fault: str) -> SchemaChange:
    return replace(
        change,
        after=None,
        lineage=(),
        error=f"{change.shard}: {fault}",
        hint="give the origin column a wider type before the target is made, let the group's "
        "expression match less, or let the route skip the table",
        code="SM-1114",
    )


def _rank(change: SchemaChange) -> int:
    """Arriving shards first, leaving ones last."""
    if change.after is None and not change.error:
        return 2
    return 0 if change.before is None else 1


def _identified(change: SchemaChange, ordinal: int, count: int) -> SchemaChange:
    if (change.id.ordinal, change.id.count) == (ordinal, count):
        return change
    return replace(change, id=replace(change.id, ordinal=ordinal, count=count))


def _ignored(event: SchemaChangeEvent, reason: str) -> Decision:
    return Decision(
        id=ChangeId(event.source, event.offset),
        target=None,
        version=0,
        shard=None,
        position=event.position,
        outcome=Outcome.IGNORED,
        reason=reason,
        snapshot=event.snapshot,
        ddl=event.ddl,
        ts_ms=event.ts_ms,
    )
