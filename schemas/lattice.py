"""The semilattice of table schemas: compare and join.

S1 ≤ S2 when every row change that S1 accepts is accepted by S2 with the same effect. The value
of a schema is what this order looks at: columns by identity (type, nullability, default, whether
a row may leave it out), primary key, indexes, checks, foreign keys. Column order, comments,
visibility, auto-increment (rows bring their ids), table options and the table's default
character set are not part of it.

The join is computed over all shards at once and does not depend on their order, conflict or not.
"Default unset" is a value below every default; a type's zero value is filled in by
``target_schema`` only, never here: joined into the value it would make the join depend on the
order.

Reading order: ``joined`` (the values), this module, then ``lattice_columns``, ``type_join`` and
``lattice_keys`` (the rules), ``target_table`` (from a join to the target's schema).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from .events import ShardColumn
from .joined import Conflict, JoinedColumn, JoinedTable, ShardSchema
from .lattice_columns import in_target_names, join_columns
from .lattice_keys import LocalKeys, join_checks, join_foreign_keys, join_indexes, join_keys
from .model import Column, TableSchema
from .target_table import TargetSchema, target_schema

__all__ = [
    "Comparison",
    "Conflict",
    "JoinedColumn",
    "JoinedTable",
    "Order",
    "ShardSchema",
    "TargetSchema",
    "compare",
    "compare_tables",
    "join_all",
    "join_tables",
    "target_schema",
]

_WIDEST_CHARSET = "utf8mb4"


class Order(StrEnum):
    """How one schema stands to another."""

    LESS = "<"
    EQUAL = "="
    GREATER = ">"
    INCOMPARABLE = "incomparable"

    @property
    def is_defined(self) -> bool:
        """Whether one accepts everything that the other one accepts."""
        return self is not Order.INCOMPARABLE

    @property
    def is_equal(self) -> bool:
        """Whether both accept the same."""
        return self is Order.EQUAL

    @property
    def is_at_most(self) -> bool:
        """Whether the second accepts everything that the first one accepts."""
        return self in (Order.EQUAL, Order.LESS)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answer of ``compare``.

    Attributes:
        order: INCOMPARABLE with ``conflict`` None: each accepts something that the other one
            refuses, and a third schema accepts both.
        conflict: Why there is no such schema.
    """

    order: Order
    conflict: Conflict | None = None


def join_all(shards: Sequence[ShardSchema], names: Mapping[str, str]) -> JoinedTable | Conflict:
    """The least schema that accepts the rows of every shard.

    Args:
        shards: At least one. Their order decides nothing but the order of new columns.
        names: Identity → column name in the target, of every identity that a shard has; no two
            identities share a name, whatever its case.

    Returns:
        The join; or a conflict, the same one for every order of the shards.
    """
    tables = [LocalKeys(shard, names) for shard in shards]
    found: dict[str, list[Column]] = {}
    for shard, table in zip(shards, tables, strict=True):
        for item in shard.columns:
            found.setdefault(item.id, []).append(in_target_names(item.column, table.names))
    columns: list[JoinedColumn] = []
    for column_id in sorted(found):
        definitions = found[column_id]
        column = join_columns(
            column_id, names[column_id], definitions, partial=len(definitions) < len(shards)
        )
        if isinstance(column, Conflict):
            return column
        columns.append(column)
    partial = {c.column.name.lower() for c in columns if c.partial}
    key = join_keys(tables, names)
    if isinstance(key, Conflict):
        return key
    indexes = join_indexes(tables, partial)
    if isinstance(indexes, Conflict):
        return indexes
    checks = join_checks(tables, partial)
    if isinstance(checks, Conflict):
        return checks
    charset, collation = _table_charset(shards)
    return JoinedTable(
        tuple(columns),
        key,
        indexes,
        checks,
        join_foreign_keys(tables),
        order=tuple(dict.fromkeys(c.id for shard in shards for c in shard.columns)),
        charset=charset,
        collation=collation,
    )


def compare(a: ShardSchema, b: ShardSchema, names: Mapping[str, str]) -> Comparison:
    """How ``a`` stands to ``b``; ``names`` as for ``join_all``."""
    both = join_all([a, b], names)
    if isinstance(both, Conflict):
        return Comparison(Order.INCOMPARABLE, both)
    left, right = join_all([a], names), join_all([b], names)
    if isinstance(left, Conflict) or isinstance(right, Conflict):
        conflict = left if isinstance(left, Conflict) else right
        assert isinstance(conflict, Conflict)
        return Comparison(Order.INCOMPARABLE, conflict)
    value, left_value, right_value = both.value, left.value, right.value
    if left_value == right_value:
        return Comparison(Order.EQUAL)
    if value == right_value:
        return Comparison(Order.LESS)
    return Comparison(Order.GREATER if value == left_value else Order.INCOMPARABLE)


def join_tables(tables: Iterable[TableSchema]) -> JoinedTable | Conflict:
    """``join_all`` of tables whose columns of one name are one column."""
    shards = [_by_name(table) for table in tables]
    return join_all(shards, _names(shards))


def compare_tables(a: TableSchema, b: TableSchema) -> Order:
    """How ``a`` stands to ``b``, columns of one name being one column."""
    left, right = _by_name(a), _by_name(b)
    return compare(left, right, _names([left, right])).order


def _by_name(table: TableSchema) -> ShardSchema:
    return ShardSchema(tuple(ShardColumn(c.name.lower(), c) for c in table.columns), table)


def _names(shards: Iterable[ShardSchema]) -> dict[str, str]:
    """The spelling that sorts first, so that it doesn't depend on the order of the shards."""
    spelled: dict[str, str] = {}
    for shard in shards:
        for item in shard.columns:
            name = item.column.name
            spelled[item.id] = min(spelled.get(item.id, name), name)
    return spelled


def _table_charset(shards: Sequence[ShardSchema]) -> tuple[str, str]:
    """The target's default for columns to come; every column says its own, so none conflicts."""
    found = {(shard.table.charset, shard.table.collation) for shard in shards}
    return found.pop() if len(found) == 1 else (_WIDEST_CHARSET, "")
