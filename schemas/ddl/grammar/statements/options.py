"""Table options, from a whitelist: an unknown word is an error.

The exception is MariaDB, where an unknown ``name = value`` is an option of an engine.

Source: MySQL and MariaDB reference manuals, "CREATE TABLE", table options.
"""

from __future__ import annotations

from shardmerge.schemas.ddl.changes import SetDefaultCharset, SetTableOption
from shardmerge.schemas.ddl.grammar.definitions.engine_options import engine_option
from shardmerge.schemas.ddl.grammar.tokens.charset_words import (
    accept_charset,
    charset_word,
    collation_word,
)
from shardmerge.schemas.ddl.grammar.tokens.lexer import NUMBER, Cursor
from shardmerge.schemas.ddl.grammar.tokens.qualified import table_name
from shardmerge.schemas.ddl.grammar.tokens.words import words

_NUMBERS = words(
    """
    AUTO_INCREMENT AVG_ROW_LENGTH CHECKSUM TABLE_CHECKSUM DELAY_KEY_WRITE KEY_BLOCK_SIZE
    MAX_ROWS MIN_ROWS PACK_KEYS STATS_AUTO_RECALC STATS_PERSISTENT STATS_SAMPLE_PAGES
    AUTOEXTEND_SIZE TRANSACTIONAL PAGE_CHECKSUM PAGE_COMPRESSED PAGE_COMPRESSION_LEVEL
    ENCRYPTION_KEY_ID RAID_CHUNKS RAID_CHUNKSIZE SEQUENCE
    """
)
_TEXTS = frozenset(
    [
        "COMMENT",
        "COMPRESSION",
        "ENCRYPTION",
        "CONNECTION",
        "PASSWORD",
        "ENGINE_ATTRIBUTE",
        "SECONDARY_ENGINE_ATTRIBUTE",
    ]
)
_NAMES = words(
    """
    ENGINE TYPE ROW_FORMAT TABLESPACE INSERT_METHOD SECONDARY_ENGINE STORAGE RAID_TYPE ENCRYPTED
    IETF_QUOTES
    """
)
Option = SetTableOption | SetDefaultCharset


def table_option(cursor: Cursor) -> Option | None:
    """Read one table option; None when no option begins here."""
    word = cursor.word
    if word in ("DEFAULT", "CHARACTER", "CHARSET", "CHAR", "COLLATE"):
        return charset_option(cursor)
    if word in _NUMBERS:
        cursor.advance()
        cursor.accept("=")
        return SetTableOption(word, _number(cursor))
    if word in _TEXTS:
        cursor.advance()
        cursor.accept("=")
        if word == "COMPRESSION":
            # TokuDB's compression method is a name, not a string.
            return SetTableOption(word, cursor.name_or_string("a compression method"))
        return SetTableOption(word, cursor.string())
    if word in _NAMES:
        cursor.advance()
        cursor.accept("=")
        return SetTableOption("ENGINE" if word == "TYPE" else word, _name(cursor))
    if word in ("DATA", "INDEX") and cursor.ahead() == "DIRECTORY":
        cursor.expect(word, "DIRECTORY")
        cursor.accept("=")
        return SetTableOption(f"{word} DIRECTORY", cursor.string())
    if word == "UNION":
        cursor.advance()
        cursor.accept("=")
        return SetTableOption("UNION", _tables(cursor))
    if word == "START" and cursor.ahead() == "TRANSACTION":
        cursor.expect("START", "TRANSACTION")
        return SetTableOption("START TRANSACTION", "")
    if word in ("WITH", "WITHOUT") and cursor.ahead() == "SYSTEM" and cursor.context.is_mariadb:
        cursor.expect(word, "SYSTEM", "VERSIONING")
        return SetTableOption("SYSTEM VERSIONING", "1" if word == "WITH" else "0")
    found = engine_option(cursor)
    return None if found is None else SetTableOption(*found)


def charset_option(cursor: Cursor) -> SetDefaultCharset | None:
    """Read the default charset or collation of a table or database; None when none begins here.

    For DEFAULT the name is ``default``, which ``apply`` resolves.
    """
    start = cursor.index
    cursor.accept("DEFAULT")
    if cursor.accept("COLLATE"):
        cursor.accept("=")
        if cursor.accept("DEFAULT"):
            return SetDefaultCharset("", "default")
        return SetDefaultCharset("", collation_word(cursor))
    if accept_charset(cursor):
        cursor.accept("=")
        return SetDefaultCharset(charset_value(cursor))
    cursor.seek(start)
    return None


def charset_value(cursor: Cursor) -> str:
    """Read a charset's name; for DEFAULT it is ``default``, which ``apply`` resolves."""
    if cursor.accept("DEFAULT"):
        return "default"
    return charset_word(cursor)


def _number(cursor: Cursor) -> str:
    if cursor.is_string():
        return cursor.string()
    if word := cursor.accept_any(("DEFAULT", "YES", "NO", "ON", "OFF")):
        return word
    if cursor.word == NUMBER:
        text = cursor.text()
    elif cursor.word[:1].isdigit() and cursor.word[-1:] in "KMGT":
        text = cursor.word
    else:
        cursor.fail("a number")
    cursor.advance()
    return text


def _name(cursor: Cursor) -> str:
    if word := cursor.accept_any(("DEFAULT", "NULL")):
        return word
    return cursor.name_or_string("a name")


def _tables(cursor: Cursor) -> str:
    cursor.expect("(")
    names: list[str] = []
    while cursor.word != ")":
        name = table_name(cursor)
        names.append(f"{name.database}.{name.table}" if name.database else name.table)
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return ",".join(names)
