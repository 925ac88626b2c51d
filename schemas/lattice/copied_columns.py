"""Columns that are renamed by copying: the target has one column for each of the two names. Pure.

Under ``RenamePolicy.COPY`` a rename gives the shard's column another identity, and a ``Copy``
records that rename. Shards that have not renamed yet send the value under the older identity, the
other shards under the newer one. While the target has both columns, the copy is *open*. Then

* rows may leave out the older column, which is then NULL in the target, even if the shards define
  it as NOT NULL;
* both columns have the joined type, so that a value of either fits into the other;
* if the newer column is nullable, its default is NULL: a value that is NULL under the old name must
  be NULL under the new one. (If it is NOT NULL, it keeps its default: every row that leaves it out
  has a value under the old name, which is copied.)

A row of the target has its value in the newer column if it was written before the copy opened, or
by a shard that has renamed. Else its value is in the older column, and the newer one holds NULL or
a value that will be overwritten. So the copy can end in either direction, with one UPDATE and one
DROP (``row_statements``).

Two cases have no join (``contradiction``): a column that is both the end of one rename and the
beginning of another, and a column with two new names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.origin import without_origin
from shardmerge.schemas.model.shard_columns import ShardColumn

from .column_join import fitted_default, join_columns
from .joined import Conflict, JoinedTable, ShardSchema, name_at_birth
from .type_join import WIDE, TypeRules


@dataclass(frozen=True, order=True, slots=True)
class Copy:
    """One rename of a column.

    Attributes:
        before: The column's identity under its old name.
        after: The column's identity under its new name.
    """

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Merge:
    """The end of an open copy: one of its two columns is dropped.

    Attributes:
        gone: Identity of the column that is dropped.
        kept: Identity of the column that stays.
        forward: Whether the older column is dropped.
    """

    gone: str
    kept: str
    forward: bool


@dataclass(frozen=True, slots=True)
class CopyMoves:
    """What renames by copying do to the target's columns in one change of the target.

    Attributes:
        renamed: New identity of a column of the target → the identity that it had until now.
        merges: The copies that end.
    """

    renamed: Mapping[str, str]
    merges: tuple[Merge, ...]

    def rekeyed(self, columns: Sequence[ShardColumn]) -> tuple[ShardColumn, ...]:
        """The target's columns with their new identities."""
        if not self.renamed:
            return tuple(columns)
        now = {old: new for new, old in self.renamed.items()}
        return tuple(ShardColumn(now.get(c.id, c.id), c.column) for c in columns)


NO_MOVES = CopyMoves({}, ())


def later_names(copies: Iterable[Copy], column_id: str) -> list[str]:
    """The identities that this one became by renames, directly or in steps; nearest first."""
    return _reached(column_id, _neighbours((c.before, c.after) for c in copies))


def earlier_names(copies: Iterable[Copy], column_id: str) -> list[str]:
    """The identities that became this one by renames, nearest first."""
    return _reached(column_id, _neighbours((c.after, c.before) for c in copies))


def is_in_line(copies: Sequence[Copy], one: str, other: str) -> bool:
    """Whether one of two identities became the other one by renames."""
    return one in later_names(copies, other) or other in later_names(copies, one)


def are_kin(copies: Sequence[Copy], one: str, other: str) -> bool:
    """Whether renames, in any direction, connect two identities."""
    pairs = [(c.before, c.after) for c in copies]
    both = _neighbours([*pairs, *((b, a) for a, b in pairs)])
    return other in _reached(one, both)


def still_known(copies: Sequence[Copy], known: Callable[[str], bool]) -> tuple[Copy, ...]:
    """The copies between known identities. A chain through unknown identities becomes one copy."""
    found = set()
    forward = _neighbours((c.before, c.after) for c in copies)
    for start in {copy.before for copy in copies}:
        if not known(start):
            continue
        waiting, seen = list(forward.get(start, ())), {start}
        while waiting:
            column_id = waiting.pop()
            if column_id in seen:
                continue
            seen.add(column_id)
            if known(column_id):
                found.add(Copy(start, column_id))
            else:
                waiting += forward.get(column_id, ())
    return tuple(sorted(found))


