"""MariaDB's sequences in expressions.

Source: MariaDB Server documentation, "Sequence Functions".
"""

from __future__ import annotations

from shardmerge.schemas.ddl.grammar.tokens.lexer import Cursor
from shardmerge.schemas.ddl.grammar.tokens.qualified import table_name

from .notes import Notes, Read


def sequence_function(cursor: Cursor, notes: Notes, word: str, read: Read) -> str:
    """Read ``NEXTVAL(sequence)`` and the like; the first argument is not a column."""
    cursor.expect("(")
    name = table_name(cursor)
    text = f"{word.lower()}({_plain(name.database or cursor.context.default_database, name.table)}"
    while cursor.accept(","):
        text += f",{read(cursor, notes, 0)}"
    cursor.expect(")")
    return text + ")"


def sequence_value(cursor: Cursor) -> str:
    """Read MariaDB's ``NEXT VALUE FOR sequence`` and ``PREVIOUS VALUE FOR sequence``."""
    function = "nextval" if cursor.word == "NEXT" else "lastval"
    cursor.advance()
    cursor.expect("VALUE", "FOR")
    name = table_name(cursor)
    return f"{function}({_plain(name.database or cursor.context.default_database, name.table)})"


def _plain(database: str, name: str) -> str:
    """A sequence's name without backticks, which only columns have in expressions."""
    return f"{database}.{name}" if database else name
