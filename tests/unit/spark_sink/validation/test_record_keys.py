from __future__ import annotations

import json
from typing import Any

import pytest

from shardmerge.spark_sink.rows.decoding.row_format import JSON_ROWS
from shardmerge.spark_sink.validation.compared_table import compared_table
from shardmerge.spark_sink.validation.record_keys import NamesNoKey, RecordKeys, unnamed_reason

from .facts import ORIGIN, S1, S2, shard, target, with_origin

OWN = "CREATE TABLE t (id int, name varchar(9) charset latin1, a int, PRIMARY KEY (id, name))"


def keys(own: str = OWN, wanted: str = OWN) -> RecordKeys:
    side = compared_table(target(wanted), [shard(S1, own)]).shards[0]
    assert unnamed_reason(side) == ""
    return RecordKeys(side, JSON_ROWS)


def record(op: str, after: Any = None, before: Any = None, **source: str) -> bytes:
    names = {"name": "s1", "db": "app", "table": "t_1", **source}
    return json.dumps({"op": op, "after": after, "before": before, "source": names}).encode()


def test_an_update_names_the_row_before_it_and_the_row_after_it() -> None:
    before, after = {"id": 1, "name": "ä", "a": 1}, {"id": 2, "name": "", "a": 1}
    assert keys().of(record("u", after, before)) == {("1", "C3A4"), ("2", "")}
    assert keys().of(record("c", after)) == {("2", "")}
    assert keys().of(record("d", before=before)) == {("1", "C3A4")}
    assert keys().of(record("r", after, snapshot="incremental")) == {("2", "")}


def test_a_record_of_another_shard_names_no_row_of_this_one() -> None:
    assert keys().of(record("c", {"id": 1}, table="t_9")) == set()


def test_what_changes_rows_that_it_does_not_name_is_told() -> None:
    with pytest.raises(NamesNoKey, match="was truncated"):
        keys().of(record("t"))
    with pytest.raises(NamesNoKey, match="was taken again meanwhile"):
        keys().of(record("r", {"id": 1, "name": "x"}, snapshot="true"))
    with pytest.raises(NamesNoKey, match="no column name"):
        keys().of(record("c", {"id": 1}))


@pytest.mark.parametrize(
    ("own", "wanted", "value", "text"),
    [
        ("int", "decimal(20,0)", 7, "7"),
        ("decimal(9,2)", "decimal(12,4)", "-1.50", "-1.5000"),
        ("binary(2)", "binary(4)", "AP8=", "00FF0000"),
        ("varbinary(9)", "varbinary(9)", "AP8=", "00FF"),
        ("year", "year", 2020, "2020"),
        ("date", "date", 0, "1970-01-01"),
        ("date", "datetime(3)", 0, "1970-01-01 00:00:00.000"),
        ("datetime(3)", "datetime(6)", 1, "1970-01-01 00:00:00.001000"),
        ("datetime", "datetime", 1000, "1970-01-01 00:00:01"),
        ("timestamp(6)", "timestamp(6)", "2020-01-02T03:04:05.5Z", "2020-01-02 03:04:05.500000"),
    ],
)
def test_a_keys_text_is_that_of_the_servers(own: str, wanted: str, value: Any, text: str) -> None:
    made = (f"CREATE TABLE t (k {each} PRIMARY KEY, a int)" for each in (own, wanted))
    assert keys(*made).of(record("c", {"k": value, "a": 1})) == {(text,)}


def test_an_origin_column_of_the_key_is_the_shards() -> None:
    rule = with_origin()
    own = "CREATE TABLE t (id int PRIMARY KEY)"
    side = compared_table(
        target(own, origin=ORIGIN), [shard(S1, own, rule), shard(S2, own, rule)]
    ).shards[0]
    assert unnamed_reason(side) == ""
    assert RecordKeys(side, JSON_ROWS).of(record("c", {"id": 3})) == {
        ("3", str(S1).encode().hex().upper())
    }


@pytest.mark.parametrize("kind", ["enum('a')", "double", "time"])
def test_keys_whose_text_only_the_server_knows_are_not_read(kind: str) -> None:
    own = f"CREATE TABLE t (k {kind} PRIMARY KEY)"
    side = compared_table(target(own), [shard(S1, own)]).shards[0]
    assert "are not read from records" in unnamed_reason(side)
