"""The semilattice of table schemas: compare and join.

S1 ≤ S2 when S2 accepts every row change that S1 accepts, with the same effect. The value of a
schema is what this order looks at: columns by identity (type, nullability, default, whether a row
may leave it out), primary key, indexes, checks, foreign keys. Column order, comments, visibility,
auto-increment (rows bring their ids), table options and the table's default character set are not
part of the value.

The join is computed over all shards at once. Its result, join or conflict, does not depend on their
order. "Default unset" is a value below every default. Only ``target_schema`` fills in a type's zero
value: if the join did, its result would depend on the order of the shards.

Reading order: ``joined`` (the values), this module, then ``column_join``, ``type_join`` and
``key_join`` (the rules). ``target.target_table`` turns a join into the target's schema.
``join_all`` defines the join; ``join_index`` keeps the same join up to date for many shards.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from shardmerge.schemas.ddl.expressions import column_names
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.mysql_facts import zero_value
from shardmerge.schemas.model.tables import Check, Column, Index, TableSchema
from shardmerge.schemas.model.types import ColumnType

from .column_join import default_charset, in_target_names, join_columns
from .joined import Conflict, JoinedColumn, JoinedTable, ShardSchema
from .key_join import Constraint, JoinedConstraints, constraints_of, join_constraints
from .type_join import WIDE, TypeRules, is_exact_number

_COMPARISONS = re.compile(
    r"(?:`(?:[^`]|``)*`|-?\d+(?:\.\d+)?|[(),]| (?:<=>|<=|>=|<>|=|<|>) "
    r"| (?:and|or|xor|not|between|in|is null|is not null)|(?:not|!)| )+"
)
"""Expressions that only compare columns and numbers."""


class Order(StrEnum):
    """How one schema compares to another."""

    LESS = "<"
    EQUAL = "="
    GREATER = ">"
    INCOMPARABLE = "incomparable"

    @property
    def is_equal(self) -> bool:
        """Whether both schemas accept the same rows."""
        return self is Order.EQUAL

    @property
    def is_at_most(self) -> bool:
        """Whether the second accepts everything that the first one accepts."""
        return self in (Order.EQUAL, Order.LESS)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answer of ``compare``.

    Attributes:
        order: INCOMPARABLE with ``conflict`` None means that each accepts rows that the other
            refuses, and that they have a join.
        conflict: Why they have no join; None if they have one.
    """

    order: Order
    conflict: Conflict | None = None


def join_all(
    shards: Sequence[ShardSchema],
    names: Mapping[str, str],
    types: TypeRules = WIDE,
) -> JoinedTable | Conflict:
    """The least schema that accepts the rows of every shard.

    Args:
        shards: At least one. Their order decides only the order of new columns.
        names: Identity → column name in the target, for every identity that a shard has. No two
            identities have the same name, compared without case.
        types: Which types of one column can be joined.

    Returns:
        The join; or a conflict, the same one for every order of the shards.
    """
    found: dict[str, list[Column]] = {}
    constraints: Counter[Constraint] = Counter()
    for shard in shards:
        local = {name: names[column_id] for name, column_id in shard.by_name.items()}
        constraints.update(constraints_of(shard, local))
        for column_id, column in zip(shard.ids, shard.schema.columns, strict=True):
            found.setdefault(column_id, []).append(in_target_names(column, local))
    columns: list[JoinedColumn] = []
    for column_id in sorted(found):
        definitions = found[column_id]
        joined = join_columns(
            column_id,
            names[column_id],
            definitions,
            partial=len(definitions) < len(shards),
            types=types,
        )
        if isinstance(joined, Conflict):
            return joined
        columns.append(joined)
    rest = join_constraints(constraints, len(shards), names)
    if isinstance(rest, Conflict):
        return rest
    steady = without_unsteady(columns, rest)
    charset, collation = default_charset((s.schema.charset, s.schema.collation) for s in shards)
    return JoinedTable(
        tuple(steady.columns),
        rest.key,
        steady.indexes,
        steady.checks,
        rest.foreign_keys,
        order=tuple(dict.fromkeys(column_id for shard in shards for column_id in shard.ids)),
        charset=charset,
        collation=collation,
        unsteady=steady.unsteady,
    )


