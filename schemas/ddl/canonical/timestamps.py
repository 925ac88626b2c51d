"""Implicit defaults of TIMESTAMP columns, in MySQL 5.7 and MariaDB before 10.10.

Source: MySQL Reference Manual, ``explicit_defaults_for_timestamp``; sql_table.cc
``promote_first_timestamp_column`` (read); measured on 5.7.
"""

from __future__ import annotations

from collections.abc import Collection

from shardmerge.schemas.ddl.grammar.definitions.defaults import current_timestamp
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.tables import Column, Default, DefaultKind


def with_implicit_defaults(
    columns: tuple[Column, ...], defined: Collection[str], context: ServerContext
) -> tuple[Column, ...]:
    """The columns of a table with the defaults that the server adds.

    Only NOT NULL columns without a default are concerned. The table's first TIMESTAMP gets the
    current time on insert and update, unless it has an ON UPDATE. Any other TIMESTAMP that the
    statement defines gets the zero timestamp.

    Args:
        columns: All columns of the table, normalised, in its order.
        defined: Names of the columns that the statement defines.
        context: The server.
    """
    if context.has_explicit_timestamps:
        return columns
    first = next((column for column in columns if column.type.name == "timestamp"), None)
    return tuple(
        [
            _with_default(c, defined, is_first=c is first) if _lacks_default(c) else c
            for c in columns
        ]
    )


def _lacks_default(column: Column) -> bool:
    return (
        column.type.name == "timestamp"
        and not column.nullable
        and column.default is None
        and column.generated is None
    )


def _with_default(column: Column, defined: Collection[str], *, is_first: bool) -> Column:
    fsp = column.type.fsp
    if is_first and not column.on_update:
        now = current_timestamp(fsp)
        return replace(column, default=Default(DefaultKind.EXPRESSION, now), on_update=now)
    if column.name not in defined:
        return column
    return replace(column, default=zero_moment(fsp))


def zero_moment(fsp: int) -> Default:
    """The zero timestamp with ``fsp`` fractional digits."""
    return Default(DefaultKind.LITERAL, "0000-00-00 00:00:00" + ("." + "0" * fsp if fsp else ""))
