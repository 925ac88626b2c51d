"""What the topics say of a target and its shards, for their comparison. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from shardmerge.cli.views.picture import Picture
from shardmerge.connectors.debezium.signals import signal_id
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.policies import RowsPolicy
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import IndexKind
from shardmerge.schemas.pipeline.routing import rule_of
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.topics import RowTopics
from shardmerge.schemas.records.progress import SinkProgress
from shardmerge.spark_sink.barrier.decisions import Decisions, TargetDecisions
from shardmerge.spark_sink.barrier.statements import bindings
from shardmerge.spark_sink.planning.progress import CLOSED
from shardmerge.spark_sink.validation.compared_facts import ShardFacts, TargetFacts


@dataclass(frozen=True, slots=True)
class Readings:
    """Tables that connectors are asked to read again.

    Attributes:
        open: Source and ``database.table`` of readings that are not complete.
        asked: Ids of all requests. A decision that orders a reading precedes its request.
    """

    open: Collection[tuple[str, str]] = ()
    asked: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What is known of a target at one moment.

    Attributes:
        version: Of its latest decision. Facts of one version are equal.
        executed: Whether every statement of that version is executed, except debts.
    """

    version: int
    executed: bool
    target: TargetFacts
    shards: tuple[ShardFacts, ...]


def targets_of(picture: Picture, wanted: TargetTable | None) -> list[TargetTable]:
    """The targets to compare, sorted: all, or the one that is wanted.

    Raises:
        ConfigError: There is no such target.
    """
    known = sorted(picture.joined)
    if wanted is None:
        return known
    if wanted not in known:
        raise ConfigError(
            f"no target is called {wanted}",
            hint=f"known: {', '.join(map(str, known)) or 'none'}",
            code="SM-5601",
        )
    return [wanted]


def is_cut_over(picture: Picture, target: TargetTable) -> bool:
    """Whether a target was handed over to its applications, so that the sink leaves it alone."""
    progress = picture.progress.get(target)
    return progress is not None and progress.is_cut_over


def facts_of(picture: Picture, target: TargetTable, readings: Readings) -> TableFacts:
    """What is known of a target.

    Args:
        picture: Of the pipeline's topics.
        target: One of ``picture.joined``.
        readings: Of all tables.
    """
    pipeline = picture.pipeline
    decisions = Decisions(RowTopics(pipeline.routes))
    read_again = set(readings.open)
    for decided in picture.of_target(target).values():
        decision = decided.decision
        decisions.add(decision)
        for fixup in decision.fixups:
            shard = fixup.shard
            if fixup.kind.asks_for_snapshot and (
                signal_id(str(decision.id), shard) not in readings.asked
            ):
                read_again.add((shard.source, f"{shard.database}.{shard.table}"))
    known = decisions.targets[target]
    progress = picture.progress.get(target, SinkProgress(target, 0, 0))
    joined = picture.joined[target]
    primary = None if joined.schema is None else joined.schema.primary_key
    key = () if primary is None else primary.columns
    if pipeline.target.catalog is not None:
        key = _key_of_shards(known, joined.columns)
    return TableFacts(
        known.version,
        progress.executed_version >= known.version,
        TargetFacts(
            target,
            _bound(known, progress, joined.columns),
            key,
            _reason_to_keep_rows(pipeline, known),
            points=pipeline.target.kind != "tidb",
            other_keys=joined.schema is not None
            and any(index.kind is IndexKind.UNIQUE for index in joined.schema.indexes),
            catalog=pipeline.target.catalog.name if pipeline.target.catalog else "",
        ),
        tuple(
            _shard(pipeline, known, progress, shard, read_again)
            for shard in sorted(known.shards)
            if known.lives(shard)
        ),
    )


def _bound(
    known: TargetDecisions, progress: SinkProgress, columns: Collection[ShardColumn]
) -> tuple[ShardColumn, ...]:
    """The joined columns that the target has now."""
    waiting = {(each.version, each.ordinal) for each in progress.open}
    executed = {
        key
        for key in known.statements
        if key.version <= progress.executed_version and (key.version, key.ordinal) not in waiting
    }
    bound = bindings(known, executed)
    return tuple(
        c for c in columns if c.id in bound and bound[c.id].name.lower() == c.column.name.lower()
    )


def _key_of_shards(known: TargetDecisions, columns: Collection[ShardColumn]) -> tuple[str, ...]:
    """The target's columns by which the sink finds rows of an Iceberg table, which has no keys.

    They are those of the live shards' primary keys; empty if the shards have different ones.
    """
    keys = []
    for shard in sorted(known.shards):
        if known.lives(shard):
            gate = known.shards[shard].gates[-1]
            ids = {c.column.name.lower(): c.id for c in gate.columns}
            keys.append([ids.get(name.lower(), "") for name in gate.key])
    if not keys or any(sorted(key) != sorted(keys[0]) for key in keys):
        return ()
    names = {c.id: c.column.name for c in columns}
    return tuple(names[each] for each in keys[0]) if all(k in names for k in keys[0]) else ()


def _reason_to_keep_rows(pipeline: Pipeline, known: TargetDecisions) -> str:
    for shard in sorted(known.shards):
        rule = rule_of(pipeline.routes, shard)
        keeps = rule is None or rule.policies.on_drop is RowsPolicy.KEEP
        if not known.lives(shard) and keeps:
            return f"rows of {shard}, which is no longer live, may be kept"
    return ""


def _shard(
    pipeline: Pipeline,
    known: TargetDecisions,
    progress: SinkProgress,
    shard: ShardId,
    read_again: Collection[tuple[str, str]],
) -> ShardFacts:
    gate = known.shards[shard].gates[-1]
    rule = rule_of(pipeline.routes, shard)
    # Rows of a target that was cut over wait for ever; nothing keeps it from being compared.
    waits = (s for s in progress.shards if s.shard == shard and s.code != CLOSED)
    waiting = next((s.waiting for s in waits), "")
    obstacle = waiting
    if rule is None:
        obstacle = "no route of the pipeline file leads to a target any more"
    elif all(source.name != shard.source for source in pipeline.sources):
        obstacle = f"the pipeline file has no source {shard.source}"
    elif shard in known.paused:
        obstacle = obstacle or "it is paused"
    elif gate.effective_version is None:
        obstacle = gate.reason or "it is held"
    elif gate.effective_version > progress.executed_version:
        obstacle = obstacle or f"its rows wait for version {gate.effective_version}"
    elif (shard.source, f"{shard.database}.{shard.table}") in read_again:
        obstacle = obstacle or "its table is being read again"
    elif known.awaited.since(shard) is not None:
        obstacle = obstacle or "its table is to be read as a whole"
    return ShardFacts(shard, gate.columns, rule or pipeline.routes[0], obstacle)
