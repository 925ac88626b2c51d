from __future__ import annotations

import json

from shardmerge.agents.status.change_answers import changes_answer
from shardmerge.schemas.records.plain import to_plain
from tests.example_pages import NOW_MS, ORDERS, example


def test_each_change_tells_how_far_each_shard_and_each_statement_is():
    target = example().view.target(str(ORDERS))
    assert target is not None
    told = to_plain(changes_answer(target))
    assert told["target"] == str(ORDERS)
    assert len(told["changes"]) == len(target.rollouts)
    changes = {change["first_version"]: change for change in told["changes"]}
    level, rename = changes[13], changes[19]
    assert [(c["kind"], c["detail"]) for c in level["columns"]] == [("added", "int")]
    assert [(g["stand"], len(g["shards"])) for g in level["shards"]] == [("open", 1), ("passed", 4)]
    assert (level["shards"][1]["fastest_ms"], level["shards"][1]["slowest_ms"]) == (2_000, 6_000)
    assert level["differing"] == ["s2/app.orders_7"]
    assert [s["state"] for s in level["statements"]] == ["executed"]
    (waiting,) = rename["shards"]
    assert waiting | {"reason": "", "shards": []} == {
        "stand": "waits here", "kind": "gate", "reason": "", "code": "SM-1601", "hint": "",
        "shards": [], "since_ms": NOW_MS - 30_000, "parked": 29 * 9,
        "fastest_ms": None, "slowest_ms": None,
    }  # fmt: skip
    assert rename["statements"][0]["state"] == "executing"
    assert rename["statements"][0]["since_ms"] == NOW_MS - 32_000
    json.dumps(told)
