"""What the statements of earlier records do, read from their canonical texts. Pure.

Before decisions had actions, a statement was only a text. Such decisions remain in the topics, and
such texts in the journal of a MySQL target. A statement that is read from there gets the actions of
its text here, so the rest of the program needs actions only. No other module reads the texts.

There are texts for MySQL, MariaDB and TiDB, which ``ddl.grammar`` reads; texts for Iceberg tables,
in Spark SQL; and texts that change rows, which are nearly the same for all targets. Any other text
has no actions, and no target executes it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TypeVar

from shardmerge.schemas.ddl import changes
from shardmerge.schemas.ddl.canonical.literals import normal_literal
from shardmerge.schemas.ddl.grammar import parse
from shardmerge.schemas.model.actions import (
    Action,
    CharsetChange,
    CheckAddition,
    CheckRemoval,
    ColumnAddition,
    ColumnChange,
    ColumnLiteral,
    ColumnRemoval,
    ColumnRename,
    ColumnText,
    CommentChange,
    DefaultChange,
    DefaultFill,
    IndexAddition,
    IndexRemoval,
    NullPermission,
    RowAction,
    RowFill,
    RowRemoval,
    TableCreation,
    TypeChange,
    ValueMove,
)
from shardmerge.schemas.model.errors import SourceError
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.tables import Column, Default, DefaultKind, TableSchema
from shardmerge.schemas.model.types import ColumnType

from .decisions import Decision, TargetStatement

T = TypeVar("T")
_NULL_DEFAULT = Default(DefaultKind.NULL)
_SERVERS = (ServerContext(), ServerContext("mariadb", (11, 8)))
"""Each text that we wrote can be read as one of these two servers reads it."""


def with_actions(record: T) -> T:
    """The record; a decision's statements without actions get the actions of their texts."""
    if not isinstance(record, Decision) or all(s.actions for s in record.statements):
        return record
    return replace(record, statements=tuple(map(_with_actions, record.statements)))


def _with_actions(statement: TargetStatement) -> TargetStatement:
    if statement.actions:
        return statement
    return replace(statement, actions=actions_of(statement.sql))


def actions_of(sql: str) -> tuple[Action, ...]:
    """The actions of a statement with this canonical text; empty when they are not known."""
    if sql.startswith(("UPDATE ", "DELETE ")):
        row_action = _row_action(sql)
        return () if row_action is None else (row_action,)
    if action := _spark_action(sql):
        return (action,)
    for server in _SERVERS:
        try:
            return _mysql_actions(parse(sql, server))
        except SourceError:
            continue
    return ()


# --- MySQL, MariaDB, TiDB


def _mysql_actions(statement: changes.Statement) -> tuple[Action, ...]:
    match statement:
        case changes.CreateTable(schema=schema):
            return (TableCreation(_normal_table(schema)),)
        case changes.AlterTable(actions=written):
            found = tuple(map(_mysql_action, written))
            known = tuple(action for action in found if action is not None)
            if len(known) < len(found):
                return ()
            return (_merged_charset(known),) if _are_charsets(known) else known
        case _:
            return ()


def _mysql_action(written: changes.Action) -> Action | None:
    match written:
        case changes.AddColumn(column=column, place=None):
            return ColumnAddition(_normal_column(column))
        case changes.DropColumn(name=name):
            return ColumnRemoval(name)
        case changes.ChangeColumn(name=name, column=column, place=None):
            return ColumnChange(name, _normal_column(column))
        case changes.RenameColumn(name=name, to=to):
            return ColumnRename(name, to)
        case changes.AlterDefault(name=name, default=default):
            return DefaultChange(name, _stored_default(default))
        case changes.AddIndex(index=index):
            return IndexAddition(index)
        case changes.DropIndex(name=name):
            return IndexRemoval(name)
        case changes.AddCheck(check=check):
            return CheckAddition(check)
        case changes.DropConstraint(name=name, kind=kind) if kind != "foreign key":
            return CheckRemoval(name)
        case changes.SetDefaultCharset(charset=charset, collation=collation):
            return CharsetChange(charset, collation)
        case _:
            return None


def _are_charsets(actions: tuple[Action, ...]) -> bool:
    return bool(actions) and all(isinstance(action, CharsetChange) for action in actions)


