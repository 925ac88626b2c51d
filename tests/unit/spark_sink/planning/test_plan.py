from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.policies import RowsPolicy
from shardmerge.schemas.model.position import BEGINNING
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column, Default, DefaultKind
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.topics import RowTopics
from shardmerge.schemas.records.decisions import Binding, Fixup, FixupKind
from shardmerge.spark_sink.barrier.applied import Applied, RowProgress, Watermarks
from shardmerge.spark_sink.barrier.closing import Closing
from shardmerge.spark_sink.barrier.decisions import Decisions
from shardmerge.spark_sink.barrier.partitions import Partition, Stream
from shardmerge.spark_sink.barrier.statements import Refused, StatementState
from shardmerge.spark_sink.barrier.truncations import Truncation
from shardmerge.spark_sink.planning.ordered_partitions import Closure, PartitionClosure
from shardmerge.spark_sink.planning.plan import plan
from shardmerge.spark_sink.planning.readings import NEAR, share_fairly
from shardmerge.spark_sink.planning.sink_state import SinkState
from tests.unit.spark_sink.decided import (
    A_ROWS,
    B_ROWS,
    EXPANDING,
    TARGET,
    A,
    B,
    at,
    column,
    decision,
    folded,
    key,
    rows_statement,
    statement,
)

CREATE = statement(EXPANDING, "table", binds=(Binding("id#1", "id"),))
ADD = statement(EXPANDING, "column:c", binds=(Binding("c#1", "c"),))
MADE = (key(1),)
INT, FIVE = ColumnType("int"), Default(DefaultKind.LITERAL, "5")
KNOWN = folded(decision(1, A, 10, CREATE, snapshot=True), decision(2, B, 10, snapshot=True))


def _state(applied=None, executed=MADE, ends=None, resting=(), **more):
    return SinkState(
        executed={TARGET: set(executed)},
        rows=RowProgress(applied or {}, more.pop("watermarks", Watermarks())),
        **more,
        safe_ends={A_ROWS: 10, B_ROWS: 10} if ends is None else ends,
        resting=dict.fromkeys(resting, at(0)),
        writer_epoch=5,
    )


def _ranges(batch):
    return {t.place: (t.start_offset, t.end_offset) for t in batch.tasks}


def test_every_partition_is_planned_to_its_safe_end():
    batch = plan(KNOWN, _state({A_ROWS: Applied(3)}), 100)
    assert _ranges(batch) == {A_ROWS: (3, 10), B_ROWS: (0, 10)}
    assert {task.writer_epoch for task in batch.tasks} == {5}
    assert batch.tasks[0].bindings == {"id#1": Binding("id#1", "id")}


def test_nothing_is_planned_where_nothing_is_new():
    batch = plan(KNOWN, _state({A_ROWS: Applied(10), B_ROWS: Applied(10)}), 100)
    assert batch.tasks == ()


def test_rows_wait_for_their_statements():
    batch = plan(KNOWN, _state(executed=()), 100)
    [target] = batch.targets
    assert [s.key for s in target.ready] == [key(1)]
    assert batch.tasks == ()


def test_a_target_on_which_statements_run_is_left_alone():
    batch = plan(KNOWN, replace(_state(executed=()), busy={TARGET}), 100)
    [target] = batch.targets
    assert (target.ready, batch.tasks) == ((), ())
    assert [s.state for s in target.open] == [StatementState.EXECUTING]
    over = plan(KNOWN, replace(_state(), busy={TARGET}), 100)
    assert over.tasks == ()


def test_a_held_shard_that_stands_at_its_gate_costs_nothing():
    known = folded(decision(1, A, 10, CREATE, snapshot=True), decision(2, A, 20, hold=True))
    ends = {A_ROWS: 90}
    [task] = plan(known, _state(ends=ends), 100).tasks
    assert task.stream.stop == at(20)
    assert [segment.start for segment in task.stream.segments] == [BEGINNING]
    standing = {A_ROWS: Applied(40, at(25))}
    assert plan(known, _state(standing, ends=ends), 100).tasks == ()


def test_a_shard_that_stood_at_its_gate_goes_on_when_it_opens():
    known = folded(decision(1, A, 10, CREATE, snapshot=True), decision(2, A, 20, ADD))
    standing, ends = {A_ROWS: Applied(4, at(25))}, {A_ROWS: 9}
    assert plan(known, _state(standing, ends=ends), 100).tasks == ()
    [task] = plan(known, _state(standing, (key(1), key(2)), ends), 100).tasks
    assert (task.start_offset, task.stream.stop) == (4, None)
    assert [segment.start for segment in task.stream.segments] == [BEGINNING, at(20)]
    assert set(task.bindings) == {"id#1", "c#1"}


