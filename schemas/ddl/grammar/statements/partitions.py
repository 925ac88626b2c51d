"""PARTITION BY and the partition actions of ALTER TABLE.

Joins ignore partitioning. It is parsed in full, so that nothing after it is missed, and stored as
text.

Source: MySQL Reference Manual, "CREATE TABLE", partition options; "ALTER TABLE Partition
Operations"; MariaDB's for SYSTEM_TIME.
"""

from __future__ import annotations

from shardmerge.schemas.ddl.changes import MovePartition, NoEffect, TableMove, TableName
from shardmerge.schemas.ddl.grammar.definitions.engine_options import engine_option
from shardmerge.schemas.ddl.grammar.expressions.expression import expression
from shardmerge.schemas.ddl.grammar.tokens.lexer import END, NAME, NUMBER, STRING, Cursor
from shardmerge.schemas.ddl.grammar.tokens.qualified import table_name
from shardmerge.schemas.ddl.grammar.tokens.reserved import RESERVED
from shardmerge.schemas.ddl.grammar.tokens.words import words

_KEYWORDS = words(
    """
    ADD ALGORITHM ALL ANALYZE ASC AUTO BY CHECK COALESCE COLUMNS COMMENT CONVERT CURRENT DATA
    DEFAULT DESC DIRECTORY DISCARD DROP ENGINE EXCHANGE EXISTS FOR HASH HISTORY IF IMPORT IN INDEX
    INTERVAL INTO KEY LESS LIMIT LINEAR LIST MAXVALUE MAX_ROWS MIN_ROWS NOT NULL OPTIMIZE ORDER
    PARTITION PARTITIONING PARTITIONS PERIOD RANGE REBUILD REMOVE REORGANIZE REPAIR SUBPARTITION
    SUBPARTITIONS SYSTEM_TIME TABLE TABLESPACE THAN TO TRUNCATE UPGRADE VALIDATION VALUES WITH
    WITHOUT
    """
)
_MAINTENANCE = frozenset({"ANALYZE", "CHECK", "OPTIMIZE", "REBUILD", "REPAIR", "TRUNCATE"})


def partitioning(cursor: Cursor) -> str:
    """Read PARTITION BY … with its definitions; return its text with single spaces."""
    start = cursor.index
    cursor.expect("PARTITION", "BY")
    _method(cursor, subpartition=False)
    if cursor.accept("PARTITIONS"):
        cursor.integer()
    if cursor.accept("SUBPARTITION", "BY"):
        _method(cursor, subpartition=True)
        if cursor.accept("SUBPARTITIONS"):
            cursor.integer()
    if cursor.word == "(":
        _definitions(cursor)
    return spaced(cursor, start)


def spaced(cursor: Cursor, start: int) -> str:
    """The tokens from ``start`` up to here as one line."""
    pieces: list[str] = []
    for place in range(start, cursor.index):
        text = cursor.text(place)
        pieces.append(text.upper() if text.upper() in _KEYWORDS else text)
    return " ".join(pieces)


def _method(cursor: Cursor, *, subpartition: bool) -> None:
    cursor.accept("LINEAR")
    word = cursor.accept_any(("HASH", "KEY", "RANGE", "LIST", "SYSTEM_TIME"))
    if not word or (subpartition and word not in ("HASH", "KEY")):
        cursor.fail("a partitioning method")
    if word == "HASH":
        _expression(cursor)
    elif word == "KEY":
        if cursor.accept("ALGORITHM"):
            cursor.expect("=")
            cursor.integer()
        _columns(cursor)
    elif word == "SYSTEM_TIME":
        _system_time(cursor)
    elif cursor.accept_any(("COLUMNS", "FIELDS")):
        _columns(cursor)
    else:
        _expression(cursor)


def _system_time(cursor: Cursor) -> None:
    while cursor.word in ("INTERVAL", "LIMIT", "STARTS", "AUTO"):
        word = cursor.word
        cursor.advance()
        if word != "AUTO":
            expression(cursor)
        if word == "INTERVAL":
            cursor.advance()


def _expression(cursor: Cursor) -> None:
    cursor.expect("(")
    expression(cursor)
    cursor.expect(")")


def _columns(cursor: Cursor) -> None:
    cursor.expect("(")
    while cursor.word != ")":
        cursor.identifier("a column name")
        if not cursor.accept(","):
            break
    cursor.expect(")")


def _definitions(cursor: Cursor) -> None:
    cursor.expect("(")
    _definition(cursor)
    while cursor.accept(","):
        _definition(cursor)
    cursor.expect(")")


def _definition(cursor: Cursor) -> None:
    cursor.expect("PARTITION")
    cursor.identifier("a partition name")
    if cursor.accept("VALUES"):
        if cursor.accept("LESS"):
            cursor.expect("THAN")
            if not cursor.accept("MAXVALUE"):
                _values(cursor)
        else:
            cursor.expect("IN")
            _values(cursor)
    elif not cursor.accept("HISTORY") and not cursor.accept("CURRENT"):
        cursor.accept("DEFAULT")
    _options(cursor)
    if cursor.accept("("):
        _subpartition(cursor)
        while cursor.accept(","):
            _subpartition(cursor)
        cursor.expect(")")


def _subpartition(cursor: Cursor) -> None:
    cursor.expect("SUBPARTITION")
    cursor.identifier("a partition name")
    _options(cursor)


