"""Every renderer answers for every type and kind of statement: with text, or with a reason."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.changes import AlterTable, CreateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.mysql_facts import NULL_DEFAULT
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.tables import Check, Column, Index, IndexKind, IndexPart, TableSchema
from shardmerge.schemas.model.types import (
    BLOB_NAMES,
    INTEGER_NAMES,
    SPATIAL_NAMES,
    TEMPORAL_NAMES,
    TEXT_NAMES,
)
from shardmerge.schemas.target.dialects.dialect import (
    CannotRender,
    Dialect,
    FittedColumn,
    LeftOut,
    Place,
    Rendering,
)
from shardmerge.schemas.target.dialects.dialects import dialect_of
from shardmerge.schemas.target.dialects.mysql_dialect import MySqlDialect
from shardmerge.schemas.target.dialects.spark import SparkDialect

TARGET = TargetTable("m", "t")
MARIADB = ServerContext("mariadb", (11, 8))
MYSQL = ServerContext("mysql", (9, 7))
DIALECTS: tuple[Dialect, ...] = (
    *(dialect_of("mysql", version) for version in ("5.7.44", "8.0.11", "8.0.36", "8.4.0", "9.7.0")),
    *(dialect_of("mariadb", version) for version in ("10.2.10", "10.4.30", "10.11.8", "11.8.2")),
    dialect_of("tidb", "7.5"),
    SparkDialect(),
)
_MYSQL_TYPES = (
    *INTEGER_NAMES, "int unsigned", "bigint unsigned zerofill", "tinyint(1)", "decimal(65,30)",
    "decimal(9,2) unsigned", "float", "double unsigned", "float(7,4)", "bit(1)", "bit(64)",
    "char(9)", "varchar(9)", "varchar(9) charset latin1", "char(3) charset gb18030",
    "varchar(9) collate utf8mb4_0900_as_cs", *TEXT_NAMES, "binary(9)", "varbinary(9)",
    *BLOB_NAMES, *TEMPORAL_NAMES, "datetime(6)", "time(3)", "timestamp(3) null", "enum('a','b')",
    "set('a','b')", "json", *SPATIAL_NAMES, "point srid 4326", "vector(3)",
)  # fmt: skip
_MARIADB_TYPES = ("uuid", "inet4", "inet6", "vector(3)")
NAMES = [*_MYSQL_TYPES, *(f"mariadb {name}" for name in _MARIADB_TYPES)]


def column(name: str, more: str = "") -> Column:
    context = MARIADB if name.startswith("mariadb ") else MYSQL
    sql = f"CREATE TABLE t (c {name.removeprefix('mariadb ')} {more})"
    statement = parse(sql, context)
    assert isinstance(statement, CreateTable)
    found = apply_create(statement, context).columns[0]
    # As ``target_schema`` asks: NULL as a default is said.
    return replace(found, default=NULL_DEFAULT) if found.nullable else found


def told(answer: object) -> bool:
    """Whether what cannot be said has a reason and a way out."""
    return not isinstance(answer, CannotRender) or bool(answer.reason and answer.hint)


def read(dialect: Dialect, answer: Rendering) -> None:
    """Statements of MySQL's kind are read again by the grammar."""
    assert told(answer)
    if isinstance(answer, CannotRender):
        return
    assert all(one.sql and one.actions for one in answer)
    if isinstance(dialect, MySqlDialect):
        for one in answer:
            parsed = parse(one.sql, dialect.server)
            assert isinstance(parsed, (AlterTable, CreateTable)), one.sql


def columns_of(dialect: Dialect) -> dict[tuple[str, str], Column]:
    """Every column that the target can have, by type and place."""
    found: dict[tuple[str, str], Column] = {}
    for name, (words, optional) in product(NAMES, (("", True), ("not null", False))):
        place = Place(optional=optional, is_new_table=True)
        fitted = dialect.fit_column(column(name, words), place)
        assert told(fitted)
        if isinstance(fitted, FittedColumn):
            assert all(fitted.notes)
            found[name, words] = fitted.column
    return found


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
def test_every_type_has_a_form_or_a_reason(dialect: Dialect) -> None:
    found = columns_of(dialect)
    assert len(found) > len(NAMES)
    for fitted in found.values():
        read(dialect, dialect.create_table(TARGET, TableSchema((fitted,))))
        read(dialect, dialect.add_column(TARGET, fitted))
        read(dialect, dialect.drop_column(TARGET, fitted))
        read(dialect, dialect.rename_column(TARGET, fitted, "d"))
        zero = dialect.zero_value(fitted.type)
        assert zero is None or zero != NULL_DEFAULT


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
def test_every_change_of_type_is_said_or_refused_with_a_reason(dialect: Dialect) -> None:
    found = columns_of(dialect)
    nullable = [fitted for (_, words), fitted in found.items() if not words]
    for (before, after), in_key in product(product(nullable, repeat=2), (False, True)):
        assert told(dialect.change_column(TARGET, before, after, in_key=in_key))
    for name in NAMES:
        pair = [found[name, words] for words in ("", "not null") if (name, words) in found]
        for before, after in product(pair, repeat=2):
            read(dialect, dialect.change_column(TARGET, before, after, in_key=False))


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
def test_every_kind_of_key_index_and_check_is_said_or_left_out_with_a_reason(
    dialect: Dialect,
) -> None:
    number, place, text = column("int", "not null"), column("point", "not null"), column("text")
    for kind, of in product(IndexKind, (number, place, text)):
        schema = TableSchema((of,))
        name = "PRIMARY" if kind is IndexKind.PRIMARY else "k"
        for part in (IndexPart("c"), IndexPart("c", length=3), IndexPart("c", descending=True)):
            index = dialect.fit_index(Index(name, kind, (part,)), schema)
            if isinstance(index, LeftOut):
                assert index.reason
            elif kind is IndexKind.PRIMARY:
                read(dialect, dialect.change_primary_key(TARGET, None, index))
                read(dialect, dialect.change_primary_key(TARGET, index, None))
            else:
                read(dialect, dialect.add_index(TARGET, index))
                read(dialect, dialect.drop_index(TARGET, index))
    for enforced in (True, False):
        check = dialect.fit_check(Check("k", "(`c` > 1)", enforced))
        if isinstance(check, LeftOut):
            assert check.reason
        else:
            read(dialect, dialect.add_check(TARGET, check))
            read(dialect, dialect.drop_check(TARGET, check))


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
@pytest.mark.parametrize("storage", ["virtual", "stored"])
def test_computed_columns_are_said_or_refused_with_a_reason(dialect: Dialect, storage: str) -> None:
    computed = column("int", f"as (1 + 1) {storage}")
    ordinary = column("int")
    fitted = dialect.fit_column(replace(computed, default=None), Place())
    assert isinstance(fitted, FittedColumn)
    read(dialect, dialect.add_column(TARGET, fitted.column))
    for before, after in ((fitted.column, ordinary), (ordinary, fitted.column)):
        read(dialect, dialect.change_column(TARGET, before, after, in_key=False))