def test_rows_of_a_shard_that_was_dropped_while_it_was_held_are_passed_over():
    known = folded(
        decision(1, A, 10, CREATE, snapshot=True),
        decision(2, A, 20, hold=True),
        decision(3, A, 30, live=False, releases=(A,), columns=()),
        decision(4, A, 40),
    )
    [task] = plan(known, _state({A_ROWS: Applied(4, at(25))}, ends={A_ROWS: 9}), 100).tasks
    found = [(s.start, s.live, s.passed_over) for s in task.stream.segments]
    assert found == [
        (BEGINNING, True, False),
        (at(20), True, True),
        (at(30), False, False),
        (at(40), True, False),
    ]


def test_a_closed_first_gate_gives_a_task_that_only_looks():
    known = folded(decision(1, A, 10, CREATE))
    refused = {TARGET: {key(1): Refused("no such type", resting=True)}}
    state = replace(_state(executed=(), ends={A_ROWS: 9}), refused=refused)
    [task] = plan(known, state, 100).tasks
    assert task.stream.stop == at(10)
    assert task.stream.segments[0].start == at(10)


def test_a_column_given_up_behind_a_hold_has_no_identity_any_more():
    known = folded(
        decision(1, A, 10, CREATE, snapshot=True),
        decision(2, A, 20, hold=True, columns=("id", "c")),
        decision(3, A, 30, releases=(A,)),
    )
    [task] = plan(known, _state(ends={A_ROWS: 9}), 100).tasks
    segment = task.stream.segments[1]
    assert [c.id for c in segment.columns] == ["id#1", ""]
    assert segment.added == ()


def test_a_column_that_went_and_came_back_behind_a_hold_does_not_bring_its_old_values():
    known = folded(
        decision(1, A, 10, CREATE, snapshot=True),
        decision(2, A, 20, hold=True, columns=("id", "c")),
        decision(3, A, 30, hold=True, columns=("id",)),
        decision(4, A, 40, releases=(A,), columns=("id", "c")),
    )
    [task] = plan(known, _state(ends={A_ROWS: 9}), 100).tasks
    segments = task.stream.segments
    assert [[c.id for c in s.columns] for s in segments[1:]] == [
        ["id#1", ""], ["id#1"], ["id#1", "c#1"],
    ]  # fmt: skip
    assert [[c.id for c in s.added] for s in segments[1:]] == [["c#1"], ["c#1"], []]


def test_a_column_that_was_made_anew_behind_a_hold_does_not_bring_its_old_values():
    both = ("id", "c")
    known = folded(
        decision(1, A, 10, CREATE, snapshot=True, columns=both),
        decision(2, A, 20, hold=True, columns=both),
        decision(3, A, 30, hold=True, columns=both, renewed=("c#1",)),
        decision(4, A, 40, releases=(A,), columns=both),
    )
    [task] = plan(known, _state(ends={A_ROWS: 9}), 100).tasks
    segments = task.stream.segments
    assert [[c.id for c in s.columns] for s in segments] == [
        ["id#1", "c#1"], ["id#1", ""], ["id#1", "c#1"], ["id#1", "c#1"],
    ]  # fmt: skip
    assert [[c.id for c in s.added] for s in segments] == [[], ["c#1"], [], []]


def test_a_column_added_behind_a_hold_is_told_to_the_rows_before_it():
    known = folded(
        decision(1, A, 10, CREATE, snapshot=True),
        decision(2, A, 20, hold=True, columns=("id", "c")),
        decision(3, A, 30, releases=(A,), columns=("id", "c", "d")),
        decision(4, A, 40, columns=("id", "c", "d", "e")),
    )
    [task] = plan(known, _state(ends={A_ROWS: 9}), 100).tasks
    assert [[c.id for c in s.added] for s in task.stream.segments] == [[], ["d#1"], [], []]


