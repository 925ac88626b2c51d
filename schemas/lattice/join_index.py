"""The join of many shards, kept up to date: a change costs only what it touches.

``JoinIndex.join`` gives what ``join_all`` gives for the same shards, conflicts included (a law, see
tests/properties/test_join_index.py). It is cheap for these reasons:

* The rules need only which definitions there are and how many shards have each. So the index counts
  definitions, per identity of a column, and constraints. It keeps no shard.
* Definitions name columns by identity: expressions name ``a#1``, not ``a``. So a rename of the
  target's column, which concerns every shard, changes nothing in the index.
* When a column's definitions do not change, the next index has the same object for them, with its
  cached join.

Values share their structure: a changed index is a new value, and the old one is still valid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from immutables import Map

from shardmerge.schemas.model.tables import Column

from .column_join import default_charset, in_target_names
from .counts import Counts, recounted
from .join import without_unsteady
from .join_cache import Constraints, Definitions, names_columns
from .joined import Conflict, JoinedColumn, JoinedTable, ShardSchema
from .key_join import Constraint, constraints_of
from .type_join import WIDE, TypeRules

_MOST_DIFFERENCES = 256
"""Pairs of schemas whose differences are remembered: the shards of a target have few."""


@dataclass(frozen=True, slots=True)
class JoinIndex:
    """The counts from which the join of some shards is computed.

    Attributes:
        shards: How many shards are counted.
    """

    shards: int = 0
    _columns: Map[str, Definitions] = field(default_factory=Map, repr=False)
    _constraints: Constraints = field(default_factory=Constraints, repr=False)
    _charsets: Counts[tuple[str, str]] = field(default_factory=Map, repr=False)

    @property
    def ids(self) -> Mapping[str, object]:
        """The identities that some shard has, as the keys of a mapping, in no order."""
        return self._columns

    def with_shard(
        self, old: ShardSchema | None, new: ShardSchema | None, times: int = 1
    ) -> JoinIndex:
        """The index after a shard's change.

        Args:
            old: The schema with which the shard is counted now; None when it is not counted.
            new: The schema with which it is counted from now on; None when it no longer is.
            times: How many shards make this change.
        """
        if old is new:
            return self
        difference = _difference(old, new)
        return JoinIndex(
            self.shards + times * ((new is not None) - (old is not None)),
            self._with_columns(difference, times),
            self._with_constraints(difference, times),
            recounted(self._charsets, _charset(old), _charset(new), times),
        )

    def join(
        self,
        names: Mapping[str, str],
        order: Sequence[str] = (),
        types: TypeRules = WIDE,
    ) -> JoinedTable | Conflict:
        """The join of the shards, of which there must be at least one.

        Args:
            names: See ``lattice.join.join_all``.
            order: The order of columns that are added to the target. Identities that are not in it
                follow, sorted.
            types: Which types of one column can be joined.
        """
        ids = sorted(self._columns)
        local = {column_id.lower(): names[column_id] for column_id in ids}
        columns: list[JoinedColumn] = []
        for column_id in ids:
            found = self._columns[column_id]
            column = found.join(
                column_id, names, local, partial=found.shards < self.shards, types=types
            )
            if isinstance(column, Conflict):
                return column
            columns.append(column)
        rest = self._constraints.join(self.shards, names, local)
        if isinstance(rest, Conflict):
            return rest
        steady = without_unsteady(columns, rest)
        charset, collation = default_charset(self._charsets)
        return JoinedTable(
            tuple(steady.columns),
            rest.key,
            steady.indexes,
            steady.checks,
            rest.foreign_keys,
            order=tuple(dict.fromkeys((*order, *ids))),
            charset=charset,
            collation=collation,
            unsteady=steady.unsteady,
        )

    def _with_columns(self, difference: _Difference, times: int) -> Map[str, Definitions]:
        changed = self._columns.mutate()
        for column_id, minus, plus in difference.columns:
            known = changed.get(column_id) or Definitions(Map(), 0)
            definitions = known.changed(minus, plus, times)
            if definitions.shards:
                changed[column_id] = definitions
            else:
                del changed[column_id]
        return changed.finish()

    def _with_constraints(self, difference: _Difference, times: int) -> Constraints:
        minus, plus = difference.minus, difference.plus
        if minus == plus:
            return self._constraints
        return self._constraints.changed(minus - plus, plus - minus, times)


@dataclass(frozen=True, slots=True)
class _Difference:
    """In what two schemas of a shard differ, as far as joins look at it.

    Attributes:
        columns: Identity, definitions before and definitions after, for each column that differs.
        minus, plus: The constraints before and after; both are empty if they are the same.
    """

    columns: tuple[tuple[str, list[Column], list[Column]], ...]
    minus: frozenset[Constraint]
    plus: frozenset[Constraint]


@lru_cache(maxsize=_MOST_DIFFERENCES)
def _difference(old: ShardSchema | None, new: ShardSchema | None) -> _Difference:
    before, after = _Local(old), _Local(new)
    columns: list[tuple[str, list[Column], list[Column]]] = []
    for column_id in before.columns.keys() | after.columns.keys():
        was, now = before.columns.get(column_id), after.columns.get(column_id)
        same = was is now or was == now
        if same and not (was and names_columns(was)):
            continue
        minus, plus = before.definition(column_id), after.definition(column_id)
        if minus != plus:
            columns.append((column_id, minus, plus))
    if before.has_constraints_of(after):
        return _Difference(tuple(columns), frozenset(), frozenset())
    return _Difference(tuple(columns), before.constraints(), after.constraints())


def have_one_value(one: ShardSchema, other: ShardSchema) -> bool:
    """Whether two schemas differ at most in what joins ignore, so that no join tells them apart."""
    if one == other:
        return True
    here, there = _Local(one), _Local(other)
    return (
        here.columns.keys() == there.columns.keys()
        and _charset(one) == _charset(other)
        and all(here.definition(i) == there.definition(i) for i in here.columns)
        and here.constraints() == there.constraints()
    )


class _Local:
    """One side of a shard's change; ``shard`` is None when the shard is not counted there."""

    def __init__(self, shard: ShardSchema | None) -> None:
        self.shard = shard
        self.columns: dict[str, Column] = {}
        self.ids: Mapping[str, str] = {}
        if shard is not None:
            self.columns = dict(zip(shard.ids, shard.schema.columns, strict=True))
            self.ids = shard.by_name

    def definition(self, column_id: str) -> list[Column]:
        """The column's definition with identities as names, or an empty list."""
        column = self.columns.get(column_id)
        if column is None:
            return []
        named = in_target_names(column, self.ids)
        return [
            Column(
                "",
                named.type,
                named.nullable,
                named.default,
                named.on_update,
                generated=named.generated,
            )
        ]

    def constraints(self) -> frozenset[Constraint]:
        return constraints_of(self.shard, self.ids) if self.shard else frozenset()

    def has_constraints_of(self, other: _Local) -> bool:
        """Whether it is cheap to see that both sides have the same constraints.

        It is when the change only added columns or only dropped columns, and no constraint changed.
        """
        if self.shard is None or other.shard is None:
            return False
        a, b = self.shard.schema, other.shard.schema
        if (a.indexes, a.checks, a.foreign_keys) != (b.indexes, b.checks, b.foreign_keys):
            return False
        here, there = self.ids.items(), other.ids.items()
        return here <= there or there <= here


def _charset(shard: ShardSchema | None) -> list[tuple[str, str]]:
    return [(shard.schema.charset, shard.schema.collation)] if shard else []
