"""Schemas as MySQL text: canonical, so that equal schemas give equal text.

Everything that is rendered here parses back to the same value (tests/properties).
"""

from __future__ import annotations

from ..model import Check, Column, Default, DefaultKind, Index, IndexKind, TableSchema
from ..names import quote_identifier
from ..types import ColumnType

_INDEX_WORDS = {
    IndexKind.PRIMARY: "PRIMARY KEY",
    IndexKind.UNIQUE: "UNIQUE KEY",
    IndexKind.PLAIN: "KEY",
    IndexKind.FULLTEXT: "FULLTEXT KEY",
    IndexKind.SPATIAL: "SPATIAL KEY",
}


def string_literal(value: str) -> str:
    """A quoted string for a session without NO_BACKSLASH_ESCAPES."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def column_type(kind: ColumnType) -> str:
    """The type with everything that belongs to it; the collation only when not the default."""
    text = kind.name
    if kind.elements:
        text += "(" + ",".join(string_literal(e) for e in kind.elements) + ")"
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
        text += f" CHARACTER SET {kind.charset}"
    if kind.collation:
        text += f" COLLATE {kind.collation}"
    if kind.srid is not None:
        text += f" SRID {kind.srid}"
    return text


def default_clause(default: Default) -> str:
    """``DEFAULT …`` as a column definition has it."""
    return f"DEFAULT {default_value(default)}"


def default_value(default: Default) -> str:
    """What stands after DEFAULT."""
    text = default.text
    if default.kind is DefaultKind.NULL:
        return "NULL"
    if default.kind is DefaultKind.EXPRESSION:
        return text if text.upper().startswith("CURRENT_TIMESTAMP") else f"({text})"
    if text.startswith("b'"):
        return text
    if text.startswith("0x"):
        return text if len(text) > len("0x") else "''"
    return string_literal(text)


def column_definition(column: Column) -> str:
    """A column as CREATE TABLE and ALTER TABLE define it."""
    text = f"{quote_identifier(column.name)} {column_type(column.type)}"
    if column.generated is not None:
        storage = "STORED" if column.generated.stored else "VIRTUAL"
        text += f" GENERATED ALWAYS AS ({column.generated.expression}) {storage}"
    if not column.nullable:
        text += " NOT NULL"
    elif column.type.name == "timestamp":
        text += " NULL"  # without it some servers make the first timestamp NOT NULL
    if column.default is not None and not (
        column.nullable and column.default.kind is DefaultKind.NULL
    ):
        text += " " + default_clause(column.default)
    if column.on_update:
        text += f" ON UPDATE {column.on_update}"
    if column.auto_increment:
        text += " AUTO_INCREMENT"
    if column.invisible:
        text += " INVISIBLE"
    if column.comment:
        text += f" COMMENT {string_literal(column.comment)}"
    return text


def index_definition(index: Index) -> str:
    """An index as CREATE TABLE and ADD define it."""
    text = _INDEX_WORDS[index.kind]
    if index.kind is not IndexKind.PRIMARY:
        text += f" {quote_identifier(index.name)}"
    parts = []
    for part in index.parts:
        item = quote_identifier(part.column) if part.column else f"({part.expression})"
        if part.length is not None:
            item += f"({part.length})"
        parts.append(item + (" DESC" if part.descending else ""))
    text += f" ({','.join(parts)})"
    return text + (f" WITH PARSER {quote_identifier(index.parser)}" if index.parser else "")


def check_definition(check: Check) -> str:
    """A CHECK constraint as CREATE TABLE and ADD define it."""
    enforced = "" if check.enforced else " NOT ENFORCED"
    return f"CONSTRAINT {quote_identifier(check.name)} CHECK ({check.expression}){enforced}"


def create_table(schema: TableSchema, name: str) -> str:
    """CREATE TABLE with columns, indexes, checks and the default charset.

    Args:
        name: The quoted, possibly qualified table name.
    """
    lines = [column_definition(column) for column in schema.columns]
    lines += [index_definition(index) for index in schema.indexes]
    lines += [check_definition(check) for check in schema.checks]
    text = f"CREATE TABLE {name} (\n  " + ",\n  ".join(lines) + "\n)"
    text += f" DEFAULT CHARSET={schema.charset}"
    return text + (f" COLLATE={schema.collation}" if schema.collation else "")
