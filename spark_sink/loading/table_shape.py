"""Whether a table, as a chunk's own transaction shows it, is the one that its load expects. Pure.

A chunk is valid only with the schema that the tracker has for the shard at the load's gate.
Everything is compared that decides what a row's values mean, and which row they belong to: names,
types and order of the columns, which of them are generated, and the primary key. Defaults,
comments, indexes and checks may differ: they change no row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shardmerge.schemas.model.mysql_text import column_type
from shardmerge.schemas.model.origin import origin_part
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column, TableSchema
from shardmerge.schemas.model.types import ColumnType


def difference(expected: Sequence[ShardColumn], key: Sequence[str], shown: TableSchema) -> str:
    """What is not as expected, in words for people; "" when everything is.

    Args:
        expected: The shard's columns at the load's gate (``Gate.columns``).
        key: Names of the columns of its primary key there, in order.
        shown: The table as the server shows it, without the columns that the route leaves out.
    """
    here = [c.column for c in expected if origin_part(c.id) is None]
    names = {column.name.lower() for column in here}
    own = [name for name in key if name.lower() in names]
    there = {column.name.lower(): column for column in shown.columns}
    for column in here:
        other = there.pop(column.name.lower(), None)
        if other is None:
            return f"column {column.name} is not there"
        if (text := _differs(column, other)) is not None:
            return text
    if there:
        return f"column {next(iter(there.values())).name} is not expected"
    if [c.name.lower() for c in here] != [c.name.lower() for c in shown.columns]:
        return "the columns have another order"
    primary = shown.primary_key
    shown_key = [] if primary is None else [name.lower() for name in primary.columns]
    if shown_key != [name.lower() for name in own]:
        return f"the primary key is ({', '.join(shown_key)}), not ({', '.join(own)})"
    return ""


def _differs(column: Column, other: Column) -> str | None:
    if _value(column.type) != _value(other.type):
        return f"column {column.name} is {column_type(other.type)}, not {column_type(column.type)}"
    if (column.generated is None) != (other.generated is None):
        word = "not generated" if other.generated is None else "generated"
        return f"column {column.name} is {word}"
    return None


def _value(kind: ColumnType) -> ColumnType:
    """The part of a type that values depend on; ``tinyint(1)`` counts as ``tinyint``."""
    return replace(kind, length=None) if kind.is_integer else kind
