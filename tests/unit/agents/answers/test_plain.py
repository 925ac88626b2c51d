from __future__ import annotations

import json

from shardmerge.agents.answers import plain
from shardmerge.agents.status.connector_log import ConnectorLog
from shardmerge.connectors.formats.connector_status import ConnectorState
from shardmerge.schemas.records.plain import to_plain
from tests.example_pages import NOW_MS, ORDERS, compared, example


def test_the_status_tells_every_target_with_its_last_decisions():
    view = example().view
    answer = plain.status_answer(
        view.targets(), view.ignored(), NOW_MS, pipeline="shop", caught_up=True
    )
    told = to_plain(answer)
    assert [t["target"] for t in told["targets"]] == ["merged.items", "merged.orders"]
    orders = told["targets"][1]
    assert len(orders["decisions"]) == plain.RECENT
    assert orders["decisions"][0]["version"] == 23
    assert orders["progress"]["rows"] > 1_000_000
    assert [s["shard"] for s in orders["shards"] if s["state"] == "held"] == ["s2/app.orders_7"]
    assert [d["ddl"] for d in told["ignored"]] == ["CREATE TABLE other (id INT)"]
    json.dumps(told)


def test_a_target_tells_all_decisions_that_are_kept():
    target = example().view.target(str(ORDERS))
    assert target is not None
    assert len(plain.target_answer(target, NOW_MS).decisions) == 23


def test_a_target_tells_its_state_and_what_needs_somebody_as_its_page_does():
    target = example().view.target(str(ORDERS))
    assert target is not None
    told = plain.target_answer(target, NOW_MS)
    assert (told.state, [n.state for n in told.needs]) == ("held", ["held", "paused", "waiting"])
    assert told.needs[0].shards == ("s2/app.orders_7",)
    assert target.progress is not None
    hours_later = plain.target_answer(target, NOW_MS + 6 * 3_600_000)
    assert hours_later.state == "silent"
    assert hours_later.needs[0].since_ms == target.progress.ts_ms


def test_a_target_tells_what_comparisons_found():
    line = example()
    before = line.view.target(str(ORDERS))
    assert before is not None
    assert plain.target_answer(before, NOW_MS).validation == (
        plain.ValidationAnswer("never", 0, False, None, None)
    )
    compared(line, NOW_MS)
    target = line.view.target(str(ORDERS))
    assert target is not None
    told = plain.target_answer(target, NOW_MS).validation
    assert (told.state, told.differences, told.is_before_statement) == ("differs", 32, True)
    assert told.whole is not None
    assert told.whole.differing[1].keys == (("17",), ("205",))
    assert told.later is not None
    assert told.later.code == "SM-4411"
    json.dumps(to_plain(told))


def test_the_status_tells_the_connectors_and_what_their_state_does_to_targets():
    connectors = ConnectorLog()
    connectors.take([ConnectorState("s1", "shop.s1", "FAILED", "no binlog")], NOW_MS)
    view = example().view
    told = plain.status_answer(
        view.targets(), (), NOW_MS, pipeline="shop", caught_up=True, connectors=connectors.view
    )
    assert told.connectors == (
        plain.ConnectorAnswer("s1", "shop.s1", "FAILED", "no binlog", NOW_MS),
    )
    assert [(need.state, need.source) for need in told.needs] == [("unread", "s1")]
    items = told.targets[0]
    assert (items.state, items.needs[0].source) == ("unread", "s1")
    connectors.miss("no answer", "", "SM-4304", NOW_MS)
    told = plain.status_answer(
        view.targets(), (), NOW_MS, pipeline="shop", caught_up=True, connectors=connectors.view
    )
    assert (told.connectors, [need.state for need in told.needs]) == ((), ["unknown"])
    assert told.targets[0].state == "flows"
