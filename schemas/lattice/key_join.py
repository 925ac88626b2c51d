"""The join of primary keys, indexes, checks and foreign keys: fewer is more compatible.

All of them name columns. This module compares them by the columns' identities and writes them in
the target's names. The rules look at how many shards have which definition, never at a single
shard.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from shardmerge.schemas.ddl.expressions import rename_columns
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.tables import Check, ForeignKey, Index, IndexKind, IndexPart

from .joined import Conflict, ShardSchema

Key = tuple[tuple[str, int], ...]
_MADE_UP_CHECK = re.compile(r".+_chk_\d+\Z|CONSTRAINT_\d+\Z")
"""Names that MySQL and MariaDB make up. They contain the shard's table name, or a number that
depends on the table's history, so they do not show which checks are the same."""
_MADE_UP_FOREIGN_KEY = re.compile(r".+_ibfk_\d+\Z")
_Named = TypeVar("_Named", Index, Check)


@dataclass(frozen=True, slots=True)
class PrimaryKey:
    """A shard's primary key: identities and prefix lengths. ``parts`` is empty without a key."""

    parts: Key = ()


Constraint: TypeAlias = PrimaryKey | Index | Check | ForeignKey
"""One constraint of a shard. Made-up names of checks and foreign keys are "". An ``Index`` is
always a secondary one."""


@dataclass(frozen=True, slots=True)
class JoinedConstraints:
    """The constraints of the join, see ``JoinedTable``."""

    key: Key
    indexes: tuple[Index, ...]
    checks: tuple[Check, ...]
    foreign_keys: tuple[ForeignKey, ...]


def constraints_of(shard: ShardSchema, names: Mapping[str, str]) -> frozenset[Constraint]:
    """A shard's keys and constraints.

    Args:
        shard: The shard's schema.
        names: The shard's column names in lower case → the names that the result uses.
    """
    table = shard.schema
    found: list[Constraint] = [
        *(index for index in table.indexes if index.kind is not IndexKind.PRIMARY),
        *(_without_made_up_name(check) for check in table.checks),
        *(_with_comparable_name(key) for key in table.foreign_keys),
    ]
    primary, key = table.primary_key, PrimaryKey()
    if primary is not None:
        ids = shard.by_name
        key = PrimaryKey(tuple((ids[p.column.lower()], p.length or 0) for p in primary.parts))
    return frozenset((key, *(renamed(constraint, names) for constraint in found)))


def renamed(constraint: Constraint, names: Mapping[str, str]) -> Constraint:
    """The constraint with its columns renamed, without properties that the join ignores.

    Args:
        constraint: The constraint. A primary key does not change, since it holds identities.
        names: Column names in lower case → new names, for every column that the constraint names.
    """
    match constraint:
        case PrimaryKey():
            return constraint
        case Index():
            parts = tuple(_renamed_part(part, names) for part in constraint.parts)
            return Index(constraint.name, constraint.kind, parts, parser=constraint.parser)
        case Check():
            return replace(constraint, expression=rename_columns(constraint.expression, names))
        case ForeignKey():
            columns = tuple(names[column.lower()] for column in constraint.columns)
            return replace(constraint, columns=columns)


def join_constraints(
    counts: Mapping[Constraint, int],
    shards: int,
    names: Mapping[str, str],
) -> JoinedConstraints | Conflict:
    """The constraints that every shard has.

    Args:
        counts: How many shards have which constraint, in the target's names.
        shards: How many there are, at least one.
        names: Identity → name in the target.
    """
    key = _join_keys([c for c in counts if isinstance(c, PrimaryKey)], names)
    if isinstance(key, Conflict):
        return key
    indexes = _join_indexes({c: n for c, n in counts.items() if isinstance(c, Index)}, shards)
    checks = _join_checks({c: n for c, n in counts.items() if isinstance(c, Check)}, shards)
    # A foreign key names a parent in its own shard, so two that differ are no conflict.
    common = [c for c, n in counts.items() if isinstance(c, ForeignKey) and n == shards]
    return JoinedConstraints(key, indexes, checks, tuple(sorted(common, key=repr)))


def with_known_names(checks: Iterable[Check], there: Sequence[Check]) -> tuple[Check, ...]:
    """The checks; one that the table has already, under another made-up name, keeps that name.

    Args:
        checks: With names.
        there: The table's checks.
    """
    found, known = tuple(checks), {check.name.lower() for check in there}
    names = {check.name.lower() for check in found}
    free = {
        (check.expression, check.enforced): check.name
        for check in there
        if check.name.lower() not in names and _MADE_UP_CHECK.match(check.name)
    }
    return tuple(
        replace(check, name=free.pop((check.expression, check.enforced), check.name))
        if check.name.lower() not in known and _MADE_UP_CHECK.match(check.name)
        else check
        for check in found
    )


def _renamed_part(part: IndexPart, names: Mapping[str, str]) -> IndexPart:
    return replace(
        part,
        column=names[part.column.lower()] if part.column else "",
        expression=rename_columns(part.expression, names),
    )


def _without_made_up_name(check: Check) -> Check:
    return replace(check, name="") if _MADE_UP_CHECK.match(check.name) else check


def _with_comparable_name(key: ForeignKey) -> ForeignKey:
    made_up = _MADE_UP_FOREIGN_KEY.match(key.name)
    return replace(key, name="" if made_up else key.name.lower())


def _join_keys(keys: Iterable[PrimaryKey], names: Mapping[str, str]) -> Key | Conflict:
    """The primary key, which must be the same on all shards: it decides which rows are one row."""
    found = [key.parts for key in keys]
    if len(found) == 1:
        return found[0]
    texts = sorted(_key_text(key, names) for key in found)
    return Conflict(
        ("primary key",), texts[0], texts[-1], "rows are told apart by other columns",
        "give every shard the same primary key", code="SM-1205",
    )  # fmt: skip


def _join_indexes(counts: Mapping[Index, int], shards: int) -> tuple[Index, ...]:
    """The indexes that every shard has. Indexes with one name and two definitions are left out."""
    joined = []
    for folded, found in sorted(_by_folded_name(counts).items()):
        definitions = {replace(index, name=folded) for index in found}
        if len(definitions) == 1 and sum(counts[index] for index in found) == shards:
            joined.append(min(found, key=lambda index: index.name))
    return tuple(joined)


def _join_checks(counts: Mapping[Check, int], shards: int) -> tuple[Check, ...]:
    """The checks that every shard has; made-up names do not count. See ``_join_indexes``."""
    joined = []
    by_name = _by_folded_name(counts)
    unnamed = [check for check in by_name.pop("", ()) if counts[check] == shards]
    for folded, found in sorted(by_name.items()):
        definitions = {replace(check, name=folded) for check in found}
        if len(definitions) == 1 and sum(counts[check] for check in found) == shards:
            joined.append(min(found, key=lambda check: check.name))
    return (*joined, *sorted(unnamed, key=lambda check: (check.expression, check.enforced)))


def _by_folded_name(found: Iterable[_Named]) -> dict[str, list[_Named]]:
    grouped: dict[str, list[_Named]] = {}
    for constraint in found:
        grouped.setdefault(constraint.name.lower(), []).append(constraint)
    return grouped


def _key_text(key: Iterable[tuple[str, int]], names: Mapping[str, str]) -> str:
    parts = (names[i] + (f"({length})" if length else "") for i, length in key)
    return f"({', '.join(parts)})" if key else "none"