def _merged_charset(actions: tuple[Action, ...]) -> CharsetChange:
    """Merge DEFAULT CHARACTER SET and COLLATE: they are two clauses of one action."""
    said = [action for action in actions if isinstance(action, CharsetChange)]
    return CharsetChange(
        "".join(action.charset for action in said), "".join(action.collation for action in said)
    )


def _normal_table(schema: TableSchema) -> TableSchema:
    return replace(schema, columns=tuple(map(_normal_column, schema.columns)))


def _normal_column(column: Column) -> Column:
    """The column as it was in the schema that the text was made from."""
    default = column.default
    if isinstance(default, changes.WrittenLiteral):
        default = normal_literal(default, column.type, rounds=True)
    if default is None and column.nullable and column.generated is None:
        default = _NULL_DEFAULT
    return replace(column, default=default)


def _stored_default(default: Default | None) -> Default | None:
    """The default in a text that does not tell the column's type."""
    if not isinstance(default, changes.WrittenLiteral):
        return default
    text = default.text
    if default.form == "hex":
        text = f"0x{text}"
    elif default.form == "bit":
        text = f"b'{text}'"
    return Default(DefaultKind.LITERAL, text)


# --- Iceberg tables, in Spark SQL

_NAME = r"`((?:[^`]|``)+)`"
_TYPE = r"([a-z_]+(?:\(\d+,\d+\))?)"
_STRING = r"'((?:[^'\\]|\\.)*)'"
_COLUMN = re.compile(rf"{_NAME} {_TYPE}( NOT NULL)?(?: COMMENT {_STRING})?", re.DOTALL)
_CREATE = re.compile(rf"CREATE TABLE {_NAME}\.{_NAME} \(", re.DOTALL)
_USING = re.compile(rf"\) USING iceberg(?: COMMENT {_STRING})?", re.DOTALL)
_CLAUSE = re.compile(rf"ALTER TABLE {_NAME}\.{_NAME} (.*)", re.DOTALL)
_ADDED = re.compile(rf"ADD COLUMN {_COLUMN.pattern}", re.DOTALL)
_RETYPED = re.compile(rf"ALTER COLUMN {_NAME} TYPE {_TYPE}", re.DOTALL)
_OPENED = re.compile(rf"ALTER COLUMN {_NAME} DROP NOT NULL", re.DOTALL)
_COMMENTED = re.compile(rf"ALTER COLUMN {_NAME} COMMENT {_STRING}", re.DOTALL)
_SPARK_TYPES = {
    "int": ColumnType("int"), "bigint": ColumnType("bigint"), "float": ColumnType("float"),
    "double": ColumnType("double"), "date": ColumnType("date"),
    "timestamp_ntz": ColumnType("datetime", fsp=6), "timestamp": ColumnType("timestamp", fsp=6),
    "string": ColumnType("longtext", charset="utf8mb4"), "binary": ColumnType("longblob"),
}  # fmt: skip
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def _spark_action(sql: str) -> Action | None:
    """What a text for an Iceberg table does; None for a text that is left to MySQL's grammar.

    DROP COLUMN and RENAME COLUMN are written the same way in both.
    """
    if found := _CREATE.match(sql):
        return _spark_creation(sql, found.end())
    found = _CLAUSE.fullmatch(sql)
    clause = found[3] if found else ""
    try:
        if found := _ADDED.fullmatch(clause):
            return ColumnAddition(_spark_column(found))
        if found := _RETYPED.fullmatch(clause):
            return TypeChange(_name(found[1]), _spark_type(found[2]))
    except KeyError:  # a type that Spark does not have
        return None
    if found := _OPENED.fullmatch(clause):
        return NullPermission(_name(found[1]))
    if found := _COMMENTED.fullmatch(clause):
        return CommentChange(_name(found[1]), _text(found[2]))
    return None


def _spark_creation(sql: str, place: int) -> Action | None:
    columns: list[Column] = []
    while found := _COLUMN.match(sql, place):
        try:
            columns.append(_spark_column(found))
        except KeyError:
            return None
        place = found.end()
        if not sql.startswith(", ", place):
            break
        place += 2
    tail = _USING.fullmatch(sql, place)
    if not columns or tail is None:
        return None
    return TableCreation(TableSchema(tuple(columns), comment=_text(tail[1] or "")))


