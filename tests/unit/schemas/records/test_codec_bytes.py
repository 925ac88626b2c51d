"""Any record's bytes are those of Avro's own library, and no bytes make the reader break."""

from __future__ import annotations

import contextlib
import types
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from itertools import product
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmerge.schemas.model.actions import ColumnRemoval, IndexRemoval, NullPermission
from shardmerge.schemas.model.errors import ContractError, UnknownSchemaVersion
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.records import codec, plain, plain_fields
from shardmerge.schemas.records.codec import RECORDS, Record, decode, encode
from shardmerge.schemas.records.decisions import StatementKind, TargetStatement
from tests.golden.test_avro import NAMES, contract, written_by_avro
from tests.unit.schemas.records.test_codec_plain import CHANGE, EMITTED, RECORDED


@cache
def values(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a contract's type, in its plain form: whether they make sense is not asked."""
    origin = get_origin(kind)
    if records := plain_fields.alternatives(kind):
        return st.one_of([values(record) for record in records])
    if origin in (Union, types.UnionType):
        return st.none() | values(next(a for a in get_args(kind) if a is not type(None)))
    if origin is tuple:
        items = get_args(kind)
        if items[-1] is not Ellipsis:
            return st.tuples(*map(values, items))
        return st.lists(values(items[0]), max_size=2).map(tuple)
    if is_dataclass(kind):
        assert isinstance(kind, type)
        hints = get_type_hints(kind)
        return st.builds(kind, **{f.name: values(hints[f.name]) for f in fields(kind)})
    if issubclass(kind, Enum):
        return st.sampled_from(kind)
    return {
        str: st.text(max_size=4), bool: st.booleans(), int: st.integers(-(2**63), 2**63 - 1)
    }[kind]  # fmt: skip


def any_record() -> st.SearchStrategy[Record]:
    kinds: list[Any] = list(RECORDS.values())
    return st.one_of([values(kind) for kind in kinds])


@given(record=any_record())
def test_any_record_has_the_bytes_of_avro_s_own_library(record: Record) -> None:
    data = encode(record)
    assert data == written_by_avro(contract(NAMES[type(record)]), plain.to_plain(record))
    assert decode(data) == record


def test_tables_that_differ_in_one_thing_have_bytes_of_their_own_in_any_order() -> None:
    """The bytes of tables and columns are remembered; each must be found by all that it holds."""
    table = CHANGE.before
    assert table is not None
    column = table.columns[0]
    tables = (
        table,
        replace(table, comment=table.comment + "x"),
        replace(table, columns=(replace(column, comment="x"), *table.columns[1:])),
        replace(table, columns=(replace(column, invisible=True), *table.columns[1:])),
        None,
    )
    for before, after in (*product(tables, tables), *product(tables, tables)):
        change = replace(CHANGE, before=before, after=after)
        expected = written_by_avro(contract("schema_change"), plain.to_plain(change))
        assert encode(change) == expected


@given(record=st.sampled_from(RECORDED), at=st.integers(10, 400), data=st.binary(max_size=12))
def test_damaged_bytes_are_a_contract_error_or_another_record(
    record: Record, at: int, data: bytes
) -> None:
    whole = encode(record)
    damaged = whole[:at] + data + whole[at + len(data) :]
    with contextlib.suppress(ContractError):
        assert isinstance(decode(damaged), type(record))


@pytest.mark.parametrize("record", RECORDED, ids=lambda r: type(r).__name__)
def test_bytes_that_are_left_over_are_damage(record: Record) -> None:
    with pytest.raises(ContractError, match=f"a {type(record).__name__} record is damaged: 2 byte"):
        decode(encode(record) + b"\0\0")


def test_a_record_of_a_contract_that_nobody_kept_says_what_to_do() -> None:
    data = bytearray(encode(CHANGE))
    data[5] ^= 1
    with pytest.raises(UnknownSchemaVersion, match=data[2:10].hex()) as raised:
        decode(bytes(data))
    assert "run that version or a newer one" in raised.value.hint


def test_records_that_are_alike_in_their_fields_are_told_apart_by_their_names() -> None:
    for one, other in ((ColumnRemoval("c"), IndexRemoval("c")), (NullPermission("c"),) * 2):
        statement = TargetStatement("", StatementKind.ROWS, "", (), actions=(one, other))
        decision = replace(EMITTED, statements=(statement,))
        assert decode(encode(decision)) == decision


def test_a_union_s_value_comes_with_its_branch() -> None:
    """Else the writer tries the branches out, which costs more than the encoding."""
    datum = codec._datum(TableSchema | None)
    assert datum is not None
    assert datum(CHANGE.before)[0] == "shardmerge.TableSchema"
