"""ALTER TABLE's changes of indexes; ``apply.statements`` says in which order they are made."""

from __future__ import annotations

from collections.abc import Iterator

from shardmerge.schemas.ddl.canonical.implicit_indexes import (
    after_alter,
    implicit_index,
    is_new,
    may_be_implicit,
    without_redundant,
)
from shardmerge.schemas.ddl.canonical.indexing import is_long
from shardmerge.schemas.ddl.changes import (
    AddColumn,
    AddForeignKey,
    AddIndex,
    AlterIndexVisibility,
    AlterTable,
    ChangeColumn,
    DropConstraint,
    DropIndex,
    RenameIndex,
)
from shardmerge.schemas.ddl.expressions import rename_columns
from shardmerge.schemas.model.charsets import max_bytes
from shardmerge.schemas.model.errors import UnsupportedDDL
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.tables import Column, Index, IndexPart, TableSchema
from shardmerge.schemas.model.types import BLOB_NAMES, SPATIAL_NAMES, TEXT_NAMES, ColumnType

from .alter_columns import ColumnChanges, follows_renames

_PREFIXABLE = frozenset({"char", "varchar", "binary", "varbinary", *TEXT_NAMES, *BLOB_NAMES})
_SPATIAL = frozenset(SPATIAL_NAMES)
_UNBOUNDED = frozenset({*TEXT_NAMES, *BLOB_NAMES})
_STORAGE_BYTES = {
    "tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8, "float": 4, "double": 8,
    "year": 1, "date": 3, "uuid": 16, "inet6": 16, "inet4": 4,
}  # fmt: skip
_MOMENT_BYTES = {"datetime": 5, "timestamp": 4, "time": 3}


def change_indexes(
    schema: TableSchema,
    alter: AlterTable,
    table_name: str,
    changes: ColumnChanges,
    context: ServerContext,
) -> tuple[Index, ...]:
    """The indexes after the statement, new ones last and as written.

    Raises:
        UnsupportedDDL: An action names an index that the table does not have.
    """
    dropped, renamed, visibility = _named_changes(schema, alter, table_name)
    before = {column.name.lower(): column for column in schema.columns}
    after = {column.name.lower(): column for column in changes.columns}
    untouched = changes.only_added or (
        not changes.dropped
        and len(after) == len(before)
        and all(
            old == new.lower() and after[old].type == before[old].type
            for old, new in changes.renamed.items()
        )
    )
    indexes: list[Index] = []
    for index in schema.indexes:
        folded = index.name.lower()
        if folded in dropped:
            continue
        parts = index.parts if untouched else _parts(index, before, after, changes, context)
        if not parts:
            continue
        name = renamed.get(folded, index.name)
        # MariaDB requires that some index had this name before the statement, but changes the
        # index that has the name after the statement's renames.
        invisible = visibility.get(name.lower(), index.invisible)
        same = name == index.name and invisible == index.invisible and parts == index.parts
        kept = index if same else replace(index, name=name, parts=parts, invisible=invisible)
        if folded in renamed:
            kept = replace(kept, implicit=False)  # A given name makes the index explicit.
        indexes.append(kept if is_long(kept, after) else after_alter(kept))
    names = {index.name.lower() for index in indexes}
    known = len(indexes)
    for place, action in enumerate(alter.actions):
        if isinstance(action, (AddColumn, ChangeColumn)):
            indexes += _inline(action, names, is_skipped=place in changes.skipped)
        elif isinstance(action, AddIndex):
            if not (action.if_not_exists and action.index.name.lower() in names):
                indexes.append(_with_kept_visibility(action.index, schema, context))
        elif isinstance(action, AddForeignKey) and is_new(action, schema):
            indexes.append(implicit_index(action.foreign_key))
    return _with_new(indexes[:known], indexes[known:], schema, table_name, context)


def _with_kept_visibility(index: Index, schema: TableSchema, context: ServerContext) -> Index:
    """A new index. If it replaces an equal one in MariaDB, it keeps that one's visibility."""
    old = schema.index(index.name) if context.is_mariadb and index.name else None
    if old is None or old.invisible == index.invisible:
        return index
    alike = (old.kind, old.comment, _key(old)) == (index.kind, index.comment, _key(index))
    return replace(index, invisible=old.invisible) if alike else index


def _key(index: Index) -> list[tuple[str, int | None, bool]]:
    return [(part.column.lower(), part.length, part.descending) for part in index.parts]


def _inline(
    action: AddColumn | ChangeColumn, names: set[str], *, is_skipped: bool
) -> Iterator[Index]:
    """The keys inside a column definition. IF [NOT] EXISTS applies to each of them separately.

    MariaDB adds such a key even if the column exists already, but not if an index has its name.
    """
    if isinstance(action, ChangeColumn):
        if is_skipped:
            return
        is_guarded = action.if_exists
    else:
        is_guarded = action.if_not_exists
    for index in action.indexes:
        name = index.name or index.parts[0].column
        if not (is_guarded and name.lower() in names):
            yield index


