"""Counts of the shards' definitions and constraints, each with its latest join.

``join_index`` is made of these values. Definitions and constraints name columns by identity. Each
value is immutable except for its cached latest join, which depends only on the value and on the
arguments of ``join``.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping

from immutables import Map

from shardmerge.schemas.model.tables import Check, Column, ForeignKey

from .column_join import in_target_names, join_columns
from .counts import Counts, recounted
from .joined import Conflict, JoinedColumn
from .key_join import Constraint, JoinedConstraints, PrimaryKey, join_constraints, renamed
from .type_join import TypeRules


class Definitions:
    """The definitions of one column, without names and other properties that the join ignores.

    The join depends on which definitions there are, not on how many shards have each. So the cached
    join stays valid when only the counts change.
    """

    __slots__ = ("_answer", "_question", "counts", "names_columns", "shards")

    def __init__(self, counts: Counts[Column], shards: int) -> None:
        self.counts = counts
        self.shards = shards
        self.names_columns = any(map(names_columns, counts))
        self._question: tuple[str, bool, TypeRules, Mapping[str, str] | None] | None = None
        self._answer: JoinedColumn | Conflict | None = None

    def changed(
        self, minus: Collection[Column], plus: Collection[Column], times: int
    ) -> Definitions:
        """The definitions after ``times`` shards that had ``minus`` have ``plus``."""
        counts = recounted(self.counts, minus, plus, times)
        shards = self.shards + times * (len(plus) - len(minus))
        if all(c in self.counts for c in plus) and all(c in counts for c in minus):
            return self._recounted(counts, shards)
        return Definitions(counts, shards)

    def join(
        self,
        column_id: str,
        names: Mapping[str, str],
        local: Mapping[str, str],
        *,
        partial: bool,
        types: TypeRules,
    ) -> JoinedColumn | Conflict:
        """The join of the definitions.

        Args:
            column_id: The column's identity, the same one in each call.
            names: Identity → name in the target.
            local: Identity in lower case → name in the target.
            partial: Whether some shard lacks the column.
            types: Which types can be joined.
        """
        question = (names[column_id], partial, types, local if self.names_columns else None)
        if self._answer is None or question != self._question:
            definitions = [in_target_names(column, local) for column in self.counts]
            self._answer = join_columns(
                column_id, names[column_id], definitions, partial=partial, types=types
            )
            self._question = question
        return self._answer

    def _recounted(self, counts: Counts[Column], shards: int) -> Definitions:
        """The same definitions with other counts, and with the cached join."""
        other = Definitions(Map(), shards)
        other.counts, other.names_columns = counts, self.names_columns
        other._question, other._answer = self._question, self._answer
        return other


class Constraints:
    """The constraints of all shards, in groups.

    Constraints of one kind and name, which the join compares with each other, are a group. Only a
    group of which every shard has a constraint can be in the join. So the join does not look at the
    other groups, which may be many: for example, each shard may have a foreign key to its own
    parent.
    """

    __slots__ = ("_answer", "_by_total", "_groups", "_question")

    def __init__(
        self,
        groups: Map[Hashable, Counts[Constraint]] | None = None,
        by_total: Map[int, Map[Hashable, None]] | None = None,
    ) -> None:
        self._groups: Map[Hashable, Counts[Constraint]] = groups or Map()
        self._by_total: Map[int, Map[Hashable, None]] = by_total or Map()
        self._question: tuple[int, Mapping[str, str]] | None = None
        self._answer: JoinedConstraints | Conflict | None = None

    def changed(
        self, minus: Collection[Constraint], plus: Collection[Constraint], times: int
    ) -> Constraints:
        """The constraints after ``times`` shards that had ``minus`` have ``plus``."""
        groups, by_total = self._groups, self._by_total
        for key in {_group_of(constraint) for constraint in (*minus, *plus)}:
            before: Counts[Constraint] = groups.get(key, Map())
            after = recounted(
                before,
                [c for c in minus if _group_of(c) == key],
                [c for c in plus if _group_of(c) == key],
                times,
            )
            groups = groups.set(key, after) if after else groups.delete(key)
            by_total = _with_total(by_total, key, sum(before.values()), sum(after.values()))
        return Constraints(groups, by_total)

    def join(
        self,
        shards: int,
        names: Mapping[str, str],
        local: Mapping[str, str],
    ) -> JoinedConstraints | Conflict:
        """The constraints that every shard has.

        Args:
            shards: How many there are.
            names: Identity → name in the target.
            local: Identity in lower case → name in the target.
        """
        question = (shards, local)
        if self._answer is None or question != self._question:
            everywhere: Map[Hashable, None] = self._by_total.get(shards, Map())
            counts = {
                renamed(constraint, local): count
                for key in everywhere
                for constraint, count in self._groups[key].items()
            }
            self._answer = join_constraints(counts, shards, names)
            self._question = question
        return self._answer


def names_columns(column: Column) -> bool:
    """Whether the column has an expression that names columns, which it quotes in backticks."""
    generated, default = column.generated, column.default
    return (generated is not None and "`" in generated.expression) or (
        default is not None and "`" in default.text
    )


def _group_of(constraint: Constraint) -> Hashable:
    """The group's key: equal for constraints that the join compares with each other."""
    if isinstance(constraint, PrimaryKey):
        return PrimaryKey
    if isinstance(constraint, ForeignKey) or (
        isinstance(constraint, Check) and not constraint.name
    ):
        return constraint
    return type(constraint), constraint.name.lower()


def _with_total(
    by_total: Map[int, Map[Hashable, None]], key: Hashable, before: int, after: int
) -> Map[int, Map[Hashable, None]]:
    """``by_total`` after the number of one group changed from ``before`` to ``after``.

    ``by_total``: number of shards that have a constraint of a group → the groups with that number.
    """
    if before == after:
        return by_total
    if before:
        rest = by_total[before].delete(key)
        by_total = by_total.set(before, rest) if rest else by_total.delete(before)
    if after:
        same: Map[Hashable, None] = by_total.get(after, Map())
        by_total = by_total.set(after, same.set(key, None))
    return by_total
