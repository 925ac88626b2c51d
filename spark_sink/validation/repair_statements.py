"""The SQL that makes the target's rows equal to the shards' rows, for an operator to review. Pure.

The statements are right at the moment at which they are printed. Run them soon, while nothing
writes these rows; or have the rows read again instead. The server that has a row makes literals of
its values (``QUOTE``, ``HEX``). Every server of the family reads these literals exactly, in a
session with the settings of ``session_statement``.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardmerge.schemas.model.names import quote_identifier
from shardmerge.schemas.model.types import SPATIAL_NAMES, ColumnType

from .compared_table import ComparedTable, Side
from .doubts import Difference, DifferenceKind, SeenRow
from .lake_texts import lake_literal
from .row_keys import keys_condition

_NUMBERS = frozenset(("decimal", "bit", "year"))


def session_statement(table: ComparedTable) -> str:
    """Prepares the session in which the other statements are run.

    The literals of TIMESTAMP values are those of UTC. Strict modes refuse zero dates, which shards
    may have. Without the mode given, a key 0 of an AUTO_INCREMENT column would become the next one.
    """
    if table.side.lake:
        return "SET TIME ZONE 'UTC';"
    return "SET SESSION time_zone = '+00:00', sql_mode = 'NO_AUTO_VALUE_ON_ZERO';"


def delete_statement(table: ComparedTable, found: Difference) -> str:
    """Removes a row that no shard has."""
    where = keys_condition(table.side.key, [found.key])
    most = "" if table.side.lake else " LIMIT 1"
    return f"DELETE FROM {table.side.table} WHERE {where}{most};"


def literals_query(table: ComparedTable, side: Side, found: Difference) -> str:
    """Asks a shard for the literals of a row, one for each column that it has a value for."""
    chosen = [
        literal_of(column.type, value)
        for column, value in zip(table.side.columns, side.values, strict=True)
        if value
    ]
    where = keys_condition(side.key, [found.key])
    return f"SELECT {', '.join(chosen)} FROM {side.table} WHERE {where}"


def write_statement(
    table: ComparedTable, side: Side, found: Difference, literals: Sequence[str]
) -> str:
    """Writes a row that is missing or differs.

    Args:
        table: What is compared.
        side: The shard that has the row.
        found: The difference.
        literals: What ``literals_query`` answered.
    """
    names = [
        quote_identifier(name)
        for name, value in zip(table.columns, side.values, strict=True)
        if value
    ]
    return _written(table, found, names, literals)


def lake_statement(table: ComparedTable, side: Side, found: Difference, row: SeenRow) -> str:
    """Writes a row of an Iceberg table that is missing or differs, in Spark SQL.

    Args:
        table: What is compared.
        side: The shard that has the row.
        found: The difference.
        row: The shard's row.
    """
    names, literals = [], []
    for column, text, value in zip(table.side.columns, side.texts, row.values, strict=True):
        if text is not None:
            names.append(quote_identifier(column.name))
            literals.append("NULL" if value is None else lake_literal(column.type, value.decode()))
    return _written(table, found, names, literals)


def _written(
    table: ComparedTable, found: Difference, names: Sequence[str], literals: Sequence[str]
) -> str:
    if found.kind is DifferenceKind.DIFFERS:
        pairs = ", ".join(
            f"{name} = {literal}"
            for name, literal in zip(names, literals, strict=True)
            if name in {quote_identifier(each) for each in found.columns}
        )
        where = keys_condition(table.side.key, [found.key])
        return f"UPDATE {table.side.table} SET {pairs} WHERE {where};"
    return f"INSERT INTO {table.side.table} ({', '.join(names)}) VALUES ({', '.join(literals)});"


def literal_of(kind: ColumnType, value: str) -> str:
    """SQL that gives the literal of a value, as text.

    Args:
        kind: The target's type of the value.
        value: SQL of the value on the shard.
    """
    name = kind.name
    if kind.is_integer or name in _NUMBERS:
        literal = f"CAST({value} + 0 AS CHAR)" if name != "decimal" else f"CAST({value} AS CHAR)"
    elif name in ("float", "double"):
        literal = f"CAST({value} + 0e0 AS CHAR)"
    elif kind.is_binary or name in SPATIAL_NAMES:
        literal = f"CONCAT('X''', HEX({value}), '''')"
    elif kind.is_string or name in ("enum", "set", "json"):
        text = f"CAST({value} AS CHAR)" if name == "json" else value
        literal = f"CONCAT('_utf8mb4 X''', HEX(CONVERT({text} USING utf8mb4)), '''')"
    else:
        literal = f"QUOTE(CAST({value} AS CHAR))"
    return f"IFNULL({literal}, 'NULL')"
