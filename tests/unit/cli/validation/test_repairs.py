from __future__ import annotations

import json

from shardmerge.cli.validation.repairs import requests
from shardmerge.connectors.debezium.open_requests import request_of
from shardmerge.connectors.debezium.signals import snapshot_signal
from shardmerge.schemas.model.names import ShardId
from shardmerge.spark_sink.validation.compared_table import compared_table
from shardmerge.spark_sink.validation.doubts import Difference, DifferenceKind
from tests.unit.spark_sink.validation.facts import S1, S2, shard, target

OWN = "CREATE TABLE t (id int PRIMARY KEY, a int)"
ODD = ShardId("s3", "app", "t.3")
TABLE = compared_table(target(OWN), [shard(s, OWN) for s in (S1, S2, ODD)])


def test_exactly_the_rows_that_differ_are_read_again() -> None:
    found = [
        Difference(DifferenceKind.MISSING, ("7",), S1),
        Difference(DifferenceKind.DIFFERS, ("8",), S1, ("a",)),
        Difference(DifferenceKind.EXTRA, ("9",)),
        Difference(DifferenceKind.MISSING, ("1",), ODD),
        Difference(DifferenceKind.COUNT, ("5",), counts=(1, 2)),
    ]
    conditions, notes = requests(TABLE, found)
    assert conditions == {S1: ["`id` IN (7, 8)"]}
    assert len(notes) == 3


def test_a_request_for_rows_is_followed_like_one_for_a_table() -> None:
    key, value = snapshot_signal("x", S1, rows="`id` IN (7)")
    data = json.loads(value)["data"]
    assert data["additional-conditions"] == [
        {"data-collection": r"\Qapp.t_1\E", "filter": "`id` IN (7)"}
    ]
    request = request_of(key, value)
    assert request is not None
    assert (request.source, request.table) == ("s1", "app.t_1")
    assert "additional-conditions" not in snapshot_signal("x", S1)[1].decode()
