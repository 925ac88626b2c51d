"""The picture of a pipeline → ``PipelineStatus``. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.status.ages import ms_of
from shardmerge.agents.status.validations import (
    NEVER,
    ValidationView,
    rows_differ,
    shortcomings,
)
from shardmerge.agents.status.view import ShardView, TargetView, as_paused
from shardmerge.connectors.formats.connector_status import connector_fault
from shardmerge.schemas.codes.registry import coded
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.records.decisions import Outcome
from shardmerge.schemas.records.drift import Difference, DriftKind, needs_somebody
from shardmerge.schemas.records.operator_commands import CommandKind
from shardmerge.schemas.records.progress import (
    CUT_OVER_CODE,
    ShardProgress,
    SinkProgress,
    StatementProgress,
    is_silent,
)
from shardmerge.schemas.records.validations import DIFFER_CODE

from .picture import Decided, Picture, moment
from .shapes import (
    DriftStatus,
    Failure,
    PipelineStatus,
    ShardStatus,
    StatementStatus,
    TargetStatus,
    ValidationStatus,
)
from .text import short_time


def pipeline_status(
    picture: Picture, states: Mapping[TargetTable, TargetState] | None = None
) -> PipelineStatus:
    """What ``shardmerge status`` prints.

    Args:
        picture: What the topics say.
        states: Target → its state in the coordinator's table. Targets that are not in it are folded
            from their decisions. That takes longer, because every decision is decoded.
    """
    known = states or {}
    views = [_view_of(state, picture) for state in known.values()]
    if not picture.targets() <= known.keys():
        views += [view for view in picture.views() if view.target not in known]
    views.sort(key=lambda view: view.target)
    targets = tuple(target_status(picture, view) for view in views)
    return PipelineStatus(
        picture.pipeline.name,
        picture.at,
        targets,
        picture.connectors,
        picture.agents,
        picture.target_server,
        (*picture.unanswered, *_faults(picture, targets)),
    )


def _view_of(state: TargetState, picture: Picture) -> TargetView:
    """A target's shards as their latest decisions left them; the rest is not shown here."""
    shards = []
    for name in sorted(state.shards):
        shard, hold = state.shards[name], state.shards[name].hold
        view = ShardView(name, "live", shard.version, shard.position)
        if hold is not None:
            view = replace(view, state="held", reason=hold.reason, hint=hold.hint, code=hold.code)
        shards.append(as_paused(view, {name: 0} if shard.paused else {}))
    progress = picture.progress.get(state.target)
    return TargetView(state.target, state.version, (), None, tuple(shards), (), progress)


def target_status(picture: Picture, target: TargetView) -> TargetStatus:
    """One target, without shards that left it."""
    progress = target.progress
    applied = {s.shard: s for s in progress.shards} if progress else {}
    failed = progress.failure if progress else None
    failure = None
    if failed is not None:
        since = moment(failed.since_ms)
        failure = Failure(
            failed.message, failed.hint, failed.where, failed.times, since, failed.code
        )
    disabled = _disabled(picture, target)
    return TargetStatus(
        target=str(target.target),
        version=target.version,
        executed_version=progress.executed_version if progress else 0,
        rows=progress.rows if progress else 0,
        reported=moment(progress.ts_ms) if progress else "",
        shards=tuple(
            _shard_status(picture, target, shard, applied.get(shard.shard)) for shard in target.live
        ),
        open=open_statements(picture, progress) if progress else (),
        failure=failure,
        disabled_by=picture.by(disabled.decision.id) if disabled else "",
        disabled_since=moment(disabled.written_ms) if disabled else "",
        drift=tuple(_drift(each) for each in progress.drift) if progress else (),
        validation=_validation(picture.validations.get(target.target, NEVER)),
    )


def _validation(found: ValidationView) -> ValidationStatus | None:
    latest, differing = found.latest, found.differing
    if latest is None:
        return None
    return ValidationStatus(
        found.state,
        moment(latest.ended_ms),
        differing.differences if differing else 0,
        rows_differ(differing) if differing else "",
        moment(found.since_ms),
        shortcomings(latest),
    )


def _drift(each: Difference) -> DriftStatus:
    since, before = moment(each.since_ms), moment(each.clear_ms)
    return DriftStatus(
        each.subject, each.kind.value, each.code, each.expected, each.found, since, before
    )


def open_statements(picture: Picture, progress: SinkProgress) -> tuple[StatementStatus, ...]:
    """The statements of a target that are not executed, each with why it gets them."""
    decided = picture.of_target(progress.target)
    return tuple(_statement_status(each, decided.get(each.version)) for each in progress.open)