def _spark_column(found: re.Match[str]) -> Column:
    nullable = found[3] is None
    return Column(
        _name(found[1]),
        _spark_type(found[2]),
        nullable,
        _NULL_DEFAULT if nullable else None,
        comment=_text(found[4] or ""),
    )


def _spark_type(text: str) -> ColumnType:
    """The type that ``spark_types.stored_type`` gives; raises ``KeyError`` for another text."""
    if found := _DECIMAL.fullmatch(text):
        return ColumnType("decimal", int(found[1]), int(found[2]))
    return _SPARK_TYPES[text]


# --- changes of rows

_LITERAL = r"(NULL|-?\d+(?:\.\d+)?|b'[01]+'|(?:DATE |TIMESTAMP_NTZ )?'(?:[^'\\]|\\.|'')*')"
_EQUAL = re.compile(rf"{_NAME} = '((?:[^'\\]|\\.|'')*)'", re.DOTALL)
_SET = re.compile(rf"{_NAME} = (?:{_LITERAL}|{_NAME})", re.DOTALL)
_DELETE = re.compile(rf"DELETE FROM {_NAME}\.{_NAME}(?: WHERE (.*))?", re.DOTALL)
_UPDATE = re.compile(rf"UPDATE {_NAME}\.{_NAME} SET ", re.DOTALL)
_MOVE = re.compile(
    rf"{_NAME} = {_NAME}(, {_NAME} = NULL)?(?:, {_NAME} = {_NAME})* WHERE .*", re.DOTALL
)
_DEFAULTED = re.compile(rf"{_NAME} = DEFAULT(?:, {_NAME} = {_NAME})* WHERE {_NAME} IS NULL")


def _row_action(sql: str) -> RowAction | None:
    if found := _DELETE.fullmatch(sql):
        return _removal(found[3])
    head = _UPDATE.match(sql)
    if head is None:
        return None
    rest = sql[head.end() :]
    if found := _DEFAULTED.fullmatch(rest):
        return DefaultFill(_name(found[1]))
    if found := _MOVE.fullmatch(rest):
        return ValueMove(_name(found[2]), _name(found[1]), found[3] is not None)
    return _fill(rest)


def _removal(condition: str | None) -> RowRemoval | None:
    if condition is None:
        return RowRemoval(())
    shards: list[tuple[ColumnText, ...]] = []
    place, bracketed = 0, condition.startswith("(")
    while True:
        of, place = _shard_rows(condition, place + bracketed)
        if of is None:
            return None
        shards.append(of)
        place += bracketed
        if place == len(condition):
            return RowRemoval(tuple(shards))
        if not (bracketed and condition.startswith(") OR (", place - 1)):
            return None
        place += len(" OR ")


def _fill(rest: str) -> RowFill | None:
    values: list[ColumnLiteral] = []
    place = 0
    while found := _SET.match(rest, place):
        if found[2] is not None:  # else `a` = `a`: MySQL must not set `a` by ON UPDATE
            values.append(ColumnLiteral(_name(found[1]), found[2]))
        place = found.end()
        if not rest.startswith(", ", place):
            break
        place += 2
    if not values or not rest.startswith(" WHERE ", place):
        return None
    of, place = _shard_rows(rest, place + len(" WHERE "))
    # The rest of the condition only excludes rows that already have the values.
    is_whole = rest.startswith(" AND NOT (", place) and rest.endswith(")")
    return RowFill(of, tuple(values)) if of is not None and is_whole else None


def _shard_rows(text: str, place: int) -> tuple[tuple[ColumnText, ...] | None, int]:
    """The equations of origin columns at an index of the text, and the index where they end."""
    found: list[ColumnText] = []
    while one := _EQUAL.match(text, place):
        found.append(ColumnText(_name(one[1]), _text(one[2])))
        place = one.end()
        if not (text.startswith(" AND ", place) and _EQUAL.match(text, place + len(" AND "))):
            return tuple(found), place
        place += len(" AND ")
    return None, place


def _name(quoted: str) -> str:
    return quoted.replace("``", "`")


def _text(quoted: str) -> str:
    """The value of a string literal, given what is between its quotes; for MySQL and for Spark."""
    return _ESCAPE.sub(lambda m: _ESCAPED.get(m[1], m[1] or "'"), quoted)


_ESCAPE = re.compile(r"\\(u0000|.)|''", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "0": "\0", "u0000": "\0"}
