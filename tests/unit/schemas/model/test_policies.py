"""A route's policies travel whole: from the pipeline file over the record to the stored state.

The tests know no policy by name: one that is added to the record is tested with it.
"""

from __future__ import annotations

from dataclasses import fields, replace
from enum import StrEnum
from typing import Any

import pytest

from shardmerge.agents.coordination import coordinator
from shardmerge.agents.handling.store import TargetStates
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.origin import Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.policies import CHOICES, SETTABLE, RoutePolicies
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Source, Target
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.schemas.records.codec import decode, encode
from shardmerge.schemas.records.decisions import Outcome
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId, SchemaChange
from tests.unit.agents.coordination.test_coordinator import table

SHARD, TARGET = ShardId("s1", "app", "t"), TargetTable("merged", "t")
WITH_ORIGIN = RoutePolicies(origin=Origin((OriginColumn(OriginPart.SHARD, "_shard"),)))
"""Some values of policies are allowed only with it."""
VALUES = [(name, value) for name, kind in CHOICES.items() for value in kind]


def with_policy(name: str, value: StrEnum) -> RoutePolicies:
    changed: dict[str, Any] = {name: value}
    return replace(WITH_ORIGIN, **changed)


def change(policies: RoutePolicies) -> SchemaChange:
    position = SourcePosition(0, "binlog.000001", 4, 0)
    return SchemaChange(
        ChangeId("s1", 1), TARGET, SHARD, position, None, table(), (), (), "", policies=policies
    )


def test_every_policy_but_the_origin_is_one_of_several_words() -> None:
    assert {field.name for field in fields(RoutePolicies)} == {*CHOICES, "origin"}


@pytest.mark.parametrize(("name", "value"), VALUES)
def test_a_policy_of_the_pipeline_file_comes_to_the_stored_state(name: str, value: StrEnum) -> None:
    policies = with_policy(name, value)
    written = Pipeline(
        name="p",
        kafka=Kafka("127.0.0.1:9092"),
        connect=Connect("http://127.0.0.1:8083"),
        sources=(Source("s1", "127.0.0.1", 3306, "root", "", 1),),
        routes=(RoutingRule(".*", "app", "t", "merged", "t", policies=policies),),
        target=Target("127.0.0.1", 3308, "root", "x"),
    )
    (rule,) = parse_pipeline(pipeline_text(written), {}).routes
    came = decode(encode(change(rule.policies)))
    assert isinstance(came, SchemaChange)
    before = coordinator.initial(TARGET)
    after = coordinator.decide(before, came).state
    puts = TargetStates().puts(before, after, [SHARD], "s1")
    rows = {key: row for key, row in puts.items() if row is not None}
    stored = TargetStates().get(rows, TARGET)
    assert rule.policies == came.policies == stored.policies == policies


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, v in VALUES if n in SETTABLE])
def test_what_an_operator_sets_counts_until_it_is_taken_back(name: str, value: StrEnum) -> None:
    state = coordinator.decide(coordinator.initial(TARGET), change(WITH_ORIGIN)).state

    def said(offset: int, argument: str) -> OperatorCommand:
        return OperatorCommand(
            ChangeId("p.commands", offset), TARGET, CommandKind.SET_POLICY, argument=argument
        )

    step = coordinator.obey(state, said(1, f"{name}={value}"))
    assert step.decision is not None
    assert step.decision.outcome is not Outcome.REFUSED
    assert step.state.policies == with_policy(name, value)
    again = replace(change(WITH_ORIGIN), id=ChangeId("s1", 2))
    held_to = coordinator.decide(step.state, again).state
    assert held_to.policies == with_policy(name, value)
    freed = coordinator.obey(held_to, said(2, f"{name}=")).state
    last = replace(change(WITH_ORIGIN), id=ChangeId("s1", 3))
    assert coordinator.decide(freed, last).state.policies == WITH_ORIGIN
