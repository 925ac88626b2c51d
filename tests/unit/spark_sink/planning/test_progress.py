from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.topics import RowTopics
from shardmerge.schemas.records.progress import FailureProgress, SinkProgress
from shardmerge.spark_sink.barrier.applied import Applied, RowProgress, Watermarks
from shardmerge.spark_sink.barrier.closing import Closing
from shardmerge.spark_sink.barrier.decisions import Decisions
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.barrier.statements import Refused
from shardmerge.spark_sink.barrier.truncations import Truncation
from shardmerge.spark_sink.planning.plan import plan
from shardmerge.spark_sink.planning.progress import Standing, progress_of, with_times
from shardmerge.spark_sink.planning.ranges import RowHold
from shardmerge.spark_sink.planning.sink_state import SinkState
from tests.unit.spark_sink.decided import (
    A_ROWS,
    B_ROWS,
    CONTRACTING,
    EXPANDING,
    TARGET,
    A,
    B,
    C,
    at,
    decision,
    folded,
    key,
    rows,
    statement,
)

ADD, DROP = statement(EXPANDING, "column:c"), statement(CONTRACTING, "column:d")
BEHIND = rows({A_ROWS: Applied(4)})


def _progress(known, executed=(), refused=None, progress=None, standing=None):
    state = SinkState({TARGET: set(executed)}, {TARGET: refused or {}}, progress or rows())
    target = next(t for t in plan(known, state, 100).targets if t.target == TARGET)
    return progress_of(known, target, state.rows, standing or Standing(), 42)


def test_a_shard_that_flows_tells_its_offset_and_nothing_else():
    record = _progress(folded(decision(1, A, 10)))
    assert (record.executed_version, record.rows, record.open) == (1, 42, ())
    [shard] = record.shards
    assert (shard.offset, shard.waiting, shard.position) == (10, "", None)


def test_shards_come_sorted():
    record = _progress(folded(decision(1, B, 10), decision(2, A, 10)))
    assert [shard.shard for shard in record.shards] == [A, B]


def test_a_held_shard_tells_why_even_without_rows():
    [shard] = _progress(folded(decision(1, A, 10, hold=True))).shards
    assert (shard.waiting, shard.hint, shard.position) == ("it conflicts", "undo it", at(10))


def test_a_shard_whose_version_is_not_reached_tells_it_when_rows_are_parked():
    known = folded(decision(1, A, 10, ADD))
    [parked] = _progress(known, progress=BEHIND).shards
    assert parked.waiting == "waits for the target to reach version 1"
    [idle] = _progress(known).shards
    assert idle.waiting == ""


@pytest.mark.parametrize("resting", [True, False])
def test_a_refused_statement_is_shown_with_those_who_need_it(resting):
    known = folded(decision(1, A, 10, ADD))
    refused = {key(1): Refused("no such type", resting)}
    record = _progress(known, refused=refused, progress=BEHIND)
    assert [(s.state, s.detail) for s in record.open] == [("refused", "no such type")]
    assert "no such type" in record.shards[0].waiting
    assert record.shards[0].hint


def test_open_statements_are_shown_with_what_they_wait_for():
    record = _progress(folded(decision(1, A, 10, DROP), decision(2, A, 20, ADD)), progress=BEHIND)
    assert [(s.version, s.state) for s in record.open] == [(1, "debt"), (2, "executing")]
    assert record.open[0].detail.startswith("waits for rows of")


def test_a_row_that_cannot_be_applied_is_shown():
    hold = RowHold(A, at(15), 4, "column c is unknown", "take a snapshot")
    known = folded(decision(1, A, 10))
    [shard] = _progress(known, progress=BEHIND, standing=Standing(holds={A: hold})).shards
    assert (shard.waiting, shard.hint, shard.position) == (hold.reason, hold.hint, at(15))


def test_a_missing_decision_is_shown_with_the_rows_that_wait_for_it():
    known, standing = folded(decision(1, A, 10)), Standing(missing={"s1": "s1@4"})
    [shard] = _progress(known, progress=BEHIND, standing=standing).shards
    assert shard.waiting == "waits for s1@4"
    [idle] = _progress(known, standing=standing).shards
    assert idle.waiting == ""


def test_a_transaction_that_stays_open_is_shown_with_the_rows_behind_it():
    known, standing = folded(decision(1, A, 10)), Standing(unreadable={Partition("s1.app.a", 0): 4})
    [shard] = _progress(known, progress=BEHIND, standing=standing).shards
    assert shard.waiting == "waits for the end of the transaction that is open at s1.app.a/0@4"
    assert "kafka-transactions.sh" in shard.hint
    [idle] = _progress(known, standing=standing).shards
    assert idle.waiting == ""


