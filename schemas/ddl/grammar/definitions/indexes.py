"""Indexes and constraints in CREATE TABLE, ALTER TABLE and CREATE INDEX.

Source: MySQL Reference Manual, "CREATE INDEX Statement", "FOREIGN KEY Constraints",
"CHECK Constraints".
"""

from __future__ import annotations

from shardmerge.schemas.ddl.changes import WrittenForeignKey
from shardmerge.schemas.ddl.grammar.expressions.expression import parenthesised
from shardmerge.schemas.ddl.grammar.tokens.lexer import END, Cursor
from shardmerge.schemas.ddl.grammar.tokens.qualified import field_name, table_name
from shardmerge.schemas.model.errors import UnparsableDDL
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.tables import Check, ForeignKey, Index, IndexKind, IndexPart

from .engine_options import engine_option

INDEX_WORDS = {
    "PRIMARY": IndexKind.PRIMARY, "UNIQUE": IndexKind.UNIQUE, "FULLTEXT": IndexKind.FULLTEXT,
    "SPATIAL": IndexKind.SPATIAL, "VECTOR": IndexKind.VECTOR, "INDEX": IndexKind.PLAIN,
    "KEY": IndexKind.PLAIN,
}  # fmt: skip
"""The words that an index begins with; VECTOR may also be the name of a column."""
_CONSTRAINT_WORDS = frozenset({"CONSTRAINT", "FOREIGN", "CHECK"})
_PRIMARY = "PRIMARY"


def begins_constraint(cursor: Cursor) -> bool:
    """Whether an index or constraint begins here, and not a column."""
    word = cursor.word
    if word == "VECTOR":
        return cursor.context.is_mariadb and cursor.ahead() in ("INDEX", "KEY")
    return word in INDEX_WORDS or word in _CONSTRAINT_WORDS


def constraint(cursor: Cursor) -> tuple[Index | Check | ForeignKey, bool]:
    """Read an index or constraint; the second value says whether it has IF NOT EXISTS."""
    name = ""
    if_not_exists = False
    if cursor.accept("CONSTRAINT"):
        if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
        if cursor.word not in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
            name = field_name(cursor, "a constraint name")
    word = cursor.word
    if word == "CHECK":
        return check_constraint(cursor, name), if_not_exists
    if word == "FOREIGN":
        cursor.expect("FOREIGN", "KEY")
        if_not_exists = cursor.accept("IF", "NOT", "EXISTS") or if_not_exists
        index_name = field_name(cursor, "an index name") if cursor.word != "(" else ""
        columns = _key_columns(cursor)
        return references(cursor, name, index_name, columns), if_not_exists
    index, quiet = _index(cursor, name)
    return index, if_not_exists or quiet


def _index(cursor: Cursor, constraint_name: str) -> tuple[Index, bool]:
    kind = INDEX_WORDS.get(cursor.word)
    if kind is not None:
        cursor.advance()
    if kind is None or (constraint_name and kind not in (IndexKind.PRIMARY, IndexKind.UNIQUE)):
        cursor.fail("an index or constraint")
    if kind is IndexKind.PRIMARY:
        cursor.expect("KEY")
    elif kind is not IndexKind.PLAIN:
        cursor.accept_any(("INDEX", "KEY"))
    quiet = cursor.accept("IF", "NOT", "EXISTS")
    name = ""
    if cursor.word not in ("(", "USING") and not (
        cursor.word == "TYPE" and cursor.ahead() in ("BTREE", "HASH", "RTREE")
    ):
        name = field_name(cursor, "an index name")
    method = accept_method(cursor)
    index = index_body(cursor, name or constraint_name, kind, method)
    return index, quiet


def index_body(cursor: Cursor, name: str, kind: IndexKind, method: str) -> Index:
    """Read key parts and index options. The name and an optional method are already read."""
    cursor.expect("(")
    parts = [_part(cursor)]
    while cursor.accept(","):
        parts.append(_part(cursor))
    cursor.expect(")")
    lock_wait(cursor)
    comment, invisible, parser, later_method = _options(cursor)
    if kind is IndexKind.PRIMARY:
        name = _PRIMARY
    hashed = cursor.context.is_mariadb and (later_method or method) == "HASH"
    if hashed:
        # MariaDB ignores DESC in an index with USING HASH.
        parts = [replace(part, descending=False) if part.descending else part for part in parts]
    return Index(name, kind, tuple(parts), comment, invisible, parser, hashed=hashed)


def _part(cursor: Cursor) -> IndexPart:
    column = text = ""
    length: int | None = None
    if cursor.word == "(":
        text = parenthesised(cursor).text
    else:
        column = cursor.identifier("a column name")
        if cursor.accept("("):
            length = cursor.integer("a prefix length")
            cursor.expect(")")
        elif cursor.context.is_mariadb and cursor.accept("WITHOUT", "OVERLAPS"):
            return IndexPart(expression=f"{column} WITHOUT OVERLAPS")
    descending = cursor.accept("DESC")
    if not descending:
        cursor.accept("ASC")
    return IndexPart(column, text, length, descending and cursor.context.at_least(80000, 100800))


def accept_method(cursor: Cursor) -> str:
    """Step over ``USING BTREE`` and the like; return the method, or "" when none is here."""
    if cursor.word not in ("USING", "TYPE"):
        return ""
    cursor.advance()
    method = cursor.accept_any(("BTREE", "HASH", "RTREE"))
    if not method:
        cursor.fail("BTREE, HASH or RTREE")
    return method


