"""What actions make of a target's schema, and which of them make nothing of it."""

from __future__ import annotations

import pytest

from shardmerge.schemas.ddl.apply.actions import schema_after
from shardmerge.schemas.model.actions import (
    Action,
    CheckRemoval,
    ColumnRemoval,
    ColumnRename,
    CommentChange,
    DefaultChange,
    DefaultFill,
    IndexAddition,
    IndexRemoval,
    NullPermission,
    RowRemoval,
    TableCreation,
    TypeChange,
)
from shardmerge.schemas.model.errors import UnsupportedDDL
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.tables import Default, DefaultKind, TableSchema
from shardmerge.schemas.model.types import ColumnType
from tests.strategies import SERVER, table

TARGET = TargetTable("m", "t")
BEFORE = table(
    "create table t (id int not null primary key, v varchar(9) not null, b varbinary(9), key k (v),"
    " constraint c check (id > 0))"
)


def after(*actions: Action, before: TableSchema | None = BEFORE) -> TableSchema:
    return schema_after(before, actions, TARGET, SERVER)


def test_a_table_is_made_as_it_is_told() -> None:
    assert after(TableCreation(BEFORE), before=None) == BEFORE


def test_parts_of_a_definition_change_alone() -> None:
    found = after(TypeChange("v", ColumnType("varchar", 20, charset="utf8mb4"))).column("v")
    assert found is not None and (found.type.length, found.nullable) == (20, False)
    found = after(NullPermission("V")).column("v")
    assert found is not None and (found.type.length, found.nullable) == (9, True)
    found = after(CommentChange("v", "why")).column("v")
    assert found is not None and (found.comment, found.nullable) == ("why", False)


def test_a_key_takes_the_place_of_another_in_one_statement() -> None:
    key = table("create table t (id int, v varchar(9) not null primary key)").primary_key
    assert key is not None
    assert after(IndexRemoval("PRIMARY"), IndexAddition(key)).primary_key == key


def test_what_goes_is_gone() -> None:
    assert after(IndexRemoval("k")).index("k") is None
    assert after(CheckRemoval("c")).checks == ()
    assert after(ColumnRemoval("b")).column("b") is None
    assert after(ColumnRename("b", "d")).column("d") is not None


def test_an_empty_default_is_no_bytes_in_a_column_of_bytes() -> None:
    empty = Default(DefaultKind.LITERAL, "0x")
    action = DefaultChange.of("b", empty)
    assert action == DefaultChange("b", Default(DefaultKind.LITERAL, ""))
    found = after(action).column("b")
    assert found is not None and found.default == empty
    found = after(DefaultChange("v", action.default)).column("v")
    assert found is not None and found.default == action.default


@pytest.mark.parametrize(
    ("actions", "before", "reason"),
    [
        ((), BEFORE, "not known"),
        ((ColumnRemoval("b"),), None, "m.t is missing"),
        ((ColumnRemoval("x"),), BEFORE, "x"),
        ((NullPermission("x"),), BEFORE, "no column x"),
        ((RowRemoval(()),), BEFORE, "RowRemoval"),
        ((DefaultFill("v"),), BEFORE, "DefaultFill"),
        ((ColumnRemoval("b"), TableCreation(BEFORE)), BEFORE, "TableCreation"),
    ],
)
def test_what_makes_nothing_of_the_schema_is_refused(
    actions: tuple[Action, ...], before: TableSchema | None, reason: str
) -> None:
    with pytest.raises(UnsupportedDDL, match=reason):
        after(*actions, before=before)