@pytest.mark.parametrize(
    ("added", "later", "counts"),
    [
        (Column("c", INT, False, FIVE), Column("c", INT, False), "added"),
        (Column("c", INT), Column("c", ColumnType("bigint"), True, FIVE), "added"),
        (Column("c", INT, True, FIVE), Column("c", ColumnType("date")), "later"),
        (Column("c", INT), Column("c", INT, False), "later"),
    ],
)
def test_rows_before_it_get_what_the_column_was_added_with_unless_it_was_converted(
    added, later, counts
):
    first, second = (ShardColumn("c#1", definition) for definition in (added, later))
    ids = column("id")
    known = folded(
        decision(1, A, 10, CREATE, snapshot=True),
        decision(2, A, 20, hold=True),
        replace(decision(3, A, 30, hold=True), columns=(ids, first)),
        replace(decision(4, A, 40, releases=(A,)), columns=(ids, second)),
    )
    [task] = plan(known, _state(ends={A_ROWS: 9}), 100).tasks
    assert task.stream.segments[1].added == (first if counts == "added" else second,)


def test_a_shard_with_a_fixup_waits_where_it_stands():
    again = Fixup(A, FixupKind.SNAPSHOT, ("c",), "")
    decisions = folded(
        decision(1, A, 10, CREATE, snapshot=True), decision(2, B, 10, snapshot=True),
        replace(decision(3, B, 20, ADD), fixups=(again,)),
    )  # fmt: skip
    refused = {TARGET: {key(3): Refused("no", resting=True)}}
    batch = plan(decisions, replace(_state(), refused=refused), 100)
    [target] = batch.targets
    assert target.stops[A].position == BEGINNING
    assert target.stops[A].reason == "waits for statement 3.0, which makes its columns"
    done = plan(decisions, _state(executed=(key(1), key(3))), 100)
    assert done.targets[0].stops == {}


def test_a_resting_shard_is_left_alone():
    assert set(_ranges(plan(KNOWN, _state(resting={A}), 100))) == {B_ROWS}


def test_a_topic_without_a_known_shard_is_left_alone():
    assert plan(KNOWN, _state(ends={Partition("s1.app.z", 0): 5}), 100).tasks == ()


def test_a_topic_of_two_shards_is_left_alone():
    one, two = ShardId("s1", "app", "a b"), ShardId("s1", "app", "a_b")
    known = folded(decision(1, one, 1, CREATE), decision(2, two, 2))
    assert plan(known, _state(ends={Partition("s1.app.a_b", 0): 5}), 100).tasks == ()


def test_a_shard_of_two_targets_is_left_alone():
    other = replace(decision(1, A, 1), target=TargetTable("merged", "u"))
    known = folded(decision(1, A, 10, CREATE), other)
    assert plan(known, _state(ends={A_ROWS: 5}), 100).tasks == ()


def test_a_topic_made_anew_is_an_error():
    with pytest.raises(ContractError, match="ends at 10, but rows up to 11"):
        plan(KNOWN, _state({A_ROWS: Applied(11)}), 100)


def test_a_batch_is_bounded():
    batch = plan(KNOWN, _state(), 6)
    assert sorted(_ranges(batch).values()) == [(0, 3), (0, 3)]


def test_small_partitions_are_read_whole_and_large_ones_share_the_rest():
    available = {("a", 0): 2, ("b", 0): 100, ("c", 0): 100}
    assert share_fairly(available, 22) == {("a", 0): 2, ("b", 0): 10, ("c", 0): 10}


def test_a_bound_below_the_number_of_partitions_moves_each_of_them():
    available = {(name, 0): 5 for name in "abc"}
    assert share_fairly(available, 2) == dict.fromkeys(available, 1)


def test_no_partition_starves_while_rows_keep_coming_to_the_others():
    left = {(name, 0): 1 for name in "abcd"} | {("e", 0): 7}
    for _ in range(7):
        for place, share in share_fairly(left, 2).items():
            left[place] -= share
            if place[0] != "e":
                left[place] += 1
    assert left["e", 0] == 0


def test_nothing_to_share_gives_nothing():
    assert share_fairly({}, 10) == {}
    assert share_fairly({("a", 0): 3}, 0) == {}


def test_rows_of_a_shard_wait_at_the_gate_of_a_change_of_its_rows():
    decisions = folded(
        decision(1, A, 10, CREATE, snapshot=True), decision(2, B, 10, snapshot=True),
        decision(3, A, 20, rows_statement(A)), decision(4, B, 30),
    )  # fmt: skip
    batch = plan(decisions, _state({A_ROWS: Applied(3), B_ROWS: Applied(3)}), 100)
    stops = {task.topic: task.stream.stop for task in batch.tasks}
    assert stops == {A_ROWS[0]: at(20), B_ROWS[0]: None}
    [target] = batch.targets
    assert target.stops[A].reason == "waits for statement 3.0, which changes its rows"
    done = plan(decisions, _state({A_ROWS: Applied(3)}, executed=(key(1), key(3))), 100)
    assert {task.topic: task.stream.stop for task in done.tasks}[A_ROWS[0]] is None


