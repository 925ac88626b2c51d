"""Applies a statement to a schema. Pure.

Theory of operation of ``apply_alter``: it works in MySQL's own order, whatever the order of the
actions in the statement:

1. Table options and the default charset: columns that are added or redefined inherit the new one.
2. Drops; then redefinitions, renames and defaults in place, by the columns' *old* names.
3. Additions and moves, in the order written, by the *new* names.
4. CONVERT TO, which overrides the charsets in column definitions.
5. Indexes: remove dropped ones, parts whose column is dropped, and indexes without parts; rename
   the parts of the others; then add new indexes, generate names and sort.
6. Checks and foreign keys, in the same way.

Source: sql_table.cc ``mysql_prepare_alter_table`` (read); measured (tests/integration/mysql).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from shardmerge.schemas.ddl.canonical.implicit_indexes import after_alter, is_settled
from shardmerge.schemas.ddl.canonical.normalize import (
    converted_column,
    converted_type,
    normal_charset,
    normalize,
    settle,
)
from shardmerge.schemas.ddl.canonical.timestamps import with_implicit_defaults
from shardmerge.schemas.ddl.changes import (
    Action,
    AddColumn,
    AlterDefault,
    AlterTable,
    ConvertCharset,
    CreateTable,
    CreateTableLike,
    MovePartition,
    NoEffect,
    RenameTableTo,
    SetDefaultCharset,
    SetTableOption,
    TableName,
)
from shardmerge.schemas.ddl.describe import describe
from shardmerge.schemas.ddl.grammar.definitions.types import BINARY_ATTRIBUTE
from shardmerge.schemas.ddl.grammar.statements.create_table import merge_charset
from shardmerge.schemas.model.errors import UnsupportedDDL
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.shard_columns import Lineage
from shardmerge.schemas.model.tables import Check, ForeignKey, TableSchema

from .alter_columns import ColumnChanges, change_columns
from .alter_constraints import change_checks, change_foreign_keys
from .alter_indexes import change_indexes
from .ignored_rows import ignoring


@dataclass(frozen=True, slots=True)
class AlterResult:
    """The result of an ALTER TABLE.

    Attributes:
        schema: The table's schema after the statement.
        lineage: One entry per column of ``schema``, in its order.
        actions: Canonical texts of the actions, in the order written. Those of ALTER IGNORE that
            may delete rows begin with IGNORE.
        renamed_to: The table's new name when the statement renames it.
    """

    schema: TableSchema
    lineage: tuple[Lineage, ...]
    actions: tuple[str, ...]
    renamed_to: TableName | None = None


def apply_create(
    statement: CreateTable | CreateTableLike,
    context: ServerContext,
    like: TableSchema | None = None,
) -> TableSchema:
    """The schema that a CREATE TABLE makes.

    Args:
        statement: The statement.
        context: The server, with the defaults of the table's database, see ``databases``.
        like: The other table's schema, for CREATE TABLE … LIKE.

    Raises:
        UnsupportedDDL: LIKE names a table that is not tracked, a query gives columns that the
            statement does not define, no column is defined, or a key names an unknown column.
    """
    if isinstance(statement, CreateTableLike):
        if like is None:
            raise UnsupportedDDL(
                f"CREATE TABLE {statement.name.table} LIKE {statement.like.table}: "
                "the other table's schema is not tracked",
                hint="capture that table's schema too, or set the shard's schema by hand",
                code="SM-1104",
            )
        return _copied_schema(like, statement.name.table, context)
    if statement.from_query:
        raise UnsupportedDDL(
            f"CREATE TABLE {statement.name.table} takes columns from a query, and their types "
            "are not in the statement",
            hint="replicate with binlog_format=ROW, where the server logs the definitions, or "
            "set the shard's schema by hand",
            code="SM-1105",
        )
    schema = statement.schema
    if not schema.columns:
        raise UnsupportedDDL(
            f"CREATE TABLE {statement.name.table} defines no columns: either the table was there "
            "already and is not tracked, or its engine found them elsewhere",
            hint="set the shard's schema by hand",
            code="SM-1105",
        )
    charset, collation = normal_charset(
        schema.charset, schema.collation, context.charset, context.collation, context
    )
    schema = replace(schema, charset=charset, collation=collation)
    _refuse_repeated_columns(schema, statement.name.table)
    result = normalize(schema, statement.name.table, context, is_new=True)
    _refuse_unknown_parts(result, statement.name.table)
    return result


def apply_alter(
    schema: TableSchema, alter: AlterTable, table_name: str, context: ServerContext
) -> AlterResult:
    """The schema after an ALTER TABLE, CREATE INDEX or DROP INDEX.

    Args:
        schema: The table's schema before, normalised.
        alter: The statement.
        table_name: The table's name before.
        context: The server, with the defaults of the table's database.

    Raises:
        UnsupportedDDL: The statement contradicts the schema (an unknown column, a column that
            exists already, …): the tracked schema differs from the server's.
    """
    if alter.ignores:
        plain = apply_alter(schema, replace(alter, ignores=False), table_name, context)
        return replace(plain, actions=ignoring(alter.actions, plain.actions))
    if not (schema.checks or schema.foreign_keys):
        with suppress(UnsupportedDDL):  # it is raised again below, with the table's own name
            found = _applied_to_any(schema, alter.actions, context)
            if found is not None:
                return found
    return _applied(schema, alter, table_name, context)


@lru_cache(maxsize=512)
def _applied_to_any(
    schema: TableSchema, actions: tuple[Action, ...], context: ServerContext
) -> AlterResult | None:
    """The result for a table of any name; None if it depends on the name.

    The shards of a target have few schemas and make the same changes. The server uses the name of a
    table in the names of checks and foreign keys, and nowhere else.
    """
    found = _applied(schema, AlterTable(TableName("", "t"), actions), "t", context)
    named = found.schema.checks or found.schema.foreign_keys or found.renamed_to
    return None if named else found


def _applied(
    schema: TableSchema, alter: AlterTable, table_name: str, context: ServerContext
) -> AlterResult:
    charset, conversion = _charset(schema, alter, context)
    changes = change_columns(schema, alter, table_name, charset, context)
    if conversion is not None:
        changes = _convert(schema, changes, *conversion, context)
    changes = _with_timestamps(changes, context)
    renamed_to = next((a.to for a in alter.actions if isinstance(a, RenameTableTo)), None)
    comment, options, partitioning = _options(schema, alter)
    draft = TableSchema(
        changes.columns, schema.indexes, schema.checks, schema.foreign_keys, *charset,
        comment, options, partitioning,
    )  # fmt: skip
    settled = all(map(is_settled, schema.indexes)) or all(map(_is_simple, alter.actions))
    if settled and changes.only_added and all(map(_keeps_constraints, alter.actions)):
        # The usual case: nothing in the statement concerns indexes and constraints.
        result = draft
    else:
        draft = replace(
            draft,
            indexes=change_indexes(schema, alter, table_name, changes, context),
            checks=change_checks(schema, alter, table_name, changes, context),
            foreign_keys=change_foreign_keys(schema, alter, table_name, changes),
        )
        lose_default = _lost_key_defaults(schema, alter, changes, context)
        result = settle(draft, table_name, context, lose_default)
        _refuse_unknown_parts(result, table_name)
    if renamed_to is not None:
        result = apply_rename(result, table_name, renamed_to.table)
    actions = tuple(
        describe(action, changes.described.get(place)) for place, action in enumerate(alter.actions)
    )
    return AlterResult(result, changes.lineage, actions, renamed_to)


def _with_timestamps(changes: ColumnChanges, context: ServerContext) -> ColumnChanges:
    columns = with_implicit_defaults(changes.columns, changes.defined, context)
    if columns == changes.columns:
        return changes
    now = {id(old): new for old, new in zip(changes.columns, columns, strict=True)}
    described = {place: now.get(id(c), c) for place, c in changes.described.items()}
    return replace(changes, columns=columns, described=described)


def _lost_key_defaults(
    schema: TableSchema, alter: AlterTable, changes: ColumnChanges, context: ServerContext
) -> frozenset[str]:
    """Columns that lose an expression default if they are in the primary key.

    MySQL up to 8.0.15 drops such a default of any column that the statement defines or alters. A
    later MySQL drops it only if the key exists already and the statement consists of ALTER COLUMN.
    (Measured on 8.0.15 and 9.7.)
    """
    if context.is_mariadb:
        return frozenset()
    given = frozenset(
        changes.renamed.get(action.name.lower(), action.name)
        for action in alter.actions
        if isinstance(action, AlterDefault)
    )
    if not context.at_least(80016, None):
        return given | changes.defined
    key = schema.primary_key
    return given if key is not None and len(alter.actions) == len(given) else frozenset()


def _is_simple(action: Action) -> bool:
    """Whether the server performs the action without reading the table's definition."""
    if isinstance(action, NoEffect):
        return action.text.upper() in _KEYS_SWITCHED
    return isinstance(action, RenameTableTo)


