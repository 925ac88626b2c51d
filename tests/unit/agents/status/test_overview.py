from __future__ import annotations

from dataclasses import replace

from shardmerge.agents.status.connector_log import UNASKED, ConnectorLog, ConnectorsView
from shardmerge.agents.status.overview import connector_needs, summary
from shardmerge.connectors.formats.connector_status import ConnectorState
from shardmerge.schemas.records.decisions import StatementKind
from shardmerge.schemas.records.drift import Difference, DriftKind
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.progress import ShardProgress, SinkProgress, StatementProgress
from shardmerge.schemas.records.schema_changes import ChangeId
from shardmerge.schemas.records.validations import TargetValidation
from tests.example_pages import (
    ITEMS,
    NOW_MS,
    ORDERS,
    ExampleLine,
    compared,
    example,
    failing,
    items,
    orders,
    pipeline,
)


def of(
    line: ExampleLine,
    target=ORDERS,
    now_ms: int = NOW_MS,
    connectors: ConnectorsView = UNASKED,
):
    found = line.view.target(str(target))
    assert found is not None
    return summary(found, now_ms, connectors)


def looked(state: str, reason: str = "") -> ConnectorsView:
    """What a worker knows if the connector of ``s1`` is in a state since 9 seconds."""
    log = ConnectorLog()
    runs = ConnectorState("s2", "shop.s2", "RUNNING")
    log.take((ConnectorState("s1", "shop.s1", state, reason), runs), NOW_MS - 9_000)
    return log.view


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


def test_rows_that_differ_need_somebody_until_all_rows_were_compared_again():
    line = example()
    compared(line, NOW_MS)
    found = of(line)
    need = next(n for n in found.needs if n.state == "differs")
    assert [n.state for n in found.needs] == ["held", "differs", "paused", "waiting"]
    assert need.what.startswith("SM-4414: 32 rows differ: 2 missing, 1 that no shard has, 29 with")
    assert need.hint.startswith("shardmerge validate merged.orders --pipeline FILE --repair reread")
    assert need.shards == (orders(4), orders(5))
    assert (need.since_ms, need.is_urgent) == (NOW_MS - 27 * 3_600_000, True)
    line.view.apply(TargetValidation(ORDERS, 23, NOW_MS, NOW_MS, True, 9, 12))
    assert "differs" not in [n.state for n in of(line).needs]


def test_rows_of_a_target_that_was_cut_over_may_differ():
    line = example()
    differs = TargetValidation(ITEMS, 6, NOW_MS, NOW_MS, True, 9, 3, extra=1, since_ms=NOW_MS)
    line.view.apply(differs)
    assert of(line, ITEMS).state == "differs"
    shards = (ShardProgress(items(0), 5, "the target was cut over", code="SM-1617"),)
    line.view.apply(SinkProgress(ITEMS, 6, 1, (), shards, NOW_MS))
    assert of(line, ITEMS).state == "waiting"


def test_a_target_whose_rows_do_not_come_does_not_flow():
    line = example()
    assert of(line, ITEMS, connectors=looked("RUNNING")).state == "flows"
    found = of(line, ITEMS, connectors=looked("FAILED", "the binlog is gone"))
    assert (found.state, found.is_urgent) == ("unread", True)
    [need] = found.needs
    assert need.what == (
        "SM-4313: No new rows of source s1 come: connector shop.s1 is FAILED: the binlog is gone"
    )
    assert "shardmerge connect restart s1 --pipeline FILE" in need.hint
    assert "docs/how-to/monitor.md" in need.hint
    assert (need.since_ms, need.source) == (NOW_MS - 9_000, "s1")
    assert need.shards == (items(0), items(2))


def test_the_lag_is_not_known_while_rows_can_wait_in_a_source():
    line = example()
    assert of(line, ITEMS).lag_s == 0.0
    assert of(line, ITEMS, connectors=looked("PAUSED")).lag_s is None
    assert of(line, connectors=looked("PAUSED")).lag_s is None  # a held shard is worse


def test_a_source_without_shards_of_the_target_is_none_of_its_needs():
    line = ExampleLine(pipeline())
    line.table(items(0), "id INT PRIMARY KEY")
    line.view.apply(SinkProgress(ITEMS, 1, 0, (), (), NOW_MS))
    shard = items(0).source
    other = ConnectorLog()
    other.take([ConnectorState("s9", "shop.s9", "FAILED")], NOW_MS)
    assert shard == "s1"
    assert of(line, ITEMS, connectors=other.view).state == "flows"
    assert [need.source for need in connector_needs(other.view, NOW_MS)] == ["s9"]


def test_the_way_out_fits_the_state_of_the_connector():
    ways = {
        "FAILED": "connect restart s1",
        "PAUSED": "/connectors/shop.s1/resume",
        "STOPPED": "/connectors/shop.s1/resume",
        "missing": "shardmerge connect apply",
    }
    for state, way in ways.items():
        [need] = connector_needs(looked(state), NOW_MS)
        assert way in need.hint


def test_a_connect_that_does_not_answer_is_told_and_makes_no_target_bad():
    log = ConnectorLog()
    log.miss("Kafka Connect at http://connect:8083 cannot be reached", "", "SM-4304", 5)
    [need] = connector_needs(log.view, NOW_MS)
    assert (need.state, need.since_ms, need.is_urgent) == ("unknown", 5, False)
    assert need.what.startswith("SM-4304: This worker does not know whether the connectors run")
    assert of(example(), ITEMS, connectors=log.view).state == "flows"


def test_a_disabled_target_is_a_need_until_it_is_enabled():
    line = example()
    give(line, CommandKind.DISABLE, 1)
    found = of(line, ITEMS)
    assert (found.state, found.is_urgent) == ("disabled", False)
    assert found.needs[0].what == "The target's schema stays as it is: olga disabled it"
    assert found.needs[0].hint == "shardmerge command enable --pipeline FILE --target merged.items"
    assert found.since_ms == 1_000
    give(line, CommandKind.ENABLE, 2)
    assert of(line, ITEMS).state == "flows"


def give(line: ExampleLine, kind: CommandKind, offset: int) -> None:
    said = OperatorCommand(
        ChangeId("shop.commands", offset), ITEMS, kind, by="olga", ts_ms=offset * 1_000
    )
    line.view.apply(said)
    line.send(said)
