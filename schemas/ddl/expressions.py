"""Expressions of CHECK, DEFAULT (…), generated columns and functional indexes.

Texts in the model are canonical (``grammar.expressions``): columns, and nothing else, are in
backticks. So the columns can be found without parsing the text again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from shardmerge.schemas.ddl.grammar.expressions.expression import expression
from shardmerge.schemas.ddl.grammar.tokens.lexer import END, Cursor
from shardmerge.schemas.model.names import quote_identifier
from shardmerge.schemas.model.server_context import ServerContext

_PIECES = re.compile(r"'(?:[^'\\]|\\.|'')*'|`((?:[^`]|``)*)`", re.DOTALL)


def canonical(sql: str, context: ServerContext) -> str:
    """The canonical text of an expression.

    Raises:
        UnparsableDDL: The text is not an expression that the grammar knows.
    """
    cursor = Cursor(sql, context)
    text = expression(cursor).text
    if cursor.word != END:
        cursor.fail("the end of the expression")
    return text


def column_names(text: str) -> tuple[str, ...]:
    """The columns that a canonical expression names, in order, without repeats."""
    if "`" not in text:
        return ()
    found = (match[1] for match in _PIECES.finditer(text) if match[1] is not None)
    return tuple(dict.fromkeys(name.replace("``", "`") for name in found))


def spell_columns(text: str, names: Mapping[str, str]) -> str:
    """A canonical expression with its columns spelled as in ``names`` (lower case → spelling)."""
    if all(names.get(name.lower(), name) == name for name in column_names(text)):
        return text
    return rename_columns(text, names)


def rename_columns(text: str, renamed: Mapping[str, str]) -> str:
    """A canonical expression after columns were renamed (old name in lower case → new name)."""
    if "`" not in text:
        return text

    def piece(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        name = match[1].replace("``", "`")
        return quote_identifier(renamed.get(name.lower(), name))

    return _PIECES.sub(piece, text)
