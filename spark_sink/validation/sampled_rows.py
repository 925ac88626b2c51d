"""Rows of a table without a primary key: what people see of them, and what repairs them. Pure.

Such a row has no name but its digest, so one row of each digest is read. Rows of one digest have
equal values in all columns of the digest.

The statements find rows by the digest, too: a comparison of values would not do. A collation calls
different texts equal, and a FLOAT is seldom equal to its digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shardmerge.schemas.model.names import quote_identifier
from shardmerge.schemas.model.types import SPATIAL_NAMES, ColumnType

from .compared_table import ComparedTable, Side
from .doubts import Difference, Key
from .repair_statements import literal_of
from .validation_queries import digest_of, digest_source

MOST_SHOWN = 1_000
"""Of so many digests rows are read."""
MOST_WRITTEN = 1_000
"""A statement writes so many equal rows at most."""
_LENGTH = 1_000
"""Characters of a value that are shown."""


@dataclass(frozen=True, slots=True)
class SampledRow:
    """One row of a digest.

    Attributes:
        shown: Column of the target → its value as people write it; bytes begin with ``0x``.
        literals: Column of the target, quoted → the literal of its value; empty for a row of an
            Iceberg table, and for one of the target.
    """

    shown: dict[str, str | None]
    literals: dict[str, str]


def sample_query(table: ComparedTable, side: Side, digests: Sequence[Key]) -> str:
    """Asks for one row of each of these digests: see ``sampled_row``.

    Args:
        table: What is compared.
        side: Whose rows are read.
        digests: Texts of whole numbers, at least one.
    """
    values = _values(table, side)
    selected = [_shown(kind, value, lake=side.lake) for _, kind, value in values]
    if _has_literals(table, side):
        selected += [literal_of(kind, value) for _, kind, value in values]
    named = ", ".join(f"{sql} AS v{n}" for n, sql in enumerate(selected))
    each = f"SELECT {digest_of(side)} AS d, {named} FROM {digest_source(side)}"
    # All rows of a digest are equal, so the least value of each column is that of one row.
    least = ", ".join(f"MIN(v{n})" for n in range(len(selected)))
    wanted = ", ".join(str(int(number)) for (number,) in digests)
    return f"SELECT d, {least} FROM ({each}) AS rows_of_it WHERE d IN ({wanted}) GROUP BY d"


def sampled_row(table: ComparedTable, side: Side, answer: Sequence[str | None]) -> SampledRow:
    """A row of the answer to ``sample_query``, without its digest."""
    names = [name for name, _, _ in _values(table, side)]
    shown, literals = answer[: len(names)], answer[len(names) :]
    return SampledRow(
        dict(zip(names, shown, strict=True)),
        {
            quote_identifier(name): literal
            for name, literal in zip(names, literals, strict=False)
            if literal is not None
        },
    )


def count_statement(table: ComparedTable, found: Difference, row: SampledRow | None) -> str:
    """Writes the rows that the target lacks, or removes those that it has too often.

    Args:
        table: What is compared.
        found: A difference of rows without a key.
        row: One of the rows of a shard; None if it was not read.

    Returns:
        "" if there is no such statement: for an Iceberg table, for more than ``MOST_WRITTEN`` rows
        to write, and for a row that was not read.
    """
    shards, target = found.counts or (0, 0)
    if table.side.lake:
        return ""
    if target > shards:
        digest = f"{digest_of(table.side)} = {int(found.key[0])}"
        return f"DELETE FROM {table.side.table} WHERE {digest} LIMIT {target - shards};"
    if row is None or not row.literals or shards - target > MOST_WRITTEN:
        return ""
    values = f"({', '.join(row.literals.values())})"
    rows = ", ".join([values] * (shards - target))
    return f"INSERT INTO {table.side.table} ({', '.join(row.literals)}) VALUES {rows};"


def _has_literals(table: ComparedTable, side: Side) -> bool:
    return side.shard is not None and not table.side.lake


def _values(table: ComparedTable, side: Side) -> list[tuple[str, ColumnType, str]]:
    """Name and type in the target, and SQL of the value, of each column that the side has."""
    return [
        (name, column.type, text.value)
        for name, column, text in zip(table.columns, table.side.columns, side.texts, strict=True)
        if text is not None
    ]


def _shown(kind: ColumnType, value: str, *, lake: bool) -> str:
    """SQL of a value as people write it. The type is the target's."""
    if kind.is_binary or kind.name in SPATIAL_NAMES:
        text = f"CONCAT('0x', HEX({value}))"
    elif lake:
        text = f"CAST({value} AS string)"
    elif kind.is_integer or kind.name in ("bit", "year"):
        text = f"CAST({value} + 0 AS CHAR)"
    elif kind.is_string or kind.name in ("enum", "set"):
        text = f"CONVERT({value} USING utf8mb4)"
    else:
        text = f"CAST({value} AS CHAR)"
    return f"LEFT({text}, {_LENGTH})"
