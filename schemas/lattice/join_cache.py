"""What the shards of a target have, counted, with the latest join of it.

The values that ``join_index`` is made of. Definitions and constraints stand in identities instead
of names. Each value is immutable but for its latest join, which is a function of what is asked and
is kept for the next time it is asked.
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
    """The definitions of one column, without its names and what else decides nothing.

    The join looks at which definitions there are, not at how many shards have each, so it is kept
    when only the numbers change.
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
            column_id: The identity, always the same one.
            names: Identity → name in the target.
            local: The same by identity in lower case.
            partial: Whether some shard lacks the column.
            types: Which types go together.
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
        """The same definitions in other numbers."""
        other = Definitions(Map(), shards)
        other.counts, other.names_columns = counts, self.names_columns
        other._question, other._answer = self._question, self._answer
        return other


class Constraints:
    """The constraints of all shards.

    Constraints that the join compares with each other are a group: those of one kind and name. A
    group matters when every shard has one of it; so the join need not look at others, of which each
    shard may have its own, such as foreign keys to a parent of its own.
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
            by_total = _moved(by_total, key, sum(before.values()), sum(after.values()))
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
            local: The same by identity in lower case.
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
    """Whether it has an expression that names columns, which stand in backticks."""
    generated, default = column.generated, column.default
    return (generated is not None and "`" in generated.expression) or (
        default is not None and "`" in default.text
    )


def _group_of(constraint: Constraint) -> Hashable:
    """Equal for constraints that the join compares with each other."""
    if isinstance(constraint, PrimaryKey):
        return PrimaryKey
    if isinstance(constraint, ForeignKey) or (
        isinstance(constraint, Check) and not constraint.name
    ):
        return constraint
    return type(constraint), constraint.name.lower()


def _moved(
    by_total: Map[int, Map[Hashable, None]], key: Hashable, before: int, after: int
) -> Map[int, Map[Hashable, None]]:
    """The groups by how many shards have one of theirs, after one group's number changed."""
    if before == after:
        return by_total
    if before:
        rest = by_total[before].delete(key)
        by_total = by_total.set(before, rest) if rest else by_total.delete(before)
    if after:
        same: Map[Hashable, None] = by_total.get(after, Map())
        by_total = by_total.set(after, same.set(key, None))
    return by_total
