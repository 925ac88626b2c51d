"""Shapes as plain lines, for everything that is no terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from shardmerge.agents.holds.shapes import WITHOUT, ShownConflict, Side
from shardmerge.connectors.formats.connector_status import ConnectorState
from shardmerge.schemas.codes.registry import coded

from .decision_shapes import DecisionLine
from .shapes import (
    DriftStatus,
    Explanation,
    PipelineStatus,
    Shape,
    ShardStatus,
    ShownSchema,
    TargetStatus,
    ValidationStatus,
)

OVERWRITTEN = "see docs/how-to/origin-columns.md"


def plain_lines(shape: Shape | ConnectorState) -> Iterator[str]:
    """The lines of any shape."""
    match shape:
        case ConnectorState():
            reason = f": {shape.reason}" if shape.reason else ""
            yield f"{shape.name}: {shape.state}{reason}"
        case PipelineStatus():
            yield from _status(shape)
        case Explanation():
            yield from _explanation(shape)
        case DecisionLine():
            yield from _decision(shape)
        case ShownSchema():
            yield from _schema(shape)
        case ShownConflict():
            yield from _conflict(shape)


def short_time(time: str) -> str:
    """A time of a shape for people, to the second; "" stays "".

    Args:
        time: As ``shapes`` has it.
    """
    return f"{datetime.fromisoformat(time):%Y-%m-%d %H:%M:%S} UTC" if time else ""


def side_name(side: Side) -> str:
    """The definition of a side of a conflict, for people."""
    return "without the column" if side.definition == WITHOUT else side.definition


def _status(status: PipelineStatus) -> Iterator[str]:
    yield f"as of {short_time(status.at)}"
    for connector in status.connectors:
        yield from (f"connector {line}" for line in plain_lines(connector))
    if (agents := status.agents) is not None:
        yield f"agents: workers {agents.workers}, undecided records {agents.undecided}"
    if (server := status.target_server).address:
        epoch = f", writer epoch {server.writer_epoch}" if server.writer_epoch else ""
        told = server.error or f"{server.version or 'not asked'}{epoch}"
        yield f"target server {server.address} ({server.kind}): {told}"
        if server.writer or server.standbys:
            waiting = f", standbys {', '.join(server.standbys)}" if server.standbys else ""
            yield f"sink: on {server.writer or 'no host'}{waiting}"
    for target in status.targets:
        yield from _target(target)
    for fault in status.faults:
        yield f"fault: {fault}"


def _target(target: TargetStatus) -> Iterator[str]:
    executed = f", executed up to {target.executed_version}" if target.reported else ""
    yield f"{target.target}: version {target.version}{executed}, {target.rows:,} rows applied"
    if target.reported:
        yield f"  the sink reported last at {short_time(target.reported)}"
    if target.disabled_since:
        by = f" by {target.disabled_by}" if target.disabled_by else ""
        since = short_time(target.disabled_since)
        yield f"  its schema stays as it is: disabled{by} since {since}"
    if (failure := target.failure) is not None:
        tries = f"{failure.times:,} tries failed since {short_time(failure.since)}"
        yield f"  rows of {failure.where}: {tries}: {coded(failure.code, failure.message)}"
        if failure.hint:
            yield f"    {failure.hint}"
    for each in target.drift:
        yield f"  {drift_line(each)}"
    if target.validation is not None:
        yield f"  {validation_line(target.validation)}"
    for shard in target.shards:
        yield from _shard(shard)
    for statement in target.open:
        yield f"  {statement.state}: {statement.sql} {coded(statement.code, statement.detail)}"
        if statement.why:
            yield f"    because {coded(statement.why_code, statement.why)}"


def drift_line(each: DriftStatus) -> str:
    """A difference of the target's table, for people."""
    what = f"decided is {each.expected or 'nothing'}, the table has {each.found or 'nothing'}"
    seen = f"seen since {short_time(each.since)}"
    return f"{each.subject} differs: {coded(each.code, what)}; {seen}"


