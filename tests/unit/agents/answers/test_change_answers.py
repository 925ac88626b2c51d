from __future__ import annotations

import json

from shardmerge.agents.answers.change_answers import MOST_NAMES, changes_answer
from shardmerge.schemas.records.plain import to_plain
from tests.example_pages import NOW_MS, ORDERS, ExampleLine, example, orders, pipeline


def test_each_change_tells_how_far_each_shard_and_each_statement_is():
    target = example().view.target(str(ORDERS))
    assert target is not None
    told = to_plain(changes_answer(target))
    assert told["target"] == str(ORDERS)
    assert len(told["changes"]) == told["change_count"] == len(target.rollouts)
    assert (told["page"], told["pages"]) == (1, 1)
    changes = {change["first_version"]: change for change in told["changes"]}
    level, rename = changes[13], changes[19]
    assert [(c["kind"], c["detail"]) for c in level["columns"]] == [("added", "int")]
    assert [(g["stand"], len(g["shards"])) for g in level["shards"]] == [("open", 1), ("passed", 4)]
    assert (level["shards"][1]["fastest_ms"], level["shards"][1]["slowest_ms"]) == (2_000, 6_000)
    assert (level["differing"], level["differing_count"]) == (["s2/app.orders_7"], 1)
    assert (len(level["lacking"]), level["lacking_count"]) == (6, 6)
    assert [s["state"] for s in level["statements"]] == ["executed"]
    (waiting,) = rename["shards"]
    assert waiting | {"reason": "", "shards": []} == {
        "stand": "waits here", "kind": "gate", "reason": "", "code": "SM-1601", "hint": "",
        "count": 1, "shards": [], "since_ms": NOW_MS - 30_000, "parked": 29 * 9,
        "fastest_ms": None, "slowest_ms": None,
    }  # fmt: skip
    assert rename["statements"][0]["state"] == "executing"
    assert rename["statements"][0]["since_ms"] == NOW_MS - 32_000
    json.dumps(told)


def test_an_answer_has_15_changes_and_of_many_shards_the_first_200_names():
    line = ExampleLine(pipeline())
    for number in range(203):
        line.table(orders(number), "id INT PRIMARY KEY")
    for number in range(202):
        line.run(orders(number), f"ALTER TABLE orders_{number} ADD COLUMN a INT", 0)
    for number in range(16):
        line.run(orders(0), f"ALTER TABLE orders_0 ADD COLUMN b{number} INT", 0)
    target = line.view.target(str(ORDERS))
    assert target is not None
    first, last = changes_answer(target), changes_answer(target, page=9)
    assert (len(first.changes), first.change_count, first.page, first.pages) == (15, 17, 1, 2)
    assert (first.changes[0].lacking_count, len(first.changes[0].lacking)) == (202, MOST_NAMES)
    assert (last.page, len(last.changes)) == (2, 2)
    (group,) = last.changes[-1].shards
    assert (group.count, len(group.shards)) == (202, MOST_NAMES)
    found = changes_answer(target, "orders_202", 2).changes[-1]
    assert (found.lacking, found.shards) == (("s1/app.orders_202",), ())