def _with_new(
    indexes: list[Index],
    added: list[Index],
    schema: TableSchema,
    table_name: str,
    context: ServerContext,
) -> tuple[Index, ...]:
    """The indexes with the added ones, without implicit ones that these make redundant."""
    if not added:
        return tuple(indexes)
    kept = without_redundant((*indexes, *added), mariadb=context.is_mariadb, known=len(indexes))
    names = {index.name.lower() for index in added if index.name and not index.implicit}
    old = [index for index in kept if any(index is other for other in indexes)]
    taken = [index for index in old if index.name.lower() in names]
    for index in taken:
        # The server accepted the statement, so the index of that name must be an implicit one.
        if not may_be_implicit(index, schema.foreign_keys):
            raise UnsupportedDDL(
                f"table {table_name} already has an index {index.name}",
                hint="the tracked schema differs from the server's",
                code="SM-1102",
            )
    return tuple(index for index in kept if index not in taken) if taken else kept


def _named_changes(
    schema: TableSchema, alter: AlterTable, table_name: str
) -> tuple[set[str], dict[str, str], dict[str, bool]]:
    dropped: set[str] = set()
    renamed: dict[str, str] = {}
    visibility: dict[str, bool] = {}
    names = {index.name.lower() for index in schema.indexes}
    for action in alter.actions:
        if isinstance(action, DropConstraint):
            if action.kind == "any" and action.name.lower() in names:
                dropped.add(action.name.lower())
            continue
        if not isinstance(action, (DropIndex, RenameIndex, AlterIndexVisibility)):
            continue
        folded = action.name.lower()
        if folded not in names:
            if action.if_exists:
                continue
            raise UnsupportedDDL(
                f"table {table_name} has no index {action.name}",
                hint="the tracked schema differs from the server's",
                code="SM-1102",
            )
        if isinstance(action, DropIndex):
            dropped.add(folded)
        elif isinstance(action, RenameIndex):
            renamed[folded] = action.to
        else:
            visibility[folded] = action.invisible
    return dropped, renamed, visibility


def _parts(
    index: Index,
    before: dict[str, Column],
    after: dict[str, Column],
    changes: ColumnChanges,
    context: ServerContext,
) -> tuple[IndexPart, ...]:
    # Old name → the first column, in the new order, that had this name or was added with it.
    followed: dict[str, tuple[str, bool]] = {}
    for line in changes.lineage:
        followed.setdefault((line.before or line.name).lower(), (line.name, not line.before))
    parts: list[IndexPart] = []
    for part in index.parts:
        if not part.column:
            text = part.expression
            if follows_renames(context):
                text = rename_columns(text, changes.renamed)
            parts.append(replace(part, expression=text))
            continue
        folded = part.column.lower()
        old = before[folded]
        name, is_new = followed.get(folded, ("", False))
        if not name:
            continue
        new = after[name.lower()]
        length = _length(part, old, new, context)
        if is_new:
            # The server finds no old field for a new column: the old size becomes a prefix.
            length = part.length or _size(old.type)
            if length and old.type.name in ("enum", "set"):
                length = length // max_bytes(old.type.charset) or None
        parts.append(replace(part, column=new.name, length=length))
    return tuple(parts)


def _length(part: IndexPart, old: Column, new: Column, context: ServerContext) -> int | None:
    if part.length is None:
        from_list = old.type.name in ("enum", "set") and new.type.name in _PREFIXABLE
        return _enumeration_prefix(old.type) if from_list and not context.is_mariadb else None
    if not context.at_least(80000, None) and _SPATIAL.intersection((old.type.name, new.type.name)):
        return part.length
    if old.type.name not in _PREFIXABLE or new.type.name not in _PREFIXABLE:
        return None
    if new.type.name not in _UNBOUNDED and (new.type.length or 0) < part.length:
        return None
    return part.length


def _enumeration_prefix(kind: ColumnType) -> int | None:
    """The prefix that the server gives to an index part when its enum or set becomes a string.

    The server treats the part as a whole column if the stored bytes equal those of the longest
    text, else as a prefix.

    Source: sql_table.cc ``mysql_prepare_alter_table`` (read); measured.
    """
    width = max_bytes(kind.charset)
    stored = _size(kind) or 0
    lengths = [len(element) for element in kind.elements]
    shown = max(lengths) if kind.name == "enum" else sum(lengths) + len(lengths) - 1
    return None if stored == shown * width else stored // width or None


def _size(kind: ColumnType) -> int | None:
    """The size of a whole column as a key part: in characters for strings, else in bytes."""
    name = kind.name
    if name in _PREFIXABLE:
        return kind.length
    if name == "decimal":
        whole, scale = (kind.length or 0) - (kind.scale or 0), kind.scale or 0
        return _packed_digits(whole) + _packed_digits(scale)
    if name in ("datetime", "timestamp", "time"):
        return _MOMENT_BYTES[name] + (kind.fsp + 1) // 2
    if name == "bit":
        return ((kind.length or 1) + 7) // 8
    if name == "enum":
        return 1 if len(kind.elements) < 256 else 2
    if name == "set":
        size = (len(kind.elements) + 7) // 8
        return size if size <= 4 else 8
    return _STORAGE_BYTES.get(name)


def _packed_digits(digits: int) -> int:
    """The bytes of so many decimal digits; nine digits take four bytes."""
    return digits // 9 * 4 + (digits % 9 + 1) // 2
