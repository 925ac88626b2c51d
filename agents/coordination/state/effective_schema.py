"""The schema with which a shard counts after an operator skipped some of its changes. Pure.

A shard has one schema, and counts with another one in the join. The two differ in what was skipped:
columns by identity, indexes and checks by name. A part stays skipped as long as the shard's
definition of it stays the one that was skipped. The first change of the definition counts again.

The target accepts the rows that the counted schemas accept. So a shard's row must fit the schema
with which the shard counts (``as_rows_fit``). A column whose values do not fit that schema is
*left out* of the rows. A column that a row does not have is not written.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Mapping
from typing import TypeAlias

from shardmerge.schemas.lattice.column_join import fitted_default
from shardmerge.schemas.lattice.joined import ShardSchema
from shardmerge.schemas.lattice.key_join import PrimaryKey, constraints_of, renamed
from shardmerge.schemas.lattice.left_out_columns import columns_named
from shardmerge.schemas.lattice.type_join import WIDE, TypeRules, joined_type, value_type
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.mysql_facts import NULL_DEFAULT
from shardmerge.schemas.model.tables import Check, Column, ForeignKey, Index, IndexKind, TableSchema

Part: TypeAlias = Column | Index | Check | ForeignKey
_KEY = ("index", "primary")


def effective_when(schema: ShardSchema, actual: ShardSchema, counts: ShardSchema) -> ShardSchema:
    """The schema with which a shard counts after a change.

    Args:
        schema: The shard's schema after the change.
        actual: Its schema before.
        counts: The schema with which it counted before.
    """
    before, instead, found = _parts(actual), _parts(counts), _parts(schema)
    for key in before.keys() | instead.keys():
        skipped, kept = before.get(key), instead.get(key)
        if skipped == kept or found.get(key) != skipped:
            continue
        if kept is None:
            found.pop(key, None)
        else:
            found[key] = kept
    return _with_its_key(schema, actual, _schema(schema.schema, _possible(found)), found)


def _with_its_key(
    schema: ShardSchema, actual: ShardSchema, counts: ShardSchema, parts: dict[Hashable, Part]
) -> ShardSchema:
    """The schema with which a shard counts, changed where its key needs skipped columns.

    Rows are told apart by the primary key, or without one by the values of all columns. If a new
    key names a column that was skipped, that column counts again. If the key was dropped, all that
    was skipped counts again.

    Args:
        schema: The shard's schema after a change.
        actual: Its schema before.
        counts: The schema that would count without regard to the key.
        parts: The parts of ``counts``.
    """
    key, without = _key(schema), left_out(schema, counts)
    ids = {column_id for column_id, _ in key.parts}
    if not key.parts and _key(actual).parts and without:
        return schema
    if _key(counts) == key and ids.isdisjoint(without):
        return counts
    own = _parts(schema)
    again: list[Hashable] = [_KEY, *(("column", column_id) for column_id in ids)]
    parts = {**parts, **{part: own[part] for part in again}}
    return _schema(schema.schema, _possible(parts))


def left_out(actual: ShardSchema, counts: ShardSchema) -> frozenset[str]:
    """The identities of the columns whose values the target does not get from a shard's rows.

    Args:
        actual: The shard's schema.
        counts: The schema with which it counts.
    """
    columns = dict(zip(counts.ids, counts.schema.columns, strict=True))
    return frozenset(
        item.id
        for item in actual.columns
        if (column := columns.get(item.id)) is None or not values_fit(item.column, column)
    )


def values_fit(own: Column, counts: Column) -> bool:
    """Whether every value of a shard's column fits the column as which it counts.

    The route's policy for types does not matter here.
    """
    joined = joined_type((own.type, counts.type), WIDE)
    return (
        not isinstance(joined, str)
        and value_type(joined) == value_type(counts.type)
        and (counts.nullable or not own.nullable)
        and own.generated == counts.generated
    )


def as_rows_fit(
    counts: ShardSchema, actual: ShardSchema, elsewhere: Container[str], types: TypeRules
) -> ShardSchema | str:
    """The schema with which a shard is to count, changed so that the shard's rows fit it.

    * A column is widened to accept the shard's values, if one type holds both.
    * A column that cannot be widened so, or that the shard's rows lack, is given up. If other
      shards have it, the shard counts without it: then it does not stand in the way of the others
      when they follow, and the target keeps the column anyway. If no other shard has it, it stays
      in the schema, and rows may be without it.
    * Unique keys, checks and foreign keys that the shard does not keep do not count.

    Args:
        counts: The schema with which it is to count.
        actual: The shard's schema.
        elsewhere: Identities of columns with which other shards count.
        types: Which types of one column go together.

    Returns:
        The schema, or the reason why no row of the shard could be applied.
    """
    own = dict(zip(actual.ids, actual.schema.columns, strict=True))
    given_up: set[str] = set()
    parts = _parts(counts)
    for item in counts.columns:
        mine = own.get(item.id)
        column: Hashable = ("column", item.id)
        wide = _wide_enough(item.column, mine, types) if mine is not None else None
        if wide is not None:
            parts[column] = wide
            continue
        given_up.add(item.id)
        if item.id in elsewhere:
            del parts[column]
        elif item.column.is_required:
            parts[column] = replace(item.column, nullable=True, default=NULL_DEFAULT)
    if why := _rows_lost(counts, actual, given_up):
        return why
    kept = constraints_of(actual, actual.by_name)
    ids = counts.by_name
    for key, part in _constraints(counts).items():
        named = {ids[name] for name in columns_named(part)}
        if renamed(part, ids) not in kept or not named.isdisjoint(given_up):
            del parts[key]
    return _schema(counts.schema, _possible(parts))


def _wide_enough(counts: Column, own: Column, types: TypeRules) -> Column | None:
    """``counts``, widened to accept the values of ``own`` too; None when no type holds both."""
    if values_fit(own, counts):
        return counts
    kind = joined_type((own.type, counts.type), types)
    if isinstance(kind, str) or own.generated != counts.generated:
        return None
    default = counts.default and fitted_default(counts.default, kind)
    nullable = own.nullable or counts.nullable
    if nullable and default is None and counts.generated is None:
        default = NULL_DEFAULT
    return replace(counts, type=kind, nullable=nullable, default=default)


def _constraints(shard: ShardSchema) -> dict[Hashable, Index | Check | ForeignKey]:
    """The parts that can refuse a row, except the primary key."""
    return {
        key: part
        for key, part in _parts(shard).items()
        if isinstance(part, Check | ForeignKey)
        or (isinstance(part, Index) and part.kind is IndexKind.UNIQUE)
    }


def with_columns(shard: ShardSchema, columns: Mapping[str, Column]) -> ShardSchema:
    """A schema with only these columns, by identity, and without parts that name other columns."""
    parts: dict[Hashable, Part] = {("column", i): columns[i] for i in shard.ids if i in columns}
    parts |= {key: part for key, part in _parts(shard).items() if not isinstance(part, Column)}
    return _schema(shard.schema, _possible(parts))


def _rows_lost(counts: ShardSchema, actual: ShardSchema, given_up: set[str]) -> str:
    """Why rows of the shard could not be told apart in the target; "" when they can."""
    key, mine = _key(counts), _key(actual)
    if key != mine:
        return "its primary key would be another one than its rows have"
    if lost := given_up.intersection(column_id for column_id, _ in key.parts):
        return f"its primary key would lack the values of {', '.join(sorted(lost))}"
    if given_up.intersection(actual.ids) and not key.parts:
        return "without a primary key its rows are found by the values of all columns"
    return ""


def _key(shard: ShardSchema) -> PrimaryKey:
    return next(c for c in constraints_of(shard, shard.by_name) if isinstance(c, PrimaryKey))


def _possible(parts: dict[Hashable, Part]) -> dict[Hashable, Part]:
    """The parts, without those that name a column that does not count, such as an index over it."""
    while True:
        names = {part.name.lower() for part in parts.values() if isinstance(part, Column)}
        kept = {key: part for key, part in parts.items() if columns_named(part) <= names}
        if len(kept) == len(parts):
            return parts
        parts = kept


def _parts(shard: ShardSchema) -> dict[Hashable, Part]:
    """Everything of a table that has a name, by kind and name; columns by identity."""
    table = shard.schema
    found: dict[Hashable, Part] = {("column", c.id): c.column for c in shard.columns}
    found |= {("index", index.name.lower()): index for index in table.indexes}
    found |= {("check", c.name.lower() or c.expression): c for c in table.checks}
    found |= {("foreign key", key.name.lower() or key): key for key in table.foreign_keys}
    return found


def _schema(table: TableSchema, parts: dict[Hashable, Part]) -> ShardSchema:
    """The table with these parts: those that it has in its order, the others behind them."""
    ids = [key[1] for key in parts if isinstance(key, tuple) and key[0] == "column"]
    return ShardSchema(
        replace(
            table,
            columns=tuple(part for part in parts.values() if isinstance(part, Column)),
            indexes=tuple(part for part in parts.values() if isinstance(part, Index)),
            checks=tuple(part for part in parts.values() if isinstance(part, Check)),
            foreign_keys=tuple(part for part in parts.values() if isinstance(part, ForeignKey)),
        ),
        tuple(str(i) for i in ids),
    )
