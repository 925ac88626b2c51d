"""Expressions in the form in which a server stores them.

The texts of a decision are canonical for the sources that wrote them, or for an earlier version of
the grammar. A target of another kind or version stores some functions in another form, which SHOW
CREATE TABLE of this target then has. Texts that an earlier version of the grammar wrote for a
source, read again, are the texts of this version: reading a canonical text again changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import TypeAlias, TypeGuard

from shardmerge.schemas.ddl.expressions import canonical
from shardmerge.schemas.model.errors import UnparsableDDL
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.tables import Check, Column, Default, DefaultKind, Index, TableSchema

_CURRENT_TIME = "CURRENT_TIMESTAMP"
_REAL_AS_FLOAT = frozenset({"REAL_AS_FLOAT"})
Restate: TypeAlias = Callable[[str], str]
"""Gives an expression's text in another form."""


@lru_cache(maxsize=4096)
def stored_text(text: str, context: ServerContext) -> str:
    """An expression as this server stores it; unchanged if the server's grammar lacks a part.

    Args:
        text: Canonical, so the server's modes that change how a statement is read do not count.
        context: The server.
    """
    modes = _REAL_AS_FLOAT if context.real_as_float else frozenset()
    try:
        return canonical(text, replace(context, sql_mode=modes))
    except UnparsableDDL:
        return text


def stored_column(column: Column, context: ServerContext) -> Column:
    """A column as this server stores it."""
    return _column(column, partial(stored_text, context=context))


def stored_default(default: Default | None, context: ServerContext) -> Default | None:
    """A default as this server stores it."""
    return _default(default, partial(stored_text, context=context))


def stored_index(index: Index, context: ServerContext) -> Index:
    """An index as this server stores it."""
    return _index(index, partial(stored_text, context=context))


def stored_check(check: Check, context: ServerContext) -> Check:
    """A CHECK as this server stores it."""
    return _check(check, partial(stored_text, context=context))


def stored_schema(schema: TableSchema, context: ServerContext) -> TableSchema:
    """A table as this server stores it."""
    return with_texts(schema, partial(stored_text, context=context))


def with_texts(schema: TableSchema, restate: Restate) -> TableSchema:
    """A table with its expressions in another form; the same object when none changes."""
    columns = tuple([_column(column, restate) for column in schema.columns])
    indexes = tuple([_index(index, restate) for index in schema.indexes])
    checks = tuple([_check(check, restate) for check in schema.checks])
    if (columns, indexes, checks) == (schema.columns, schema.indexes, schema.checks):
        return schema
    return replace(schema, columns=columns, indexes=indexes, checks=checks)


def texts_of(schema: TableSchema) -> Iterator[str]:
    """The expressions of a table that ``with_texts`` restates."""
    for column in schema.columns:
        if column.generated is not None:
            yield column.generated.expression
        if _has_text(column.default):
            yield column.default.text
    for index in schema.indexes:
        yield from (part.expression for part in index.parts if not part.column)
    yield from (check.expression for check in schema.checks)


def _has_text(default: Default | None) -> TypeGuard[Default]:
    if default is None or default.kind is not DefaultKind.EXPRESSION:
        return False
    return not default.text.startswith(_CURRENT_TIME)


def _default(default: Default | None, restate: Restate) -> Default | None:
    return replace(default, text=restate(default.text)) if _has_text(default) else default


def _column(column: Column, restate: Restate) -> Column:
    generated, default = column.generated, _default(column.default, restate)
    if generated is not None:
        generated = replace(generated, expression=restate(generated.expression))
    if (generated, default) == (column.generated, column.default):
        return column
    return replace(column, generated=generated, default=default)


def _index(index: Index, restate: Restate) -> Index:
    if all(part.column for part in index.parts):
        return index
    parts = tuple(
        part if part.column else replace(part, expression=restate(part.expression))
        for part in index.parts
    )
    return replace(index, parts=parts)


def _check(check: Check, restate: Restate) -> Check:
    return replace(check, expression=restate(check.expression))
