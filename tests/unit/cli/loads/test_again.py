from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.cli.loads.again import command_for
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.policies import RowOperation, RowsPolicy
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Source, Target
from shardmerge.schemas.records.operator_commands import CommandKind

SHARD = ShardId("s1", "app", "t_1")
ROUTE = RoutingRule(".*", "app", ".*", "merged", "t")


def pipeline(rule: RoutingRule = ROUTE, snapshot: str = "spark") -> Pipeline:
    source = Source("s1", "127.0.0.1", 1, "u", "", 1, snapshot=snapshot)
    target = Target("127.0.0.1", 1, "u", "")
    return Pipeline("p", Kafka("k"), Connect("c"), (source,), (rule,), target)


def refused(pipeline: Pipeline, shard: ShardId = SHARD) -> str:
    with pytest.raises(ConfigError) as caught:
        command_for(pipeline, shard, by="olga")
    assert caught.value.hint
    return caught.value.code


def test_the_command_names_the_shard_and_its_target() -> None:
    said = command_for(pipeline(), SHARD, by="olga")
    assert (said.kind, said.shard, said.by) == (CommandKind.LOAD_AGAIN, SHARD, "olga")
    assert said.target == TargetTable("merged", "t")
    assert said.ts_ms > 0


def test_the_sink_must_load_the_source() -> None:
    assert refused(pipeline(), ShardId("s9", "app", "t_1")) == "SM-1315"
    assert refused(pipeline(snapshot="debezium")) == "SM-1643"


def test_a_table_of_no_target_is_no_shard() -> None:
    assert refused(pipeline(), ShardId("s1", "other", "t_1")) == "SM-1303"


def test_rows_that_only_the_target_has_would_be_lost() -> None:
    keeps = replace(ROUTE, on_truncate=RowsPolicy.KEEP)
    ignores = replace(ROUTE, ignore=(RowOperation.DELETE,))
    assert [refused(pipeline(rule)) for rule in (keeps, ignores)] == ["SM-1644"] * 2
