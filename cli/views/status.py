"""The picture of a pipeline → ``PipelineStatus``. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from shardmerge.agents.status.view import ShardView, TargetView
from shardmerge.schemas.codes.registry import coded
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.records.decisions import Outcome
from shardmerge.schemas.records.operator_commands import CommandKind
from shardmerge.schemas.records.progress import ShardProgress, StatementProgress

from .picture import Decided, Picture, moment
from .shapes import (
    ConnectorState,
    Failure,
    PipelineStatus,
    ShardStatus,
    StatementStatus,
    TargetStatus,
)


def pipeline_status(picture: Picture) -> PipelineStatus:
    """What ``shardmerge status`` prints."""
    targets = tuple(target_status(picture, target) for target in picture.views())
    return PipelineStatus(
        picture.pipeline.name,
        picture.at,
        targets,
        picture.connectors,
        picture.agents,
        picture.target_server,
        (*picture.unanswered, *_faults(picture, targets)),
    )


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
        open=tuple(map(statement_status, progress.open)) if progress else (),
        failure=failure,
        disabled_by=picture.by(disabled.decision.id) if disabled else "",
        disabled_since=moment(disabled.written_ms) if disabled else "",
    )


def statement_status(statement: StatementProgress) -> StatementStatus:
    """One statement that is not executed."""
    return StatementStatus(
        f"{statement.version}.{statement.ordinal}",
        statement.sql,
        statement.kind.value,
        statement.state,
        statement.detail,
        moment(statement.since_ms),
        statement.code,
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
    found = None
    for decided in picture.of_target(target.target).values():
        command = picture.command(decided.decision.id)
        if command is None or decided.decision.outcome is Outcome.REFUSED:
            continue
        if command.kind is CommandKind.DISABLE:
            found = decided
        elif command.kind is CommandKind.ENABLE:
            found = None
    return found


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
        for shard in target.shards:
            if shard.state == "held":
                yield f"{target.target}: {shard.shard} is held: {coded(shard.code, shard.reason)}"
        for statement in target.open:
            if statement.state == "refused":
                yield f"{target.target}: statement {statement.statement} is refused"
        if target.failure is not None:
            failed = coded(target.failure.code, target.failure.message)
            yield f"{target.target}: rows cannot be applied: {failed}"


def connector_fault(connector: ConnectorState) -> str:
    """What is wrong with a connector that does not run."""
    reason = f": {connector.reason}" if connector.reason else ""
    return f"connector {connector.name} is {connector.state}{reason}"