def _values(cursor: Cursor) -> None:
    cursor.expect("(")
    while True:
        if cursor.word == "(":
            start = cursor.index
            if cursor.ahead() in (NUMBER, STRING, NAME, "MAXVALUE", "NULL", "-"):
                _values(cursor)
            if cursor.word not in (",", ")"):
                cursor.seek(start)
                expression(cursor)
        elif not cursor.accept("MAXVALUE"):
            expression(cursor)
        if not cursor.accept(","):
            break
    cursor.expect(")")


def _options(cursor: Cursor) -> None:
    while True:
        if cursor.accept("STORAGE") or cursor.word == "ENGINE":
            cursor.expect("ENGINE")
            cursor.accept("=")
            cursor.name_or_string("an engine")
        elif cursor.word in ("COMMENT", "CONNECTION"):
            cursor.advance()
            cursor.accept("=")
            cursor.string()
        elif cursor.word in ("DATA", "INDEX"):
            cursor.advance()
            cursor.expect("DIRECTORY")
            cursor.accept("=")
            cursor.string()
        elif cursor.word in ("MAX_ROWS", "MIN_ROWS", "NODEGROUP"):
            cursor.advance()
            cursor.accept("=")
            cursor.integer()
        elif cursor.accept("TABLESPACE"):
            cursor.accept("=")
            cursor.name_or_string("a tablespace")
        elif engine_option(cursor) is None:
            return


def partition_action(cursor: Cursor) -> NoEffect | MovePartition | None:
    """Read a partition action of ALTER TABLE; None when none begins here."""
    start = cursor.index
    moved: tuple[TableName, TableMove] | None = None
    word = cursor.word
    after = cursor.ahead()
    if word == "PARTITION" and after == "BY":
        return NoEffect(partitioning(cursor))
    if word in ("REMOVE", "UPGRADE") and after == "PARTITIONING":
        cursor.expect(word, "PARTITIONING")
    elif word == "CONVERT" and after in ("PARTITION", "TABLE") and cursor.context.is_mariadb:
        moved = _convert(cursor)
    elif after != "PARTITION":
        return None
    elif word == "ADD":
        _add(cursor)
    elif word in _MAINTENANCE or word in ("DROP", "DISCARD", "IMPORT"):
        cursor.expect(word, "PARTITION")
        cursor.accept("IF", "EXISTS")
        cursor.accept_any(("NO_WRITE_TO_BINLOG", "LOCAL"))
        _partition_names(cursor)
        if word in ("DISCARD", "IMPORT"):
            cursor.expect("TABLESPACE")
        if word in ("CHECK", "REPAIR"):
            _check_options(cursor)
    elif word == "COALESCE":
        cursor.expect("COALESCE", "PARTITION")
        cursor.accept_any(("NO_WRITE_TO_BINLOG", "LOCAL"))
        cursor.integer()
    elif word == "REORGANIZE":
        _reorganize(cursor)
    elif word == "EXCHANGE":
        moved = _exchange(cursor), TableMove.EXCHANGED
    else:
        return None
    text = spaced(cursor, start)
    return NoEffect(text) if moved is None else MovePartition(text, *moved)


def _add(cursor: Cursor) -> None:
    cursor.expect("ADD", "PARTITION")
    cursor.accept("IF", "NOT", "EXISTS")
    cursor.accept_any(("NO_WRITE_TO_BINLOG", "LOCAL"))
    if cursor.accept("PARTITIONS"):
        cursor.integer()
    elif cursor.word not in (END, ";"):
        _definitions(cursor)


def partition_list(cursor: Cursor) -> None:
    """Read names of partitions in parentheses."""
    cursor.expect("(")
    cursor.identifier("a partition name")
    while cursor.accept(","):
        cursor.identifier("a partition name")
    cursor.expect(")")


def _check_options(cursor: Cursor) -> None:
    while cursor.accept_any(("QUICK", "FAST", "MEDIUM", "EXTENDED", "CHANGED", "USE_FRM")):
        pass
    cursor.accept("FOR", "UPGRADE")


def _partition_names(cursor: Cursor) -> None:
    if cursor.accept("ALL"):
        return
    cursor.identifier("a partition name")
    # A name after the comma belongs to the list, unless it begins another action.
    while cursor.word == "," and not (
        cursor.ahead() in RESERVED or cursor.ahead() == "FORCE" or cursor.ahead(2) == "="
    ):
        cursor.advance()
        cursor.identifier("a partition name")


def _reorganize(cursor: Cursor) -> None:
    cursor.expect("REORGANIZE", "PARTITION")
    cursor.accept_any(("NO_WRITE_TO_BINLOG", "LOCAL"))
    if cursor.is_name():
        cursor.identifier("a partition name")
        while cursor.accept(","):
            cursor.identifier("a partition name")
        cursor.expect("INTO")
        _definitions(cursor)


def _exchange(cursor: Cursor) -> TableName:
    cursor.expect("EXCHANGE", "PARTITION")
    cursor.identifier("a partition name")
    cursor.expect("WITH", "TABLE")
    table = table_name(cursor)
    _validation(cursor)
    return table


def _validation(cursor: Cursor) -> None:
    if not cursor.accept("WITH", "VALIDATION"):
        cursor.accept("WITHOUT", "VALIDATION")


def _convert(cursor: Cursor) -> tuple[TableName, TableMove]:
    cursor.expect("CONVERT")
    if cursor.accept("TABLE"):
        table = table_name(cursor)
        cursor.expect("TO")
        _definition(cursor)
        _validation(cursor)
        return table, TableMove.GONE
    cursor.expect("PARTITION")
    cursor.identifier("a partition name")
    cursor.expect("TO", "TABLE")
    return table_name(cursor), TableMove.MADE