def _statement_status(statement: StatementProgress, decided: Decided | None) -> StatementStatus:
    # Rows of shards are also removed by statements that no decision has.
    statements = decided.decision.statements if decided else ()
    of = next((each for each in statements if each.sql == statement.sql), None)
    return StatementStatus(
        f"{statement.version}.{statement.ordinal}",
        statement.sql,
        statement.kind.value,
        statement.state,
        statement.detail,
        moment(statement.since_ms),
        statement.code,
        of.reason if of else "",
        of.code if of else "",
    )


def paused_by(picture: Picture, target: TargetTable, shard: ShardId) -> tuple[int, str]:
    """The version of the latest decision that paused a shard, and who gave the command."""
    decided = picture.of_target(target)
    for version in sorted(decided, reverse=True):
        decision = decided[version].decision
        if shard in decision.pauses:
            return version, picture.by(decision.id)
    return 0, ""


def _disabled(picture: Picture, target: TargetView) -> Decided | None:
    """The command ``disable`` that counts now, as it was decided; None without one."""
    commands = topics.commands(picture.pipeline).name
    for decided in reversed(tuple(picture.of_target(target.target).values())):
        if decided.source != commands or decided.outcome == Outcome.REFUSED:
            continue
        command = picture.command(decided.decision.id)
        if command is not None and command.kind in (CommandKind.DISABLE, CommandKind.ENABLE):
            return decided if command.kind is CommandKind.DISABLE else None
    return None


def _shard_status(
    picture: Picture, target: TargetView, shard: ShardView, applied: ShardProgress | None
) -> ShardStatus:
    parked = applied.parked if applied else 0
    overwritten = applied.overwritten if applied else 0
    version, by, position = shard.version, "", str(shard.position)
    if shard.state == "live" and applied is not None and applied.waiting:
        return ShardStatus(
            str(shard.shard),
            "waits",
            str(applied.position or ""),
            version,
            moment(applied.since_ms),
            applied.waiting,
            applied.hint,
            parked,
            overwritten,
            code=applied.code,
        )
    if shard.state == "live":
        name = str(shard.shard)
        return ShardStatus(name, "flows", position, version, overwritten=overwritten)
    if shard.state == "paused":
        version, by = paused_by(picture, target.target, shard.shard)
    known = picture.of_target(target.target).get(version)
    return ShardStatus(
        str(shard.shard),
        shard.state,
        position,
        version,
        moment(known.written_ms) if known else "",
        shard.reason,
        shard.hint,
        parked,
        overwritten,
        by,
        shard.code,
    )


def _faults(picture: Picture, targets: tuple[TargetStatus, ...]) -> Iterator[str]:
    for connector in picture.connectors:
        if connector.state != "RUNNING":
            yield connector_fault(connector)
    agents = picture.agents
    if agents is not None and not agents.workers:
        yield f"no agents' worker runs; {agents.undecided} records are undecided"
    server = picture.target_server
    if server.error:
        yield f"the target's server {server.address} does not answer: {server.error}"
    for target in targets:
        if silence := _silence(picture, target):
            yield f"{target.target}: {coded('SM-6723', silence)}"
        for shard in target.shards:
            if shard.state == "held":
                yield f"{target.target}: {shard.shard} is held: {coded(shard.code, shard.reason)}"
        for statement in target.open:
            if statement.state == "refused":
                yield f"{target.target}: statement {statement.statement} is refused"
        changed = [each for each in target.drift if needs_somebody(DriftKind(each.kind))]
        if changed:
            told = ", ".join(f"{each.subject} ({each.code})" for each in changed)
            yield f"{target.target}: its table was changed by hand: {told}"
        differing = target.validation.what if target.validation else ""
        if differing and not any(shard.code == CUT_OVER_CODE for shard in target.shards):
            yield f"{target.target}: {coded(DIFFER_CODE, differing)}"
        if target.failure is not None:
            failed = coded(target.failure.code, target.failure.message)
            yield f"{target.target}: rows cannot be applied: {failed}"


def _silence(picture: Picture, target: TargetStatus) -> str:
    """Since when the sink does not report a target; "" if it does, and for a new target."""
    if target.reported:
        if not is_silent(ms_of(target.reported), picture.at_ms):
            return ""
        return f"the sink has not reported it since {short_time(target.reported)}"
    decided = picture.decided_ms(TargetTable(*target.target.split(".", 1))).values()
    if not decided or not is_silent(min(decided), picture.at_ms):
        return ""
    return "the sink has not reported it yet"
