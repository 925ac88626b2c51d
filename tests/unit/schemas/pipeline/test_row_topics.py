"""Which topic holds a shard's rows, and whether Debezium sees it so."""

from __future__ import annotations

import re

import pytest

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.topics import RowTopics, shared_pattern

RULE = RoutingRule("s.", "app_(?P<n>.)", r"t_\d+", "m", "t", row_topic="m.t")
OTHER = RoutingRule(".*", "o", "t", "m", "o")
TOPICS = RowTopics([OTHER, RULE])


@pytest.mark.parametrize(
    ("shard", "topic"),
    [
        (ShardId("s1", "app_a", "t_1"), "m.t"),
        (ShardId("s2", "app_b", "t_12"), "m.t"),
        (ShardId("other", "app_a", "t_1"), "other.app_a.t_1"),
        (ShardId("s1", "app_a", "_t_1_gho"), "s1.app_a._t_1_gho"),
        (ShardId("s1", "o", "t"), "s1.o.t"),
        (ShardId("s1", "o", "a b"), "s1.o.a_b"),
    ],
)
def test_a_topic_is_the_routes_or_the_shards_own(shard: ShardId, topic: str) -> None:
    assert TOPICS.topic_of(shard) == topic
    assert TOPICS.is_shared(shard) == (topic == "m.t")
    assert not TOPICS.misses(shard)
    pattern = shared_pattern(RULE, shard.source)
    own = f"{shard.source}.{shard.database}.{shard.table}"
    assert bool(pattern and re.fullmatch(pattern, own)) == (topic == "m.t")


def test_without_a_shared_topic_nothing_is_asked() -> None:
    assert RowTopics([OTHER]).shared == frozenset()
    assert not RowTopics().is_shared(ShardId("s1", "app_a", "t_1"))


def test_the_first_route_with_a_topic_counts_as_in_debeziums_chain() -> None:
    second = RoutingRule(".*", "app_.", "t_1", "m", "t", row_topic="m.second")
    shard = ShardId("s1", "app_a", "t_1")
    assert RowTopics([RULE, second]).topic_of(shard) == "m.t"
    assert RowTopics([second, RULE]).topic_of(shard) == "m.second"
    assert not RowTopics([second, RULE]).misses(shard)


def test_a_name_that_loses_characters_on_its_way_to_a_topic_is_found() -> None:
    odd = RowTopics([RoutingRule(".*", "app", "t é", "m", "t", row_topic="m.t")])
    assert odd.misses(ShardId("s1", "app", "t é")), "the expression does not match s1.app.t__"
    digits = RowTopics([RoutingRule(".*", "app", "t_._1", "m", "t", row_topic="m.t")])
    assert digits.misses(ShardId("s1", "app", "t é 1")), "not routed, and moved nevertheless"
    assert not digits.misses(ShardId("s1", "app", "t_x_1"))
