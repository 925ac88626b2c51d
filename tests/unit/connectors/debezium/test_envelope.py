from __future__ import annotations

import json

import pytest

from shardmerge.connectors.debezium.envelope import schema_change_event, whole_statement
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition


def record(**fields):
    value = {
        "source": {
            "name": "s1", "snapshot": "false", "db": "shop", "table": "tbl00",
            "file": "binlog.000002", "pos": 157, "row": 0,
        },
        "ts_ms": 12,
        "databaseName": "shop",
        "ddl": "ALTER TABLE tbl00 ADD COLUMN x INT",
        "tableChanges": [],
    }  # fmt: skip
    value.update(fields)
    return json.dumps(value).encode()


def read(value: bytes | None):
    return schema_change_event("s1", 7, b'{"databaseName":"shop"}', value)


def source(**fields):
    return {**json.loads(record())["source"], **fields}


def test_a_record_is_read_with_its_place():
    event = read(record())
    assert (event.source, event.offset, event.database) == ("s1", 7, "shop")
    assert event.position == SourcePosition(0, "binlog.000002", 157, 0)
    assert (event.snapshot, event.ts_ms) == (False, 12)


def test_a_record_with_its_embedded_schema_is_the_same():
    plain = record()
    embedded = json.dumps({"schema": {"type": "struct"}, "payload": json.loads(plain)})
    assert read(embedded.encode()) == read(plain)


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        ("true", True), ("first", True), ("last_in_data_collection", True),
        ("false", False), (None, False), ("incremental", False),
    ],
)  # fmt: skip
def test_only_an_initial_snapshot_describes(mark, expected):
    # A statement that runs during an incremental snapshot is a change like any other.
    assert read(record(source=source(snapshot=mark))).snapshot is expected


@pytest.mark.parametrize(
    ("text", "database", "table"),
    [
        ('"shop"."tbl00"', "shop", "tbl00"),
        ('"sh""op"."t.y"', 'sh"op', "t.y"),
        ('"shop".od`d "n"', "shop", 'od`d "n"'),
        ('"a.b"."c"', "a.b", "c"),
    ],
)
def test_every_form_of_table_id_is_read(text, database, table):
    change = {"type": "ALTER", "id": text, "table": {"columns": []}}
    (found,) = read(record(tableChanges=[change])).tables
    assert (found.database, found.table) == (database, table)


def test_the_epoch_of_the_source_stands_beside_its_block():
    assert read(record(shardmerge_epoch="3")).position.epoch == 3
    for bad in (3, "three", ""):
        with pytest.raises(ContractError, match="shardmerge_epoch"):
            read(record(shardmerge_epoch=bad))


def test_a_dropped_table_has_no_columns():
    change = {"type": "DROP", "id": '"shop"."tbl00"', "table": None}
    assert read(record(tableChanges=[change])).tables[0].columns == ()


def test_the_tables_of_one_statement_are_listed_with_commas():
    event = read(record(source=source(table="tbl00,_tbl00_del")))
    names = [ShardId("s1", "shop", "tbl00"), ShardId("s1", "shop", "_tbl00_del")]
    assert list(event.named_shards()) == names


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (None, "the value is null"),
        (b"not json", "Expecting value"),
        (b"[]", "is not an object"),
        (b'{"schema": {}, "payload": {}}', "'source' is missing"),
        (b'{"schema": {}, "payload": []}', "the payload is not an object"),
        (record(ddl=None), "'ddl' is not a text"),
        (record(source={}), "'name' is missing"),
        (record(source=source(pos="1")), "'pos' is not an integer"),
        (record(tableChanges={"a": 1}), "'tableChanges' is not a list"),
    ],
)
def test_what_is_no_schema_change_record_is_refused_with_its_place(value, what):
    with pytest.raises(ContractError) as caught:
        read(value)
    assert "s1@7" in str(caught.value)
    assert what in str(caught.value)
    assert caught.value.hint


def test_what_a_server_s_binlog_tells_describes_nothing_whatever_its_mark() -> None:
    # After a restart behind an incremental snapshot Debezium marks what it reads from the binlog.
    assert not read(record(source=source(snapshot="true", server_id=101))).snapshot
    assert read(record(source=source(snapshot="true", server_id=0))).snapshot


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        ("UNIQUE INDEX u1 ON k1 (a)", "CREATE UNIQUE INDEX u1 ON k1 (a)"),
        ("unique /* in */ index u on k (a)", "CREATE unique /* in */ index u on k (a)"),
        ("CREATE UNIQUE INDEX u3 ON k3 ((a + c))", "CREATE UNIQUE INDEX u3 ON k3 ((a + c))"),
        ("ALTER TABLE k3 ADD UNIQUE INDEX u5 (a)", "ALTER TABLE k3 ADD UNIQUE INDEX u5 (a)"),
        ("CREATE SPATIAL INDEX s ON k5 (g)", "CREATE SPATIAL INDEX s ON k5 (g)"),
        ("uniquely named", "uniquely named"),
    ],
)  # fmt: skip
def test_a_unique_index_on_a_table_without_a_key_gets_its_first_word_back(given, whole):
    assert whole_statement(given) == whole
    assert read(record(ddl=given)).ddl == whole
