from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.model.actions import IndexAddition
from shardmerge.schemas.model.tables import Index, IndexKind, IndexPart
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.barrier.applied import Applied, LoadPlace
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.barrier.row_stops import rows_stops
from shardmerge.spark_sink.barrier.statement_limits import limit_of
from shardmerge.spark_sink.barrier.statements import (
    Refused,
    StatementState,
    bindings,
    frontier,
    open_statements,
)
from tests.unit.spark_sink.decided import (
    A_ROWS,
    CONTRACTING,
    EXPANDING,
    ROWS,
    SWITCHING,
    TARGET,
    A,
    B,
    at,
    decision,
    folded,
    key,
    rows,
    rows_statement,
    statement,
)

ADD, DROP, SWITCH = (statement(kind, "column:c") for kind in (EXPANDING, CONTRACTING, SWITCHING))
BEHIND = rows({A_ROWS: Applied(4)})


def _target(*records):
    return folded(*records).targets[TARGET]


def _open(target, executed=()):
    return open_statements(target, executed, {}, rows())


def _states(target, executed=(), refused=None, progress=None):
    found = open_statements(target, executed, refused or {}, progress or rows())
    return {s.key: (s.state, s.detail) for s in found}


def test_an_expanding_statement_runs_at_once():
    assert _states(_target(decision(1, A, 10, ADD)), progress=BEHIND) == {
        key(1): (StatementState.READY, "")
    }


@pytest.mark.parametrize("waiting", [DROP, SWITCH])
def test_others_wait_for_the_rows_before_each_shards_gate(waiting):
    target = _target(decision(1, A, 10), decision(2, B, 20, waiting))
    state, detail = _states(target, progress=BEHIND)[key(2)]
    assert state is StatementState.DEBT
    assert detail == f"waits for rows of {A} before {at(10)} (s1.app.a/0@4)"
    assert _states(target)[key(2)] == (StatementState.READY, "")


def test_several_shards_in_the_way_are_counted():
    target = _target(decision(1, A, 10), decision(2, B, 20, DROP))
    late = rows({A_ROWS: Applied(4), Partition("s1.app.b", 0): Applied(3)})
    assert _states(target, progress=late)[key(2)][1].endswith("and 1 more shards")


def test_a_next_row_beyond_the_gate_is_a_proof():
    target = _target(decision(1, A, 10), decision(2, A, 20, DROP))
    standing = rows({A_ROWS: Applied(4, at(20))})
    assert _states(target, progress=standing)[key(2)][0] is StatementState.READY
    before = rows({A_ROWS: Applied(4, at(19))})
    assert _states(target, progress=before)[key(2)][0] is StatementState.DEBT


def test_a_watermark_read_before_the_decision_was_seen_is_no_proof():
    target = _target(decision(1, A, 10), decision(2, A, 20, DROP))
    state, detail = _states(target, progress=rows(seen=1))[key(2)]
    assert state is StatementState.DEBT
    assert detail == "waits for the high watermark of s1.app.a/0"
    assert _states(target, progress=rows(seen=2))[key(2)][0] is StatementState.READY


def test_a_topic_that_is_not_there_holds_no_rows():
    target = _target(decision(1, A, 10, DROP))
    assert _states(target, progress=rows(ends={}))[key(1)][0] is StatementState.READY
    late = _states(target, progress=rows(ends={}, seen=0))[key(1)]
    assert late == (StatementState.DEBT, "waits for the high watermark of s1.app.a")


def test_nothing_stands_before_a_snapshots_description():
    target = _target(decision(1, A, 10, DROP, snapshot=True))
    assert _states(target, progress=BEHIND)[key(1)][0] is StatementState.READY


def test_the_last_rows_of_a_shard_that_left_are_waited_for():
    target = _target(decision(1, A, 10), decision(2, A, 20, live=False), decision(3, B, 5, DROP))
    assert _states(target, progress=BEHIND)[key(3)][0] is StatementState.DEBT


def test_a_shard_that_came_later_is_not_waited_for():
    target = _target(decision(1, B, 10, DROP), decision(2, A, 10))
    assert limit_of(target.shards[A], 1) is None
    assert _states(target, progress=BEHIND)[key(1)][0] is StatementState.READY


