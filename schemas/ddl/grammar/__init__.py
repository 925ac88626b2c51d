"""MySQL and MariaDB DDL, read into ``shardmerge.schemas.ddl.changes``.

This is a recursive-descent parser over sqlglot's MySQL tokenizer. Text that it does not know is an
error with an offset and is never skipped: a statement that is silently misread would give a wrong
schema, and wrong rows.

Start reading at ``parse``. Every rule moves a ``lexer.Cursor``. Each module has one family of
rules.
"""

from __future__ import annotations

import re
from functools import lru_cache

from shardmerge.schemas.ddl.changes import (
    AlterTable,
    CreateTable,
    CreateTableLike,
    Statement,
    TableName,
)
from shardmerge.schemas.ddl.grammar.statements.alter_table import alter_table
from shardmerge.schemas.ddl.grammar.statements.create_table import create_table
from shardmerge.schemas.ddl.grammar.statements.irrelevant import irrelevant
from shardmerge.schemas.ddl.grammar.statements.other import (
    alter_database,
    create_database,
    create_index,
    drop_database,
    drop_index,
    drop_table,
    rename_table,
    truncate_table,
)
from shardmerge.schemas.ddl.grammar.statements.search import search_tables
from shardmerge.schemas.ddl.grammar.tokens.lexer import END, Cursor
from shardmerge.schemas.ddl.grammar.tokens.reserved import RESERVED
from shardmerge.schemas.model.errors import UnparsableDDL
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.server_context import ServerContext

__all__ = ["ServerContext", "concerned_tables", "parse"]

_HEAD = re.compile(
    r"(ALTER|CREATE)\s+TABLE\s+(?:`([^`]+)`|([A-Za-z_][A-Za-z0-9_]*))(?:\s+(?=[A-Za-z(])|(?=\())",
    re.IGNORECASE,
)
"""The beginning of a statement whose rest can be remembered; the table has no database."""
_NO_NAMES = RESERVED | {"IF"}
_MOST_REMEMBERED = 2_000
"""Characters of a statement; longer ones are rare, and would take memory."""
_DATABASE = ("DATABASE", "SCHEMA")
_INDEX_STATEMENTS = ("INDEX", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR")


def parse(sql: str, context: ServerContext) -> Statement:
    """Read one statement.

    Args:
        sql: The text. It may contain comments and end with a semicolon.
        context: The server that the statement comes from.

    Returns:
        What was written, not what it means for a table; see ``apply``.

    Raises:
        UnparsableDDL: The text is not a statement that the grammar knows.
    """
    head = _HEAD.match(sql) if len(sql) <= _MOST_REMEMBERED else None
    if head is not None and (name := head[2] or head[3]).upper() not in _NO_NAMES:
        try:
            statement = _of_any_table(head[1].upper(), sql[head.end() :], context)
            return replace(statement, name=TableName("", context.as_named(name)))
        except UnparsableDDL:
            pass  # The whole statement is read below, so the message has its own text.
    return _parsed(sql, context)


@lru_cache(maxsize=512)
def _of_any_table(
    verb: str, rest: str, context: ServerContext
) -> AlterTable | CreateTable | CreateTableLike:
    """ALTER TABLE or CREATE TABLE of some table of the default database.

    The shards of a target have few definitions and make the same changes. What follows the table's
    name does not depend on it, so it is read once.
    """
    statement = _parsed(f"{verb} TABLE `t` {rest}", context)
    assert isinstance(statement, AlterTable | CreateTable | CreateTableLike)
    return statement


def _parsed(sql: str, context: ServerContext) -> Statement:
    cursor = Cursor(sql, context)
    try:
        statement = _statement(cursor)
    except RecursionError as error:
        raise UnparsableDDL(
            "the statement is nested too deeply to be read here", sql, cursor.offset, code="SM-1101"
        ) from error
    except ValueError as error:
        raise UnparsableDDL(
            f"unreadable value: {error}", sql, cursor.offset, code="SM-1101"
        ) from error
    while cursor.accept(";"):
        pass
    if cursor.word != END:
        cursor.fail("the end of the statement")
    return statement


def concerned_tables(sql: str, context: ServerContext) -> tuple[TableName, ...]:
    """The tables that a statement which cannot be parsed probably concerns.

    This is a guess; only the shards of these tables are held. It is empty if no table is found.
    """
    try:
        cursor = Cursor(sql, context)
    except UnparsableDDL:
        return ()
    return search_tables(cursor)


def _statement(cursor: Cursor) -> Statement:
    found = irrelevant(cursor)
    if found is not None:
        return found
    word = cursor.word
    if word == "ALTER":
        return _alter(cursor)
    if word == "CREATE":
        return _create(cursor)
    if word == "DROP":
        cursor.advance()
        if cursor.word in _DATABASE:
            return drop_database(cursor)
        if cursor.word in ("ONLINE", "OFFLINE"):
            cursor.advance()
        return drop_index(cursor) if cursor.word == "INDEX" else drop_table(cursor)
    if word == "RENAME":
        cursor.advance()
        return rename_table(cursor)
    if word == "TRUNCATE":
        cursor.advance()
        return truncate_table(cursor)
    return cursor.fail("a DDL statement")


def _alter(cursor: Cursor) -> Statement:
    cursor.expect("ALTER")
    if cursor.word in _DATABASE:
        return alter_database(cursor)
    ignores = False
    while word := cursor.accept_any(("ONLINE", "OFFLINE", "IGNORE")):
        ignores = ignores or word == "IGNORE"
    return replace(alter_table(cursor), ignores=ignores)


def _create(cursor: Cursor) -> Statement:
    cursor.expect("CREATE")
    replaces = cursor.accept("OR", "REPLACE")
    cursor.accept_any(("ONLINE", "OFFLINE"))
    if cursor.word in _DATABASE:
        return create_database(cursor, replaces=replaces)
    if cursor.word in _INDEX_STATEMENTS:
        return create_index(cursor, replaces=replaces)
    return create_table(cursor, replaces=replaces)
