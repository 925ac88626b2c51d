"""The semilattice of table schemas: compare and join.

S1 ≤ S2 when every row change that S1 accepts is accepted by S2 with the same effect. The value of
a schema is what this order looks at: columns by identity (type, nullability, default, whether
a row must give a value), primary key, secondary indexes, checks. Column order, comments,
visibility and table options are not part of it.

The join is computed over all shards at once, and is independent of their order, conflict or not.
"Default unset" is a value below every default; a zero value is filled in by
``target_table.target_schema`` only, never here, or the join would not be associative.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from .events import ShardColumn
from .model import Check, Column, Default, DefaultKind, Generated, Index, IndexKind, TableSchema
from .render.mysql import column_type, default_clause
from .type_join import join_types
from .types import ColumnType


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two schemas have no join.

    Attributes:
        path: Where, from outside in, such as ``("column c", "type")``.
        left, right: Both sides, as people write them.
        reason: Why they have no join.
        resolve: What would end the conflict.
    """

    path: tuple[str, ...]
    left: str
    right: str
    reason: str
    resolve: str

    def __str__(self) -> str:
        return f"{', '.join(self.path)}: {self.left} and {self.right}: {self.reason}"


@dataclass(frozen=True, slots=True)
class ShardSchema:
    """A shard's schema: its columns with identities, and the table they are of."""

    columns: tuple[ShardColumn, ...]
    table: TableSchema


@dataclass(frozen=True, slots=True)
class JoinedColumn:
    """A column of the join.

    Attributes:
        column: Under its name in the target; ``default`` None is "unset".
        optional: Whether a row may leave it out.
        partial: Whether some shard lacks it.
    """

    id: str
    column: Column
    optional: bool
    partial: bool = field(compare=False)


@dataclass(frozen=True, slots=True)
class JoinedTable:
    """The join of shards' schemas; equal joins are equal values.

    Attributes:
        columns: Sorted by identity. ``order`` has the identities in the order of the first
            shard's columns, then of those that only later shards have.
        key: Identities of the primary key's columns with prefix lengths, in key order.
        indexes: Those of every shard, under the target's column names, sorted by name.
        checks: Those of every shard, sorted by expression.
        charset: The target's default character set.
    """

    columns: tuple[JoinedColumn, ...]
    key: tuple[tuple[str, int], ...]
    indexes: tuple[Index, ...]
    checks: tuple[Check, ...]
    charset: str = field(compare=False)
    order: tuple[str, ...] = field(compare=False)


class Order(Enum):
    """How two schemas stand to each other."""

    LESS = "<"
    EQUAL = "="
    GREATER = ">"
    INCOMPARABLE = "incomparable"


def join_all(shards: Sequence[ShardSchema], names: Mapping[str, str]) -> JoinedTable | Conflict:
    """The least schema that accepts the rows of every shard.

    Args:
        shards: At least one; their order does not matter.
        names: Each identity's column name in the target.

    Returns:
        The join, or the first conflict in the order of identities.
    """
    found: dict[str, list[Column]] = {}
    for shard in shards:
        for item in shard.columns:
            found.setdefault(item.id, []).append(item.column)
    columns: list[JoinedColumn] = []
    for column_id in sorted(found):
        joined = _join_columns(
            column_id,
            names[column_id],
            found[column_id],
            partial=len(found[column_id]) < len(shards),
        )
        if isinstance(joined, Conflict):
            return joined
        columns.append(joined)
    local = [_LocalTable(shard, names) for shard in shards]
    keys = sorted({table.key for table in local})
    if len(keys) > 1:
        return Conflict(
            ("primary key",), _key_text(keys[0], names), _key_text(keys[-1], names),
            "a row would be another row", "give every shard the same primary key",
        )  # fmt: skip
    indexes = _join_indexes(local)
    if isinstance(indexes, Conflict):
        return indexes
    checks = set.intersection(*(set(table.checks) for table in local))
    charsets = {shard.table.charset for shard in shards}
    return JoinedTable(
        columns=tuple(columns),
        key=keys[0],
        indexes=indexes,
        checks=tuple(Check("", text, enforced) for text, enforced in sorted(checks)),
        charset=charsets.pop() if len(charsets) == 1 else "utf8mb4",
        order=tuple(dict.fromkeys(c.id for shard in shards for c in shard.columns)),
    )


def join_tables(tables: Iterable[TableSchema]) -> JoinedTable | Conflict:
    """``join_all`` of tables whose columns of one name are one column."""
    shards = [_by_name(table) for table in tables]
    return join_all(shards, {c.id: c.id for shard in shards for c in shard.columns})


def compare_tables(a: TableSchema, b: TableSchema) -> Order:
    """How two tables stand to each other, columns of one name being one column."""
    left, right, both = join_tables([a]), join_tables([b]), join_tables([a, b])
    if isinstance(both, Conflict):
        return Order.INCOMPARABLE
    if left == right:
        return Order.EQUAL
    if both == right:
        return Order.LESS
    return Order.GREATER if both == left else Order.INCOMPARABLE


def _by_name(table: TableSchema) -> ShardSchema:
    return ShardSchema(tuple(ShardColumn(c.name.lower(), c) for c in table.columns), table)