@dataclass(frozen=True, slots=True)
class Steady:
    """The parts of a join that give the same answer in the joined types as on every shard.

    Attributes:
        unsteady: The checks and indexes that do not.
    """

    columns: Sequence[JoinedColumn]
    indexes: tuple[Index, ...]
    checks: tuple[Check, ...]
    unsteady: tuple[Check | Index, ...] = ()


def without_unsteady(columns: list[JoinedColumn], rest: JoinedConstraints) -> Steady:
    """The join without what gives another answer in the joined types than on a shard.

    Such a computed column becomes an ordinary one, whose values come with the rows. An index of
    such an expression could refuse rows, or be refused for the expression's new type.

    Args:
        columns: The joined columns.
        rest: The indexes and checks that every shard has.
    """
    converted = {c.column.name.lower(): c.column.type for c in columns if c.converted}
    if not converted:
        return Steady(columns, rest.indexes, rest.checks)
    found = [
        as_ordinary(c)
        if c.column.generated is not None
        and not c.partial
        and (c.converted or reads_otherwise(c.column.generated.expression, converted))
        else c
        for c in columns
    ]
    checks = tuple(c for c in rest.checks if not reads_otherwise(c.expression, converted))
    indexes = tuple(
        index
        for index in rest.indexes
        if not any(reads_otherwise(part.expression, converted) for part in index.parts)
    )
    gone: list[Check | Index] = [check for check in rest.checks if check not in checks]
    gone += [index for index in rest.indexes if index not in indexes]
    return Steady(found, indexes, checks, tuple(gone))


def reads_otherwise(expression: str, converted: Mapping[str, ColumnType]) -> bool:
    """Whether an expression may have another value when columns are converted.

    Args:
        expression: Canonical text.
        converted: Name in lower case → type, for each column whose values do not read alike before
            and after. A type that is an exact number was one before, too.
    """
    names = converted.keys() & {name.lower() for name in column_names(expression)}
    exact = all(is_exact_number(converted[name]) for name in names)
    return bool(names) and not (exact and _COMPARISONS.fullmatch(expression))


def as_ordinary(joined: JoinedColumn) -> JoinedColumn:
    """A computed column as an ordinary one, whose values come with the rows."""
    column = replace(joined.column, generated=None)
    found = replace(joined, column=column, derived=True, formula=joined.column.generated)
    if found.needs_zero_value and zero_value(column.type) is None:
        return replace(found, column=replace(column, nullable=True))
    return found


def compare(
    a: ShardSchema,
    b: ShardSchema,
    names: Mapping[str, str],
    types: TypeRules = WIDE,
) -> Comparison:
    """Compare ``a`` to ``b``; ``names`` and ``types`` as for ``join_all``."""
    both = join_all([a, b], names, types)
    if isinstance(both, Conflict):
        return Comparison(Order.INCOMPARABLE, both)
    left, right = join_all([a], names, types), join_all([b], names, types)
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


def join_tables(tables: Iterable[TableSchema], types: TypeRules = WIDE) -> JoinedTable | Conflict:
    """``join_all`` of tables in which columns with the same name are the same column."""
    shards = [_by_name(table) for table in tables]
    return join_all(shards, _names(shards), types)


def compare_tables(a: TableSchema, b: TableSchema, types: TypeRules = WIDE) -> Order:
    """Compare ``a`` to ``b``; columns with the same name are the same column."""
    left, right = _by_name(a), _by_name(b)
    return compare(left, right, _names([left, right]), types).order


def _by_name(table: TableSchema) -> ShardSchema:
    return ShardSchema(table, tuple(c.name.lower() for c in table.columns))


def _names(shards: Iterable[ShardSchema]) -> dict[str, str]:
    """Identity → the spelling of its name that sorts first, whatever the order of the shards."""
    spelled: dict[str, str] = {}
    for shard in shards:
        for column_id, column in zip(shard.ids, shard.schema.columns, strict=True):
            name = column.name
            spelled[column_id] = min(spelled.get(column_id, name), name)
    return spelled
