"""Which row topics are read, and what of a source that the pipeline file has no more."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from shardmerge.connectors.formats.avro_wire import RegistryUnreachable
from shardmerge.schemas.model.errors import ContractError, StackError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Source, Target
from shardmerge.schemas.records.decisions import Decision
from shardmerge.spark_sink.barrier.partitions import Partition, Stream
from shardmerge.spark_sink.kafka.intake import Intake, tailed_topics
from shardmerge.spark_sink.kafka.row_topics import RowTopic
from shardmerge.spark_sink.kafka.topic_tail import ScanNotices, TailRecord
from shardmerge.spark_sink.kafka.windows.window import Kept
from shardmerge.spark_sink.planning.ordered_partitions import Closure
from tests.unit.spark_sink.decided import A, B, decision

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
        self.high = self.stable = 10
        self.ends: dict[str, int] = {}
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
        ends = {"p.ddl": self.decided, "s1": 10, "s2": 10, **self.ends}
        return {p: ends.get(p.topic, self.high) for p in partitions}

    def stable_ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return {p: self.ends.get(p.topic, self.stable) for p in partitions}

    def both_ends(
        self, partitions: Iterable[Partition], readable: Iterable[Partition]
    ) -> tuple[dict[Partition, int], dict[Partition, int]]:
        return self.high_watermarks(partitions), self.stable_ends(readable)

    def high_watermarks_and_topics(
        self, partitions: Iterable[Partition], topics: Collection[str]
    ) -> tuple[dict[Partition, int], dict[str, RowTopic]]:
        return self.high_watermarks(partitions), self.described(topics)


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


class Counting(Offsets):
    """Takes half a second to answer about ends, and remembers the question."""

    def __init__(self, now: list[float]) -> None:
        super().__init__()
        self.now = now
        self.questions: list[set[Partition]] = []

    def high_watermarks(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        asked = set(partitions)
        self.questions.append(asked)
        self.now[0] += 0.5
        return super().high_watermarks(asked)


class Asleep:
    is_asleep = True

    def places(self) -> dict[str, int]:
        return {}

    def wake(self) -> None:
        pass

    def read(self, _: float) -> list[TailRecord]:
        return []


class Followed:
    """Arrivals that see every partition, and ``found`` in some."""

    def __init__(self) -> None:
        self.found: set[Partition] = set()
        self.followed: dict[Partition, int] = {}
        self.rows_of: dict[Partition, int] = {}
        self.seen: dict[Partition, Kept] = {}
        self.waited: Callable[[float], None] = lambda _: None
        self.closed = 0

    def follow(self, rows: Mapping[Partition, int], own: Mapping[Partition, int]) -> bool:
        return True

    def wait(self, timeout_s: float, *, rows: bool) -> bool:
        if not self.rows_of:
            self.waited(timeout_s)
        return False

    def close(self) -> None:
        self.closed += 1

    def take_found(self, known: Mapping[Partition, object]) -> set[Partition]:
        return self.found

    def follow_also(self, ends: Mapping[Partition, int]) -> None:
        self.followed.update(ends)


def test_a_calm_sink_of_many_shards_does_not_ask_for_all_ends_in_every_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr("shardmerge.spark_sink.kafka.intake.time.monotonic", lambda: now[0])
    monkeypatch.setattr("shardmerge.spark_sink.planning.partial_looks.FEW", 1)
    offsets, told = Counting(now), Followed()
    intake = Intake(PIPELINE, cast(Any, offsets), cast(Any, Asleep()), arrivals=cast(Any, told))
    third = ShardId("s1", "app", "c")
    for record in (
        decision(1, A, 10, offset=0),
        decision(2, B, 20, offset=1),
        decision(3, third, 20, offset=2),
    ):
        intake.decisions.add(record)
        intake.barriers.tails["s1"].record(record.version - 1)
    intake.barriers.tails["s1"].reached(10)

    def ask(*, is_calm: bool = True) -> int:
        """How many ends of row topics are asked for."""
        offsets.questions.clear()
        intake.observe(is_calm=is_calm)
        return len(offsets.questions[0] - {Partition("p.ddl", 0), Partition("s1", 0)})

    assert ask() == 3, "the first time"
    intake.settle()
    now[0], before = 30.0, intake.watermarks
    assert ask() == 3, "long ago"
    assert intake.watermarks is before and intake.is_still, "it tells nothing new"
    assert (ask(), intake.is_still) == (0, True)
    told.found = {Partition("s1.app.a", 0)}
    assert (ask(), intake.is_still) == (1, False)
    told.found = set()
    intake.settle()
    now[0], before = 40.0, intake.watermarks
    assert ask(is_calm=False) == 3, "something waits for it"
    assert intake.watermarks is not before
    assert ask() == 0


def many(monkeypatch: pytest.MonkeyPatch, now: list[float]) -> tuple[Intake, Counting, Followed]:
    """An intake with two shards that has looked at all ends, and counts as one with many."""
    monkeypatch.setattr("shardmerge.spark_sink.kafka.intake.time.monotonic", lambda: now[0])
    monkeypatch.setattr("shardmerge.spark_sink.planning.partial_looks.FEW", 2)
    monkeypatch.setattr("shardmerge.spark_sink.kafka.listing._RELIST_S", 10.0)
    offsets, told = Counting(now), Followed()
    intake = Intake(PIPELINE, cast(Any, offsets), cast(Any, Asleep()), arrivals=cast(Any, told))
    for number, shard in enumerate((A, B)):
        intake.decisions.add(decision(number + 1, shard, 10, offset=number))
        intake.barriers.tails["s1"].record(number)
    intake.barriers.tails["s1"].reached(10)
    intake.observe(is_calm=True)
    intake.settle()
    offsets.questions.clear()
    now[0] = 8.0
    return intake, offsets, told


def test_of_rows_that_end_a_wait_no_end_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("shardmerge.spark_sink.planning.partial_looks._MARKER_S", 3.0)
    intake, offsets, told = many(monkeypatch, now)
    a, before = Partition("s1.app.a", 0), intake.watermarks
    told.found, told.rows_of = {a}, {a: 12}
    intake.read(1.0)
    intake.observe(is_calm=True)
    assert offsets.questions == [{Partition("p.ddl", 0), Partition("s1", 0)}], "the barrier"
    assert intake.looked_at == {a: "s1"}
    assert (intake.watermarks, intake.watermarks.ends[a]) == (before, 12), "it proves nothing new"
    intake.settle()
    assert intake.barriers.safe_ends[a] == 12
    offsets.questions.clear()
    offsets.high = offsets.stable = 13
    told.rows_of = {}
    intake.read(0)
    intake.observe(is_calm=True)
    intake.settle()
    assert a in offsets.questions[0], "in the next round"
    assert intake.barriers.safe_ends[a] == 12, "the commit marker waits"
    now[0] += 3.0
    intake.observe(is_calm=True)
    intake.settle()
    assert intake.barriers.safe_ends[a] == 13


def test_a_marker_that_is_found_later_is_no_row_that_was_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    intake, offsets, told = many(monkeypatch, now)
    a, seen = Partition("s1.app.a", 0), 10
    waits = intake._waits
    assert waits is not None
    monkeypatch.setattr(waits, "_clock", lambda: now[0])

    def pass_by(seconds: float) -> None:
        now[0] += seconds

    told.waited = pass_by

    def idle_round() -> None:
        intake.read(0.3, idle=True)
        intake.observe(is_calm=True)
        intake.settle()

    for _ in range(5):
        told.found, told.rows_of = {a}, {a: seen + 1}
        now[0] += 0.1
        idle_round()
        assert intake.barriers.safe_ends[a] == seen + 1
        seen += 2
        offsets.ends[a.topic] = seen
        told.found, told.rows_of = set(), {}
        offsets.questions.clear()
        idle_round()
        assert offsets.questions == [], "a row would have ended the wait"
        now[0] += 1.0
        idle_round()
        assert intake.barriers.safe_ends[a] == seen
    assert told.closed == 0


def test_a_row_that_arrives_just_behind_a_wait_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    intake, offsets, told = many(monkeypatch, now)
    intake.read(0.3, idle=True)
    intake.observe(is_calm=True)
    assert offsets.questions, "a second ago is long ago"
    begun = list[int]()
    monkeypatch.setattr(intake.described, "begin_round", lambda: begun.append(1))
    for found, asks in (set(), False), ({Partition("s1.app.a", 0)}, True), (set(), False):
        offsets.questions.clear()
        told.found = found
        intake.read(0.3, idle=True)
        intake.observe(is_calm=True)
        assert bool(offsets.questions) == asks
    assert len(begun) == 3, "what is planned now needs topics that are described from now on"


def test_rows_seen_while_a_statement_waits_for_ends_do_not_tell_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    intake, offsets, told = many(monkeypatch, now)
    a = Partition("s1.app.a", 0)
    told.found, told.rows_of = {a}, {a: 12}
    intake.read(1.0)
    intake.observe(is_calm=False)
    assert a in offsets.questions[0]


C_SHARD, C_ROWS = ShardId("s1", "app", "c"), Partition("s1.app.c", 0)


def test_of_a_new_shard_only_its_own_topic_and_end_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    intake, offsets, told = many(monkeypatch, now)
    lists, before = offsets.lists, intake.watermarks
    intake.decisions.add(decision(3, C_SHARD, 20, offset=2))
    intake.observe(is_calm=True)
    assert offsets.lists == lists
    assert offsets.questions[0] == {C_ROWS}
    assert intake.looked_at == {C_ROWS: "s1"}
    assert told.followed[C_ROWS] == 10
    after = intake.watermarks
    assert (after.seen, after.number) == (before.seen, before.number), "it proves nothing new"
    assert after.partitions == {"s1.app.a": 1, "s1.app.b": 1, "s1.app.c": 1}
    assert after.ends.keys() == {Partition(name, 0) for name in after.partitions}
    assert "s1.app.c" in intake.described.take_news()
    intake.settle()
    assert C_ROWS in intake.newly_safe


def test_a_proof_about_a_decision_needs_a_list_and_all_ends_that_are_read_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    intake, offsets, _ = many(monkeypatch, now)
    intake.decisions.add(decision(3, A, 20, offset=2))
    intake.observe(is_calm=True)
    assert intake.watermarks.seen == 2, "nothing waits for it"
    lists = offsets.lists
    intake.observe(is_calm=False)
    assert (offsets.lists, intake.watermarks.seen) == (lists + 1, 3)


def test_a_new_shard_whose_topic_does_not_exist_yet_is_found_by_a_later_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    intake, offsets, _ = many(monkeypatch, now)
    offsets.missing = ("s1.app.c",)
    intake.decisions.add(decision(3, C_SHARD, 20, offset=2))
    intake.observe(is_calm=True)
    assert intake.watermarks.partitions["s1.app.c"] == 0
    offsets.missing = ()
    number = intake.watermarks.number
    now[0] += 5.0
    intake.observe(is_calm=True)
    assert intake.looked_at == {C_ROWS: "s1"}
    assert (intake.watermarks.ends[C_ROWS], intake.watermarks.number) == (10, number)


def test_all_ends_are_asked_for_again_until_it_succeeds_when_a_topic_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    intake, offsets, _ = many(monkeypatch, now)
    offsets.missing, number = ("s1.app.b",), intake.watermarks.number
    now[0] += 5.0

    def silent(*asked: object) -> None:
        raise StackError("away")

    with monkeypatch.context() as patched:
        patched.setattr(offsets, "both_ends", silent)
        with pytest.raises(StackError):
            intake.observe(is_calm=True)
    intake.observe(is_calm=True)
    assert intake.watermarks.number == number + 1
    assert intake.watermarks.ends.keys() == {Partition("s1.app.a", 0)}


def test_a_decision_about_a_known_shard_can_be_planned_before_ends_are_read_again() -> None:
    intake = Intake(PIPELINE, cast(Any, Offsets()), cast(Any, None))
    found = [intake.knows_all]
    for record in (decision(1, A, 10), decision(2, A, 20), decision(3, B, 10)):
        intake.decisions.add(record)
        found.append(intake.knows_all)
        intake.observe()
    # Nothing was listed; the shard was not listed; it was; another shard was not.
    assert found == [False, False, True, False]


def test_rows_that_ended_the_wait_are_looked_for_before_a_decision_is_planned() -> None:
    intake, _ = observed(decision(1, A, 10))
    intake.arrived = {Partition("s1.app.a", 0): 7}
    assert not intake.knows_all
