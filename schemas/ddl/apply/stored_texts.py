"""Expressions of a decision in the form in which the target's server stores them.

Their texts are canonical for the sources that wrote them, or for an earlier version of the grammar.
A target of another kind or version stores some functions in another form, which SHOW CREATE TABLE
of this target then has.
"""

from __future__ import annotations

from functools import lru_cache

from shardmerge.schemas.ddl.expressions import canonical
from shardmerge.schemas.model.errors import UnparsableDDL
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.tables import Check, Column, Default, DefaultKind, Index, TableSchema

_CURRENT_TIME = "CURRENT_TIMESTAMP"


@lru_cache(maxsize=512)
def stored_text(text: str, context: ServerContext) -> str:
    """An expression as this server stores it; unchanged if the server's grammar lacks a part."""
    try:
        return canonical(text, context)
    except UnparsableDDL:
        return text


def stored_column(column: Column, context: ServerContext) -> Column:
    """A column as this server stores it."""
    generated, default = column.generated, stored_default(column.default, context)
    if generated is not None:
        generated = replace(generated, expression=stored_text(generated.expression, context))
    if (generated, default) == (column.generated, column.default):
        return column
    return replace(column, generated=generated, default=default)


def stored_default(default: Default | None, context: ServerContext) -> Default | None:
    """A default as this server stores it."""
    if default is None or default.kind is not DefaultKind.EXPRESSION:
        return default
    if default.text.startswith(_CURRENT_TIME):
        return default
    return replace(default, text=stored_text(default.text, context))


def stored_index(index: Index, context: ServerContext) -> Index:
    """An index as this server stores it."""
    if all(part.column for part in index.parts):
        return index
    parts = tuple(
        part if part.column else replace(part, expression=stored_text(part.expression, context))
        for part in index.parts
    )
    return replace(index, parts=parts)


def stored_check(check: Check, context: ServerContext) -> Check:
    """A CHECK as this server stores it."""
    return replace(check, expression=stored_text(check.expression, context))


def stored_schema(schema: TableSchema, context: ServerContext) -> TableSchema:
    """A table as this server stores it."""
    return replace(
        schema,
        columns=tuple(stored_column(column, context) for column in schema.columns),
        indexes=tuple(stored_index(index, context) for index in schema.indexes),
        checks=tuple(stored_check(check, context) for check in schema.checks),
    )
