"""Statements other than CREATE TABLE and ALTER TABLE.

Source: MySQL Reference Manual, "Data Definition Statements".
"""

from __future__ import annotations

from shardmerge.schemas.ddl.changes import (
    AddIndex,
    AlterDatabase,
    AlterTable,
    CreateDatabase,
    DropDatabase,
    DropIndex,
    DropTable,
    RenameTable,
    TableName,
    TruncateTable,
)
from shardmerge.schemas.ddl.grammar.definitions.indexes import (
    INDEX_WORDS,
    accept_method,
    index_body,
    lock_wait,
)
from shardmerge.schemas.ddl.grammar.tokens.lexer import END, Cursor
from shardmerge.schemas.ddl.grammar.tokens.qualified import database_name, table_name
from shardmerge.schemas.model.tables import IndexKind

from .create_table import merge_charset
from .options import charset_option


def drop_table(cursor: Cursor) -> DropTable:
    """Read DROP TABLE from the word TABLE (or TEMPORARY) on."""
    temporary = cursor.accept("TEMPORARY")
    if not cursor.accept_any(("TABLE", "TABLES")):
        cursor.fail("TABLE")
    if_exists = cursor.accept("IF", "EXISTS")
    names = [table_name(cursor)]
    while cursor.accept(","):
        names.append(table_name(cursor))
    lock_wait(cursor)
    cursor.accept_any(("RESTRICT", "CASCADE"))
    return DropTable(tuple(names), if_exists, temporary)


def rename_table(cursor: Cursor) -> RenameTable:
    """Read RENAME TABLE from the word TABLE on."""
    if not cursor.accept_any(("TABLE", "TABLES")):
        cursor.fail("TABLE")
    cursor.accept("IF", "EXISTS")
    pairs: list[tuple[TableName, TableName]] = []
    while True:
        old = table_name(cursor)
        lock_wait(cursor)
        cursor.expect("TO")
        pairs.append((old, table_name(cursor)))
        if not cursor.accept(","):
            break
    return RenameTable(tuple(pairs))


def truncate_table(cursor: Cursor) -> TruncateTable:
    """Read TRUNCATE [TABLE]."""
    cursor.accept("TABLE")
    name = table_name(cursor)
    lock_wait(cursor)
    return TruncateTable(name)


def create_index(cursor: Cursor, *, replaces: bool) -> AlterTable:
    """Read CREATE INDEX from the kind or the word INDEX on."""
    kind = INDEX_WORDS[cursor.word]
    if kind is not IndexKind.PLAIN:
        cursor.advance()
    cursor.expect("INDEX")
    quiet = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.identifier("an index name")
    method = accept_method(cursor)
    cursor.expect("ON")
    table = table_name(cursor)
    lock_wait(cursor)
    index = index_body(cursor, name, kind, method)
    _algorithm_and_lock(cursor)
    added = AddIndex(index, quiet)
    return AlterTable(table, (DropIndex(name, if_exists=True), added) if replaces else (added,))


def drop_index(cursor: Cursor) -> AlterTable:
    """Read DROP INDEX from the word INDEX on."""
    cursor.expect("INDEX")
    quiet = cursor.accept("IF", "EXISTS")
    name = cursor.identifier("an index name")
    cursor.expect("ON")
    table = table_name(cursor)
    lock_wait(cursor)
    _algorithm_and_lock(cursor)
    return AlterTable(table, (DropIndex(name, quiet),))


def _algorithm_and_lock(cursor: Cursor) -> None:
    while cursor.accept_any(("ALGORITHM", "LOCK")):
        cursor.accept("=")
        if not cursor.accept_any(
            ("DEFAULT", "INSTANT", "INPLACE", "COPY", "NOCOPY", "NONE", "SHARED", "EXCLUSIVE")
        ):
            cursor.fail("an algorithm or a lock")


def create_database(cursor: Cursor, *, replaces: bool) -> CreateDatabase:
    """Read CREATE DATABASE from the word DATABASE on."""
    cursor.advance()
    quiet = cursor.accept("IF", "NOT", "EXISTS")
    name = database_name(cursor)
    charset, collation = _database_options(cursor)
    return CreateDatabase(name, charset, collation, quiet and not replaces, replaces)


def alter_database(cursor: Cursor) -> AlterDatabase:
    """Read ALTER DATABASE from the word DATABASE on. Without a name, it is the default database."""
    cursor.advance()
    name = ""
    if cursor.word not in ("CHARSET", "CHARACTER", "CHAR", "COLLATE", "DEFAULT", "READ") and not (
        cursor.word in ("ENCRYPTION", "COMMENT") and cursor.ahead() in ("=", "'")
    ):
        name = database_name(cursor)
    if cursor.accept("UPGRADE"):
        cursor.expect("DATA", "DIRECTORY", "NAME")
        return AlterDatabase(name)
    charset, collation = _database_options(cursor)
    return AlterDatabase(name or cursor.context.default_database, charset, collation)


def _database_options(cursor: Cursor) -> tuple[str, str]:
    charset = collation = ""
    while cursor.word not in (END, ";"):
        option = charset_option(cursor)
        if option is not None:
            charset, collation = merge_charset(charset, collation, option, cursor.context)
            cursor.accept(",")
            continue
        cursor.accept("DEFAULT")
        if cursor.word in ("ENCRYPTION", "COMMENT"):
            cursor.advance()
            cursor.accept("=")
            cursor.string()
        elif cursor.accept("READ", "ONLY"):
            cursor.accept("=")
            if not cursor.accept("DEFAULT"):
                cursor.integer()
        else:
            cursor.fail("a database option")
        cursor.accept(",")
    return charset, collation


def drop_database(cursor: Cursor) -> DropDatabase:
    """Read DROP DATABASE from the word DATABASE on."""
    cursor.advance()
    quiet = cursor.accept("IF", "EXISTS")
    return DropDatabase(database_name(cursor), quiet)
