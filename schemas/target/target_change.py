"""The target's table before and after a change: the input of every part of ``diff``. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from shardmerge.schemas.ddl.expressions import column_names
from shardmerge.schemas.lattice.copied_columns import CopyMoves
from shardmerge.schemas.lattice.type_join import TypeRules
from shardmerge.schemas.model.frozen import made_at_once, replace
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column, Index, IndexPart, TableSchema
from shardmerge.schemas.target.dialects.dialect import Dialect

from .target_table import TargetSchema


@made_at_once
@dataclass(frozen=True, slots=True)
class TargetChange:
    """The arguments of one run of ``diff``, and what follows from them.

    Attributes:
        before, after: Identity → definition, in the table's order.
        stays: Identities of the columns in both ``before`` and ``after``, in the order of
            ``after``.
        goes: Identities of the columns only in ``before``, in its order.
        comes: Identities of the columns only in ``after``, in its order.
        renamed: Old name in lower case → new name, for the columns that stay.
        key: Lower-case names of the old primary key's columns.
        new_key: Lower-case names of the new primary key's columns.
        key_changes: Whether the primary key changes; a rename of its columns does not count.
    """

    from_schema: TableSchema
    to: TargetSchema
    dialect: Dialect
    copies: CopyMoves
    renewed: Callable[[str], bool]
    types: TypeRules
    before: Mapping[str, Column]
    after: Mapping[str, Column]
    stays: Sequence[str]
    goes: Sequence[str]
    comes: Sequence[str]
    renamed: Mapping[str, str]
    key: frozenset[str]
    new_key: frozenset[str]
    key_changes: bool

    @classmethod
    def of(
        cls,
        from_schema: TableSchema,
        from_columns: Sequence[ShardColumn],
        to: TargetSchema,
        dialect: Dialect,
        *,
        copies: CopyMoves,
        renewed: Callable[[str], bool],
        types: TypeRules,
    ) -> TargetChange:
        """The change that ``diff`` is called with; see its arguments."""
        before = {c.id: c.column for c in from_columns}
        after = {c.id: c.column for c in to.columns}
        stays = [i for i in after if i in before]
        renamed = {before[i].name.lower(): after[i].name for i in stays}
        key, new_key = from_schema.primary_key, to.schema.primary_key
        return cls(
            from_schema, to, dialect, copies, renewed, types, before, after, stays,
            goes=[i for i in before if i not in after],
            comes=[i for i in after if i not in before],
            renamed=renamed,
            key=_names_in(key),
            new_key=_names_in(new_key),
            key_changes=_key_changes(key, new_key, renamed),
        )  # fmt: skip

    @property
    def merged(self) -> list[str]:
        """Identities of the columns that stay and get the values of a column that is dropped."""
        return [
            m.kept for m in self.copies.merges if m.kept in self.after and m.kept in self.before
        ]

    @property
    def columns_of_changing_key(self) -> set[str]:
        """Identities of the old primary key's columns; empty when the key does not change."""
        if not (self.key and self.key_changes):
            return set()
        return {i for i, column in self.before.items() if column.name.lower() in self.key}

    def is_freed(self, column_id: str) -> bool:
        """Whether a column that stays was computed and no longer is."""
        before, after = self.before[column_id].generated, self.after[column_id].generated
        return before is not None and after is None

    def is_in_key(self, column_id: str) -> bool:
        """Whether the old primary key names the column."""
        column = self.before.get(column_id)
        return column is not None and column.name.lower() in self.key

    def in_new_names(self, index: Index) -> Index:
        """The index with the new names of its columns; expressions do not change."""
        return _in_new_names(index, self.renamed)


def _in_new_names(index: Index, renamed: Mapping[str, str]) -> Index:
    parts = tuple(
        part
        if part.expression
        else replace(part, column=renamed.get(part.column.lower(), part.column))
        for part in index.parts
    )
    return Index(index.name, index.kind, parts, parser=index.parser)


def plain_index(index: Index) -> Index:
    """The index as schemas are compared: names in lower case, no comment, no visibility."""
    parts = tuple(
        IndexPart(p.column.lower(), p.expression, p.length, p.descending) for p in index.parts
    )
    return Index(index.name.lower(), index.kind, parts, parser=index.parser)


def in_order_of_computing(
    ids: Sequence[str], columns: Mapping[str, Column], *, dependents_first: bool
) -> list[str]:
    """The columns, with generated ones before or after the columns that they are computed from.

    A generated column may name only earlier generated columns, so their depth orders them. Columns
    of the same depth keep their order.
    """
    if all(columns[column_id].generated is None for column_id in ids):
        return list(ids)
    by_name = {column.name.lower(): column for column in columns.values()}

    def depth(column: Column) -> int:
        if column.generated is None:
            return 0
        names = column_names(column.generated.expression)
        bases = (by_name[n.lower()] for n in names if n.lower() in by_name)
        return 1 + max((depth(base) for base in bases if base is not column), default=0)

    sign = -1 if dependents_first else 1
    return sorted(ids, key=lambda column_id: sign * depth(columns[column_id]))


def _names_in(key: Index | None) -> frozenset[str]:
    return frozenset(name.lower() for name in key.columns) if key else frozenset()


def _key_changes(before: Index | None, after: Index | None, renamed: Mapping[str, str]) -> bool:
    if before is None or after is None:
        return before is not after
    if before == after and all(renamed.get(n.lower(), n) == n for n in before.columns):
        return False
    return plain_index(_in_new_names(before, renamed)) != plain_index(after)
