"""The proofs that no row is left before a place, where more rows come all the time."""

from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.topics import RowTopics
from shardmerge.spark_sink.barrier.applied import (
    Applied,
    CatchUp,
    LoadPlace,
    RowProgress,
    Watermarks,
    moved_shard,
    rows_agree,
    unapplied_before,
)
from shardmerge.spark_sink.barrier.decisions import Decisions
from shardmerge.spark_sink.barrier.partitions import Partition, Stream
from shardmerge.spark_sink.barrier.truncations import Truncation
from tests.unit.spark_sink.decided import TARGET, A, B, at, decision

SHARED = RowTopics([RoutingRule(".*", "app", "[ab]", "merged", "t", row_topic="merged.t")])
WHOLE = Partition("merged.t", 0)
PARTS = {shard: Partition("merged.t", 0, shard) for shard in (A, B)}


def reading(seen: int, end: int, number: int = 0) -> Watermarks:
    return Watermarks(seen, {"merged.t": 1}, {WHOLE: end}, SHARED, number=number)


def test_a_high_watermark_that_was_reached_proves_although_there_is_always_a_later_one() -> None:
    catch_up = CatchUp()
    applied = {PARTS[A]: Applied(7), PARTS[B]: Applied(10)}
    catch_up.look(applied, reading(seen=3, end=10), RowProgress(applied).at)
    catch_up.look(applied, reading(seen=3, end=20), RowProgress(applied).at)
    rows = RowProgress(applied, reading(seen=3, end=20), catch_up.caught_up)
    assert "rows of s1/app.a before" in unapplied_before(A, at(50), 3, rows)
    assert unapplied_before(B, at(50), 3, rows) == ""

    applied[PARTS[A]] = Applied(12)
    catch_up.look(applied, reading(seen=4, end=30), RowProgress(applied).at)
    rows = RowProgress(applied, reading(seen=4, end=30), catch_up.caught_up)
    assert unapplied_before(A, at(50), 3, rows) == ""
    assert unapplied_before(A, at(50), 4, rows), "the reading was made before the decision was seen"


def test_of_a_place_that_no_decision_tells_only_readings_after_it_count() -> None:
    catch_up = CatchUp()
    applied = {PARTS[A]: Applied(10)}
    catch_up.look(applied, reading(seen=3, end=10, number=4), RowProgress(applied).at)
    rows = RowProgress(applied, reading(seen=3, end=20, number=5), catch_up.caught_up)
    assert unapplied_before(A, at(50), 3, rows, reading=4) == ""
    assert unapplied_before(A, at(50), 3, rows, reading=5)


def test_a_reading_from_before_a_place_was_seen_proves_nothing_about_it() -> None:
    """Rows of the place's partition can be read that came after the other partitions' ends."""
    truncation = Truncation(TARGET, A, PARTS[A], 10, at(50), seen=3, reading=5)
    other = Partition("merged.t", 1, A)
    applied = {PARTS[A]: Applied(10, at(50)), other: Applied(20)}
    ends = {WHOLE: 10, other.whole: 20}
    before = Watermarks(3, {"merged.t": 2}, ends, SHARED, number=4)
    waits = truncation.waits_for(RowProgress(applied, before))
    assert waits == "the high watermark of merged.t/1"
    later = replace(before, ends={WHOLE: 11, other.whole: 22}, number=5)
    assert truncation.waits_for(RowProgress(applied, later)).startswith("rows of s1/app.a before")
    applied[other] = Applied(22)
    assert truncation.waits_for(RowProgress(applied, later)) == ""


def test_rows_that_are_applied_once_more_are_not_proven() -> None:
    catch_up = CatchUp()
    applied = {PARTS[A]: Applied(10)}
    catch_up.look(applied, reading(seen=3, end=10), RowProgress(applied).at)
    catch_up.forget(PARTS[A])
    assert catch_up.caught_up == {}


def test_shards_of_one_topic_are_parked_each_from_its_own_offset() -> None:
    rows = RowProgress({PARTS[A]: Applied(4)}, reading(seen=1, end=10))
    assert (rows.parked(A), rows.parked(B)) == (6, 10)
    assert rows.partitions_of(A) == [PARTS[A]]
    gone = replace(rows.watermarks, unread={Stream("merged.t", B)})
    assert gone.partitions_of(B) == []
    assert unapplied_before(B, at(50), 1, RowProgress({}, gone)) == ""


def test_a_pipeline_that_runs_keeps_its_row_topics() -> None:
    own, shared = Decisions(), Decisions(SHARED)
    for decisions in (own, shared):
        decisions.add(decision(1, A, 10))
    assert moved_shard([Partition("s1.app.a", 0)], own) is None
    assert moved_shard([PARTS[A]], shared) is None
    assert moved_shard([PARTS[A]], own) == (A, "merged.t", "s1.app.a")
    assert moved_shard([Partition("s1.app.a", 0)], shared) == (A, "s1.app.a", "merged.t")


def test_the_shards_of_a_shared_topic_have_streams_of_their_own() -> None:
    decisions = Decisions(SHARED)
    other = ShardId("s2", "app", "a")
    for number, shard in enumerate((A, other, ShardId("s1", "app", "z")), 1):
        decisions.add(decision(number, shard, 10))
    assert list(decisions.streams) == [
        Stream("merged.t", A), Stream("merged.t", other), Stream("s1.app.z"),
    ]  # fmt: skip
    decisions.add(replace(decision(1, A, 10, offset=9), target=TargetTable("m", "u")))
    assert decisions.streams[Stream("merged.t", A)] == [(TARGET, A), (TargetTable("m", "u"), A)]


def loading(place: LoadPlace, applied: int = 10, number: int = 4) -> RowProgress:
    ends = {PARTS[A]: Applied(applied)}
    return RowProgress(ends, reading(seen=3, end=10, number=number), loads={A: place})


def test_a_load_that_stands_before_a_gate_can_bring_rows_from_before_it() -> None:
    rows = loading(LoadPlace(1, at(20)))
    assert unapplied_before(A, at(50), 3, rows) == (
        f"the first load of {A}, which stands before {at(50)}"
    )
    assert unapplied_before(A, at(20), 3, rows) == ""
    assert unapplied_before(A, at(50), 3, loading(LoadPlace(1, None))) == ""


def test_rows_of_a_load_agree_when_its_changes_have_followed() -> None:
    assert rows_agree(B, loading(LoadPlace(1, at(20))))
    assert not rows_agree(A, loading(LoadPlace(1, at(20))))
    assert not rows_agree(A, loading(LoadPlace(1, None, reading=5)))
    assert rows_agree(A, loading(LoadPlace(1, None, reading=5), number=5))
    assert not rows_agree(A, loading(LoadPlace(1, None, reading=5), applied=9, number=5))
    assert rows_agree(A, loading(LoadPlace(1, None, reading=0), applied=9))
