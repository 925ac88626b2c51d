from __future__ import annotations

import pytest

from shardmerge.agents.status.execution import Stand, executions, stand, wait_kind
from shardmerge.agents.status.rollouts import ShardGate
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.records.progress import ShardProgress, SinkProgress
from tests.example_pages import NOW_MS, ORDERS, ExampleLine, example, orders, pipeline


def at(pos: int) -> SourcePosition:
    return SourcePosition(0, "binlog.000002", pos, 0)


GATE = ShardGate(orders(0), 7, at(50), NOW_MS)


@pytest.mark.parametrize(
    ("told", "executed", "found"),
    [
        (None, 9, Stand.UNKNOWN),
        (ShardProgress(orders(0), 5, "held", position=at(50)), 9, Stand.HERE),
        (ShardProgress(orders(0), 5, "held", position=at(49)), 9, Stand.EARLIER),
        (ShardProgress(orders(0), 5, "held", position=at(51)), 9, Stand.OPEN),
        (ShardProgress(orders(0), 5, "paused"), 9, Stand.SOMEWHERE),
        (ShardProgress(orders(0), 5), 7, Stand.PASSED),
        (ShardProgress(orders(0), 5), 6, Stand.UNREACHED),
        (ShardProgress(orders(0), 5, parked=3), 7, Stand.OPEN),
        (ShardProgress(orders(0), 5, parked=3), 6, Stand.UNREACHED),
    ],
)
def test_where_a_shard_stands_seen_from_a_gate(told, executed, found):
    assert stand(GATE, told, executed) is found
    assert stand(GATE, told, executed, has_left=True) is Stand.LEFT


def test_what_a_shard_waits_at_is_told_by_the_code():
    codes = ("SM-1213", "SM-1214", "SM-1201", "SM-1601", "SM-1612", "SM-1613", "SM-1605", "")
    assert [wait_kind(code) for code in codes] == [
        "lock", "lock", "hold", "gate", "gate", "pause", "row", "row",
    ]  # fmt: skip


def view_of(line: ExampleLine):
    target = line.view.target(str(ORDERS))
    assert target is not None
    return target


def test_a_change_is_shown_shard_by_shard_the_worst_first():
    found = {e.rollout.first: e for e in executions(view_of(example()))}
    level, rename = found[13], found[19]
    assert [(g.stand, len(g.shards)) for g in level.groups] == [(Stand.OPEN, 1), (Stand.PASSED, 4)]
    assert level.groups[1].shards == (orders(0), *map(orders, range(2, 5)))
    assert (level.groups[1].fastest_ms, level.groups[1].slowest_ms) == (2_000, 6_000)
    assert orders(5) in level.lacking
    assert level.differing == (orders(7),)
    (waiting,) = rename.groups
    assert (waiting.stand, waiting.kind, waiting.shards) == (Stand.HERE, "gate", (orders(1),))
    assert waiting.reason == "waits for the target to reach version 19"
    assert (waiting.since_ms, waiting.parked) == (NOW_MS - 30_000, 29 * 9)
    assert [(g.stand, g.kind) for g in found[21].groups] == [(Stand.HERE, "hold")]


def test_the_time_until_a_gate_was_passed_is_told_as_far_as_it_is_known():
    line = ExampleLine(pipeline())
    for number in range(3):
        line.table(orders(number), "id INT PRIMARY KEY")
    for number in range(3):
        line.run(orders(number), f"ALTER TABLE orders_{number} ADD COLUMN a INT", 1)
    free = [ShardProgress(orders(number), 5) for number in range(3)]
    line.view.apply(SinkProgress(ORDERS, 3, 0, (), tuple(free), line.now_ms + 1_000))
    line.view.apply(SinkProgress(ORDERS, 4, 0, (), tuple(free), line.now_ms + 2_000))
    line.view.apply(SinkProgress(ORDERS, 6, 0, (), tuple(free), line.now_ms + 9_000))
    ((group,),) = (e.groups for e in executions(view_of(line)))
    assert (group.stand, group.fastest_ms, group.slowest_ms) == (Stand.PASSED, 4_000, 10_000)


def test_nothing_is_said_of_shards_that_the_sink_has_not_reported():
    line = ExampleLine(pipeline())
    line.table(orders(0), "id INT PRIMARY KEY")
    line.run(orders(0), "ALTER TABLE orders_0 ADD COLUMN a INT")
    ((group,),) = (e.groups for e in executions(view_of(line)))
    assert (group.stand, group.fastest_ms, group.parked) == (Stand.UNKNOWN, None, 0)


def test_only_the_latest_changes_are_shown():
    target = view_of(example())
    assert [e.rollout.last for e in executions(target, most=2)] == [23, 21]
    assert [e.rollout.last for e in executions(target, 1, 2)] == [21, 20]


def test_shards_without_a_column_are_told_apart_from_those_that_have_it_otherwise():
    line = ExampleLine(pipeline())
    for number in range(3):
        line.table(orders(number), "id INT PRIMARY KEY" + (", b INT" if number < 2 else ""))
    line.run(orders(0), "ALTER TABLE orders_0 MODIFY b BIGINT")
    (change,) = executions(view_of(line))
    assert (change.lacking, change.differing, change.without) == ((orders(1),), (), (orders(2),))


def test_a_search_counts_only_the_shards_that_it_finds():
    found = {e.rollout.first: e for e in executions(view_of(example()), search="ORDERS_1")}
    level, rename = found[13], found[19]
    assert [g.shards for g in level.groups] == [(orders(1),)]
    assert (level.lacking, level.differing) == ((orders(10), orders(11)), ())
    assert [g.shards for g in rename.groups] == [(orders(1),)]
    assert found[21].groups == ()
