"""Statements that change no table's schema, recognised by their leading words.

Source: MySQL Reference Manual, "SQL Statements"; MariaDB's for sequences and packages.
"""

from __future__ import annotations

from shardmerge.schemas.ddl.changes import Irrelevant
from shardmerge.schemas.ddl.grammar.tokens.lexer import END, NAME, NUMBER, STRING, Cursor
from shardmerge.schemas.ddl.grammar.tokens.words import words

_FIRST_WORDS = words(
    """
    SET USE GRANT REVOKE FLUSH ANALYZE OPTIMIZE REPAIR CHECK CHECKSUM BEGIN COMMIT ROLLBACK
    SAVEPOINT RELEASE START XA INSERT UPDATE DELETE REPLACE SELECT LOAD CALL DO INSTALL
    UNINSTALL KILL RESET PURGE CHANGE STOP SHOW EXPLAIN DESCRIBE DESC LOCK UNLOCK BINLOG CACHE
    SIGNAL PREPARE EXECUTE DEALLOCATE HANDLER SHUTDOWN RESTART CLONE WITH VALUES IMPORT HELP
    RESIGNAL GET BACKUP END
    """
)
_OBJECTS = words(
    """
    VIEW TRIGGER PROCEDURE FUNCTION EVENT USER ROLE TABLESPACE SERVER LOGFILE SPATIAL INSTANCE
    RESOURCE UNDO SEQUENCE PACKAGE AGGREGATE LIBRARY
    """
)
_DDL_WORDS = frozenset({"CREATE", "ALTER", "DROP"})
# Words that may be between CREATE, ALTER or DROP and the object's kind.
_MODIFIERS = words(
    """
    OR REPLACE ALGORITHM = UNDEFINED MERGE TEMPTABLE DEFINER @ SQL SECURITY INVOKER AGGREGATE
    CURRENT_USER CURRENT_ROLE ( ) . - % JSON RELATIONAL DUALITY MATERIALIZED TEMPORARY
    """
) | {NAME, STRING, NUMBER}


def irrelevant(cursor: Cursor) -> Irrelevant | None:
    """Recognise a statement that changes no schema, and step to its end; None for any other.

    MariaDB's SET STATEMENT is stepped over: what counts is the statement in it.
    """
    word = cursor.word
    if word == END:
        return Irrelevant("nothing but comments")
    if word == "SET" and cursor.ahead() == "STATEMENT" and cursor.context.is_mariadb:
        _skip_settings(cursor)
        return irrelevant(cursor)
    if word in _FIRST_WORDS:
        return _rest(cursor, word)
    if word == "TRUNCATE" and cursor.ahead() == "PARTITION":
        return None
    if word == "RENAME" and cursor.ahead() == "USER":
        return _rest(cursor, "RENAME USER")
    if word == "DROP" and cursor.ahead() == "PREPARE":
        return _rest(cursor, "DROP PREPARE")
    if word not in _DDL_WORDS:
        return None
    count = 1
    defining = False
    while True:
        found = cursor.ahead(count)
        if found in _OBJECTS and not (found == "SPATIAL" and cursor.ahead(count + 1) == "INDEX"):
            return _rest(cursor, f"{word} {found}")
        if found == "DEFINER":
            defining = True
        elif found == END or not (defining or found in _MODIFIERS):
            return None
        if found in ("TABLE", "DATABASE", "SCHEMA", "INDEX"):
            return None
        count += 1


def _skip_settings(cursor: Cursor) -> None:
    """Step over ``SET STATEMENT variable = value, … FOR``; another statement follows.

    The variables do not change how it is read: it is parsed before they are set (measured on
    MariaDB 10.11 and 11.8 with sql_mode).
    """
    while not cursor.accept("FOR"):
        # FOR in NEXT VALUE FOR is not the end.
        cursor.accept("VALUE", "FOR")
        cursor.advance()


def _rest(cursor: Cursor, what: str) -> Irrelevant:
    while cursor.word != END:
        cursor.advance()
    return Irrelevant(what)
