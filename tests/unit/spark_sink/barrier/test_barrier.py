from __future__ import annotations

import pytest

from shardmerge.schemas.model.errors import BarrierRegressed, ContractError
from shardmerge.spark_sink.barrier.barrier import Barrier, Barriers
from shardmerge.spark_sink.barrier.decisions import Decisions
from shardmerge.spark_sink.barrier.partitions import Partition
from tests.unit.spark_sink.decided import A_ROWS, A, decision, folded, ignored

S1 = Partition("s1", 0)


def _barriers(watermark: int, end: int = 10) -> Barriers:
    barriers = Barriers(["s1", "s2"])
    barriers.check({A_ROWS: end})
    barriers.take(Barrier("s1", watermark, {A_ROWS: end}))
    return barriers


def test_ends_are_safe_when_nothing_was_changed():
    barriers = _barriers(watermark=0)
    barriers.settle(Decisions(), 0)
    assert barriers.safe_ends == {A_ROWS: 10}


def test_ends_wait_until_the_schema_changes_are_read():
    barriers = _barriers(watermark=3)
    barriers.settle(Decisions(), 0)
    assert barriers.safe_ends == {}
    assert str(barriers.missing["s1"]).startswith("s1 to be readable from 0 to 3 (")
    barriers.tails["s1"].reached(3)
    barriers.settle(Decisions(), 0)
    assert barriers.safe_ends == {A_ROWS: 10}
    assert barriers.missing == {}


def test_ends_wait_until_every_change_below_the_barrier_is_decided():
    barriers = _barriers(watermark=4)
    tail = barriers.tails["s1"]
    for offset in (0, 2, 5):
        tail.record(offset)
    barriers.settle(folded(ignored("s1", 0)), 0)
    assert str(barriers.missing["s1"]) == "the decisions of schema change s1@2"
    barriers.settle(folded(ignored("s1", 0), decision(1, A, 10, offset=2)), 0)
    assert barriers.safe_ends == {A_ROWS: 10}


def test_ends_wait_for_what_was_decided_about_other_sources_before_them():
    """Rows that a decision has asked for, because another shard changed, come after it."""
    barriers = Barriers(["s1"])
    barriers.take(Barrier("s1", 0, {A_ROWS: 10}, ddl_watermark=3))
    barriers.settle(Decisions(), 2)
    assert barriers.safe_ends == {}
    assert str(barriers.missing["s1"]).startswith("the ddl topic to be readable from 2 to 3 (")
    barriers.settle(Decisions(), 3)
    assert (barriers.safe_ends, barriers.missing) == ({A_ROWS: 10}, {})


def test_several_missing_decisions_are_counted():
    barriers = _barriers(watermark=9)
    for offset in (1, 3):
        barriers.tails["s1"].record(offset)
    barriers.tails["s1"].reached(9)
    barriers.settle(Decisions(), 0)
    assert str(barriers.missing["s1"]).endswith("s1@1 and 1 more")


def test_a_gap_of_commit_markers_holds_no_record():
    barriers = _barriers(watermark=5)
    barriers.tails["s1"].record(1)
    barriers.tails["s1"].reached(5)
    barriers.settle(folded(ignored("s1", 1)), 0)
    assert barriers.safe_ends == {A_ROWS: 10}


def test_changes_beyond_the_barrier_are_not_waited_for():
    barriers = _barriers(watermark=2)
    for offset in (0, 7):
        barriers.tails["s1"].record(offset)
    barriers.settle(folded(ignored("s1", 0)), 0)
    assert barriers.safe_ends == {A_ROWS: 10}


def test_a_source_with_a_barrier_to_settle_wants_no_other():
    barriers = _barriers(watermark=3)
    other = Partition("s2.app.a", 0)
    barriers.check({other: 4})
    assert barriers.partitions_to_read({A_ROWS: "s1", other: "s2"}) == (other,)


def test_a_partition_that_has_not_grown_wants_no_barrier():
    barriers = _barriers(watermark=0)
    barriers.settle(Decisions(), 0)
    assert barriers.partitions_to_read({A_ROWS: "s1"}) == ()
    barriers.check({A_ROWS: 12})
    assert barriers.partitions_to_read({A_ROWS: "s1"}) == (A_ROWS,)


def test_an_end_that_an_open_transaction_keeps_back_is_worth_no_barrier():
    barriers = _barriers(watermark=0)
    barriers.settle(Decisions(), 0)
    assert barriers.grown({A_ROWS: 10}) == ()
    assert barriers.grown({A_ROWS: 11}) == (A_ROWS,)


def test_safe_ends_stay_safe_while_a_later_barrier_waits():
    barriers = _barriers(watermark=0)
    barriers.settle(Decisions(), 0)
    barriers.take(Barrier("s1", 5, {A_ROWS: 20}))
    barriers.settle(Decisions(), 0)
    assert barriers.safe_ends == {A_ROWS: 10}


def test_a_watermark_that_goes_back_is_an_error():
    barriers = Barriers(["s1"])
    barriers.check({A_ROWS: 5})
    with pytest.raises(BarrierRegressed, match="from 5 to 4"):
        barriers.check({A_ROWS: 4})


def test_a_barrier_that_goes_back_is_an_error():
    barriers = _barriers(watermark=3)
    with pytest.raises(BarrierRegressed, match="s1/0 went back"):
        barriers.take(Barrier("s1", 2, {}))


def test_a_source_that_the_pipeline_lost_is_an_error():
    barriers = Barriers(["s2"])
    barriers.take(Barrier("s1", 0, {}))
    with pytest.raises(ContractError, match="'s1'"):
        barriers.settle(Decisions(), 0)