def validation_line(found: ValidationStatus) -> str:
    """What is known of comparisons of a target with its shards, for people."""
    parts = [f"compared with its shards at {short_time(found.ended)}"]
    if found.what:
        parts.append(f"{found.what}; known since {short_time(found.since)}")
    elif found.state == "equal":
        parts.append("all rows are equal")
    parts += found.shortcomings
    return f"{parts[0]}: {'; '.join(parts[1:])}"


def _shard(shard: ShardStatus) -> Iterator[str]:
    since = f" since {short_time(shard.since)}" if shard.since else ""
    why = coded(shard.code, shard.reason)
    if shard.state == "flows":
        yield f"  {shard.shard}: flows"
    elif shard.state == "waits":
        yield f"  {shard.shard}: waits{since}, {shard.parked:,} rows at most: {why}"
    else:
        by = f" by {shard.by}" if shard.by else ""
        rows = f", {shard.parked:,} rows at most" if shard.parked else ""
        yield f"  {shard.shard}: {shard.state}{by} at {shard.position}{since}{rows}: {why}"
    if shard.hint:
        yield f"    {shard.hint}"
    if shard.overwritten:
        yield f"    {shard.overwritten:,} of its rows, or more, were written over rows with the"
        yield f"    same primary key: {OVERWRITTEN}"


def _explanation(found: Explanation) -> Iterator[str]:
    parked = f", {found.parked:,} rows wait at most" if found.parked else ""
    yield f"{found.shard} of {found.target}: {found.state}{parked}"
    for cause in found.causes:
        yield f"because: {coded(cause.code, cause.what)}"
        if cause.since:
            yield f"  since {short_time(cause.since)}"
        if cause.position:
            yield f"  at {cause.position}" + (f", version {cause.version}" if cause.version else "")
        if cause.others:
            yield f"  waits for {', '.join(cause.others)}"
        for way in cause.ways:
            if way.command:
                yield f"  way out: {way.command}"
                yield f"    {way.does}"
            else:
                yield f"  way out: {way.does}"
    for waiting in found.waiting:
        yield f"waits for it: {waiting}"
    for unanswered in found.unanswered:
        yield f"not known: {unanswered}"


def _decision(line: DecisionLine) -> Iterator[str]:
    place = f"{line.target} version {line.version}" if line.target else line.change
    by = f" by {line.by}" if line.by else ""
    shard = f", {line.shard} at {line.position}" if line.shard else ""
    yield f"{short_time(line.time)} {place}: {line.outcome}{by}{shard}"
    yield f"  asked: {line.asked}"
    yield f"  reason: {coded(line.code, line.reason)}"
    if line.hint:
        yield f"  remedy: {line.hint}"
    for statement, why in zip(line.statements, line.statement_reasons, strict=True):
        yield f"  {line.state}: {statement}"
        yield f"    because {coded(why.code, why.text)}"
    for warning, code in zip(line.warnings, line.warning_codes, strict=True):
        yield f"  warning: {coded(code, warning)}"


def _schema(schema: ShownSchema) -> Iterator[str]:
    name = schema.shard or schema.target
    since = f", logged {short_time(schema.time)}" if schema.time else ""
    yield f"-- {name} as of version {schema.version} of {schema.target}{since}"
    yield schema.create_table or ("-- not known" if schema.shard else "-- no table yet")
    for column in schema.columns:
        if column.missing_on:
            yield f"-- {column.name} is missing on {', '.join(column.missing_on)}"
    if schema.counts:
        yield "-- differs from the schema that counts in the join:"
        yield from (f"--   {line}" for line in schema.counts)


def _conflict(conflict: ShownConflict) -> Iterator[str]:
    since = f" since {short_time(conflict.since)}" if conflict.since else ""
    yield f"{conflict.target}: {conflict.kind}{since}: {coded(conflict.code, conflict.reason)}"
    yield f"  held: {', '.join(conflict.held)}"
    for side in conflict.sides:
        yield f"  {side_name(side)}: {', '.join(side.shards)}"
    if conflict.hint:
        yield f"  remedy: {conflict.hint}"
