"""The join of primary keys, indexes, checks and foreign keys: fewer is more compatible.

All of them name columns; here they are read by the columns' identities, and written in the
target's names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from .expressions import column_names, rename_columns
from .joined import Conflict, ShardSchema
from .model import Check, ForeignKey, Index, IndexKind, IndexPart
from .render.mysql import check_clause, index_clause

Key = tuple[tuple[str, int], ...]
_MADE_UP_CHECK = re.compile(r".+_chk_\d+\Z|CONSTRAINT_\d+\Z")
"""Names that MySQL and MariaDB make up. They hold the shard's table name or a number that
depends on history, so they say nothing about which checks are the same."""
_MADE_UP_FOREIGN_KEY = re.compile(r".+_ibfk_\d+\Z")


class LocalKeys:
    """One shard's keys and constraints in the target's column names.

    Attributes:
        names: The shard's column names in lower case → the target's names.
        key: The primary key: identities and prefix lengths.
        indexes, checks: By lower-case name; checks with a made-up name are ``unnamed``.
    """

    def __init__(self, shard: ShardSchema, names: Mapping[str, str]) -> None:
        ids = {item.column.name.lower(): item.id for item in shard.columns}
        self.names = {name: names[column_id] for name, column_id in ids.items()}
        primary = shard.table.primary_key
        self.key: Key = ()
        if primary is not None:
            self.key = tuple((ids[p.column.lower()], p.length or 0) for p in primary.parts)
        self.indexes = {
            index.name.lower(): self._index(index)
            for index in shard.table.indexes
            if index.kind is not IndexKind.PRIMARY
        }
        self.checks: dict[str, Check] = {}
        self.unnamed: set[tuple[str, bool]] = set()
        for check in shard.table.checks:
            text = rename_columns(check.expression, self.names)
            if not check.name or _MADE_UP_CHECK.match(check.name):
                self.unnamed.add((text, check.enforced))
            else:
                self.checks[check.name.lower()] = replace(check, expression=text)
        self.foreign_keys = {self._foreign_key(key) for key in shard.table.foreign_keys}

    def _index(self, index: Index) -> Index:
        parts = tuple(
            replace(
                part,
                column=self.names[part.column.lower()] if part.column else "",
                expression=rename_columns(part.expression, self.names),
            )
            for part in index.parts
        )
        return Index(index.name, index.kind, parts, parser=index.parser)

    def _foreign_key(self, key: ForeignKey) -> ForeignKey:
        name = "" if _MADE_UP_FOREIGN_KEY.match(key.name) else key.name.lower()
        return replace(key, name=name, columns=tuple(self.names[c.lower()] for c in key.columns))


def join_keys(tables: Sequence[LocalKeys], names: Mapping[str, str]) -> Key | Conflict:
    """The one primary key. A different one would make other rows the same row."""
    found = sorted({table.key for table in tables})
    if len(found) == 1:
        return found[0]
    texts = sorted(_key_text(key, names) for key in found)
    return Conflict(
        ("primary key",), texts[0], texts[-1], "rows are told apart by other columns",
        "give every shard the same primary key",
    )  # fmt: skip


def join_indexes(
    tables: Sequence[LocalKeys], partial: AbstractSet[str]
) -> tuple[Index, ...] | Conflict:
    """The indexes of every shard.

    Two indexes of one name must be the same index, but for columns that a shard has not (yet or
    any more): MySQL takes a dropped column out of its indexes, so such an index waits, or goes.

    Args:
        tables: At least one.
        partial: Target names in lower case of the columns that some shard lacks.
    """
    joined = []
    for folded in sorted({name for table in tables for name in table.indexes}):
        found = [table.indexes[folded] for table in tables if folded in table.indexes]
        definitions = {replace(index, name=folded) for index in found}
        if len(definitions) == 1 and len(found) == len(tables):
            joined.append(min(found, key=lambda index: index.name))
        settled = {_settled(index, partial) for index in definitions} - {None}
        if len(settled) > 1:
            texts = sorted(index_clause(index) for index in definitions)
            return _name_conflict("index", folded, texts)
    return tuple(joined)


def join_checks(
    tables: Sequence[LocalKeys], partial: AbstractSet[str]
) -> tuple[Check, ...] | Conflict:
    """The checks of every shard; made-up names do not count. See ``join_indexes``."""
    joined = []
    for folded in sorted({name for table in tables for name in table.checks}):
        found = [table.checks[folded] for table in tables if folded in table.checks]
        definitions = {replace(check, name=folded) for check in found}
        if len(definitions) == 1 and len(found) == len(tables):
            joined.append(min(found, key=lambda check: check.name))
        if len({c for c in definitions if not _names_any(c.expression, partial)}) > 1:
            return _name_conflict("check", folded, sorted(map(check_clause, definitions)))
    unnamed = set.intersection(*(table.unnamed for table in tables))
    return (*joined, *(Check("", text, enforced) for text, enforced in sorted(unnamed)))


def join_foreign_keys(tables: Sequence[LocalKeys]) -> tuple[ForeignKey, ...]:
    """The foreign keys of every shard.

    They name parents of their own shard, so two that differ are no conflict.
    """
    common = set.intersection(*(table.foreign_keys for table in tables))
    return tuple(sorted(common, key=repr))


def _settled(index: Index, partial: AbstractSet[str]) -> Index | None:
    """The index over the columns that every shard has; None if there are none."""
    parts = tuple(part for part in index.parts if not _names_partial(part, partial))
    return replace(index, parts=parts) if parts else None


def _names_partial(part: IndexPart, partial: AbstractSet[str]) -> bool:
    return part.column.lower() in partial or _names_any(part.expression, partial)


def _names_any(expression: str, partial: AbstractSet[str]) -> bool:
    return any(name.lower() in partial for name in column_names(expression))


def _name_conflict(what: str, name: str, texts: Sequence[str]) -> Conflict:
    return Conflict(
        (f"{what} {name}",), texts[0], texts[-1], "one name for two definitions",
        f"drop or rename {what} {name} on the shards where it differs",
    )  # fmt: skip


def _key_text(key: Iterable[tuple[str, int]], names: Mapping[str, str]) -> str:
    parts = (names[i] + (f"({length})" if length else "") for i, length in key)
    return f"({', '.join(parts)})" if key else "none"
