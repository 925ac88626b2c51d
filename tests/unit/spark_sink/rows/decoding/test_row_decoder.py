"""Records with Connect's embedded schema: what is compared instead of read changes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shardmerge.schemas.model.names import ShardId
from shardmerge.spark_sink.rows.decoding.row_decoder import row_decoder
from shardmerge.spark_sink.rows.decoding.row_envelope import UNDECODABLE

SHARD = ShardId("s1", "app", "t")
DECODER = row_decoder(SHARD, (("id", frozenset({int})),), ("id",), 0)
SCHEMA = {"type": "struct", "optional": False, "name": "s1.app.t.Envelope"}


def envelope(key: int) -> dict[str, Any]:
    source = {"name": "s1", "db": "app", "table": "t", "file": "binlog.1", "pos": key}
    return {"before": None, "after": {"id": key}, "source": source, "op": "c"}


def text(record: object) -> bytes:
    """As Connect's converter writes it: without a space."""
    return json.dumps(record, separators=(",", ":")).encode()


def wrapped(key: int, **schema: object) -> bytes:
    return text({"schema": {**SCHEMA, **schema}, "payload": envelope(key)})


def key_of(value: bytes) -> int:
    assert DECODER.decode_wrapped is not None
    key = DECODER.decode_wrapped(value).after.c0
    assert isinstance(key, int)
    return key


def test_records_of_one_schema_and_of_another_and_of_the_first_again() -> None:
    values = [wrapped(1), wrapped(2), wrapped(3, version=2), wrapped(4, version=2), wrapped(5)]
    values += [json.dumps(json.loads(wrapped(6))).encode(), wrapped(7) + b"\n", wrapped(8)]
    values += [text({"payload": envelope(9), "schema": SCHEMA}), wrapped(10), wrapped(11)]
    values += [text({"payload": envelope(12)}), wrapped(13)]

    assert [key_of(value) for value in values] == list(range(1, 14))


@pytest.mark.parametrize(
    "broken",
    [
        wrapped(2)[:-1],
        wrapped(2)[:-2],
        wrapped(2)[:-1] + b"]",
        wrapped(2) + b"}",
        wrapped(2).replace(b'"payload":', b'"payload":{},"payload2":'),
        wrapped(2).replace(b'"id":2', b'"id":"2"'),
        text({"schema": SCHEMA, "payload": {**envelope(2), "op": "x"}}),
        wrapped(2)[:-1] + b',"more":1}',  # nothing wrong, but looked at by itself
    ],
)
def test_what_is_no_such_record_is_refused_behind_a_good_one_too(broken: bytes) -> None:
    key_of(wrapped(1))
    key_of(wrapped(1))

    with pytest.raises(UNDECODABLE):
        key_of(broken)

    assert key_of(wrapped(3)) == 3