def test_rows_that_wait_while_a_debt_executes_tell_which_statement():
    known = folded(decision(1, A, 10, DROP), decision(2, B, 10))
    running = rows({A_ROWS: Applied(4, at(10)), B_ROWS: Applied(4, at(20))})
    record = _progress(known, progress=running, standing=Standing(is_busy=True))
    assert [(s.version, s.state) for s in record.open] == [(1, "executing")]
    assert [s.waiting for s in record.shards] == [
        "waits for the end of statement 1.0, which executes on the target"
    ] * 2
    assert [s.since_ms for s in with_times(record, None, 7).shards] == [7, 7]
    idle = _progress(known, standing=Standing(is_busy=True))
    assert [s.waiting for s in idle.shards] == ["", ""]


def test_rows_that_wait_behind_a_debt_that_waits_itself_flow():
    known = folded(decision(1, A, 10, DROP))
    record = _progress(known, progress=BEHIND)
    assert [s.state for s in record.open] == ["debt"]
    assert [s.waiting for s in record.shards] == [""]


EMPTIED = Truncation(TARGET, A, A_ROWS, 4, at(70), seen=2)
OTHER = Partition("s1.app.a", 1)


def _truncated(*records, busy=False, other=10, **more):
    known = folded(decision(1, A, 10), decision(2, B, 10), *records)
    ends = {A_ROWS: 10, OTHER: 10, B_ROWS: 10}
    stands = {A_ROWS: Applied(4, at(70)), OTHER: Applied(other), B_ROWS: Applied(6)}
    read = Watermarks(100, {"s1.app.a": 2, "s1.app.b": 1}, ends)
    standing = Standing(is_busy=busy, truncations={A: EMPTIED}, **more)
    return _progress(known, progress=RowProgress(stands, read), standing=standing).shards


def test_a_shard_whose_rows_are_being_deleted_tells_it_and_so_do_those_that_wait_for_it():
    a, b = _truncated(busy=True)
    assert a.waiting == "it was truncated: its rows in the target are being deleted"
    assert a.position == at(70)
    assert b.waiting == "waits while the rows of the truncated shard s1/app.a are being deleted"


def test_a_shard_that_stands_at_its_truncate_tells_what_it_waits_for():
    a, b = _truncated(other=3)
    assert (a.position, b.waiting) == (at(70), "")
    assert a.waiting == (
        "it was truncated: its rows are deleted when the rows from before the TRUNCATE are "
        f"applied, waits for rows of s1/app.a before {at(70)} (s1.app.a/1@3)"
    )


def test_a_truncated_shard_waits_for_the_statement_that_executes_first():
    a, b, _ = _truncated(decision(3, C, 10, ADD), busy=True)
    assert a.waiting == b.waiting
    assert a.waiting == "waits for the end of statement 3.0, which executes on the target"


def test_a_truncate_comes_before_the_gate_behind_it_and_after_what_stops_the_shard_before():
    (before, *_) = _truncated(decision(3, A, 50, ADD), other=3)
    assert before.waiting == "waits for the target to reach version 3"
    (behind, *_) = _truncated(decision(3, A, 90, ADD), other=3)
    assert behind.waiting.startswith("it was truncated")
    (held, *_) = _truncated(decision(3, A, 90, hold=True), busy=True)
    assert held.waiting == "it conflicts"


def test_only_one_shard_of_a_target_is_emptied_at_a_time():
    known = folded(decision(1, A, 10), decision(2, B, 10))
    met = {B: Truncation(TARGET, B, B_ROWS, 4, at(50), seen=2), A: EMPTIED}
    stands = rows({A_ROWS: Applied(4, at(70)), B_ROWS: Applied(4, at(50))})
    standing = Standing(is_busy=True, truncations=met)
    a, b = _progress(known, progress=stands, standing=standing).shards
    assert b.waiting == "it was truncated: its rows in the target are being deleted"
    assert a.waiting == "waits while the rows of the truncated shard s1/app.b are being deleted"


def test_two_shards_of_one_topic_tell_each_other():
    one, two = ShardId("s1", "app", "a b"), ShardId("s1", "app", "a_b")
    record = _progress(folded(decision(1, one, 1), decision(2, two, 2)))
    assert str(two) in record.shards[0].waiting
    assert str(one) in record.shards[1].waiting


def test_a_shard_of_two_targets_tells_both():
    other = replace(decision(1, A, 1), target=TargetTable("merged", "u"))
    [shard] = _progress(folded(decision(1, A, 10), other)).shards
    assert shard.waiting == "it is routed to merged.t and to merged.u"


