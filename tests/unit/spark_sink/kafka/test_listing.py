"""Lists of row topics: whole ones now and then, new shards in between."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

import pytest

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.topics import RowTopics
from shardmerge.spark_sink.barrier.decisions import Decisions
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.listing import ListedTopics
from shardmerge.spark_sink.kafka.row_topics import RowTopic
from tests.unit.spark_sink.decided import A, B, decision

SHARED = "merged.t"
ELSEWHERE = ShardId("s9", "app", "z")


class Brokers:
    """Kafka with these topics, of one partition each."""

    def __init__(self, *topics: str) -> None:
        self.topics = set(topics)
        self.lists = 0
        self.described_names: list[set[str]] = []

    def partitions(self, names: Collection[str]) -> dict[str, int]:
        self.lists += 1
        return {name: 1 for name in names if name in self.topics}

    def described(self, names: Collection[str]) -> dict[str, RowTopic]:
        self.described_names.append(set(names))
        return {name: RowTopic(name, 1) for name in names if name in self.topics}


@pytest.fixture(autouse=True)
def seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """No list is renewed because time has gone by."""
    monkeypatch.setattr("shardmerge.spark_sink.kafka.listing._RELIST_S", 3_600.0)


def listed(brokers: Brokers, *, shared: bool = False) -> tuple[ListedTopics, Decisions]:
    """A list with the shard A."""
    rules = [RoutingRule(".*", "app", ".*", "merged", "t", row_topic=SHARED if shared else "")]
    decisions = Decisions(RowTopics(rules))
    decisions.add(decision(1, A, 10, offset=0))
    topics = ListedTopics(cast(Any, brokers), ("s1",))
    topics.renew(decisions, whole=False, hurried=False)
    assert brokers.lists == 1
    topics.fresh.clear()
    topics.is_other = False
    return topics, decisions


def test_a_shard_of_a_shared_topic_is_added_with_its_part_alone() -> None:
    brokers = Brokers(SHARED)
    topics, decisions = listed(brokers, shared=True)
    decisions.add(decision(2, B, 20, offset=1))
    topics.renew(decisions, whole=False, hurried=False)
    assert (brokers.lists, brokers.described_names[1:]) == (1, [{"s1.app.b"}])
    assert topics.fresh == {Partition(SHARED, 0, B)}
    assert topics.listing.parts == {
        Partition(SHARED, 0): [Partition(SHARED, 0, A), Partition(SHARED, 0, B)]
    }
    assert (topics.listing.seen, topics.is_other) == (1, False)


def test_a_shard_with_rows_outside_its_shared_topic_is_found_before_it_is_read() -> None:
    topics, decisions = listed(brokers := Brokers(SHARED, "s1.app.b"), shared=True)
    decisions.add(decision(2, B, 20, offset=1))
    topics.renew(decisions, whole=False, hurried=False)
    assert (brokers.lists, topics.is_other) == (2, True)
    assert topics.listing.own == {Partition("s1.app.b", 0): B}


def test_a_shard_of_a_source_that_is_not_in_the_file_is_left_to_a_whole_list() -> None:
    topics, decisions = listed(brokers := Brokers("s1.app.a", "s9.app.z"))
    decisions.add(decision(2, ELSEWHERE, 20, offset=1, live=False))
    topics.renew(decisions, whole=False, hurried=False)
    assert (brokers.lists, topics.is_other) == (2, True)
    assert topics.listing.unread
    assert Partition("s9.app.z", 0) not in topics.listing.partitions


def test_a_list_that_must_cover_all_decisions_is_whole() -> None:
    topics, decisions = listed(brokers := Brokers("s1.app.a", "s1.app.b"))
    decisions.add(decision(2, B, 20, offset=1))
    topics.renew(decisions, whole=False, hurried=False)
    assert (brokers.lists, topics.listing.seen) == (1, 1)
    topics.renew(decisions, whole=True, hurried=False)
    assert (brokers.lists, topics.listing.seen) == (2, 2)
    assert (topics.is_other, topics.fresh) == (False, {Partition("s1.app.b", 0)})


def test_a_new_topic_that_is_gone_before_its_end_was_read_is_not_asked_for() -> None:
    topics, decisions = listed(brokers := Brokers("s1.app.a", "s1.app.b"))
    decisions.add(decision(2, B, 20, offset=1))
    topics.renew(decisions, whole=False, hurried=False)
    assert topics.fresh == {Partition("s1.app.b", 0)}
    brokers.topics.remove("s1.app.b")
    topics.renew(decisions, whole=True, hurried=False)
    assert (topics.fresh, topics.is_other) == (set(), True)
