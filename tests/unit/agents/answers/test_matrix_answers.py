"""The picture of shards and columns as an answer of ``/api``."""

import json

from shardmerge.agents.answers.matrix_answers import matrix_answer
from shardmerge.agents.status.matrix import matrix
from shardmerge.schemas.records.plain import to_plain
from tests.example_pages import ORDERS, example


def test_the_picture_tells_groups_and_counts():
    target = example().view.target(str(ORDERS))
    assert target is not None
    told = to_plain(matrix_answer(matrix(target)))
    assert told["total"] == 12
    assert told["alike"] == ["id", "created"]
    level = next(c for c in told["columns"] if c["name"] == "level")
    assert level["counts"] == {"missing": 6, "same": 5, "waits": 1}
    assert told["groups"][0]["state"] == "held"
    assert told["groups"][0]["cells"][-1] == {"kind": "waits", "text": "date"}
    json.dumps(told)