def test_a_common_subject_keeps_the_order():
    target = _target(decision(1, A, 10, DROP), decision(2, A, 20, ADD))
    states = _states(target, progress=BEHIND)
    assert states[key(2)] == (StatementState.WAITING, "waits for statement 1.0")
    assert _states(target, executed={key(1)})[key(2)][0] is StatementState.READY


def test_an_expanding_statement_overtakes_a_debt_of_another_column():
    target = _target(decision(1, A, 10, DROP), decision(2, A, 20, statement(EXPANDING, "column:d")))
    assert _states(target, progress=BEHIND)[key(2)][0] is StatementState.READY


@pytest.mark.parametrize("whole", [0, 1])
def test_the_whole_table_has_every_subject(whole):
    both = [DROP, statement(EXPANDING, "column:d")]
    both[whole] = statement(both[whole].kind, "table")
    target = _target(decision(1, A, 10, both[0]), decision(2, A, 20, both[1]))
    assert _states(target, progress=BEHIND)[key(2)][0] is StatementState.WAITING


def test_a_refused_statement_rests_and_is_tried_again():
    target = _target(decision(1, A, 10, ADD))
    resting = _states(target, refused={key(1): Refused("duplicate", resting=True)})
    assert resting[key(1)] == (StatementState.REFUSED, "duplicate")
    again = _states(target, refused={key(1): Refused("duplicate", resting=False)})
    assert again[key(1)][0] is StatementState.READY


@pytest.mark.parametrize(
    "undoing",
    [
        statement(EXPANDING, "index:k"),
        statement(CONTRACTING, "index:k", binds=(Binding("c#1", ""),)),
    ],
)
def test_what_undoes_a_refused_debt_does_not_wait_for_it_and_makes_it_void(undoing):
    debt = statement(CONTRACTING, "index:k", "column:c")
    target = _target(decision(1, A, 10, debt), decision(2, A, 20, undoing))
    refused = {key(1): Refused("duplicate", resting=True)}
    states = _states(target, refused=refused)
    assert [state for state, _ in states.values()] == [StatementState.REFUSED, StatementState.READY]
    assert _states(target, executed={key(2)}, refused=refused) == {}
    # While it is only waiting it keeps its turn.
    assert _states(target)[key(2)][0] is StatementState.WAITING


def test_a_refused_debt_stays_when_something_else_of_its_column_changes():
    debt = statement(CONTRACTING, "index:k", "column:c")
    target = _target(decision(1, A, 10, debt), decision(2, A, 20, ADD))
    refused = {key(1): Refused("duplicate", resting=True)}
    assert _states(target, refused=refused)[key(2)][0] is StatementState.READY
    assert list(_states(target, executed={key(2)}, refused=refused)) == [key(1)]


def test_a_column_that_cannot_be_dropped_is_waited_for_by_the_next_of_its_name():
    drop = statement(CONTRACTING, "column:c", binds=(Binding("c#1", ""),))
    target = _target(decision(1, A, 10, drop), decision(2, A, 20, ADD))
    refused = {key(1): Refused("a foreign key needs it", resting=True)}
    assert _states(target, refused=refused)[key(2)][0] is StatementState.WAITING


def test_rows_wait_from_the_first_version_with_an_open_statement_that_is_no_debt():
    target = _target(decision(1, A, 10, DROP), decision(2, A, 20, ADD), decision(3, A, 30))
    assert frontier(target, ()) == 2
    assert frontier(target, {key(2)}) == 4
    assert frontier(_target(decision(1, A, 10, SWITCH)), ()) == 1


def test_bindings_are_those_of_executed_statements_in_version_order():
    bind = Binding("c#1", "c")
    renamed, gone = Binding("c#1", "d"), Binding("c#1", "")
    target = _target(
        decision(1, A, 10, statement(EXPANDING, binds=(bind,))),
        decision(2, A, 20, statement(EXPANDING, binds=(renamed,))),
        decision(3, A, 30, statement(CONTRACTING, binds=(gone,))),
    )
    assert bindings(target, {key(1)}) == {"c#1": bind}
    assert bindings(target, {key(1), key(2)}) == {"c#1": renamed}
    assert bindings(target, {key(1), key(2), key(3)}) == {}


