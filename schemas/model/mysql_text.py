"""MySQL text of columns, indexes and checks: the parts of the target's DDL.

Each value has one spelling: equal schemas give equal text, and parsing the text gives the schema
back. Expressions are copied: they are canonical already.

``old_utf8`` asks for the names ``utf8`` and ``utf8_…`` instead of ``utf8mb3…``. TiDB's documents
list only these.

Source: MySQL Reference Manual, "CREATE TABLE Statement", "Data Type Default Values".
"""

from __future__ import annotations

import re

from .names import quote_identifier
from .tables import Check, Column, Default, DefaultKind, Index, IndexKind, TableSchema
from .types import BLOB_NAMES, TEMPORAL_NAMES, ColumnType

_BARE_LITERAL = re.compile(r"(?:0x(?:[0-9A-Fa-f]{2})+|b'[01]+')\Z")
_BARE_LITERAL_TYPES = frozenset({"bit", "binary", "varbinary", *BLOB_NAMES})
_NOW = re.compile(r"CURRENT_TIMESTAMP(?:\([0-6]\))?\Z")
_INDEX_WORDS = {
    IndexKind.PRIMARY: "PRIMARY KEY",
    IndexKind.UNIQUE: "UNIQUE INDEX",
    IndexKind.PLAIN: "INDEX",
    IndexKind.FULLTEXT: "FULLTEXT INDEX",
    IndexKind.SPATIAL: "SPATIAL INDEX",
    IndexKind.VECTOR: "VECTOR INDEX",
}


def create_table(schema: TableSchema, target_name_sql: str, *, old_utf8: bool = False) -> str:
    """The whole statement.

    Args:
        schema: Normalised.
        target_name_sql: The table's name, quoted and qualified (``TargetTable.sql``).
        old_utf8: See the module's text.
    """
    lines = [column_definition(column, old_utf8=old_utf8) for column in schema.columns]
    lines += [index_clause(index) for index in schema.indexes]
    lines += [check_clause(check) for check in schema.checks]
    options = default_charset(schema.charset, schema.collation, old_utf8=old_utf8)
    options = f" {options}" if options else ""
    if schema.comment:
        options += f" COMMENT {string_literal(schema.comment)}"
    return f"CREATE TABLE {target_name_sql} ({', '.join(lines)}){options}"


def default_charset(charset: str, collation: str, *, old_utf8: bool = False) -> str:
    """The table option that sets the default charset and collation; an empty one is left out."""
    parts = [f"DEFAULT CHARACTER SET {_charset_word(charset, old_utf8)}"] if charset else []
    parts += [f"COLLATE {_charset_word(collation, old_utf8)}"] if collation else []
    return " ".join(parts)


def column_definition(column: Column, *, old_utf8: bool = False) -> str:
    """A column definition for CREATE TABLE, ADD COLUMN and MODIFY COLUMN.

    NULL is written for a timestamp: some servers make a timestamp NOT NULL by themselves. DEFAULT
    NULL is never written: a nullable column has it anyway.
    """
    text = f"{quote_identifier(column.name)} {column_type(column.type, old_utf8=old_utf8)}"
    comment = f" COMMENT {string_literal(column.comment)}" if column.comment else ""
    if column.generated is not None:
        storage = "STORED" if column.generated.stored else "VIRTUAL"
        text += f" GENERATED ALWAYS AS ({column.generated.expression}) {storage}"
        return text + ("" if column.nullable else " NOT NULL") + comment
    if not column.nullable:
        text += " NOT NULL"
    elif column.type.name == "timestamp":
        text += " NULL"
    if column.default is not None and column.default.kind is not DefaultKind.NULL:
        text += f" DEFAULT {default_value(column.default, column.type)}"
    if column.on_update:
        text += f" ON UPDATE {column.on_update}"
    return text + comment


def default_value(default: Default, kind: ColumnType) -> str:
    """The text after DEFAULT."""
    if default.kind is DefaultKind.NULL:
        return "NULL"
    if default.kind is DefaultKind.EXPRESSION:
        bare = kind.name in TEMPORAL_NAMES and _NOW.match(default.text)
        return default.text if bare else f"({default.text})"
    if kind.name in _BARE_LITERAL_TYPES:
        if default.text == "0x":
            return "''"
        if _BARE_LITERAL.match(default.text):
            return default.text
    return string_literal(default.text)


def column_type(kind: ColumnType, *, old_utf8: bool = False) -> str:
    """A type with its sign, character set and collation."""
    text = kind.name
    if kind.elements:
        text += "(" + ",".join(string_literal(element) for element in kind.elements) + ")"
    elif kind.scale is not None:
        text += f"({kind.length},{kind.scale})"
    elif kind.length is not None:
        text += f"({kind.length})"
    elif kind.fsp:
        text += f"({kind.fsp})"
    if kind.unsigned:
        text += " unsigned"
    if kind.zerofill:
        text += " zerofill"
    if kind.charset:
        text += f" CHARACTER SET {_charset_word(kind.charset, old_utf8)}"
    if kind.collation:
        text += f" COLLATE {_charset_word(kind.collation, old_utf8)}"
    if kind.srid is not None:
        text += f" SRID {kind.srid}"
    return text


def index_clause(index: Index) -> str:
    """An index definition for CREATE TABLE and ALTER TABLE ADD."""
    text = _INDEX_WORDS[index.kind]
    if index.kind is not IndexKind.PRIMARY:
        text += f" {quote_identifier(index.name)}"
    parts = []
    for part in index.parts:
        item = quote_identifier(part.column) if part.column else f"({part.expression})"
        if part.length is not None:
            item += f"({part.length})"
        parts.append(item + (" DESC" if part.descending else ""))
    text += f" ({', '.join(parts)})"
    return text + (f" WITH PARSER {index.parser}" if index.parser else "")


def check_clause(check: Check) -> str:
    """A named CHECK for CREATE TABLE and ALTER TABLE ADD."""
    text = f"CONSTRAINT {quote_identifier(check.name)} CHECK ({check.expression})"
    return text if check.enforced else f"{text} NOT ENFORCED"


def string_literal(value: str) -> str:
    """A quoted string on one line, for a session without NO_BACKSLASH_ESCAPES."""
    text = value.replace("\\", "\\\\").replace("'", "''")
    return "'" + text.replace("\n", "\\n").replace("\r", "\\r").replace("\0", "\\0") + "'"


def _charset_word(name: str, old_utf8: bool) -> str:
    """The name of a character set or collation; with ``old_utf8``, ``utf8`` for ``utf8mb3``."""
    return name.replace("utf8mb3", "utf8", 1) if old_utf8 else name