def contradiction(
    copies: Sequence[Copy],
    ids: Collection[str],
    target: Collection[str],
    schemas: Iterable[ShardSchema],
    names: Mapping[str, str],
) -> tuple[str, str] | None:
    """Why the schemas cannot be joined by copying, and what would help; None if they can.

    Args:
        copies: The known renames.
        ids: The identities that some shard has.
        target: The identities that the target has.
        schemas: The shards' schemas, each once.
        names: Identity → name in the target.
    """
    back = "rename it on the other shards first, or back on this one"
    here = {*ids, *target}
    for copy in copies:
        for end in later_names(copies, copy.after):
            if copy.before in ids and end in ids:
                return (
                    f"{_name(copy.after, names)} would be both the new name of "
                    f"{_name(copy.before, names)} and the old name of {_name(end, names)}, which "
                    "cannot be copied",
                    back,
                )
    ends: dict[str, str] = {}
    for copy in copies:
        if copy.before not in here or copy.after not in ids:
            continue
        other = ends.setdefault(copy.before, copy.after)
        if other != copy.after and not is_in_line(copies, other, copy.after):
            return (
                f"{_name(copy.before, names)} is renamed to {_name(other, names)} on one shard "
                f"and to {_name(copy.after, names)} on another",
                "give the column one new name on all shards",
            )
    open_now = [c for c in copies if c.before in ids and c.after in ids]
    for schema in schemas if open_now else ():
        has = set(schema.ids)
        key = schema.schema.primary_key
        names_of_key = key.columns if key else ()
        keys = set(without_origin(schema.by_name[name.lower()] for name in names_of_key))
        for copy in open_now:
            if not keys:
                return (
                    f"{_name(copy.before, names)} cannot have two names at a time: rows without a "
                    "primary key are found by all their values",
                    f"{back}; or give the tables a primary key",
                )
            if {copy.before, copy.after} <= has:
                return (
                    f"a shard has both {_name(copy.before, names)} and "
                    f"{_name(copy.after, names)} while the others rename one to the other",
                    "drop one of the two there",
                )
            if keys & {copy.before, copy.after}:
                return (
                    f"{_name(copy.before, names)} is part of the primary key, which tells rows "
                    "apart and cannot have two names at a time",
                    back,
                )
    return None


def widened(
    joined: JoinedTable, copies: Iterable[Copy], types: TypeRules = WIDE
) -> JoinedTable | Conflict:
    """The join, with the columns of open copies widened so that each holds the other's values."""
    columns = {c.id: c for c in joined.columns}
    changed = False
    for copy in copies:
        before, after = columns.get(copy.before), columns.get(copy.after)
        if before is None or after is None or not (before.is_in_target and after.is_in_target):
            continue
        plain = [replace(c.column, default=None, on_update="") for c in (before, after)]
        both = join_columns(copy.after, after.column.name, plain, partial=False, types=types)
        if isinstance(both, Conflict):
            return both
        kind, nullable = both.column.type, both.column.nullable
        default = after.column.default
        if default is not None:
            default = None if nullable else fitted_default(default, kind)
        columns[copy.before] = replace(
            before,
            column=replace(before.column, type=kind, nullable=True, default=None, on_update=""),
        )
        columns[copy.after] = replace(
            after,
            column=replace(
                after.column, type=kind, nullable=nullable, default=default, on_update=""
            ),
        )
        changed = True
    if not changed:
        return joined
    return replace(joined, columns=tuple(columns[c.id] for c in joined.columns))


def copy_moves(
    copies: Sequence[Copy], columns: Iterable[ShardColumn], joined: JoinedTable
) -> CopyMoves:
    """What the renames by copying do to the target's columns when the target moves to a join.

    Args:
        copies: The known renames.
        columns: The target's columns, with the identities that they have until now.
        joined: The join that the target moves to.
    """
    if not copies:
        return NO_MOVES
    after = {c.id for c in joined.columns if c.is_in_target and c.column.generated is None}
    before = [c.id for c in columns if c.column.generated is None]
    now: dict[str, str] = {}
    for column_id in before:
        fresh = [i for i in later_names(copies, column_id) if i in after and i not in before]
        fresh = [i for i in fresh if i not in now.values()]
        if fresh:
            now[column_id] = fresh[-1]
    has = [now.get(column_id, column_id) for column_id in before]
    merges = []
    for column_id in has:
        if column_id in after:
            continue
        stays = [i for i in has if i in after]
        ahead = [i for i in later_names(copies, column_id) if i in stays]
        behind = [i for i in earlier_names(copies, column_id) if i in stays]
        if ahead:
            # The values go to the latest of the later identities that stay.
            merges.append(Merge(column_id, ahead[-1], forward=True))
        elif behind:
            merges.append(Merge(column_id, behind[0], forward=False))
    return CopyMoves({new: old for old, new in now.items()}, tuple(merges))


def _name(column_id: str, names: Mapping[str, str]) -> str:
    return repr(names.get(column_id, name_at_birth(column_id)))


def _neighbours(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one, other in pairs:
        found.setdefault(one, []).append(other)
    return found


def _reached(start: str, neighbours: Mapping[str, Sequence[str]]) -> list[str]:
    """The identities that can be reached from ``start``, without it, nearest first."""
    found: list[str] = []
    waiting = list(neighbours.get(start, ()))
    while waiting:
        column_id = waiting.pop(0)
        if column_id != start and column_id not in found:
            found.append(column_id)
            waiting += neighbours.get(column_id, ())
    return found
