from __future__ import annotations

from dataclasses import replace

from shardmerge.agents.status import rollouts
from shardmerge.agents.status.rollouts import Rollout
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records.decisions import StatementKind
from shardmerge.schemas.records.progress import ShardProgress, SinkProgress, StatementProgress
from tests.example_pages import NOW_MS, ORDERS, ExampleLine, orders, pipeline


def line(shards: int = 3) -> ExampleLine:
    found = ExampleLine(pipeline())
    for number in range(shards):
        found.table(orders(number), "id INT PRIMARY KEY, note INT")
    return found


def changes(found: ExampleLine) -> tuple[Rollout, ...]:
    target = found.view.target(str(ORDERS))
    assert target is not None
    return target.rollouts


def told(executed: int, ts_ms: int, *shards: ShardProgress, open_=()) -> SinkProgress:
    return SinkProgress(ORDERS, executed, 0, tuple(open_), shards, ts_ms)


def free(*shards: ShardId) -> tuple[ShardProgress, ...]:
    return tuple(ShardProgress(shard, 5) for shard in shards)


def test_the_same_change_on_several_shards_is_one_rollout():
    found = line()
    found.run(orders(1), "ALTER TABLE orders_1 ADD COLUMN level INT")
    found.run(orders(0), "ALTER TABLE orders_0 ADD level int(11) AFTER id")
    found.run(orders(1), "ALTER TABLE orders_1 ADD COLUMN other INT")
    other, level = changes(found)
    assert [(g.shard, g.version) for g in level.gates] == [(orders(1), 4), (orders(0), 5)]
    assert level.ddl == "ALTER TABLE orders_1 ADD COLUMN level INT"
    assert (level.first, level.last, other.first) == (4, 5, 6)


def test_a_shard_that_came_with_its_schema_made_no_change():
    assert changes(line()) == ()


def test_other_definitions_of_one_column_are_other_changes():
    found = line()
    found.run(orders(0), "ALTER TABLE orders_0 ADD COLUMN level INT")
    found.run(orders(1), "ALTER TABLE orders_1 ADD COLUMN level DATE")
    assert [r.ddl for r in changes(found)] == [
        "ALTER TABLE orders_1 ADD COLUMN level DATE",
        "ALTER TABLE orders_0 ADD COLUMN level INT",
    ]


def test_the_same_index_on_many_shards_does_not_hide_the_other_changes():
    found = line(20)
    for number in range(20):
        found.run(orders(number), f"ALTER TABLE orders_{number} ADD COLUMN level INT")
    for number in range(20):
        found.run(orders(number), f"ALTER TABLE orders_{number} ADD INDEX (note)")
    found.run(orders(0), "ALTER TABLE orders_0 ADD INDEX (level)")
    other, index, column = changes(found)
    assert [len(r.gates) for r in (other, index, column)] == [1, 20, 20]
    assert [r.change for r in (other, index)] == [(), ()]


def test_equal_changes_of_many_shards_share_one_object():
    found = line(3)
    for number in range(3):
        found.run(orders(number), f"ALTER TABLE orders_{number} ADD INDEX (note)")
    kept = found.view._targets[ORDERS].rollouts
    assert len({id(change) for gates in kept._open.values() for change in gates.values()}) == 1


def test_it_is_known_which_shards_lack_a_change_and_which_have_it_otherwise():
    found = line(4)
    found.run(orders(0), "ALTER TABLE orders_0 ADD COLUMN level INT")
    found.run(orders(1), "ALTER TABLE orders_1 ADD COLUMN level DATE")
    found.table(orders(9), "id INT PRIMARY KEY, note INT, level INT")
    target = found.view.target(str(ORDERS))
    assert target is not None
    level = target.rollouts[-1]
    has = {s.shard: level.standing_of(s.latest) for s in target.shards}
    assert has == {
        orders(0): "has",
        orders(1): "differs",
        orders(2): "lacks",
        orders(3): "lacks",
        orders(9): "has",
    }