def test_a_change_of_a_shards_rows_waits_for_those_before_its_gate_and_for_nobody_elses():
    target = _target(decision(1, A, 10), decision(2, B, 20, rows_statement(B)))
    assert _states(target, progress=BEHIND)[key(2)][0] is StatementState.READY
    late = rows({Partition("s1.app.b", 0): Applied(3)})
    state, detail = _states(target, progress=late)[key(2)]
    assert state is StatementState.DEBT
    assert detail == f"waits for rows of {B} before {at(20)} (s1.app.b/0@3)"
    standing = rows({Partition("s1.app.b", 0): Applied(3, at(20))})
    assert _states(target, progress=standing)[key(2)][0] is StatementState.READY


def test_a_change_of_all_rows_is_a_debt_and_nobody_waits_for_it():
    copy, drop = statement(ROWS, "column:a", "column:b"), statement(CONTRACTING, "column:a")
    target = _target(decision(1, A, 10), decision(2, B, 20, copy, drop), decision(3, A, 30))
    assert _states(target, progress=BEHIND) == {
        key(2): (StatementState.DEBT, f"waits for rows of {A} before {at(10)} (s1.app.a/0@4)"),
        key(2, 1): (StatementState.WAITING, "waits for statement 2.0"),
    }
    assert _states(target)[key(2)][0] is StatementState.READY
    assert frontier(target, ()) == 4
    assert rows_stops(target, _open(target)) == {}


def test_a_debt_waits_for_a_refused_one_about_the_same_thing():
    """Else the first would count as undone, and what it is to bring would never come."""
    debt, other = statement(CONTRACTING, "column:c"), statement(CONTRACTING, "column:c")
    target = _target(decision(1, A, 10, debt), decision(2, A, 20, other))
    refused = {key(1): Refused("Invalid use of NULL value", resting=True)}
    assert _states(target, refused=refused)[key(2)] == (
        StatementState.WAITING,
        "waits for statement 1.0",
    )


def test_an_index_over_its_column_does_not_make_a_refused_debt_void():
    debt, index = statement(CONTRACTING, "column:c"), statement(CONTRACTING, "index:k", "column:c")
    target = _target(decision(1, A, 10, debt), decision(2, A, 20, index))
    refused = {key(1): Refused("Invalid use of NULL value", resting=True)}
    assert _states(target, refused=refused)[key(2)][0] is StatementState.READY
    assert list(_states(target, executed={key(2)}, refused=refused)) == [key(1)]


def test_a_rename_to_its_column_makes_a_refused_debt_void():
    debt = statement(CONTRACTING, "column:c")
    rename = statement(EXPANDING, "column:b", "column:c", binds=(Binding("b#1", "c"),))
    target = _target(decision(1, A, 10, debt), decision(2, A, 20, rename))
    refused = {key(1): Refused("duplicate", resting=True)}
    assert _states(target, executed={key(2)}, refused=refused) == {}


@pytest.mark.parametrize("kind", [IndexKind.UNIQUE, IndexKind.PLAIN])
def test_a_unique_key_waits_until_the_rows_of_first_loads_agree(kind):
    index = Index("u", kind, (IndexPart("c"),))
    adding = replace(statement(CONTRACTING, "index:u"), actions=(IndexAddition(index),))
    target = _target(decision(1, A, 10), decision(2, B, 20, adding))

    def state(place):
        progress = replace(rows(), loads={A: place})
        return _states(target, progress=progress)[key(2)]

    waits = (
        StatementState.DEBT,
        f"waits until the first load of {A} is complete and its rows agree",
    )
    ready = (StatementState.READY, "")
    standing = LoadPlace(1, at(10))
    assert state(standing) == (waits if kind is IndexKind.UNIQUE else ready)
    assert state(LoadPlace(1, None, reading=0)) == ready


def test_a_statement_waits_for_a_load_that_can_bring_rows_from_before_it():
    target = _target(decision(1, A, 10), decision(2, A, 20, DROP))
    late = replace(rows(), loads={A: LoadPlace(1, at(10))})
    state, detail = _states(target, progress=late)[key(2)]
    assert state is StatementState.DEBT
    assert detail == f"waits for the first load of {A}, which stands before {at(20)}"
    moved = replace(rows(), loads={A: LoadPlace(2, at(20))})
    assert _states(target, progress=moved)[key(2)] == (StatementState.READY, "")