def _options(cursor: Cursor) -> tuple[str, bool, str, str]:
    comment, invisible, parser, method = "", False, "", ""
    while True:
        word = cursor.word
        if word in ("USING", "TYPE"):
            method = accept_method(cursor)
        elif word == "COMMENT":
            cursor.advance()
            cursor.accept("=")
            comment = cursor.string()
        elif word in ("KEY_BLOCK_SIZE",):
            cursor.advance()
            cursor.accept("=")
            cursor.integer()
        elif word in ("ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"):
            cursor.advance()
            cursor.accept("=")
            cursor.string()
        elif word == "WITH" and cursor.ahead() == "PARSER":
            cursor.expect("WITH", "PARSER")
            parser = cursor.identifier("a parser name")
        elif word in ("VISIBLE", "INVISIBLE"):
            cursor.advance()
            invisible = word == "INVISIBLE"
        elif word == "IGNORED" and cursor.context.is_mariadb:
            cursor.advance()
            invisible = True
        elif word == "NOT" and cursor.context.is_mariadb and cursor.ahead() == "IGNORED":
            cursor.expect("NOT", "IGNORED")
            invisible = False
        elif word == "CLUSTERING" and cursor.context.is_mariadb:
            cursor.advance()
            cursor.accept("=")
            cursor.advance()
        elif engine_option(cursor) is None:
            return comment, invisible, parser, method


def lock_wait(cursor: Cursor) -> None:
    """Step over MariaDB's WAIT n and NOWAIT."""
    if not cursor.context.is_mariadb:
        return
    if cursor.accept("WAIT"):
        cursor.integer("a number of seconds")
    else:
        cursor.accept("NOWAIT")


def _key_columns(cursor: Cursor) -> tuple[str, ...]:
    """Read the columns of a foreign key. A prefix length or an order has no meaning there."""
    cursor.expect("(")
    names = []
    while True:
        names.append(cursor.identifier("a column name"))
        if cursor.accept("("):
            cursor.integer("a prefix length")
            cursor.expect(")")
        cursor.accept_any(("ASC", "DESC"))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return tuple(names)


def _names(cursor: Cursor) -> tuple[str, ...]:
    cursor.expect("(")
    names = [cursor.identifier("a column name")]
    while cursor.accept(","):
        names.append(cursor.identifier("a column name"))
    cursor.expect(")")
    return tuple(names)


def references(
    cursor: Cursor, name: str, index_name: str, columns: tuple[str, ...]
) -> WrittenForeignKey:
    """Read REFERENCES … of a foreign key on ``columns``."""
    cursor.expect("REFERENCES")
    parent = table_name(cursor)
    parent_columns = _names(cursor) if cursor.word == "(" else ()
    on_delete = on_update = ""
    is_matched = False
    while True:
        if cursor.accept("MATCH"):
            if not cursor.accept_any(("FULL", "PARTIAL", "SIMPLE")):
                cursor.fail("FULL, PARTIAL or SIMPLE")
            is_matched = True
        elif cursor.accept("ON", "DELETE"):
            on_delete = _reaction(cursor)
        elif cursor.accept("ON", "UPDATE"):
            on_update = _reaction(cursor)
        else:
            break
    if is_matched and not cursor.context.at_least(80000, 0):
        on_delete = on_update = ""  # MySQL 5.7 ignores ON DELETE and ON UPDATE if there is a MATCH.
    return WrittenForeignKey(
        name, columns, parent.database, parent.table, parent_columns, on_delete, on_update,
        index_name,
    )  # fmt: skip


def _reaction(cursor: Cursor) -> str:
    if cursor.accept("NO", "ACTION"):
        return ""
    if cursor.accept("SET", "NULL"):
        return "SET NULL"
    if cursor.accept("SET", "DEFAULT"):
        return "" if cursor.context.is_mariadb else "SET DEFAULT"
    if cursor.accept("RESTRICT"):
        return ""  # InnoDB treats it as NO ACTION; MariaDB shows neither of the two.
    if not cursor.accept("CASCADE"):
        cursor.fail("a reference option")
    return "CASCADE"


def check_constraint(cursor: Cursor, name: str) -> Check:
    """Read CHECK (…) [[NOT] ENFORCED]."""
    cursor.expect("CHECK")
    start = cursor.index
    try:
        text = parenthesised(cursor).text
    except UnparsableDDL:
        if cursor.context.stores_checks or cursor.ahead(start - cursor.index) != "(":
            raise
        # The server ignores the check, so it may be anything, such as a query or a variable.
        cursor.seek(start)
        text = _anything_parenthesised(cursor)
    enforced = True
    if cursor.accept("NOT", "ENFORCED"):
        enforced = False
    else:
        cursor.accept("ENFORCED")
    return Check(name, text, enforced)


def _anything_parenthesised(cursor: Cursor) -> str:
    """Step over parentheses and their contents; return the contents as they were written."""
    start, depth = cursor.index + 1, 0
    while True:
        depth += (cursor.word == "(") - (cursor.word == ")")
        if cursor.word == END:
            cursor.fail(")")
        cursor.advance()
        if depth == 0:
            return cursor.between(start, cursor.index - 1)