def _keeps_constraints(action: Action) -> bool:
    """Whether the action itself leaves indexes and constraints unchanged."""
    if isinstance(action, AddColumn):
        return not (action.indexes or action.checks)
    apart = (SetTableOption, SetDefaultCharset, NoEffect, MovePartition, RenameTableTo)
    return isinstance(action, apart)


def apply_rename(schema: TableSchema, old_name: str, new_name: str) -> TableSchema:
    """The schema after the table was renamed: generated constraint names get the new table name.

    Source: MySQL Reference Manual, "RENAME TABLE Statement".
    """
    checks = tuple(
        replace(check, name=_with_new_prefix(check.name, f"{old_name}_chk_", f"{new_name}_chk_"))
        for check in schema.checks
    )
    keys = tuple(
        replace(key, name=_with_new_prefix(key.name, f"{old_name}_ibfk_", f"{new_name}_ibfk_"))
        for key in schema.foreign_keys
    )
    if checks == schema.checks and keys == schema.foreign_keys:
        return schema
    return replace(schema, checks=checks, foreign_keys=keys)


def _with_new_prefix(name: str, old: str, new: str) -> str:
    if name.lower().startswith(old.lower()) and name[len(old) :].isdigit():
        return new + name[len(old) :]
    return name


def _copied_schema(like: TableSchema, table_name: str, context: ServerContext) -> TableSchema:
    checks = tuple(
        check if context.is_mariadb else Check("", check.expression, check.enforced)
        for check in like.checks
    )
    no_keys: tuple[ForeignKey, ...] = ()
    indexes = tuple(map(after_alter, like.indexes))
    copy = replace(like, indexes=indexes, checks=checks, foreign_keys=no_keys)
    return settle(copy, table_name, context)


