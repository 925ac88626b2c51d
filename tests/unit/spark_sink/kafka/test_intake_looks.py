"""Which ends an intake asks for, and when; Kafka is played."""

from __future__ import annotations

from typing import Any, cast

import pytest

from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.intake import Intake
from tests.unit.spark_sink.decided import A, B, decision
from tests.unit.spark_sink.kafka.played_topics import (
    PIPELINE,
    Asleep,
    Counting,
    Followed,
    Offsets,
    observed,
)


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
        intake.settle()
        return len(offsets.questions[0] - {Partition("p.ddl", 0), Partition("s1", 0)})

    assert ask() == 3, "the first time"
    now[0], before = 30.0, intake.watermarks
    assert ask() == 3, "long ago"
    assert intake.watermarks is before and intake.is_still, "it tells nothing new"
    assert (ask(), intake.is_still) == (0, True)
    told.found = {Partition("s1.app.a", 0)}
    assert (ask(), intake.is_still) == (1, False)
    told.found = set()
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


def test_rows_whose_barrier_is_settled_while_ends_stay_the_same_are_news(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    intake, offsets, told = many(monkeypatch, now := [0.0])
    rows = Partition("s1.app.a", 0)
    offsets.ends["s1"] = 11  # a schema change that is not read yet
    offsets.ends["s1.app.a"], told.found = 12, {rows}
    intake.observe(is_calm=True)
    intake.settle()
    assert (intake.barriers.safe_ends[rows], intake.is_still) == (10, False)
    told.found, now[0] = set(), 60.0
    intake.observe(is_calm=True)
    intake.settle()
    intake.barriers.tails["s1"].reached(11)
    now[0] = 120.0
    intake.observe(is_calm=True)
    assert not intake.looked_at, "the ends are the same"
    intake.settle()
    assert (intake.barriers.safe_ends[rows], intake.is_still) == (12, False)
    intake.observe(is_calm=True)
    intake.settle()
    assert intake.is_still
