"""Compares a shadow with the shards, while both are written to."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from shardmerge.cli.validation.applied_offsets import control_offsets
from shardmerge.cli.validation.report_shapes import ValidatedTarget
from shardmerge.cli.validation.saved_state import StateFile
from shardmerge.cli.validation.server_rows import ServerRows
from shardmerge.cli.validation.target_run import Limits
from shardmerge.cli.validation.topic_facts import TopicFacts
from shardmerge.cli.validation.whole_target import compare_target
from shardmerge.cli.views.picture import Decided, Picture
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.topics import RowTopics
from shardmerge.schemas.records.progress import SinkProgress, StatementProgress
from shardmerge.spark_sink.barrier.decisions import Decisions, StatementKey
from shardmerge.spark_sink.barrier.statements import frontier
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord
from shardmerge.spark_sink.rebuilding.shadow import shadow_decision

from .rebuild_server import RebuildServer


def compare_shadow(
    pipeline: Pipeline, record: RebuildRecord, server: RebuildServer, limits: Limits
) -> tuple[ValidatedTarget, tuple[str, ...]]:
    """Compare all rows of a shadow with the shards.

    Args:
        pipeline: The pipeline of the target.
        record: The rebuild.
        server: The target's server.
        limits: Of the comparison.

    Returns:
        The report, and for each shard that was not compared the reason.

    Raises:
        ShardMergeError: A server, Kafka or Kafka Connect does not answer.
    """
    name, table = record.sink_name(pipeline.name), record.shadow.table

    def shown(picture: Picture) -> Picture:
        return shadow_picture(picture, record, server.executed(name, table))

    servers = ServerRows(pipeline)
    try:
        run, seconds = compare_target(
            pipeline,
            table,
            TopicFacts(pipeline, shown),
            servers,
            limits=limits,
            state=StateFile(None, name, ()),
            applied=control_offsets(replace(pipeline, name=name)),
        )
    finally:
        servers.close()
    hindered = [each for each in run.known.shards if each.obstacle]
    return run.report(seconds), tuple(f"{each.shard}: {each.obstacle}" for each in hindered)


def shadow_picture(
    picture: Picture, record: RebuildRecord, executed: Collection[StatementKey]
) -> Picture:
    """What the topics say, told of the shadow instead of the target.

    Args:
        picture: Of the pipeline.
        record: The rebuild.
        executed: What the journal notes as executed on the shadow.
    """
    shadow, decisions = record.shadow, Decisions(RowTopics(picture.pipeline.routes))
    decided = [
        (shadow_decision(each.decision, shadow), each.written_ms)
        for each in picture.of_target(record.target).values()
    ]
    for decision, _ in decided:
        decisions.add(decision)
    known = decisions.targets[shadow.table]
    waiting = tuple(
        StatementProgress(key.version, key.ordinal, statement.sql, statement.kind, "debt")
        for key, statement in known.statements.items()
        if key not in executed
    )
    reached = frontier(known, executed) - 1
    return replace(
        picture,
        decided=tuple(Decided.of(decision, at_ms) for decision, at_ms in decided),
        joined={shadow.table: replace(picture.joined[record.target], target=shadow.table)},
        progress={shadow.table: SinkProgress(shadow.table, reached, 0, waiting)},
    )
