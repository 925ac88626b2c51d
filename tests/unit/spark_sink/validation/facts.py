"""Shards and targets for tests of validation."""

from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.origin import Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.policies import RoutePolicies
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.spark_sink.validation.compared_facts import ShardFacts, TargetFacts
from tests.strategies import table

TARGET = TargetTable("merged", "t")
S1, S2 = ShardId("s1", "app", "t_1"), ShardId("s2", "app", "t_2")
RULE = RoutingRule("s.*", "app", "t_.*", "merged", "t")
ORIGIN = Origin((OriginColumn(OriginPart.SHARD, "_shard"),), in_keys=True)


def with_origin(rule: RoutingRule = RULE) -> RoutingRule:
    return replace(rule, policies=RoutePolicies(origin=ORIGIN))


def columns(create: str, **ids: str) -> tuple[ShardColumn, ...]:
    """Columns whose identities are their names, unless told otherwise."""
    return tuple(ShardColumn(ids.get(c.name, f"{c.name}#1"), c) for c in table(create).columns)


def shard(
    name: ShardId, create: str, rule: RoutingRule = RULE, obstacle: str = "", **ids: str
) -> ShardFacts:
    return ShardFacts(name, columns(create, **ids), rule, obstacle)


def target(
    create: str,
    *,
    origin: Origin | None = None,
    kept: str = "",
    points: bool = True,
    catalog: str = "",
    **ids: str,
) -> TargetFacts:
    found = table(create)
    key = () if found.primary_key is None else found.primary_key.columns
    own = columns(create, **ids)
    if origin is not None:
        own += tuple(
            ShardColumn(c.column_id, Column(c.name, c.column_type, False)) for c in origin.columns
        )
        key = (*key, *(c.name for c in origin.columns)) if origin.in_keys else key
    return TargetFacts(TARGET, own, key, kept, points, catalog)
