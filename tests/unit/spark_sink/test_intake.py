"""Which row topics are read, and what of a source that the pipeline file has no more."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any, cast

import pytest

from shardmerge.schemas.errors import ContractError
from shardmerge.schemas.events import Decision
from shardmerge.schemas.names import ShardId
from shardmerge.schemas.pipeline import Connect, Kafka, Pipeline, Source, Target
from shardmerge.schemas.routing import RoutingRule
from shardmerge.spark_sink.intake import Intake
from shardmerge.spark_sink.partitions import Partition
from shardmerge.spark_sink.row_topics import RowTopic

from .decided import A, B, decision

GONE = ShardId("s2", "app", "a")
PIPELINE = Pipeline(
    "p",
    Kafka("k:9092"),
    Connect("http://c:8083"),
    (Source("s1", "h", 3306, "u", "p", 6001),),
    (),
    Target("h", 1, "u", "p"),
)


class Offsets:
    """Every topic has one partition with ten rows."""

    def __init__(self, *missing: str) -> None:
        self.asked: list[str] = []
        self.missing = missing
        self.stable = 10
        self.decided = 0
        self.counts: dict[str, int] = {}
        self.lists = self.descriptions = 0
        self.made = "id"

    def partitions(self, topics: Collection[str]) -> dict[str, int]:
        self.asked = sorted(topics)
        self.lists += 1
        return {t: self.counts.get(t, 1) for t in topics if t not in self.missing}

    def described(self, topics: Collection[str]) -> dict[str, RowTopic]:
        self.descriptions += 1
        return {
            t: RowTopic(f"{self.made} of {t}", self.counts.get(t, 1))
            for t in topics
            if t not in self.missing
        }

    def high_watermarks(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return {p: self.decided if p.topic == "p.ddl" else 10 for p in partitions}

    def stable_ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return dict.fromkeys(partitions, self.stable)


def observed(*decisions: Decision) -> tuple[Intake, list[str]]:
    offsets = Offsets()
    intake = Intake(PIPELINE, cast(Any, offsets), cast(Any, None))
    for record in decisions:
        intake.decisions.add(record)
    intake.observe()
    return intake, offsets.asked


def left(version: int, *shards: ShardId) -> Decision:
    return replace(decision(version, A, 90), shard=None, leaves=shards)


def test_the_rows_of_a_removed_source_are_not_looked_for_once_its_shards_are_taken_out() -> None:
    intake, asked = observed(decision(1, A, 10), decision(2, GONE, 10), left(3, GONE))
    assert asked == ["s1.app.a"]
    intake.settle()

    dropped = decision(3, GONE, 20, live=False)
    _, asked = observed(decision(1, A, 10), decision(2, GONE, 10), dropped)
    assert asked == ["s1.app.a"]


def test_a_removed_source_whose_shards_still_count_is_an_error_that_names_the_way_out() -> None:
    intake, asked = observed(decision(1, A, 10), decision(2, GONE, 10))
    assert asked == ["s1.app.a", "s2.app.a"]
    with pytest.raises(ContractError, match="source 's2'") as error:
        intake.settle()
    assert "command leave" in error.value.hint


def test_the_rows_of_a_shard_that_was_taken_out_are_read_while_its_source_is_there() -> None:
    _, asked = observed(decision(1, A, 10), decision(2, B, 20), left(3, B))
    assert asked == ["s1.app.a", "s1.app.b"]


def test_a_shard_that_was_taken_out_counts_again_with_its_next_change() -> None:
    intake, _ = observed(decision(1, A, 10), left(2, A))
    target = intake.decisions.targets[decision(1, A, 10).target]  # type: ignore[index]
    assert not target.lives(A)
    intake.decisions.add(decision(3, A, 30))
    assert target.lives(A)


def test_shards_of_a_shared_topic_follow_their_sources_barriers() -> None:
    route = RoutingRule(".*", "app", "a", "merged", "t", row_topic="merged.t")
    sources = (*PIPELINE.sources, replace(PIPELINE.sources[0], name="s2"))
    offsets = Offsets("s1.app.a", "s2.app.a")
    pipeline = replace(PIPELINE, routes=(route,), sources=sources)
    intake = Intake(pipeline, cast(Any, offsets), cast(Any, None))
    for record in (decision(1, A, 10, offset=0), decision(2, GONE, 10, offset=0)):
        intake.decisions.add(record)
    for source in ("s1", "s2"):
        intake.barriers.tails[source].record(0)
    intake.observe()
    one, two = (Partition("merged.t", 0, shard) for shard in (A, GONE))
    assert intake.partitions == {one: "s1", two: "s2"}
    intake.barriers.tails["s2"].reached(10)
    intake.settle()
    assert intake.barriers.safe_ends == {two: 10}
    intake.barriers.tails["s1"].reached(10)
    intake.settle()
    assert intake.barriers.safe_ends == {one: 10, two: 10}
    assert not intake.watermarks.strays
    assert intake.row_topics == {"merged.t": RowTopic("id of merged.t", 1)}

    offsets.missing = ("s1.app.a",)
    intake.decisions.add(decision(3, A, 20, offset=1))
    intake.observe()
    assert intake.watermarks.strays == {GONE}, "it has rows in a topic of its own"


def test_topics_are_described_when_their_list_is_another_or_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr("shardmerge.spark_sink.intake.time.monotonic", lambda: now[0])
    offsets = Offsets()
    intake = Intake(PIPELINE, cast(Any, offsets), cast(Any, None))
    intake.decisions.add(decision(1, A, 10))
    for _ in range(20):
        intake.observe()
        now[0] += 0.2
    assert (offsets.lists, offsets.descriptions) == (20, 1), "one request each time"
    assert intake.row_topics == {"s1.app.a": RowTopic("id of s1.app.a", 1)}

    offsets.counts["s1.app.a"] = 2
    intake.observe()
    assert intake.row_topics["s1.app.a"].partitions == 2, "the list tells at once that it grew"

    offsets.made = "other id"
    intake.observe()
    assert intake.row_topics["s1.app.a"].id == "id of s1.app.a"
    intake.identify({"s1.app.a"})
    assert intake.row_topics["s1.app.a"].id == "other id of s1.app.a", "rows are to be applied"
    known = intake.row_topics
    intake.identify({"s1.app.a"})
    assert intake.row_topics is known, "nothing is to be compared"

    offsets.made = "second id"
    now[0] += 5
    intake.observe()
    assert intake.row_topics["s1.app.a"].id == "second id of s1.app.a", "made anew, as it was"

    offsets.missing = ("s1.app.a",)
    now[0] += 0.2
    intake.observe()
    assert intake.row_topics == {}, "gone"
    offsets.missing, offsets.made = (), "third id"
    now[0] += 0.2
    intake.observe()
    assert intake.row_topics["s1.app.a"].id == "third id of s1.app.a", "it was seen to be gone"


def test_a_list_that_takes_long_is_asked_for_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("shardmerge.spark_sink.intake.time.monotonic", lambda: now[0])

    class Slow(Offsets):
        def partitions(self, topics: Collection[str]) -> dict[str, int]:
            now[0] += 0.5
            return super().partitions(topics)

    offsets = Slow()
    intake = Intake(PIPELINE, cast(Any, offsets), cast(Any, None))
    intake.decisions.add(decision(1, A, 10))
    intake.observe()
    now[0] += 9.0
    intake.observe()
    assert offsets.lists == 1
    intake.decisions.add(decision(2, B, 20))
    intake.observe()
    assert offsets.lists == 2, "a decision that it does not know of is a reason"
    now[0] += 10.0
    intake.observe()
    assert offsets.lists == 3


def test_rows_behind_a_transaction_that_stays_open_are_told_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]
    monkeypatch.setattr("shardmerge.spark_sink.intake.time.monotonic", lambda: now[0])
    offsets, place = Offsets(), Partition("s1.app.a", 0)
    offsets.stable = 4
    intake = Intake(PIPELINE, cast(Any, offsets), cast(Any, None))
    intake.decisions.add(decision(1, A, 10, offset=0))
    intake.barriers.tails["s1"].record(0)
    intake.barriers.tails["s1"].reached(10)
    intake.observe()
    assert intake.unreadable == {}, "there is something to read before it"
    intake.settle()
    for _ in range(2):
        intake.observe()
        intake.settle()
        assert intake.unreadable == {place: 4}
        now[0] += 6
    intake.settle()
    told = "the end of the transaction that is open at s1.app.a/0@4"
    assert [record.__dict__["for"] for record in caplog.records] == [told] * 2, "every 5 s"
    offsets.stable = 10
    intake.observe()
    assert intake.unreadable == {}
