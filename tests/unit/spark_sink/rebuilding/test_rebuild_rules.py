from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.policies import RoutePolicies, RowOperation, RowsPolicy
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.records.decisions import Decision, Fixup, FixupKind
from shardmerge.schemas.records.reloads import Reload
from shardmerge.spark_sink.barrier.decisions import StatementKey, TargetDecisions
from shardmerge.spark_sink.barrier.restarts import UNDONE
from shardmerge.spark_sink.rebuilding.rebuild_rules import (
    change_refused,
    held_shards,
    obstacles,
    shadow_loads,
)
from tests.unit.spark_sink.decided import (
    EXPANDING,
    TARGET,
    A,
    B,
    at,
    decision,
    folded,
    key,
    statement,
)

ROUTE = RoutingRule(".*", "app", ".*", "merged", "t")
FIRST = decision(1, A, 10, statement(EXPANDING, "table"))
SECOND = decision(2, B, 20)


def known(*decisions: Decision) -> TargetDecisions:
    return folded(FIRST, SECOND, *decisions).targets[TARGET]


def codes(
    of: TargetDecisions,
    executed: set[StatementKey] | None = None,
    route: RoutingRule = ROUTE,
    *,
    only_source_rows: bool = False,
) -> list[tuple[str, bool]]:
    done = {key(1)} if executed is None else executed
    found = obstacles(of, done, [route], only_source_rows=only_source_rows)
    assert all(each.text and each.hint for each in found)
    return [(each.code, each.passes) for each in found]


def test_a_target_at_rest_can_be_rebuilt() -> None:
    assert codes(known()) == []


def test_statements_that_are_not_executed_are_waited_for() -> None:
    assert codes(known(), set()) == [("SM-6503", True)]


def test_a_held_shard_has_to_be_released_first() -> None:
    held = decision(3, A, 30, hold=True)
    assert codes(known(held)) == [("SM-6504", False)]
    assert codes(known(held, decision(4, B, 40, releases=(A,)))) == []
    of = known(held)
    assert held_shards(of) == [A]
    assert not obstacles(of, {key(1)}, [ROUTE], only_source_rows=False, may_be_held=True)


def test_a_paused_shard_has_to_be_resumed_first() -> None:
    assert codes(known(replace(decision(3, B, 30), pauses=(A,)))) == [("SM-6504", False)]


def test_a_shard_that_is_read_again_is_waited_for() -> None:
    whole = replace(decision(3, A, 30), fixups=(Fixup(A, FixupKind.WHOLE, (), "no key"),))
    assert codes(known(whole)) == [("SM-6504", True)]
    reload = replace(decision(3, A, 30), reloads=(Reload(A, at(30), 1),))
    assert codes(known(reload)) == [("SM-6504", True)]
    assert codes(known(reload), {key(1), StatementKey(3, UNDONE)}) == []


def test_rows_that_no_shard_has_need_the_operator_s_word() -> None:
    gone = known(decision(3, B, 30, live=False))
    assert codes(gone) == [("SM-6505", False)]
    assert codes(gone, only_source_rows=True) == []
    deleting = replace(ROUTE, policies=RoutePolicies(on_drop=RowsPolicy.DELETE))
    assert codes(gone, route=deleting) == []
    left = known(replace(decision(3, A, 30), leaves=(B,)))
    assert codes(left, route=deleting) == [("SM-6505", False)]


def test_operations_that_a_route_ignores_leave_rows_that_no_shard_has() -> None:
    ignoring = replace(ROUTE, ignore=(RowOperation.DELETE,))
    assert codes(known(), route=ignoring) == [("SM-6505", False)] * 2
    assert (
        codes(known(), route=replace(ROUTE, on_truncate=RowsPolicy.KEEP))
        == [("SM-6505", False)] * 2
    )
    assert codes(known(), route=ignoring, only_source_rows=True) == []


def test_without_a_live_shard_there_is_nothing_to_load() -> None:
    gone = known(decision(3, A, 30, live=False), decision(4, B, 40, live=False))
    assert codes(gone, only_source_rows=True) == [("SM-6502", False)]
    assert shadow_loads(gone, TARGET) == ()


def test_each_live_shard_is_loaded_at_its_last_gate() -> None:
    table = TargetTable("shardmerge_new_4", "t")
    loads = shadow_loads(known(decision(3, A, 30)), table)
    assert [(one.shard, one.target, one.version, one.base) for one in loads] == [
        (A, table, 3, 3),
        (B, table, 2, 2),
    ]
    assert not any(one.is_complete or one.has_rows for one in loads)


def refused(of: TargetDecisions, where: str | None, *routes: RoutingRule) -> str:
    found = change_refused(of, routes or (ROUTE,), where)
    code = "SM-6524" if where is None else "SM-6520"
    assert found is None or (found.code, found.passes) == (code, False)
    return "" if found is None else found.text


def test_a_condition_may_name_the_columns_of_every_shard() -> None:
    assert refused(known(), "ID > 3") == ""
    assert refused(known(), "") == ""
    assert "s1/app.a has no column kind" in refused(known(), "id > 3 AND kind = 'x'")
    wider = decision(3, A, 30, columns=("id", "kind"))
    assert "s1/app.b has no column kind" in refused(known(wider), "kind = 'x'")
    gone = decision(4, B, 40, live=False)
    assert refused(known(wider, gone), "kind = 'x'") == ""


def test_a_condition_belongs_to_one_route_of_the_target_alone() -> None:
    one, other = replace(ROUTE, table="a"), replace(ROUTE, table="b")
    assert "do not have one route" in refused(known(), "id > 3", one, other)
    assert "do not have one route" in refused(known(), None, one, other)
    assert refused(known(), None) == ""
    several = replace(ROUTE, table=r"(?P<name>.*)", target_table=r"\g<name>")
    assert "do not have one route" in refused(known(), "id > 3", several)
    assert "do not have one route" in refused(known(), "id > 3", replace(ROUTE, table="c"))