def _join_columns(
    column_id: str, name: str, columns: Sequence[Column], *, partial: bool
) -> JoinedColumn | Conflict:
    def conflict(part: str, left: str, right: str, reason: str) -> Conflict:
        return Conflict(
            (f"column {name}", part), left, right, reason,
            f"make the {part} of {name} agree on all shards, or drop the column where it is wrong",
        )  # fmt: skip

    # Sorted by text, so that the conflict that is reported does not depend on the shards' order.
    types = sorted({_value_of(c.type) for c in columns}, key=column_type)
    joined_type = types[0]
    for other in types[1:]:
        joined = join_types(joined_type, other)
        if isinstance(joined, str):
            return conflict("type", column_type(joined_type), column_type(other), joined)
        joined_type = joined
    default = _join_defaults(columns, joined_type)
    if isinstance(default, tuple):
        return conflict(
            "default", default_clause(default[0]), default_clause(default[1]),
            "a row without a value would differ",
        )  # fmt: skip
    generated = _join_generated(columns)
    if isinstance(generated, tuple):
        return conflict("expression", *generated, "they compute different values")
    on_update = {c.on_update for c in columns}
    optional = partial or any(not c.is_required for c in columns)
    result = Column(
        name=name,
        type=joined_type,
        nullable=any(c.nullable for c in columns),
        default=default,
        on_update=on_update.pop() if len(on_update) == 1 else "",
        generated=None if partial else generated,
    )
    return JoinedColumn(column_id, result, optional, partial)


def _value_of(kind: ColumnType) -> ColumnType:
    """The type without its display properties."""
    return (
        replace(kind, zerofill=False, length=None)
        if kind.is_integer
        else replace(kind, zerofill=False)
    )


def _join_defaults(
    columns: Sequence[Column], joined: ColumnType
) -> Default | None | tuple[Default, Default]:
    """The one default, None for unset, or two that differ."""
    defaults = {_comparable(c.default, joined): c.default for c in columns if c.default is not None}
    if len(defaults) > 1:
        first, last = min(defaults), max(defaults)
        left, right = defaults[first], defaults[last]
        assert left is not None
        assert right is not None
        return left, right
    return next(iter(defaults.values()), None)


def _comparable(default: Default | None, kind: ColumnType) -> tuple[str, str]:
    """What two defaults are compared by: under decimal(9,4), 1.0 and 1.0000 are one value."""
    assert default is not None
    text = default.text
    if default.kind is DefaultKind.LITERAL and kind.name == "decimal" and "." in text:
        text = text.rstrip("0").rstrip(".")
    return default.kind.value, text


def _join_generated(columns: Sequence[Column]) -> Generated | None | tuple[str, str]:
    """The one expression; None when a shard has a plain column; or two that differ."""
    if any(c.generated is None for c in columns):
        return None
    found = sorted(
        {c.generated for c in columns if c.generated}, key=lambda g: (g.expression, g.stored)
    )
    if len({g.expression for g in found}) > 1:
        return found[0].expression, found[-1].expression
    return Generated(found[0].expression, any(g.stored for g in found))


class _LocalTable:
    """Keys, indexes and checks of one shard in the target's column names."""

    def __init__(self, shard: ShardSchema, names: Mapping[str, str]) -> None:
        ids = {item.column.name.lower(): item.id for item in shard.columns}
        key = shard.table.primary_key
        self.key: tuple[tuple[str, int], ...] = ()
        if key is not None:
            self.key = tuple((ids[p.column.lower()], p.length or 0) for p in key.parts)
        self.indexes: dict[str, Index] = {}
        for index in shard.table.indexes:
            if index.kind is not IndexKind.PRIMARY:
                parts = tuple(
                    replace(p, column=names[ids[p.column.lower()]] if p.column else "")
                    for p in index.parts
                )
                self.indexes[index.name.lower()] = Index(
                    index.name, index.kind, parts, parser=index.parser
                )
        self.checks = tuple((c.expression, c.enforced) for c in shard.table.checks)


def _join_indexes(tables: Sequence[_LocalTable]) -> tuple[Index, ...] | Conflict:
    joined = []
    for folded in sorted(set.intersection(*(set(t.indexes) for t in tables))):
        found = {replace(t.indexes[folded], name=folded): t.indexes[folded] for t in tables}
        if len(found) > 1:
            texts = sorted(_index_text(index) for index in found)
            return Conflict(
                (f"index {folded}",), texts[0], texts[-1], "one name for two indexes",
                f"drop or rename index {folded} on the shards where it differs",
            )  # fmt: skip
        joined.append(min((t.indexes[folded] for t in tables), key=lambda i: i.name))
    return tuple(joined)


def _index_text(index: Index) -> str:
    parts = (
        (p.column or f"({p.expression})") + (f"({p.length})" if p.length else "")
        for p in index.parts
    )
    return f"{index.kind} ({', '.join(parts)})"


def _key_text(key: tuple[tuple[str, int], ...], names: Mapping[str, str]) -> str:
    return f"({', '.join(names[i] for i, _ in key)})" if key else "none"
