"""Column definitions: type, attributes, defaults, and constraints inside the definition.

Source: MySQL Reference Manual, "CREATE TABLE Statement"; MariaDB's, the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.schemas.ddl.grammar.expressions.expression import parenthesised
from shardmerge.schemas.ddl.grammar.tokens.charset_words import collation_word
from shardmerge.schemas.ddl.grammar.tokens.lexer import Cursor
from shardmerge.schemas.ddl.grammar.tokens.qualified import field_name
from shardmerge.schemas.model.charsets import charset_of
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.tables import (
    Check,
    Column,
    Default,
    ForeignKey,
    Generated,
    Index,
    IndexKind,
    IndexPart,
)
from shardmerge.schemas.model.types import ColumnType

from .defaults import NOW, default_value, now
from .engine_options import engine_option
from .indexes import check_constraint, references
from .types import BINARY_ATTRIBUTE, accept_compressed, column_type

_PRIMARY = "PRIMARY"


@dataclass(frozen=True, slots=True)
class Definition:
    """A column definition and the constraints that were written inside it."""

    column: Column
    indexes: tuple[Index, ...] = ()
    checks: tuple[Check, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()


class _Draft:
    """The attributes of one column while they are read; they may be in any order."""

    __slots__ = (
        "auto_increment", "checks", "collation", "comment", "default", "foreign_keys",
        "generated", "has_null", "indexes", "invisible", "name", "nullable", "on_update", "srid",
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        self.name = name
        self.nullable = True
        self.has_null = False
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
    """Read ``name type attributes`` up to the following comma, parenthesis or FIRST/AFTER."""
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
        kind = _collated(kind, draft.collation, cursor)
    if draft.srid is not None:
        kind = replace(kind, srid=draft.srid)
    nullable, default, on_update = draft.nullable, draft.default, draft.on_update
    if (
        kind.name == "timestamp"
        and not draft.has_null
        and (draft.generated is None or not cursor.context.is_mariadb)
        and not cursor.context.has_explicit_timestamps
    ):
        nullable = False
    indexes = tuple(draft.indexes)
    if cursor.context.is_mariadb and any(i.kind is IndexKind.PRIMARY for i in indexes):
        # In MariaDB, UNIQUE in the definition of a primary key's column makes no index.
        indexes = tuple(i for i in indexes if i.kind is IndexKind.PRIMARY)
        nullable = False  # Even if IF NOT EXISTS then finds another primary key.
    column = Column(
        draft.name, kind, nullable, default, on_update, draft.auto_increment, draft.generated,
        draft.comment, draft.invisible,
    )  # fmt: skip
    return Definition(column, indexes, tuple(draft.checks), tuple(draft.foreign_keys))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


# Readers of attributes: each starts at its attribute's word, and returns False if it reads nothing.


def _not(cursor: Cursor, draft: _Draft) -> bool:
    if cursor.accept("NOT", "NULL"):
        draft.nullable = False
    elif not cursor.accept("NOT", "SECONDARY"):
        return False
    return True


def _null(cursor: Cursor, draft: _Draft) -> bool:
    cursor.advance()
    draft.nullable = True
    draft.has_null = True
    return True


def _default(cursor: Cursor, draft: _Draft) -> bool:
    cursor.advance()
    draft.default = default_value(cursor)
    return True


def _on(cursor: Cursor, draft: _Draft) -> bool:
    cursor.expect("ON", "UPDATE")
    if cursor.word not in NOW:
        cursor.fail("CURRENT_TIMESTAMP")
    draft.on_update = now(cursor)
    return True


def _auto_increment(cursor: Cursor, draft: _Draft) -> bool:
    cursor.advance()
    draft.auto_increment = True
    # A NULL after AUTO_INCREMENT makes the column nullable again.
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
    """Add a unique index. A second UNIQUE in the same definition adds nothing."""
    index = Index("", IndexKind.UNIQUE, (IndexPart(draft.name),))
    if index not in draft.indexes:
        draft.indexes.append(index)


def _collated(kind: ColumnType, collation: str, cursor: Cursor) -> ColumnType:
    """A type with the collation of COLLATE.

    With the attribute BINARY and no written charset, COLLATE only sets the charset. With BINARY and
    a written charset, MySQL 8.0 and later use the collation, and 5.7 ignores it. MariaDB accepts
    only the charset's own binary collation beside BINARY. (Measured on 5.7, 8.0, 9.7, 10.11.)
    """
    is_binary = kind.collation == BINARY_ATTRIBUTE and collation != BINARY_ATTRIBUTE
    if is_binary and not cursor.context.is_mariadb:
        if not kind.charset and collation != "default":
            return replace(kind, charset=charset_of(collation))
        if not cursor.context.at_least(80000, None):
            return kind
    return replace(kind, collation=collation)


def _comment(cursor: Cursor, draft: _Draft) -> bool:
    cursor.advance()
    draft.comment = cursor.string()
    return True


def _collate(cursor: Cursor, draft: _Draft) -> bool:
    cursor.advance()
    is_default = cursor.context.is_mariadb and cursor.accept("DEFAULT")
    draft.collation = "default" if is_default else collation_word(cursor)
    return True


def _storage_option(cursor: Cursor, draft: _Draft) -> bool:
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


def _references(cursor: Cursor, draft: _Draft, name: str = "") -> bool:
    found = references(cursor, name, "", (draft.name,))
    # MySQL before 9.0 and MariaDB before 10.5 parse an inline reference and ignore it.
    if cursor.context.at_least(90000, 100500):
        draft.foreign_keys.append(found)
    return True


def _check(cursor: Cursor, draft: _Draft) -> bool:
    name = ""
    if cursor.accept("CONSTRAINT"):
        is_mariadb = cursor.context.is_mariadb
        if cursor.word != "CHECK" and not (is_mariadb and cursor.word == "REFERENCES"):
            name = cursor.identifier("a constraint name")
        if is_mariadb and cursor.word == "REFERENCES":
            return _references(cursor, draft, name)
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
    "COLUMN_FORMAT": _storage_option,
    "STORAGE": _storage_option,
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
