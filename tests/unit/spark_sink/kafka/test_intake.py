"""What an intake takes from topics, ends and notices; Kafka is played."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from shardmerge.connectors.formats.avro_wire import RegistryUnreachable
from shardmerge.schemas.model.errors import ContractError, ShardMergeError, StackError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.records.decisions import Decision
from shardmerge.spark_sink.barrier.partitions import Partition, Stream
from shardmerge.spark_sink.kafka.intake import Intake, tailed_topics
from shardmerge.spark_sink.kafka.row_topics import RowTopic
from shardmerge.spark_sink.kafka.topic_tail import ScanNotices, TailRecord
from shardmerge.spark_sink.kafka.windows.window import Window
from shardmerge.spark_sink.planning.ordered_partitions import Closure
from tests.unit.spark_sink.decided import A, B, decision
from tests.unit.spark_sink.kafka.played_topics import PIPELINE, Offsets, observed

GONE = ShardId("s2", "app", "a")


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
    assert intake.looked_at == {one: "s1", two: "s2"}
    intake.barriers.tails["s2"].reached(10)
    intake.settle()
    assert intake.barriers.safe_ends == {two: 10}
    intake.barriers.tails["s1"].reached(10)
    intake.settle()
    assert intake.barriers.safe_ends == {one: 10, two: 10}
    assert not intake.watermarks.strays
    assert intake.described.row_topics == {"merged.t": RowTopic("id of merged.t", 1)}

    offsets.missing = ("s1.app.a",)
    intake.decisions.add(decision(3, A, 20, offset=1))
    intake.observe()
    assert intake.watermarks.strays == {GONE}, "it has rows in a topic of its own"


def test_rows_of_a_look_that_an_error_interrupted_are_looked_at_again() -> None:
    answers = list[ShardMergeError | None]([StackError("no record came"), None])

    def read(asked: Mapping[Partition, tuple[int, int]]) -> dict[Partition, Window]:
        if (error := answers.pop(0)) is not None:
            raise error
        return {whole: Window(end, set()) for whole, (_, end) in asked.items()}

    shared = RoutingRule(".*", "app", "a", "merged", "t", row_topic="merged.t")
    pipeline = replace(PIPELINE, routes=(shared, RoutingRule(".*", "app", "b", "merged", "t")))
    offsets = Offsets("s1.app.a")
    intake = Intake(pipeline, cast(Any, offsets), cast(Any, None), read_windows=read, few=1)
    for version, shard in enumerate((A, B), 1):
        intake.decisions.add(decision(version, shard, 10, offset=version))
        intake.barriers.tails["s1"].record(version)
    intake.barriers.tails["s1"].reached(10)
    rows = Partition("s1.app.b", 0)
    for end in (10, 12):
        offsets.high = offsets.stable = end
        if end == 12:
            with pytest.raises(StackError, match="no record came"):
                intake.observe(is_calm=True)
        intake.observe(is_calm=True)
        intake.settle()
        assert intake.barriers.safe_ends[rows] == end


def test_topics_are_described_when_their_list_is_another_or_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr("shardmerge.spark_sink.kafka.intake.time.monotonic", lambda: now[0])
    offsets = Offsets()
    intake = Intake(PIPELINE, cast(Any, offsets), cast(Any, None))
    intake.decisions.add(decision(1, A, 10))
    for _ in range(20):
        intake.observe()
        now[0] += 0.2
    assert (offsets.lists, offsets.descriptions) == (20, 2), "for the list, and for its new rows"
    assert intake.described.row_topics == {"s1.app.a": RowTopic("id of s1.app.a", 1)}

    offsets.counts["s1.app.a"] = 2
    intake.observe()
    assert intake.described.row_topics["s1.app.a"].partitions == 2, (
        "the list tells at once that it grew"
    )

    offsets.made = "other id"
    intake.observe()
    assert intake.described.row_topics["s1.app.a"].id == "id of s1.app.a"
    intake.described.identify({"s1.app.a"})
    assert intake.described.row_topics["s1.app.a"].id == "other id of s1.app.a", (
        "rows are to be applied"
    )
    assert intake.described.take_news() == {"s1.app.a"}
    intake.described.identify({"s1.app.a"})
    assert intake.described.take_news() == set(), "nothing is to be compared"

    offsets.made = "second id"
    now[0] += 5
    intake.observe()
    assert intake.described.row_topics["s1.app.a"].id == "second id of s1.app.a", (
        "made anew, as it was"
    )

    offsets.missing = ("s1.app.a",)
    now[0] += 0.2
    intake.observe()
    assert intake.described.row_topics == {}, "gone"
    offsets.missing, offsets.made = (), "third id"
    now[0] += 0.2
    intake.observe()
    assert intake.described.row_topics["s1.app.a"].id == "third id of s1.app.a", (
        "it was seen to be gone"
    )


def test_a_list_that_takes_long_is_asked_for_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("shardmerge.spark_sink.kafka.intake.time.monotonic", lambda: now[0])

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
    monkeypatch.setattr("shardmerge.spark_sink.kafka.intake.time.monotonic", lambda: now[0])
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
    assert [record.__dict__["fields"]["reason"] for record in caplog.records] == [told] * 2, (
        "every 5 s"
    )
    offsets.stable = 10
    intake.observe()
    assert intake.unreadable == {}


A_STREAM = Stream("s1.app.a")


A_BOTH = [Partition("s1.app.a", number) for number in range(2)]


def stepping(*, key: str = "id", count: int = 2, orders_partitions: bool = True) -> Intake:
    """Of a shard whose topic has so many partitions, each with ten rows that are safe."""
    offsets = Offsets()
    offsets.counts["s1.app.a"] = count
    intake = Intake(
        PIPELINE, cast(Any, offsets), cast(Any, None), orders_partitions=orders_partitions
    )
    intake.decisions.add(replace(decision(1, A, 10, offset=0), key=tuple(key.split())))
    intake.barriers.tails["s1"].record(0)
    intake.barriers.tails["s1"].reached(10)
    return intake


def settled(intake: Intake) -> bool:
    intake.observe()
    return intake.settle()


def test_a_stream_that_needs_it_is_ordered_and_complete_at_the_second_look() -> None:
    intake = stepping(key="")
    assert settled(intake), "more will be known soon"
    assert intake.ordered == {A_STREAM: None}
    assert not settled(intake)
    ends = dict.fromkeys(A_BOTH, 10)
    assert intake.ordered == {A_STREAM: Closure(ends, ends)}


def test_a_second_look_in_a_round_finds_no_closure() -> None:
    intake = stepping(key="")
    intake.observe()
    for _ in range(2):
        intake.settle()
        assert intake.ordered == {A_STREAM: None}, "the watermarks are older than the ends"


def test_a_stream_with_a_key_that_orders_its_rows_is_not_ordered() -> None:
    intake = stepping()
    assert not settled(intake)
    assert intake.ordered == {}


def test_a_stream_of_one_partition_need_not_be_ordered() -> None:
    intake = stepping(key="", count=1)
    assert not settled(intake)
    assert intake.ordered == {}


def test_no_stream_is_ordered_where_the_target_cannot_apply_it_so() -> None:
    intake = stepping(key="", orders_partitions=False)
    assert not settled(intake)
    assert intake.ordered == {}


def test_a_stream_whose_unique_values_moved_is_brought_ordered_once() -> None:
    intake = stepping()
    settled(intake)
    assert intake.order_partitions(A_STREAM)
    assert settled(intake)
    assert intake.ordered == {A_STREAM: None}
    assert not intake.order_partitions(A_STREAM)
    settled(intake)
    assert intake.ordered[A_STREAM] is not None


def test_only_several_partitions_are_brought_ordered_and_only_where_that_can_be() -> None:
    for intake in (stepping(count=1), stepping(orders_partitions=False)):
        settled(intake)
        assert not intake.order_partitions(A_STREAM)
        settled(intake)
        assert intake.ordered == {}


def test_a_stream_that_needs_it_anyway_is_not_brought_ordered() -> None:
    intake = stepping(key="")
    settled(intake)
    assert not intake.order_partitions(A_STREAM)


def scan(table: str, status: str = "SUCCEEDED", kind: str = "TABLE_SCAN_COMPLETED") -> bytes:
    facts = {"connector_name": "s1", "status": status, "scanned_collection": table}
    value = {"id": "", "type": kind, "aggregate_type": "Incremental Snapshot"}
    return json.dumps(value | {"additional_data": facts}).encode()


class Tail:
    """Gives what is put into it, once."""

    def __init__(self) -> None:
        self.records: list[TailRecord] = []

    def read(self, timeout_s: float) -> list[TailRecord]:
        records, self.records = self.records, []
        return records


def test_a_table_counts_as_read_again_for_watermarks_that_are_read_after_the_notice() -> None:
    tail = Tail()
    intake = Intake(PIPELINE, cast(Any, Offsets()), cast(Any, tail))
    assert "p.notifications" in tailed_topics(PIPELINE)
    for place, value in enumerate([b"?", scan("app.a"), scan("app.b", kind="STARTED"),
                                   scan("app.a", "SQL_EXCEPTION"), scan("app.a")]):  # fmt: skip
        tail.records = [TailRecord("p.notifications", place, value)]
        intake.read(0)
        intake.observe()
    assert intake.scans == {("s1", "app.a"): [2, 5]}


def test_a_notice_stays_while_the_registry_is_away() -> None:
    tail = Tail()
    intake = Intake(PIPELINE, cast(Any, Offsets()), cast(Any, tail))
    away = True

    def to_json(value: bytes | None) -> bytes | None:
        if away:
            raise RegistryUnreachable("away")
        return value

    intake._scans = ScanNotices(to_json)
    tail.records = [TailRecord("p.notifications", 0, scan("app.a"))]
    intake.read(0)
    assert intake.scans == {}
    away = False
    intake.read(0)
    assert intake.scans == {("s1", "app.a"): [1]}
