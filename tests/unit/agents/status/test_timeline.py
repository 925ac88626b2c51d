from __future__ import annotations

from dataclasses import replace

from shardmerge.agents.status.timeline import changes, lanes, runs, timeline
from shardmerge.schemas.records.decisions import StatementKind
from shardmerge.schemas.records.operator_commands import CommandKind
from shardmerge.schemas.records.progress import SinkProgress, StatementProgress
from tests.example_pages import NOW_MS, ORDERS, ExampleLine, example, orders, pipeline


def view_of(line: ExampleLine):
    target = line.view.target(str(ORDERS))
    assert target is not None
    return target


def line() -> ExampleLine:
    found = ExampleLine(pipeline())
    for number in range(4):
        found.table(orders(number), "id INT PRIMARY KEY")
    found.run(orders(0), "ALTER TABLE orders_0 ADD COLUMN a INT")
    return found


def told(executed: int, *open_: StatementProgress) -> SinkProgress:
    return SinkProgress(ORDERS, executed, 0, open_, (), NOW_MS)


def test_a_statement_tells_how_far_the_target_is_with_it():
    found = line()
    assert [s.state for s in timeline(view_of(found))[0].statements] == ["not known"]
    found.view.apply(told(5))
    assert [s.state for s in timeline(view_of(found))[0].statements] == ["executed"]
    debt = StatementProgress(
        5, 0, "x", StatementKind.EXPANDING, "debt", "waits for rows", 7, "SM-1501"
    )
    found.view.apply(told(5, debt))
    (statement,) = timeline(view_of(found))[0].statements
    assert (statement.state, statement.detail, statement.code) == (
        "debt",
        "waits for rows",
        "SM-1501",
    )


def statements_of(found: ExampleLine) -> dict[str, list[tuple[int, str]]]:
    return {
        change.execution.rollout.ddl: [
            (entry.decision.version, each.statement.sql.partition("` ")[2])
            for entry in change.entries
            for each in entry.statements
        ]
        for change in changes(view_of(found))
    }


def test_a_change_tells_the_statement_that_a_command_gave_for_it():
    found = ExampleLine(pipeline("pessimistic"))
    for number in range(3):
        found.table(orders(number), "id INT PRIMARY KEY")
    added = "ALTER TABLE orders_0 ADD COLUMN z INT"
    found.run(orders(0), added)
    found.view.apply(told(3))
    assert statements_of(found) == {added: []}
    found.command(ORDERS, CommandKind.UNLOCK_EXECUTE, orders(0))
    assert statements_of(found) == {added: [(5, "ADD COLUMN `z` int")]}
    found.view.apply(replace(told(5), ts_ms=NOW_MS + 1))
    (change,) = changes(view_of(found))
    (statement,) = change.entries[0].statements
    assert (statement.state, statement.since_ms) == ("executed", NOW_MS + 1)


def test_a_change_tells_the_statement_of_another_change_that_ended_its_hold():
    found = line()
    early = "ALTER TABLE orders_1 ADD COLUMN early INT"
    found.run(orders(1), early)
    found.run(orders(1), "ALTER TABLE orders_1 ADD COLUMN x INT")
    found.run(orders(2), "ALTER TABLE orders_2 ADD COLUMN x DATE")
    ends = "ALTER TABLE orders_1 DROP COLUMN x"
    found.run(orders(1), ends)
    of = statements_of(found)
    released = next(d for d in view_of(found).decisions if d.releases)
    held = "ALTER TABLE orders_2 ADD COLUMN x DATE"
    versions = {ddl: {version for version, _ in told} for ddl, told in of.items()}
    assert versions[held] == versions[ends] == {released.version}
    assert versions[early] == {6}


def test_a_hold_and_a_statement_each_tell_their_gate():
    entries = timeline(view_of(example()))
    gates = {entry.decision.version: entry.gate for entry in entries if entry.gate}
    assert gates[21] == "later rows of the shard wait until a later version releases it"
    assert gates[18] == "later rows of the shard wait for version 18, but not for its debts"


def test_entries_come_newest_first_and_in_parts():
    target = view_of(example())
    assert [e.decision.version for e in timeline(target, 0, 2)] == [23, 22]
    assert [e.decision.version for e in timeline(target, 21, 5)] == [2, 1]


def test_neighbours_of_which_nothing_came_are_put_together():
    found = runs(timeline(view_of(example())))
    quiet = [(r.entries[-1].decision.version, r.entries[0].decision.version)
             for r in found if r.is_quiet]  # fmt: skip
    assert quiet == [(14, 17), (2, 11)]
    assert sum(len(r.entries) for r in found) == 23


def test_the_lanes_show_the_versions_that_did_something():
    found = lanes(view_of(example()))
    assert found.versions == (1, 12, 13, 18, 19, 21, 23)
    marks = {lane.name: lane.marks for lane in found.lanes}
    assert marks["target"] == ("executed",) * 4 + ("executing", "", "debt")
    assert marks[str(orders(7))] == ("",) * 5 + ("hold", "")


def test_a_release_is_a_mark_of_the_shard_that_is_released():
    found = line()
    found.run(orders(1), "ALTER TABLE orders_1 ADD COLUMN a DATE")
    found.run(orders(1), "ALTER TABLE orders_1 DROP COLUMN a")
    marks = {lane.name: lane.marks for lane in lanes(view_of(found)).lanes}
    assert marks[str(orders(1))][-2:] == ("hold", "no-op")


def test_a_lane_tells_how_far_the_shard_is_with_each_of_its_changes():
    found = lanes(view_of(example()))
    stands = {lane.name: lane.stands for lane in found.lanes}
    assert found.versions[-3:] == (19, 21, 23)
    assert stands[str(orders(0))][2:4] == ("passed", "passed")
    assert stands[str(orders(1))][4] == "waits here"
    assert stands[str(orders(7))][5] == "waits here"
    assert set(stands["target"]) == {""}
    assert set(lanes(view_of(line())).lanes[1].stands) == {"", "not known"}


def test_an_executed_statement_tells_when_that_was_first_reported():
    found = line()
    found.view.apply(told(4))
    found.view.apply(replace(told(5), ts_ms=NOW_MS + 5))
    (statement,) = timeline(view_of(found))[0].statements
    assert (statement.state, statement.since_ms) == ("executed", NOW_MS + 5)


def test_shards_without_a_lane_are_counted():
    found = ExampleLine(pipeline())
    for number in range(40):
        found.table(orders(number), "id INT PRIMARY KEY")
        found.run(orders(number), f"ALTER TABLE orders_{number} ADD COLUMN c{number} INT")
    shown = lanes(view_of(found))
    assert len(shown.lanes) == 26
    assert shown.more == 30 - 25
