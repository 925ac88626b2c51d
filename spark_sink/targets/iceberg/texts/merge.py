"""The MERGE of a batch, as Spark SQL. Pure.

A row of the source is one change of one key: even ranks delete, odd ranks write. As a rule, changes
of one key come from one task, which has kept the last one. But two shards may have the same key,
and if the type of a shard's key changed, its changes from before and after are in two groups. Then
the change with the highest rank counts (a later group wins; within a group a write wins). Of equal
ranks the task with the highest number counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from shardmerge.schemas.model.names import quote_identifier
from shardmerge.schemas.target.dialects.spark_rows import string_literal

from .encoders import value_sql
from .layout import Field
from .lines import CELLS_FROM, MARK_OF_LINES, Columns

SOURCE = "value"
"""The only column of the view that has the lines."""


def changes_sql(
    view: str, columns: Columns, key: Sequence[str], tasks: Iterable[int] | None, *, distinct: bool
) -> str:
    """A query of the changes: ``c0``, ``c1``, … in the table's order, and ``deletes``.

    Args:
        view: Has the lines.
        columns: Of the table.
        key: The table's columns that are the key.
        tasks: Numbers of the tasks whose lines are wanted; None for all.
        distinct: Whether a key may have several changes, of which one has to be chosen.
    """
    values = ", ".join(
        f"{value_sql(f'a[{n + CELLS_FROM}]', column.type)} AS c{n}"
        for n, column in enumerate(columns)
    )
    arrays = (
        f"SELECT from_json({SOURCE}, 'array<string>') AS a FROM {view}"
        f" WHERE startswith({SOURCE}, '{MARK_OF_LINES}')"
    )
    head = "CAST(a[0] AS int) AS task, CAST(a[1] AS int) AS rank"
    query = f"SELECT {head}, {values} FROM ({arrays})"
    if tasks is not None:
        query += f" WHERE CAST(a[0] AS int) IN ({', '.join(map(str, tasks))})"
    if distinct:
        by = ", ".join(f"c{n}" for n in _places(columns, key))
        query = (
            f"SELECT *, row_number() OVER (PARTITION BY {by} ORDER BY rank DESC, task DESC)"
            f" AS place FROM ({query})"
        )
    names = ", ".join(f"c{n}" for n in range(len(columns)))
    last = " WHERE place = 1" if distinct else ""
    return f"SELECT {names}, rank % 2 = 0 AS deletes FROM ({query}){last}"


def merge_sql(
    table: str, columns: Columns, key: Sequence[str], changes: str, *, within: str = ""
) -> str:
    """MERGE of changes into a table.

    Args:
        table: Its quoted name.
        columns: The columns of the table that the sink writes. One that a row does not have becomes
            NULL, so a row in the target depends only on its last image. Others keep their values.
        key: The columns that tell rows apart.
        changes: See ``changes_sql``.
        within: A condition that every row of the table fulfils that a change is about: see
            ``key_bounds``. "" for none.
    """
    names = [quote_identifier(column.name) for column in columns]
    on = " AND ".join(f"t.{names[n]} = s.c{n}" for n in _places(columns, key))
    on += f" AND {within}" if within else ""
    sets = ", ".join(f"t.{name} = s.c{n}" for n, name in enumerate(names))
    values = ", ".join(f"s.c{n}" for n in range(len(names)))
    return (
        f"MERGE INTO {table} t USING ({changes}) s ON {on}"
        " WHEN MATCHED AND s.deletes THEN DELETE"
        f" WHEN MATCHED THEN UPDATE SET {sets}"
        f" WHEN NOT MATCHED AND NOT s.deletes THEN INSERT ({', '.join(names)}) VALUES ({values})"
    )


def key_bounds_sql(changes: str, columns: Columns, key: Sequence[str]) -> str:
    """A query of one row: the least and the greatest value of each bounded column of the key."""
    places = [n for n in _places(columns, key) if _is_bounded(columns[n])]
    values = ", ".join(f"min(c{n}), max(c{n})" for n in places)
    return f"SELECT {values or 1} FROM ({changes})"


def key_bounds(bounds: Sequence[Any], columns: Columns, key: Sequence[str]) -> str:
    """The condition that a row's key is within bounds; "" when no column is bounded.

    Spark then reads only the files of the table that can have such rows, by the bounds of each file
    that Iceberg keeps. The rows of a chunk lie close together in the key, so they are few files.

    Args:
        bounds: The answer to ``key_bounds_sql``.
        columns: Of the table.
        key: The table's columns that are the key.
    """
    places = [n for n in _places(columns, key) if _is_bounded(columns[n])]
    ends = zip(bounds[::2], bounds[1::2], strict=False)
    return " AND ".join(
        f"t.{quote_identifier(columns[n].name)} BETWEEN {_literal(low, columns[n])}"
        f" AND {_literal(high, columns[n])}"
        for n, (low, high) in zip(places, ends, strict=False)
        if low is not None
    )


def _is_bounded(column: Field) -> bool:
    return column.type.partition("(")[0] in ("int", "long", "string", "decimal")


def _literal(value: Any, column: Field) -> str:
    if column.type == "string":
        return string_literal(value)
    return f"CAST('{value}' AS {'bigint' if column.type == 'long' else column.type})"


def collisions_sql(view: str, columns: Columns, key: Sequence[str]) -> str:
    """How many keys are written by more than one task: rows of several shards with one key."""
    by = ", ".join(f"a[{n + CELLS_FROM}]" for n in _places(columns, key))
    return (
        f"SELECT count(*) FROM (SELECT 1 FROM (SELECT from_json({SOURCE}, 'array<string>') AS a"
        f" FROM {view} WHERE startswith({SOURCE}, '{MARK_OF_LINES}'))"
        f" WHERE CAST(a[1] AS int) % 2 = 1 GROUP BY {by} HAVING count(DISTINCT a[0]) > 1)"
    )


def _places(columns: Columns, key: Sequence[str]) -> list[int]:
    by_name = {column.name.lower(): n for n, column in enumerate(columns)}
    return [by_name[name.lower()] for name in key]
