"""Which statements batches become, with respect to what the server takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shardmerge.schemas.model.names import TargetTable
from shardmerge.spark_sink.rows.folding.keyless import KeylessBatch
from shardmerge.spark_sink.rows.folding.row_batches import LINES_FROM_ROWS, Batch
from shardmerge.spark_sink.rows.folding.row_blocks import Block
from shardmerge.spark_sink.rows.values.column_values import ColumnValues
from shardmerge.spark_sink.rows.values.forms import Form
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from shardmerge.spark_sink.targets.mysql.tasks.bulk import (
    TableShape,
    read_shape,
    write_batch,
    write_keyless,
)

TABLE = TargetTable("d", "t")
SHAPE = TableShape(("id", "v"), ("id",), other_unique=False)
NOT_LOADED = replace(SHAPE, takes_loads=False)
PACKET = 1 << 16


class Recording(MySqlSession):
    """Has no server: keeps what would be sent."""

    def __init__(self, *, can_load: bool = True, is_mariadb: bool = False) -> None:
        super().__init__(MySqlAddress("", 0, "", ""))
        self.max_packet = PACKET
        self.sent: list[str] = []
        self.loaded: list[bytes] = []
        self._loads, self._mariadb = can_load, is_mariadb

    @property
    def can_load(self) -> bool:
        return self._loads

    @property
    def is_mariadb(self) -> bool:
        return self._mariadb

    def execute(self, sql: str, arguments: object = ()) -> int:
        self.sent.append(sql)
        return 1

    def execute_strictly(self, sql: str) -> int:
        self.sent.append(sql)
        return 1

    def load(self, sql: str, data: bytes | bytearray) -> int:
        self.loaded.append(bytes(data))
        return 1


def write(session: Recording, form: Form, *values: object, shape: TableShape = SHAPE) -> None:
    write_batch(session, TABLE, shape, Batch(("id",), None, (block_of(form, *values),)))


def block_of(form: Form, *values: object) -> Block:
    cells: tuple[ColumnValues, ...] = ([*range(len(values))], [*values])
    return Block(("id", "v"), (Form.INTEGER, form), cells, (False, False), len(values))


def remove(session: Recording, value: str | None) -> str:
    block = Block(("j",), (Form.TEXT,), ([value],), (value is None,), 1)
    write_keyless(session, TABLE, KeylessBatch(block, (1,), ("json",), None))
    [sql] = session.sent
    return sql


@pytest.mark.parametrize(
    ("form", "value"),
    [
        (Form.BYTES, b"\xab" * PACKET),
        (Form.TEXT, "x" * PACKET),
        (Form.TEXT, "\U0001f600" * (PACKET // 4)),
    ],
)
def test_a_row_too_large_for_a_statement_is_loaded(form: Form, value: str | bytes) -> None:
    session = Recording()

    write(session, form, value)

    text = value.hex() if isinstance(value, bytes) else value
    assert session.sent == [] and session.loaded == [f"0\t{text}\n".encode()]


@pytest.mark.parametrize("can_load", [True, False])
@pytest.mark.parametrize(
    ("form", "value"),
    [(Form.BYTES, b"\xab" * 500), (Form.TEXT, "\U0001f600" * 500), (Form.TEXT, "\\" * 1_000)],
)
def test_rows_that_fit_share_statements_that_the_server_takes(
    form: Form, value: str | bytes, can_load: bool
) -> None:
    session = Recording(can_load=can_load)

    write(session, form, *[value] * 100)

    assert session.loaded == [] and len(session.sent) > 1
    assert all(len(sql.encode()) < PACKET for sql in session.sent)
    assert sum(sql.count("(") - 1 for sql in session.sent) == 100


def test_a_large_row_has_a_statement_of_its_own_where_nothing_can_be_loaded() -> None:
    session = Recording(can_load=False)

    write(session, Form.BYTES, b"\xaa", b"\xbb" * PACKET, b"\xcc")

    assert session.loaded == []
    assert [len(sql) > PACKET for sql in session.sent] == [False, True, False]


def test_many_rows_of_a_table_that_is_not_loaded_are_written_by_statements() -> None:
    shapes = [b"\x01" * 25] * LINES_FROM_ROWS
    added = KeylessBatch(None, (), (), block_of(Form.BYTES, *shapes))
    keyed, keyless, loaded = Recording(), Recording(), Recording()

    write(keyed, Form.BYTES, *shapes, shape=NOT_LOADED)
    write_keyless(keyless, TABLE, added, takes_loads=False)
    write_keyless(loaded, TABLE, added)

    assert [*keyed.loaded, *keyless.loaded, *loaded.sent] == []
    assert {sql.split(" (")[0] for sql in keyed.sent} == {"REPLACE INTO `d`.`t`"}
    assert {sql.split(" (")[0] for sql in keyless.sent} == {"INSERT INTO `d`.`t`"}
    assert [sum(sql.count("(") - 1 for sql in one.sent) for one in (keyed, keyless)] == [300, 300]
    assert len(loaded.loaded) == 1


def test_a_table_that_is_not_loaded_gets_its_long_rows_by_statements_that_the_server_takes() -> (
    None
):
    # It is longer than every text that surely fits, and fits.
    value = b"\xab" * (PACKET // 2 - 100)
    session = Recording()

    write(session, Form.BYTES, b"\xaa", value, b"\xbb", shape=NOT_LOADED)

    assert session.loaded == [] and len(session.sent) == 3
    assert PACKET - 200 < max(len(sql.encode()) for sql in session.sent) < PACKET


@pytest.mark.parametrize("can_load", [True, False])
def test_a_row_that_no_statement_brings_is_loaded_nevertheless(can_load: bool) -> None:
    session, value = Recording(can_load=can_load), b"\xab" * (PACKET // 2)

    write(session, Form.BYTES, value, shape=NOT_LOADED)

    assert session.loaded == ([f"0\t{value.hex()}\n".encode()] if can_load else [])
    assert len(session.sent) == (not can_load)


@pytest.mark.parametrize("is_mariadb", [True, False])
@pytest.mark.parametrize(
    ("column", "takes_loads"),
    [
        (("v", "point", "NO"), False),
        (("v", "geomcollection", "NO"), False),
        (("v", "geometry", "YES"), True),
        (("v", "longblob", "NO"), True),
    ],
)
def test_what_is_loaded_is_read_from_the_tables_columns(
    column: tuple[str, ...], takes_loads: bool, is_mariadb: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def query(self: Any, sql: str, arguments: object = ()) -> list[tuple[Any, ...]]:
        of_keys = "STATISTICS" in sql
        return [("PRIMARY", "id")] if of_keys else [("id", "int", "NO"), column]

    monkeypatch.setattr(Recording, "query", query)

    shape = read_shape(Recording(is_mariadb=is_mariadb), TABLE)

    assert shape == replace(SHAPE, takes_loads=takes_loads or is_mariadb)


def test_keys_to_delete_share_statements_that_the_server_takes() -> None:
    session = Recording()
    keys: ColumnValues = [f"{n}" + "\U0001f600" * 300 for n in range(200)]
    deletes = Block(("id",), (Form.TEXT,), (keys,), (False,), len(keys))

    write_batch(session, TABLE, SHAPE, Batch(("id",), deletes, ()))

    assert len(session.sent) > 1
    assert all(len(sql.encode()) < PACKET for sql in session.sent)


def test_a_time_of_a_key_is_no_literal_that_a_server_compares_as_text() -> None:
    session = Recording()
    deletes = Block(("t",), (Form.TIME,), ([1_180_000, 0],), (False,), 2)

    write_batch(session, TABLE, SHAPE, Batch(("t",), deletes, ()))

    (sql,) = session.sent
    assert sql.endswith(
        " WHERE `t` IN (CAST('00:00:01.180000' AS TIME(6)), CAST('00:00:00' AS TIME(6)))"
    )


def test_json_is_compared_as_the_server_can() -> None:
    value = '{"a":"it\'s"}'
    literal = '\'{"a":"it\\\'s"}\''

    assert f"WHERE `j` = CAST({literal} AS JSON) LIMIT 1" in remove(Recording(), value)
    on_mariadb = remove(Recording(is_mariadb=True), value)
    assert "AS JSON" not in on_mariadb
    assert f"JSON_COMPACT({literal})" in on_mariadb and "JSON_COMPACT(`j`)" in on_mariadb


@pytest.mark.parametrize("is_mariadb", [True, False])
def test_json_that_is_null_is_found(is_mariadb: bool) -> None:
    assert "WHERE `j` IS NULL LIMIT 1" in remove(Recording(is_mariadb=is_mariadb), None)
