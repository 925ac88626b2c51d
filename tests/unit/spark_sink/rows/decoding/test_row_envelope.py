"""Debezium row records."""

from __future__ import annotations

import json

import pytest

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.spark_sink.rows.decoding.row_envelope import (
    UndecodableRow,
    decode_row,
    image_names,
    position_of,
    shard_of,
)

SOURCE = {"name": "s1", "db": "app", "table": "t", "file": "binlog.000007", "pos": 4, "row": 2}


def record(op: str, before: object, after: object) -> bytes:
    return json.dumps({"op": op, "before": before, "after": after, "source": SOURCE}).encode()


@pytest.mark.parametrize("op", ["r", "c", "u"])
def test_an_upsert_shows_the_row_after_it(op: str) -> None:
    assert decode_row(record(op, {"id": 1}, {"id": 2})).image == {"id": 2}


def test_a_delete_shows_the_row_before_it() -> None:
    assert decode_row(record("d", {"id": 1}, None)).image == {"id": 1}


def test_an_embedded_connect_schema_is_left_aside() -> None:
    value = json.dumps({"schema": {}, "payload": json.loads(record("c", None, {"id": 1}))})

    assert decode_row(value.encode()).image == {"id": 1}


@pytest.mark.parametrize(
    "value", [b"", b"{", b"[]", b"5", b"{}", b'{"op": "c"}', b'{"payload": 1}']
)
def test_what_is_no_envelope_is_undecodable(value: bytes) -> None:
    with pytest.raises(UndecodableRow):
        decode_row(value)


def test_the_source_block_tells_place_and_shard() -> None:
    source = decode_row(record("t", None, None)).source

    assert position_of(source, 0) == SourcePosition(0, "binlog.000007", 4, 2)
    assert shard_of(source) == ShardId("s1", "app", "t")


def test_a_source_block_without_a_place_is_undecodable() -> None:
    with pytest.raises(UndecodableRow):
        position_of({"file": "binlog.1"}, 0)


def test_a_backtick_in_a_name_may_be_doubled_in_images() -> None:
    assert image_names("a`b") == ("a`b", "a``b")