Charset = tuple[str, str]
_KEYS_SWITCHED = ("DISABLE KEYS", "ENABLE KEYS")


def _charset(
    schema: TableSchema, alter: AlterTable, context: ServerContext
) -> tuple[Charset, Charset | None]:
    """The table's charset and collation after the statement, and what columns convert to."""
    found = [a for a in alter.actions if isinstance(a, (SetDefaultCharset, ConvertCharset))]
    if not found:
        return (schema.charset, schema.collation), None
    conversions = [action for action in found if isinstance(action, ConvertCharset)]
    defaults = [action for action in found if isinstance(action, SetDefaultCharset)]
    conversion = _merged(conversions, context) if conversions else None
    # In MariaDB the default's own clauses win over CONVERT TO; in MySQL the last clause wins.
    decisive = defaults if context.is_mariadb and defaults else found
    return _merged(decisive, context), conversion


def _merged(
    actions: Sequence[SetDefaultCharset | ConvertCharset], context: ServerContext
) -> Charset:
    charset = collation = ""
    for action in actions:
        if action.charset:
            if isinstance(action, ConvertCharset) and not context.is_mariadb:
                collation = ""
            option = SetDefaultCharset(action.charset)
            charset, collation = merge_charset(charset, collation, option, context)
        if action.collation:
            option = SetDefaultCharset("", action.collation)
            charset, collation = merge_charset(charset, collation, option, context)
    return normal_charset(charset, collation, context.charset, context.collation, context)


def _convert(
    schema: TableSchema,
    changes: ColumnChanges,
    charset: str,
    collation: str,
    context: ServerContext,
) -> ColumnChanges:
    # For a column that the statement also redefines, only MySQL 8 and later look at the type that
    # the column had before the statement.
    looks_at_old_type = context.at_least(80000, None)
    columns = tuple(
        converted_column(column, kind) if kind != column.type else column
        for column, line in zip(changes.columns, changes.lineage, strict=True)
        for wanted in (BINARY_ATTRIBUTE if column.name in changes.binary else collation,)
        for old in (schema.column(line.before) if line.before and looks_at_old_type else None,)
        for given in (old.type if old is not None else None,)
        for before in (given if column.name in changes.defined else column.type,)
        for kind in (converted_type(column.type, charset, wanted, context, before=before),)
    )
    return replace(changes, columns=columns)


def _options(
    schema: TableSchema, alter: AlterTable
) -> tuple[str, tuple[tuple[str, str], ...], str]:
    """The table's comment, options and partitioning after the statement."""
    comment = schema.comment
    partitioning = schema.partitioning
    options: dict[str, str] | None = None
    for action in alter.actions:
        if isinstance(action, SetTableOption):
            if action.name == "COMMENT":
                comment = action.value
                continue
            options = dict(schema.options) if options is None else options
            if action.value.upper() == "DEFAULT" or (
                action.name == "ENGINE" and action.value.upper() == "INNODB"
            ):
                options.pop(action.name, None)
            else:
                options[action.name] = action.value
        elif isinstance(action, NoEffect):
            if action.text.startswith("PARTITION BY "):
                partitioning = action.text
            elif action.text == "REMOVE PARTITIONING":
                partitioning = ""
    kept = schema.options if options is None else tuple(sorted(options.items()))
    return comment, kept, partitioning


def _refuse_repeated_columns(schema: TableSchema, table_name: str) -> None:
    seen: set[str] = set()
    for column in schema.columns:
        if column.name.lower() in seen:
            raise UnsupportedDDL(
                f"table {table_name} would have two columns {column.name}", code="SM-1102"
            )
        seen.add(column.name.lower())


def _refuse_unknown_parts(schema: TableSchema, table_name: str) -> None:
    names = {column.name.lower() for column in schema.columns}
    for index in schema.indexes:
        for part in index.parts:
            if part.column and part.column.lower() not in names:
                raise UnsupportedDDL(
                    f"index {index.name} of table {table_name} names the column "
                    f"{part.column}, which the table does not have",
                    hint="the tracked schema differs from the server's: set it by hand",
                    code="SM-1102",
                )
