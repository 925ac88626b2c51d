"""Compare a target table with the union of its shards, row by row, by primary key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pymysql
from pymysql.cursors import Cursor

from shardmerge.schemas.model.names import quote_identifier

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """A table's rows as they are now.

    Attributes:
        key: Primary-key columns in order; empty without one.
        rows: Each row by lower-case column name.
    """

    columns: tuple[str, ...]
    key: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How the target differs from the union; equal when ``differences`` is empty.

    Attributes:
        rows: Rows of the union.
        differences: The first ones, as sentences.
    """

    rows: int
    differences: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


def read_table(connection: pymysql.Connection[Cursor], database: str, table: str) -> Table | None:
    """Read a table; None when it does not exist."""
    while True:
        found = _read_once(connection, database, table)
        # Schema and rows are read one after the other, so the schema may have changed in between.
        if found is None or not found.rows or {*found.columns, *found.key} <= found.rows[0].keys():
            return found


def _read_once(connection: pymysql.Connection[Cursor], database: str, table: str) -> Table | None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, column_key FROM information_schema.columns "
            "WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
            (database, table),
        )
        columns = tuple(name.lower() for name, _ in cursor.fetchall())
        cursor.execute(
            "SELECT column_name FROM information_schema.statistics WHERE table_schema = %s "
            "AND table_name = %s AND index_name = 'PRIMARY' ORDER BY seq_in_index",
            (database, table),
        )
        key = tuple(name.lower() for (name,) in cursor.fetchall())
        if not columns:
            return None
        cursor.execute(f"SELECT * FROM {quote_identifier(database)}.{quote_identifier(table)}")
        names = [entry[0].lower() for entry in cursor.description or ()]
        rows = tuple(dict(zip(names, row, strict=True)) for row in cursor.fetchall())
    return Table(columns, key, rows)


def compare(
    target: Table,
    shards: Sequence[tuple[str, Table]],
    limit: int = 5,
    shard_column: str = "",
    position_column: str = "",
) -> Comparison:
    """Compare the target with its shards.

    A row of a shard must stand in the target under its primary key with the same value in every
    column that the shard has; the target must hold no other row. Shards without a primary key
    are compared as bags of rows.

    Args:
        target: The merged table.
        shards: Each shard with the name under which it is reported.
        limit: How many differences are told.
        shard_column: Lower-case name of the target's origin column that holds a row's shard; ""
            without one. It must then hold the shard's name, also as part of the primary key.
        position_column: The origin column that is the key of rows without a primary key; its values
            are not compared.
    """
    if position_column:
        target = _without(target, position_column)
    if shard_column:
        in_key = shard_column in target.key
        shards = [(name, _with_origin(t, shard_column, name, in_key)) for name, t in shards]
    differences: list[str] = []
    keyed = [(name, shard) for name, shard in shards if shard.key]
    total = sum(len(shard.rows) for _, shard in shards)
    if len(keyed) < len(shards):
        differences += _compare_bags(target, shards)
        return Comparison(total, tuple(differences[:limit]))
    for name, shard in keyed:
        if missing := [c for c in shard.columns if c not in target.columns]:
            differences.append(f"{name}: the target lacks column {', '.join(missing)}")
    merged = _by_key(target.rows, target.key)
    expected: dict[tuple[Any, ...], str] = {}
    for name, shard in keyed:
        if shard.key != target.key:
            differences.append(f"{name}: key {shard.key} is {target.key} in the target")
            continue
        for key, row in _by_key(shard.rows, shard.key).items():
            if key in expected:
                differences.append(f"{_show(shard.key, key)} is in {expected[key]} and in {name}")
            expected[key] = name
            found = merged.get(key)
            if found is None:
                differences.append(f"{name}: the target lacks the row {_show(shard.key, key)}")
                continue
            for column in shard.columns:
                if column in found and found[column] != row[column]:
                    differences.append(
                        f"{name}: row {_show(shard.key, key)}, column {column}: "
                        f"{row[column]!r} is {found[column]!r} in the target"
                    )
    extra = [key for key in merged if key not in expected] if target.key else []
    differences += [f"no shard has the target's row {_show(target.key, key)}" for key in extra]
    if len(differences) > limit:
        more = f"… and {len(differences) - limit} more"
        return Comparison(total, (*differences[:limit], more))
    return Comparison(total, tuple(differences))


def _with_origin(shard: Table, column: str, name: str, in_key: bool) -> Table:
    return Table(
        (*shard.columns, column),
        (*shard.key, column) if in_key and shard.key else shard.key,
        tuple({**row, column: name} for row in shard.rows),
    )


def _without(table: Table, column: str) -> Table:
    return Table(
        tuple(name for name in table.columns if name != column),
        tuple(name for name in table.key if name != column),
        tuple({n: v for n, v in row.items() if n != column} for row in table.rows),
    )


def _compare_bags(target: Table, shards: Sequence[tuple[str, Table]]) -> list[str]:
    wanted = sorted(
        repr([row.get(column) for column in target.columns]) for _, s in shards for row in s.rows
    )
    found = sorted(repr([row[column] for column in target.columns]) for row in target.rows)
    return [] if wanted == found else [f"rows {found} instead of {wanted}"]


def _by_key(rows: Iterable[Row], key: Sequence[str]) -> dict[tuple[Any, ...], Row]:
    return {tuple(row[column] for column in key): row for row in rows}


def _show(key: Sequence[str], values: Sequence[Any]) -> str:
    return ", ".join(f"{column}={value!r}" for column, value in zip(key, values, strict=True))