OTHER = Partition("s1.app.a", 1)
EMPTIED = Truncation(TARGET, A, A_ROWS, 5, at(70), seen=2)


def _truncated(applied, **more):
    watermarks = Watermarks(2, {"s1.app.a": 2, "s1.app.b": 1}, {A_ROWS: 9, OTHER: 9, B_ROWS: 9})
    ends = {A_ROWS: 9, OTHER: 9, B_ROWS: 9}
    state = _state(applied, ends=ends, truncations={A: EMPTIED}, watermarks=watermarks, **more)
    return plan(KNOWN, state, 100)


def test_the_other_partitions_of_a_truncated_shard_go_on_up_to_the_place():
    batch = _truncated({A_ROWS: Applied(5, at(70)), OTHER: Applied(3)})
    assert batch.due_truncations == ()
    assert _ranges(batch) == {OTHER: (3, 9), B_ROWS: (0, 9)}
    stops = {task.topic: task.stream.stop for task in batch.tasks}
    assert stops == {"s1.app.a": at(70), "s1.app.b": None}


@pytest.mark.parametrize("there", [Applied(9), Applied(4, at(70)), Applied(4, at(90))])
def test_a_shard_is_emptied_when_all_rows_before_are_applied(there):
    batch = _truncated({A_ROWS: Applied(5, at(70)), OTHER: there})
    assert batch.due_truncations == (EMPTIED,)
    assert batch.tasks == ()
    busy = _truncated({A_ROWS: Applied(5, at(70)), OTHER: there}, busy={TARGET})
    assert busy.due_truncations == ()
    held = _truncated({A_ROWS: Applied(5, at(70)), OTHER: there}, resting={A})
    assert held.due_truncations == ()


@pytest.mark.parametrize("policy", RowsPolicy)
def test_the_route_says_whether_the_rows_of_a_truncated_shard_stay(policy):
    rules = (RoutingRule(".*", ".*", ".*", "merged", "t", on_truncate=policy),)
    tasks = plan(KNOWN, _state(routes=rules), 100).tasks
    assert {task.stream.keeps_truncated for task in tasks} == {policy is RowsPolicy.KEEP}


SHARED = RowTopics([RoutingRule(".*", "app", "[ab]", "merged", "t", row_topic="merged.t")])


def _shared(applied, ends, **more):
    known = Decisions(SHARED)
    known.add(decision(1, A, 10, CREATE, snapshot=True))
    known.add(decision(2, B, 10, snapshot=True))
    parts = [Partition("merged.t", 0, shard) for shard in (A, B)]
    watermarks = Watermarks(1, {"merged.t": 2}, {Partition("merged.t", 0): 99}, SHARED, **more)
    state = _state(
        {part: Applied(offset) for part, offset in zip(parts, applied, strict=True)},
        ends=dict(zip(parts, ends, strict=True)),
        watermarks=watermarks,
    )
    return plan(known, state, 50), *parts


def test_shards_of_one_topic_are_read_from_where_each_stands_and_counted_once():
    batch, a, b = _shared((3, 0), (60, 40))
    assert _ranges(batch) == {a: (3, 50), b: (0, 40)}
    assert {task.reading for task in batch.tasks} == {0}
    assert {task.part for task in batch.tasks} == {A, B}
    assert {task.stream.partitions for task in batch.tasks} == {2}


def test_a_shard_far_behind_is_read_beside_the_others():
    batch, a, b = _shared((2 * NEAR, 0), (2 * NEAR + 9, 2 * NEAR + 9))
    assert _ranges(batch) == {a: (2 * NEAR, 2 * NEAR + 9), b: (0, 41)}
    assert len({task.reading for task in batch.tasks}) == 2


def test_a_shard_whose_rows_are_elsewhere_too_is_not_read():
    batch, a, _ = _shared((0, 0), (9, 9), strays={B})
    assert _ranges(batch) == {a: (0, 9)}


A_STREAM = Stream("s1.app.a")
CLOSURE = Closure({A_ROWS: 6, OTHER: 7}, {A_ROWS: 8, OTHER: 9})


def _ordered(closure, applied=None, **more):
    watermarks = Watermarks(2, {"s1.app.a": 2, "s1.app.b": 1})
    ends = {A_ROWS: 9, OTHER: 9, B_ROWS: 9}
    state = _state(applied, ends=ends, watermarks=watermarks, ordered={A_STREAM: closure}, **more)
    return plan(KNOWN, state, 100)


