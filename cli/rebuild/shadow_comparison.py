"""Compares a shadow with the shards, while both are written to."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from shardmerge.cli.validation.inputs.topic_facts import TopicFacts
from shardmerge.cli.validation.report_shapes import ValidatedTarget
from shardmerge.cli.validation.saved_state import StateFile
from shardmerge.cli.validation.target_run import Limits
from shardmerge.cli.validation.whole_target import compare_target
from shardmerge.cli.views.picture import Decided, Picture
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.topics import RowTopics
from shardmerge.schemas.records.decisions import Decision
from shardmerge.schemas.records.progress import SinkProgress, StatementProgress
from shardmerge.spark_sink.barrier.decisions import Decisions, StatementKey, TargetDecisions
from shardmerge.spark_sink.barrier.statements import frontier
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord
from shardmerge.spark_sink.rebuilding.shadow import shadow_decision

from .own_decisions import OwnDecisions
from .rebuilt_target import RebuiltTarget


def compare_shadow(
    pipeline: Pipeline,
    record: RebuildRecord,
    server: RebuiltTarget,
    own: OwnDecisions | None,
    limits: Limits,
) -> tuple[ValidatedTarget, tuple[str, ...]]:
    """Compare all rows of a shadow with the shards.

    Args:
        pipeline: The pipeline of the target.
        record: The rebuild.
        server: The target's server.
        own: What is decided for the shadow; None if it has the target's decisions.
        limits: Of the comparison.

    Returns:
        The report, and for each shard that was not compared the reason.

    Raises:
        ShardMergeError: A server, Kafka or Kafka Connect does not answer.
    """
    name, table = record.sink_name(pipeline.name), record.shadow.table

    def shown(picture: Picture) -> Picture:
        return shadow_picture(picture, record, server.executed(name, table), own)

    servers = server.rows(pipeline)
    try:
        run, seconds = compare_target(
            pipeline,
            table,
            TopicFacts(pipeline, shown),
            servers,
            limits=limits,
            state=StateFile(None, name, ()),
            applied=server.applied(pipeline, record),
        )
    finally:
        servers.close()
    hindered = [each for each in run.known.shards if each.obstacle]
    return run.report(seconds), tuple(f"{each.shard}: {each.obstacle}" for each in hindered)


def shadow_picture(
    picture: Picture,
    record: RebuildRecord,
    executed: Collection[StatementKey],
    own: OwnDecisions | None = None,
) -> Picture:
    """What the topics say, told of the shadow instead of the target.

    Args:
        picture: Of the pipeline.
        record: The rebuild.
        executed: What the journal notes as executed on the shadow.
        own: What is decided for the shadow; None if it has the target's decisions.
    """
    shadow, decided = record.shadow, _decided(picture, record, own)
    known = _known(picture, record, (decision for decision, _ in decided))
    waiting = tuple(
        StatementProgress(key.version, key.ordinal, statement.sql, statement.kind, "debt")
        for key, statement in known.statements.items()
        if key not in executed
    )
    reached = frontier(known, executed) - 1
    joined = replace(picture.joined[record.target], target=shadow.table)
    return replace(
        picture,
        decided=tuple(Decided.of(decision, at_ms) for decision, at_ms in decided),
        joined={shadow.table: joined if own is None else own.fold.joined_schema(shadow.table)},
        progress={shadow.table: SinkProgress(shadow.table, reached, 0, waiting)},
    )


def decided_for_table(
    picture: Picture, record: RebuildRecord, own: OwnDecisions | None
) -> TargetDecisions:
    """Everything decided for a shadow; see ``shadow_picture``."""
    decided = _decided(picture, record, own)
    return _known(picture, record, (decision for decision, _ in decided))


def _decided(
    picture: Picture, record: RebuildRecord, own: OwnDecisions | None
) -> list[tuple[Decision, int]]:
    """The decisions for a shadow, and when they were written."""
    shadow = record.shadow

    def as_read(decision: Decision) -> Decision:
        return shadow_decision(decision, shadow) if own is None else own.as_read(decision, shadow)

    return [
        (as_read(each.decision), each.written_ms)
        for each in picture.of_target(record.target).values()
    ]


def _known(picture: Picture, record: RebuildRecord, decided: Iterable[Decision]) -> TargetDecisions:
    decisions = Decisions(RowTopics(picture.pipeline.routes))
    for decision in decided:
        decisions.add(decision)
    return decisions.targets[record.shadow.table]
