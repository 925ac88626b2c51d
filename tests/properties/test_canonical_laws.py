"""A table in canonical words is the table, as far as Debezium keeps it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from shardmerge.connectors.repair.schema_history.canonical import create_text
from shardmerge.schemas.ddl.changes import TableName
from shardmerge.schemas.model.tables import IndexKind, TableSchema
from shardmerge.schemas.model.types import ColumnType
from tests.strategies import table, tables

NAME = TableName("app", "t")


def kept(schema: TableSchema) -> list[tuple[str, ColumnType, bool]]:
    return [(c.name, replace(c.type, collation="", srid=None), c.nullable) for c in schema.columns]


def keys(schema: TableSchema) -> list[tuple[bool, tuple[str, ...]]]:
    found = [
        (index.kind is IndexKind.PRIMARY, tuple(index.columns))
        for index in schema.indexes
        if index.is_unique and not any(part.expression for part in index.parts)
    ]
    return sorted(set(found))


@given(tables())
def test_a_canonical_table_has_the_same_columns_and_keys(schema: TableSchema) -> None:
    again = table(create_text(NAME, schema))
    assert kept(again) == kept(schema)
    assert keys(again) == keys(schema)
    assert again.charset == schema.charset


@given(tables())
def test_canonical_words_of_canonical_words_are_the_same(schema: TableSchema) -> None:
    text = create_text(NAME, schema)
    assert create_text(NAME, table(text)) == text
