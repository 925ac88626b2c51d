from __future__ import annotations

from dataclasses import replace

from shardmerge.agents.status.overview import summary
from shardmerge.schemas.records.decisions import StatementKind
from shardmerge.schemas.records.drift import Difference, DriftKind
from shardmerge.schemas.records.progress import SinkProgress, StatementProgress
from tests.example_pages import (
    ITEMS,
    NOW_MS,
    ORDERS,
    ExampleLine,
    example,
    failing,
    orders,
    pipeline,
)


def of(line: ExampleLine, target=ORDERS, now_ms: int = NOW_MS):
    found = line.view.target(str(target))
    assert found is not None
    return summary(found, now_ms)


def test_the_state_is_that_of_the_worst_need():
    found = of(example())
    assert [need.state for need in found.needs] == ["held", "paused", "waiting"]
    assert (found.state, found.held, found.live) == ("held", 1, 12)
    assert found.needs[0].what.startswith("SM-1201: column level, type")
    assert found.needs[0].shards == (orders(7),)
    assert found.needs[0].hint


def test_a_need_tells_since_when():
    line = example()
    found = of(line)
    held = next(s for s in found.target.shards if s.state == "held")
    assert found.since_ms == held.ts_ms > 0


def test_a_target_without_needs_flows():
    found = of(example(), ITEMS)
    assert (found.state, found.needs, found.since_ms) == ("flows", (), 0)


def test_rows_that_cannot_be_applied_are_the_worst():
    line = example()
    failing(line, NOW_MS)
    found = of(line, ITEMS)
    assert found.state == "failing"
    assert "12 tries" in found.needs[0].what


def test_a_refused_statement_is_a_need():
    line = example()
    refused = StatementProgress(
        3, 0, "ALTER", StatementKind.EXPANDING, "refused", "no", 5, "SM-3101"
    )
    line.view.apply(SinkProgress(ITEMS, 3, 1, (refused,), (), NOW_MS))
    found = of(line, ITEMS)
    assert (found.state, found.needs[0].what) == (
        "refused", "The target refuses statement 3.0: SM-3101: no",
    )  # fmt: skip


def test_a_target_of_which_the_sink_told_nothing_is_new_for_some_minutes():
    line = ExampleLine(pipeline())
    line.table(orders(0), "id INT PRIMARY KEY")
    found = of(line, now_ms=line.now_ms + 180_000)
    assert (found.state, found.behind, found.rows_per_s) == ("new", 1, None)
    assert (found.is_urgent, found.since_ms) == (False, 0)
    late = of(line, now_ms=line.now_ms + 180_001)
    assert (late.state, late.since_ms, late.is_urgent) == ("silent", line.now_ms, True)
    assert late.needs[0].what.startswith("SM-6723: The sink has not reported this target;")


def test_a_sink_that_does_not_report_any_more_is_the_worst_and_its_lag_is_not_known():
    line = example()
    reported = NOW_MS - 1_000
    assert (of(line, ITEMS, reported + 180_000).state, of(line, ITEMS).lag_s) == ("flows", 0.0)
    for target in (ITEMS, ORDERS):
        late = of(line, target, reported + 180_001)
        assert (late.state, late.since_ms, late.lag_s) == ("silent", reported, None)
        assert late.is_urgent
        assert "start the sink" in late.needs[0].hint
    assert [need.state for need in late.needs] == ["silent", "held", "paused", "waiting"]


def test_every_state_but_new_and_flows_tells_since_when():
    line = example()
    failing(line, NOW_MS)
    refused = StatementProgress(3, 0, "ALTER", StatementKind.EXPANDING, "refused", "no", 7)
    found = of(line).target
    worse = replace(
        found.progress,
        failure=of(line, ITEMS).target.progress.failure,
        open=(refused,),
        drift=(Difference("column:c", DriftKind.REFUSES, "", "", 5_000),),
    )
    told = summary(replace(found, progress=worse), NOW_MS + 3_600_000).needs
    assert {need.state: bool(need.since_ms) for need in told} == dict.fromkeys(
        ("silent", "failing", "refused", "held", "changed", "paused", "waiting"), True
    )


def test_shards_of_one_reason_are_one_need():
    line = ExampleLine(pipeline())
    for number in range(4):
        line.table(orders(number), "id INT PRIMARY KEY")
    line.run(orders(0), "ALTER TABLE orders_0 ADD COLUMN a INT")
    for number in (1, 2, 3):
        line.run(orders(number), f"ALTER TABLE orders_{number} ADD COLUMN a DATE")
    (need,) = (n for n in of(line).needs if n.state == "held")
    assert need.shards == (orders(2), orders(1), orders(3))


def test_an_old_rate_is_not_told_as_the_present_one():
    line = example()
    assert of(line).rows_per_s is not None
    assert of(line, now_ms=NOW_MS + 60_000).rows_per_s is None


def test_versions_that_are_not_executed_are_counted():
    line = example()
    target = line.view.target(str(ORDERS))
    assert target is not None
    assert target.progress is not None
    behind = replace(target, progress=replace(target.progress, executed_version=target.version - 3))
    assert summary(behind, NOW_MS).behind == 3


def test_a_table_that_was_changed_by_hand_needs_somebody_unless_it_does_no_harm():
    found = of(example(), ITEMS).target
    drift = (
        Difference("column:c", DriftKind.REFUSES, "", "`c` int NOT NULL", 5_000),
        Difference("index:i", DriftKind.HARMLESS, "", "INDEX `i` (`a`)", 4_000),
    )
    changed = replace(found, progress=replace(found.progress, drift=drift))
    told = summary(changed, NOW_MS)
    [need] = told.needs
    assert (told.state, need.since_ms) == ("changed", 5_000)
    assert need.what.startswith("column:c of the table was changed by hand: SM-6802: decided is")
    assert f"shardmerge drift show {ITEMS}" in need.hint