def test_a_ordered_stream_waits_until_a_closure_is_known():
    batch = _ordered(None)
    assert _ranges(batch) == {B_ROWS: (0, 9)}


def test_ordered_partitions_are_one_reading_up_to_their_bounds():
    batch = _ordered(CLOSURE, {A_ROWS: Applied(2)})
    assert _ranges(batch) == {A_ROWS: (2, 8), OTHER: (0, 9), B_ROWS: (0, 9)}
    steps = {task.place: task.closure for task in batch.tasks}
    assert steps == {A_ROWS: PartitionClosure(6, 8), OTHER: PartitionClosure(7, 9), B_ROWS: None}
    assert {task.place: task.reading for task in batch.tasks} == {A_ROWS: -1, OTHER: -1, B_ROWS: 0}


def test_a_shard_s_stream_tells_whether_it_is_ordered():
    batch = _ordered(CLOSURE)
    assert {task.place: task.stream.ordered for task in batch.tasks} == {
        A_ROWS: True,
        OTHER: True,
        B_ROWS: False,
    }


def test_a_ordered_partition_that_stands_at_the_stop_is_left_out():
    known = folded(
        decision(1, A, 10, CREATE, snapshot=True),
        decision(2, A, 50, hold=True),
    )
    state = _state(
        {A_ROWS: Applied(3, at(50)), OTHER: Applied(4)},
        ends={A_ROWS: 9, OTHER: 9},
        ordered={A_STREAM: CLOSURE},
    )
    [task] = plan(known, state, 100).tasks
    assert (task.place, task.start_offset, task.end_offset) == (OTHER, 4, 9)
    assert (task.stream.stop, task.closure) == (at(50), PartitionClosure(7, 9))


def test_nothing_of_a_ordered_stream_is_planned_where_nothing_is_left_below_the_ends():
    batch = _ordered(CLOSURE, {A_ROWS: Applied(6), OTHER: Applied(7)})
    assert set(_ranges(batch)) == {B_ROWS}


def test_a_resting_ordered_shard_is_left_alone():
    assert set(_ranges(_ordered(CLOSURE, resting={A}))) == {B_ROWS}


def test_no_ordered_partition_is_left_out_of_a_small_batch():
    far = Closure({A_ROWS: 90_000, OTHER: 4}, {A_ROWS: 90_000, OTHER: 4})
    state = _state(ends={A_ROWS: 90_000, OTHER: 9}, ordered={A_STREAM: far})
    assert _ranges(plan(KNOWN, state, 5_000)) == {A_ROWS: (0, 5_000), OTHER: (0, 4)}


def test_shards_of_a_shared_topic_are_read_together_where_they_are_ordered():
    known = Decisions(SHARED)
    for number, shard in enumerate((A, B), 1):
        known.add(decision(number, shard, 10, *[CREATE][: 2 - number], snapshot=True))
    parts = [Partition("merged.t", number, shard) for shard in (A, B) for number in range(2)]
    closure = Closure(dict.fromkeys(parts, 6), dict.fromkeys(parts, 8))
    state = _state(
        ends=dict.fromkeys(parts, 9),
        watermarks=Watermarks(1, {"merged.t": 2}, {}, SHARED),
        ordered={parts[0].stream: closure, parts[2].stream: None},
    )
    assert _ranges(plan(known, state, 50)) == dict.fromkeys(parts[:2], (0, 8))
    both = replace(state, ordered={part.stream: closure for part in parts})
    tasks = plan(known, both, 50).tasks
    assert {task.place for task in tasks} == set(parts)
    assert {(task.reading, task.closure, task.stream.ordered) for task in tasks} == {
        (-1, PartitionClosure(6, 8), True)
    }


@pytest.mark.parametrize("executed", [MADE, ()], ids=["rows wait", "a statement is ready"])
def test_nothing_is_done_with_a_target_that_was_cut_over(executed):
    emptied = Truncation(TARGET, A, A_ROWS, 5, at(70), seen=2)
    state = _state({A_ROWS: Applied(5, at(70))}, executed, truncations={A: emptied})
    opened, closed = (
        plan(KNOWN, state, 100),
        plan(KNOWN, replace(state, closed={TARGET: Closing.CUT_OVER}), 100),
    )
    assert opened.tasks or opened.targets[0].ready
    assert (closed.tasks, closed.due_truncations, closed.restarts) == ((), (), ())
    [target] = closed.targets
    assert target.closed is Closing.CUT_OVER
    assert target.ready == ()
    assert [s.code for s in target.open] == ["SM-1626"] * len(opened.targets[0].open)
