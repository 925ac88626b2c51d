"""The obstacles to a cut-over that topics and servers show. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shardmerge.cli.validation.inputs.table_facts import TableFacts
from shardmerge.cli.views.shapes import PipelineStatus, ShardStatus, TargetStatus
from shardmerge.connectors.formats.connector_status import connector_fault
from shardmerge.schemas.codes.registry import coded
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.progress import RENEWED_S, is_silent
from shardmerge.spark_sink.planning.progress import CLOSED

from .seen import Reason

_MOMENTARY = ("SM-1605", "SM-1606")
"""Waits for the barrier and for an open transaction: they end by themselves. Too many parked rows
are an obstacle of their own (SM-6706)."""
_STATUS_HINT = (
    "`shardmerge status` shows what it waits for, `shardmerge explain` what ends the wait"
)


@dataclass(frozen=True, slots=True)
class SourceState:
    """What may still write to a source although its applications are stopped.

    Attributes:
        replicates: Says from which server rows may still come; "" if from none.
        writing: How many transactions have changed rows and stay open; 0 when the user cannot see
            them.
    """

    name: str
    replicates: str = ""
    writing: int = 0


def obstacles_of(
    status: PipelineStatus, target: TargetTable, facts: TableFacts, most_parked: int
) -> tuple[Reason, ...]:
    """The obstacles that the topics, Kafka Connect and the agents show.

    Args:
        status: The status of the whole pipeline.
        target: The target that is cut over.
        facts: What a comparison knows about the target from the topics.
        most_parked: Most rows that may wait in Kafka.
    """
    found = [*_of_parts(status, {shard.shard.source for shard in facts.shards})]
    for each in status.targets:
        if each.target == str(target):
            found += _of_target(each, most_parked)
    told = " ".join(reason.text for reason in found)
    passing = _passing(status, target)
    for shard in facts.shards:
        if shard.obstacle and str(shard.shard) not in passing and str(shard.shard) not in told:
            found.append(Reason("SM-6705", f"{shard.shard}: {shard.obstacle}", _STATUS_HINT))
    if not facts.executed and not found:
        found.append(
            Reason(
                "SM-6705",
                f"{target}: statements are being decided or executed",
                "run the command again when `shardmerge status` shows no open statement",
            )
        )
    return tuple(found)


def sink_obstacles(target: TargetTable, reported_ms: int, now_ms: int) -> tuple[Reason, ...]:
    """Whether the sink runs, as the times of its progress records show.

    Args:
        target: The target that is cut over.
        reported_ms: When the sink last reported the target, in milliseconds since 1970; 0 for
            never.
        now_ms: The present time, the same way.
    """
    if reported_ms and not is_silent(reported_ms, now_ms):
        return ()
    since = f"for {(now_ms - reported_ms) / 1000:.0f} s" if reported_ms else "yet"
    return (
        Reason(
            "SM-6723",
            f"the sink has not reported {target} {since}, and it does so every {RENEWED_S:.0f} s "
            "while it runs",
            "start the sink of this version. If it runs, its log says what it waits for; or the "
            "clocks of the two machines differ",
        ),
    )


def source_obstacles(sources: Sequence[SourceState], *, stopped: bool) -> tuple[Reason, ...]:
    """The obstacles that the sources' servers show.

    Args:
        sources: The sources with shards of the target.
        stopped: Whether the operator says that nobody writes.
    """
    found = [
        Reason(
            "SM-6713",
            f"source {source.name} is a replica: {source.replicates}",
            "stop the writes on the server that it replicates from. Wait until the replica has "
            "executed everything, execute STOP REPLICA on it, and run the command again",
        )
        for source in sources
        if source.replicates
    ]
    if stopped:
        found += [
            Reason(
                "SM-6714",
                f"source {source.name}: {source.writing} transactions that changed rows stay open",
                "end them: information_schema.INNODB_TRX on the source shows them",
            )
            for source in sources
            if source.writing
        ]
    return tuple(found)


def _passing(status: PipelineStatus, target: TargetTable) -> set[str]:
    """The shards with a wait that ends by itself within moments, as under traffic."""
    return {
        shard.shard
        for each in status.targets
        if each.target == str(target)
        for shard in each.shards
        if shard.code in _MOMENTARY
    }


def _of_parts(status: PipelineStatus, sources: set[str]) -> Iterator[Reason]:
    for connector in status.connectors:
        if connector.source in sources and connector.state != "RUNNING":
            hint = "`shardmerge connect status` shows more"
            yield Reason("SM-6704", connector_fault(connector), hint)
    missing = sources - {connector.source for connector in status.connectors}
    for name in sorted(missing):
        yield Reason("SM-6704", f"Kafka Connect does not say whether source {name} has a connector")
    if status.agents is None or not status.agents.workers:
        yield Reason("SM-6704", "no agents' worker runs, so statements are not decided")
    if status.target_server.error:
        server = status.target_server
        yield Reason("SM-6704", f"the target {server.address} does not answer: {server.error}")


def _of_target(target: TargetStatus, most_parked: int) -> Iterator[Reason]:
    for shard in target.shards:
        if shard.state != "flows" and shard.code not in (CLOSED, *_MOMENTARY):
            yield Reason("SM-6705", _shard_text(shard), shard.hint or _STATUS_HINT)
    for statement in target.open:
        waits = coded(statement.code, statement.detail) or statement.state
        text = f"statement {statement.statement} is not executed: {statement.sql}; {waits}"
        yield Reason("SM-6705", text, _STATUS_HINT)
    if target.failure is not None:
        failure = target.failure
        text = f"rows cannot be applied: {coded(failure.code, failure.message)}"
        yield Reason("SM-6705", text, failure.hint)
    if target.disabled_since:
        yield Reason(
            "SM-6705",
            f"{target.target} has been disabled since {target.disabled_since}: its schema does not "
            "follow its shards",
            f"`shardmerge command enable --pipeline FILE --target {target.target}`",
        )
    parked = sum(shard.parked for shard in target.shards)
    if parked > most_parked:
        yield Reason(
            "SM-6706",
            f"{parked} rows wait in Kafka, and --max-lag allows {most_parked}",
            "wait until the target has applied them. Once the writes have stopped, applications "
            "would wait for it",
        )


def _shard_text(shard: ShardStatus) -> str:
    return f"{shard.shard} is {shard.state}: {coded(shard.code, shard.reason)}"