def test_a_shard_without_the_column_neither_lacks_a_change_of_it_nor_has_it_otherwise():
    found = line(2)
    found.table(orders(2), "id INT PRIMARY KEY")
    found.run(orders(0), "ALTER TABLE orders_0 MODIFY note BIGINT")
    found.run(orders(0), "ALTER TABLE orders_0 RENAME COLUMN note TO remark")
    found.run(orders(0), "ALTER TABLE orders_0 MODIFY remark INT, ADD COLUMN x INT")
    target = found.view.target(str(ORDERS))
    assert target is not None
    latest = {s.shard: s.latest for s in target.shards}
    other, without = latest[orders(1)], latest[orders(2)]
    both, rename, modify = target.rollouts
    assert [r.standing_of(without) for r in (modify, rename, both)] == [
        "without", "without", "lacks",
    ]  # fmt: skip
    assert [r.standing_of(other) for r in (modify, rename)] == ["lacks", "lacks"]


def test_drops_renames_and_changes_are_lacked_until_they_are_made():
    found = line(2)
    for shard, statement in (
        (orders(0), "RENAME COLUMN note TO remark"),
        (orders(0), "MODIFY remark BIGINT"),
        (orders(0), "DROP COLUMN remark"),
    ):
        found.run(shard, f"ALTER TABLE {shard.table} {statement}")
    target = found.view.target(str(ORDERS))
    assert target is not None
    (mine, other) = (s.latest for s in target.shards)
    drop, modify, rename = target.rollouts
    assert [r.standing_of(other) for r in (rename, modify, drop)] == ["lacks"] * 3
    assert drop.standing_of(mine) == "has"


def test_a_gate_tells_when_a_report_first_had_it_passed():
    found = line()
    first = told(3, NOW_MS, *free(orders(0)))
    found.view.apply(first)
    found.run(orders(0), "ALTER TABLE orders_0 ADD COLUMN level INT")
    at = found.now_ms
    waits = ShardProgress(orders(0), 5, "waits", position=changes(found)[0].gates[0].position)
    statement = StatementProgress(4, 0, "x", StatementKind.EXPANDING, "executing")
    found.view.apply(told(3, at + 1_000, waits, open_=(statement,)))
    assert (changes(found)[0].gates[0].passed_ms, changes(found)[0].executed) == (0, {})
    found.view.apply(told(4, at + 2_000, *free(orders(0))))
    found.view.apply(told(4, at + 3_000, *free(orders(0))))
    assert changes(found)[0].gates[0].passed_ms == at + 2_000
    assert changes(found)[0].executed == {(4, 0): at + 2_000}


def test_a_gate_that_was_passed_before_the_worker_looked_has_no_time():
    found = line()
    found.view.apply(told(9, NOW_MS, *free(orders(0))))
    found.run(orders(0), "ALTER TABLE orders_0 ADD COLUMN level INT")
    found.view.apply(told(9, NOW_MS + 1_000, *free(orders(0))))
    assert changes(found)[0].gates[0].passed_ms == 0
    assert changes(found)[0].executed == {}


def test_rows_on_the_way_and_a_gate_that_the_target_has_not_reached_are_not_passed():
    found = line()
    found.run(orders(0), "ALTER TABLE orders_0 ADD COLUMN level INT")
    shard = ShardProgress(orders(0), 5)
    found.view.apply(told(4, NOW_MS, replace(shard, parked=3)))
    found.view.apply(told(3, NOW_MS + 1, shard))
    assert changes(found)[0].gates[0].passed_ms == 0


def test_old_changes_are_forgotten_when_there_are_many_gates(monkeypatch):
    monkeypatch.setattr(rollouts, "MAX_GATES", 3)
    found = line()
    for number in range(3):
        found.run(orders(number), f"ALTER TABLE orders_{number} ADD COLUMN level INT")
    assert [len(r.gates) for r in changes(found)] == [3]
    found.run(orders(0), "ALTER TABLE orders_0 ADD COLUMN other INT")
    assert [r.first for r in changes(found)] == [7]
    found.view.apply(told(3, NOW_MS, *free(orders(0), orders(1))))
    found.view.apply(told(7, NOW_MS + 1, *free(orders(0), orders(1))))
    assert changes(found)[0].gates[0].passed_ms == NOW_MS + 1


def test_the_first_report_does_not_tell_when_a_gate_was_passed():
    found = line()
    found.run(orders(0), "ALTER TABLE orders_0 ADD COLUMN level INT")
    found.view.apply(told(4, NOW_MS, *free(orders(0))))
    assert (changes(found)[0].gates[0].passed_ms, changes(found)[0].executed) == (0, {})
