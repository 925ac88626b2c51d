from __future__ import annotations

import json

from shardmerge.agents.status import plain
from shardmerge.agents.status.matrix import matrix
from shardmerge.schemas.records.plain import to_plain
from tests.example_pages import ORDERS, example


def test_the_status_tells_every_target_with_its_last_decisions():
    told = to_plain(plain.status_answer(example().view, "shop", caught_up=True))
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
    assert len(plain.target_answer(target).decisions) == 23


def test_the_picture_tells_groups_and_counts():
    target = example().view.target(str(ORDERS))
    assert target is not None
    told = to_plain(plain.matrix_answer(matrix(target)))
    assert told["total"] == 12
    assert told["alike"] == ["id", "created"]
    level = next(c for c in told["columns"] if c["name"] == "level")
    assert level["counts"] == {"missing": 6, "same": 5, "waits": 1}
    assert told["groups"][0]["state"] == "held"
    assert told["groups"][0]["cells"][-1] == {"kind": "waits", "text": "date"}
    json.dumps(told)