def test_equal_input_gives_equal_records():
    known = folded(decision(1, A, 10, ADD))
    assert _progress(known) == _progress(known)


def test_a_wait_tells_how_many_rows_and_since_when():
    known = folded(decision(1, A, 10, ADD))
    first = with_times(_progress(known, progress=BEHIND), None, 1_000)
    assert [(s.parked, s.since_ms) for s in first.shards] == [(6, 1_000)]
    assert [s.since_ms for s in first.open] == [1_000]

    later = with_times(_progress(known, progress=rows({A_ROWS: Applied(7)})), first, 2_000)
    assert [(s.parked, s.since_ms) for s in later.shards] == [(3, 1_000)]
    assert [s.since_ms for s in later.open] == [1_000]

    flows = with_times(_progress(known), later, 3_000)
    assert [(s.waiting, s.since_ms) for s in flows.shards] == [("", 0)]
    again = with_times(_progress(known, progress=BEHIND), flows, 4_000)
    assert [s.since_ms for s in again.shards] == [4_000]


def test_a_failure_tells_since_when_it_goes_on() -> None:
    def after(times: int) -> SinkProgress:
        failure = FailureProgress("away", "start it", "s1.app.a/0", times)
        record = _progress(folded(decision(1, A, 10)), standing=Standing(failure=failure))
        assert isinstance(record, SinkProgress)
        return record

    def told(record: SinkProgress) -> tuple[int, int]:
        assert record.failure is not None
        return record.failure.times, record.failure.since_ms

    first = with_times(after(1), None, 1_000)
    later = with_times(after(2), first, 2_000)
    assert (told(first), told(later)) == ((1, 1_000), (2, 1_000))
    assert told(with_times(after(1), later, 3_000)) == (1, 3_000), "it had ended in between"
    assert with_times(_progress(folded(decision(1, A, 10))), later, 4_000).failure is None


def test_a_running_statement_tells_what_the_target_says_of_it():
    known = folded(decision(1, A, 10, ADD))
    [running] = _progress(known, standing=Standing(stage="altering table, for 9 s")).open
    assert (running.state, running.detail) == ("executing", "altering table, for 9 s")


SHARED = RowTopics([RoutingRule(".*", "app", "[ab]", "merged", "t", row_topic="merged.t")])
WHOLE = Partition("merged.t", 0)


def _shared(known, applied, **watermarks):
    read = Watermarks(100, {"merged.t": 1}, {WHOLE: 10}, SHARED, **watermarks)
    return _progress(known, executed=(), progress=RowProgress(applied, read))


def test_shards_of_one_topic_tell_each_its_own_offset():
    known = Decisions(SHARED)
    known.add(decision(1, A, 10))
    known.add(decision(2, B, 10))
    one, two = (Partition("merged.t", 0, shard) for shard in (A, B))
    record = _shared(known, {one: Applied(10), two: Applied(4)})
    assert [(s.shard, s.offset, s.parked) for s in record.shards] == [(A, 10, 0), (B, 4, 6)]
    assert [s.waiting for s in record.shards] == ["", ""]


def test_a_shard_whose_rows_are_elsewhere_tells_where():
    known = Decisions(SHARED)
    known.add(decision(1, A, 10))
    [stray] = _shared(known, {}, strays={A}).shards
    assert "expects its rows in merged.t" in stray.waiting and "rows in s1.app.a" in stray.waiting
    assert "keeps the row_topic" in stray.hint

    odd = RowTopics([RoutingRule(".*", "app", "a é", "merged", "t", row_topic="merged.t")])
    known = Decisions(odd)
    shard = ShardId("s1", "app", "a é")
    known.add(decision(1, shard, 10))
    [missed] = _shared(known, {}, strays={shard}).shards
    assert "with the topic name s1.app.a__" in missed.waiting


def test_a_shard_tells_how_many_rows_it_has_overwritten_whether_it_flows_or_not():
    known = folded(decision(1, A, 10), decision(2, B, 10, hold=True), decision(3, C, 10))
    record = _progress(known, standing=Standing(key_collisions={A: 3, B: 4}))
    assert [shard.overwritten for shard in record.shards] == [3, 4, 0]


def test_every_shard_of_a_target_that_was_cut_over_tells_so():
    known = folded(decision(1, A, 10), decision(2, B, 10, hold=True))
    state = SinkState({TARGET: set()}, rows=rows(), closed={TARGET: Closing.CUT_OVER})
    [target] = plan(known, state, 100).targets
    record = progress_of(known, target, state.rows, Standing(), 42)
    assert {shard.code for shard in record.shards} == {"SM-1617"}
    assert all("cut over" in shard.waiting for shard in record.shards)
