"""Column definitions: type, attributes, defaults, and what is written inline.

Source: MySQL Reference Manual, "CREATE TABLE Statement"; MariaDB's, the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from shardmerge.schemas.changes import WrittenLiteral
from shardmerge.schemas.charsets import charset_name
from shardmerge.schemas.model import (
    Check,
    Column,
    Default,
    DefaultKind,
    ForeignKey,
    Generated,
    Index,
    IndexKind,
    IndexPart,
)

from .charset_words import collation_word
from .engine_options import engine_option
from .expression import expression, parenthesised
from .indexes import check_constraint, references
from .lexer import BIT, HEX, NATIONAL, NUMBER, STRING, Cursor
from .literal_text import number
from .qualified import field_name
from .types import BINARY_ATTRIBUTE, accept_compressed, column_type

NULL_DEFAULT = Default(DefaultKind.NULL)
_NOW = frozenset({"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"})
_PRIMARY = "PRIMARY"
_FOLDED = {"pi()": "3.141592653589793", "-(pi())": "-3.141592653589793"}
"""Constants that MariaDB does not keep as expressions."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A column definition and the constraints that were written inside it."""

    column: Column
    indexes: tuple[Index, ...] = ()
    checks: tuple[Check, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()


class _Draft:
    """Attributes of one column while they are read, in whatever order they stand."""

    __slots__ = (
        "auto_increment", "checks", "collation", "comment", "default", "foreign_keys",
        "generated", "indexes", "invisible", "name", "null_said", "nullable", "on_update", "srid",
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        self.name = name
        self.nullable = True
        self.null_said = False
        self.default: Default | None = None
        self.on_update = ""
        self.auto_increment = False
        self.generated: Generated | None = None
        self.comment = ""
        self.invisible = False
        self.collation = ""
        self.srid: int | None = None
        self.indexes: list[Index] = []
        self.checks: list[Check] = []
        self.foreign_keys: list[ForeignKey] = []


def column_definition(cursor: Cursor) -> Definition:
    """Read ``name type attributes`` up to the comma, parenthesis or FIRST/AFTER behind it."""
    return definition_of(cursor, field_name(cursor, "a column name"))


def definition_of(cursor: Cursor, name: str) -> Definition:
    """Read ``type attributes`` of a column whose name is already read."""
    serial = cursor.word == "SERIAL"
    kind = column_type(cursor)
    draft = _Draft(name)
    if serial:
        _serial_value(draft)
    if cursor.context.is_mariadb and cursor.text(cursor.index - 1).upper() == "JSON":
        draft.checks.append(Check(name, f"json_valid({_quoted(name)})"))
    while True:
        word = cursor.word
        reader = _ATTRIBUTES.get(word)
        if reader is not None:
            if not reader(cursor, draft):
                break
        elif engine_option(cursor) is None:
            break
    if kind.name == "json" and cursor.context.is_mariadb:
        kind = replace(kind, name="longtext", charset="utf8mb4", collation="utf8mb4_bin")
    if draft.collation:
        collation = draft.collation
        if collation == BINARY_ATTRIBUTE or kind.collation != BINARY_ATTRIBUTE:
            kind = replace(kind, collation=collation)
    if draft.srid is not None:
        kind = replace(kind, srid=draft.srid)
    nullable, default, on_update = draft.nullable, draft.default, draft.on_update
    if (
        kind.name == "timestamp"
        and not draft.null_said
        and (draft.generated is None or not cursor.context.is_mariadb)
        and not cursor.context.has_explicit_timestamps
    ):
        nullable = False
    indexes = tuple(draft.indexes)
    if cursor.context.is_mariadb and any(i.kind is IndexKind.PRIMARY for i in indexes):
        # To MariaDB a column that is the primary key is not UNIQUE besides.
        indexes = tuple(i for i in indexes if i.kind is IndexKind.PRIMARY)
        nullable = False  # Also where IF NOT EXISTS then finds another primary key.
    column = Column(
        draft.name, kind, nullable, default, on_update, draft.auto_increment, draft.generated,
        draft.comment, draft.invisible,
    )  # fmt: skip
    return Definition(column, indexes, tuple(draft.checks), tuple(draft.foreign_keys))


def current_timestamp(fsp: int) -> str:
    """The canonical text of the current time as a default."""
    return f"CURRENT_TIMESTAMP({fsp})" if fsp else "CURRENT_TIMESTAMP"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def default_value(cursor: Cursor) -> Default:
    """Read what stands behind DEFAULT (or SET DEFAULT)."""
    word = cursor.word
    if word in _NOW:
        return Default(DefaultKind.EXPRESSION, _now(cursor))
    if word == "NULL":
        cursor.advance()
        return NULL_DEFAULT
    if word == "(":
        if cursor.context.is_mariadb and (literal := _literal_in_parentheses(cursor)):
            return literal
        found = parenthesised(cursor)
        text = found.text
        if cursor.context.is_mariadb:
            if (folded := _folded(text)) is not None:
                return folded
            if text.startswith("now("):
                text = _mariadb_now(text)
        return Default(DefaultKind.EXPRESSION, text)
    literal = _literal(cursor)
    if literal is not None:
        return literal
    if cursor.context.is_mariadb:
        # MariaDB takes a bare function call as an expression.
        text = expression(cursor).text
        folded = _folded(text)
        return Default(DefaultKind.EXPRESSION, text) if folded is None else folded
    return cursor.fail("a default value")


def _folded(text: str) -> WrittenLiteral | None:
    """What MariaDB computes when it is told such a default."""
    value = _FOLDED.get(text)
    return None if value is None else WrittenLiteral(DefaultKind.LITERAL, value, "number")


def _literal_in_parentheses(cursor: Cursor) -> WrittenLiteral | None:
    """MariaDB stores ``DEFAULT (5)`` as ``DEFAULT 5``."""
    start = cursor.index
    cursor.advance()
    literal = _literal(cursor)
    if literal is not None and cursor.accept(")"):
        return literal
    cursor.seek(start)
    return None


def _mariadb_now(text: str) -> str:
    """MariaDB doesn't tell ``DEFAULT (NOW())`` from ``DEFAULT CURRENT_TIMESTAMP``."""
    digits = text[len("now(") : -1]
    return current_timestamp(int(digits or 0)) if not digits or digits.isdigit() else text


def _now(cursor: Cursor) -> str:
    cursor.advance()
    fsp = 0
    if cursor.accept("("):
        fsp = cursor.integer("a number of digits") if cursor.word != ")" else 0
        cursor.expect(")")
    return current_timestamp(fsp)


def _literal(cursor: Cursor) -> WrittenLiteral | None:
    word = cursor.word
    charset = ""
    if word.startswith("_") and cursor.ahead() in (STRING, HEX, BIT):
        charset = charset_name(word[1:])
        cursor.advance()
        word = cursor.word
    if word in (STRING, NATIONAL):
        text, form = cursor.string(), "string"
    elif word in (HEX, BIT):
        raw = cursor.text()
        text = raw[2:-1] if raw.endswith("'") else raw[2:]
        form = "hex" if word == HEX else "bit"
        cursor.advance()
    elif word in ("TRUE", "FALSE"):
        text, form = ("1" if word == "TRUE" else "0"), "boolean"
        cursor.advance()
    elif word in ("+", "-") and cursor.ahead() in (NUMBER, "."):
        cursor.advance()
        text, form = ("-" if word == "-" else "") + number(cursor), "number"
    elif word in (NUMBER, "."):
        text, form = number(cursor), "number"
    elif word in ("DATE", "TIME", "TIMESTAMP") and cursor.ahead() == STRING:
        cursor.advance()
        text, form = cursor.string(), "temporal"
    else:
        return None
    return WrittenLiteral(DefaultKind.LITERAL, text, form, charset)


# Readers of attributes: each starts at its own word and returns False to leave it unread.


def _not(cursor: Cursor, draft: _Draft) -> bool:
    if cursor.accept("NOT", "NULL"):
        draft.nullable = False
    elif not cursor.accept("NOT", "SECONDARY"):
        return False
    return True


def _null(cursor: Cursor, draft: _Draft) -> bool:
    cursor.advance()
    draft.nullable = True
    draft.null_said = True
    return True


def _default(cursor: Cursor, draft: _Draft) -> bool:
    cursor.advance()
    draft.default = default_value(cursor)
    return True


def _on(cursor: Cursor, draft: _Draft) -> bool:
    cursor.expect("ON", "UPDATE")
    if cursor.word not in _NOW:
        cursor.fail("CURRENT_TIMESTAMP")
    draft.on_update = _now(cursor)
    return True


def _auto_increment(cursor: Cursor, draft: _Draft) -> bool:
    cursor.advance()
    draft.auto_increment = True
    # NULL that stands behind it counts.
    draft.nullable = False
    return True


def _serial(cursor: Cursor, draft: _Draft) -> bool:
    cursor.expect("SERIAL", "DEFAULT", "VALUE")
    _serial_value(draft)
    return True


def _serial_value(draft: _Draft) -> None:
    draft.nullable = False
    draft.auto_increment = True
    _unique_index(draft)


def _primary(cursor: Cursor, draft: _Draft) -> bool:
    cursor.advance()
    cursor.expect("KEY")
    draft.indexes.append(Index(_PRIMARY, IndexKind.PRIMARY, (IndexPart(draft.name),)))
    return True


def _key(cursor: Cursor, draft: _Draft) -> bool:
    cursor.advance()
    draft.indexes.append(Index(_PRIMARY, IndexKind.PRIMARY, (IndexPart(draft.name),)))
    return True


def _unique(cursor: Cursor, draft: _Draft) -> bool:
    cursor.advance()
    cursor.accept("KEY")
    _unique_index(draft)
    return True


def _unique_index(draft: _Draft) -> None:
    """Said twice, UNIQUE is still one index."""
    index = Index("", IndexKind.UNIQUE, (IndexPart(draft.name),))
    if index not in draft.indexes:
        draft.indexes.append(index)


def _comment(cursor: Cursor, draft: _Draft) -> bool:
    cursor.advance()
    draft.comment = cursor.string()
    return True


def _collate(cursor: Cursor, draft: _Draft) -> bool:
    cursor.advance()
    draft.collation = collation_word(cursor)
    return True


def _word_option(cursor: Cursor, draft: _Draft) -> bool:
    cursor.advance()
    if cursor.accept("COMPRESSED"):  # Percona Server's.
        if cursor.accept("WITH", "COMPRESSION_DICTIONARY"):
            cursor.identifier("a dictionary")
    elif not cursor.accept_any(("FIXED", "DYNAMIC", "DEFAULT", "DISK", "MEMORY")):
        cursor.fail("a storage option")
    return True


def _engine_attribute(cursor: Cursor, draft: _Draft) -> bool:
    cursor.advance()
    cursor.accept("=")
    cursor.string()
    return True


def _visible(cursor: Cursor, draft: _Draft) -> bool:
    draft.invisible = cursor.word == "INVISIBLE"
    cursor.advance()
    return True


def _srid(cursor: Cursor, draft: _Draft) -> bool:
    cursor.advance()
    cursor.accept("=")
    number = cursor.integer()
    if not cursor.context.is_mariadb:  # MariaDB's REF_SYSTEM_ID is shown nowhere.
        draft.srid = number
    return True


def _references(cursor: Cursor, draft: _Draft) -> bool:
    found = references(cursor, "", "", (draft.name,))
    # MySQL before 9.0 and MariaDB before 10.5 read an inline reference and forget it.
    if cursor.context.at_least(90000, 100500):
        draft.foreign_keys.append(found)
    return True


def _check(cursor: Cursor, draft: _Draft) -> bool:
    name = ""
    if cursor.accept("CONSTRAINT"):
        if cursor.word != "CHECK":
            name = cursor.identifier("a constraint name")
        if cursor.word != "CHECK":
            cursor.fail("CHECK")
    # MariaDB names a check that belongs to a column after the column.
    if not name and cursor.context.is_mariadb:
        name = draft.name
    draft.checks.append(check_constraint(cursor, name))
    return True


def _generated(cursor: Cursor, draft: _Draft) -> bool:
    if cursor.accept("GENERATED"):
        cursor.expect("ALWAYS")
    cursor.expect("AS")
    if cursor.context.is_mariadb and cursor.accept("ROW"):
        if not cursor.accept_any(("START", "END")):
            cursor.fail("START or END")
        draft.generated = Generated("row", True)
        draft.nullable = False
        return True
    text = parenthesised(cursor).text
    stored = cursor.accept_any(("VIRTUAL", "STORED", "PERSISTENT")) in ("STORED", "PERSISTENT")
    draft.generated = Generated(text, stored)
    return True


def _compressed(cursor: Cursor, draft: _Draft) -> bool:
    return accept_compressed(cursor)


def _versioning(cursor: Cursor, draft: _Draft) -> bool:
    if not cursor.context.is_mariadb:
        return False
    cursor.advance()
    cursor.expect("SYSTEM", "VERSIONING")
    return True


_ATTRIBUTES = {
    "NOT": _not,
    "NULL": _null,
    "DEFAULT": _default,
    "ON": _on,
    "AUTO_INCREMENT": _auto_increment,
    "SERIAL": _serial,
    "PRIMARY": _primary,
    "KEY": _key,
    "UNIQUE": _unique,
    "COMMENT": _comment,
    "COLLATE": _collate,
    "COLUMN_FORMAT": _word_option,
    "STORAGE": _word_option,
    "ENGINE_ATTRIBUTE": _engine_attribute,
    "SECONDARY_ENGINE_ATTRIBUTE": _engine_attribute,
    "VISIBLE": _visible,
    "INVISIBLE": _visible,
    "SRID": _srid,
    "REF_SYSTEM_ID": _srid,
    "REFERENCES": _references,
    "CONSTRAINT": _check,
    "CHECK": _check,
    "GENERATED": _generated,
    "AS": _generated,
    "COMPRESSED": _compressed,
    "WITH": _versioning,
    "WITHOUT": _versioning,
}
