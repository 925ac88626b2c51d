"""Which properties of a column a MySQL or MariaDB server of a version can have. Pure.

A property that the server lacks is replaced if the target then accepts at least the same rows. For
example, a default that it does not take is replaced by the zero value or by NULL, if rows may leave
the column out.

Source: ``features``; MySQL Reference Manual, "Data Type Default Values"; MariaDB, "DEFAULT".
"""

from __future__ import annotations

from functools import lru_cache

from shardmerge.schemas.ddl.canonical.literals import normal_literal
from shardmerge.schemas.ddl.canonical.normalize import normal_type
from shardmerge.schemas.ddl.changes import WrittenLiteral
from shardmerge.schemas.ddl.expressions import canonical
from shardmerge.schemas.ddl.grammar.definitions.defaults import default_value as read_default
from shardmerge.schemas.ddl.grammar.tokens.lexer import Cursor
from shardmerge.schemas.ddl.volatile_defaults import volatile_default
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.mysql_facts import NULL_DEFAULT, zero_value
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.tables import Column, Default, DefaultKind, Generated
from shardmerge.schemas.model.types import BLOB_NAMES, TEMPORAL_NAMES, TEXT_NAMES, ColumnType

from .collations import fit_collation, in_key_collation
from .dialect import CannotRender, FittedColumn, Place
from .features import (
    EXPLICIT_TIMESTAMPS,
    EXPRESSION_DEFAULTS,
    NATIVE_JSON,
    NOT_NULL_GENERATED,
    SPATIAL_REFERENCES,
    TEXT_LITERAL_DEFAULTS,
    TYPES,
    missing_function,
)

_ASCII_FORMS = {"uuid": ("char", 36), "inet4": ("varchar", 15), "inet6": ("varchar", 39)}
"""MariaDB's types → the string types in which clients get their values."""
_WITHOUT_LITERALS = frozenset({*TEXT_NAMES, *BLOB_NAMES, "json"})


def zero_default(kind: ColumnType, server: ServerContext) -> Default | None:
    """The zero value of a fitted type, as a default that the server takes; None without one."""
    if kind.name in _ASCII_FORMS:
        return None
    found = zero_value(kind)
    if found is None or found.kind is not DefaultKind.EXPRESSION:
        return found
    if TEXT_LITERAL_DEFAULTS.is_in(server):
        return _as_literal(found, kind, server)
    return found if EXPRESSION_DEFAULTS.is_in(server) else None


@lru_cache(maxsize=4_096)
def in_flavour(expression: str, server: ServerContext) -> str:
    """A canonical expression as this server's flavour writes it; cached, since it is parsed."""
    return canonical(expression, server)


def fit_column(column: Column, place: Place, server: ServerContext) -> FittedColumn | CannotRender:
    """The column as a MySQL or MariaDB server can have it."""
    notes: list[str] = []
    kind = _fit_type(column, place, server, notes)
    if isinstance(kind, CannotRender):
        return kind
    if kind is not column.type:
        column = replace(column, type=kind)
    if column.generated is not None:
        return _fit_generated(column, server, notes)
    fitted = _fit_default(column, place, server, notes)
    implicit = kind.name == "timestamp" and not EXPLICIT_TIMESTAMPS.is_in(server)
    if implicit and not fitted.nullable and fitted.default is None:
        fitted = replace(fitted, default=zero_value(kind))
        notes.append("without a default the server would give it the current time")
    return FittedColumn(fitted, tuple(notes))


def _fit_type(
    column: Column, place: Place, server: ServerContext, notes: list[str]
) -> ColumnType | CannotRender:
    kind, name = column.type, column.name
    if kind.name == "json" and not NATIVE_JSON.is_in(server):
        if not server.is_mariadb:
            return _refused_type(name, kind)
        # MariaDB's JSON has a check, which is left out: the shards have checked the values.
        return ColumnType("longtext", charset="utf8mb4", collation="utf8mb4_bin")
    if kind.name in TYPES and not TYPES[kind.name].is_in(server):
        if kind.name not in _ASCII_FORMS:
            return _refused_type(name, kind)
        form, length = _ASCII_FORMS[kind.name]
        notes.append(f"the target has no type {kind.name}, it keeps the text")
        return ColumnType(form, length, charset="ascii")
    if kind.srid is not None and not SPATIAL_REFERENCES.is_in(server):
        notes.append("the target does not check the SRID")
        kind = replace(kind, srid=None)
    if kind.charset == "gb18030" and server.is_mariadb:
        return CannotRender(
            f"MariaDB has no character set gb18030, which {name} has",
            f"convert {name} to utf8mb4 on every shard",
            code="SM-1227",
        )
    plain, default = kind, server.default_collation(kind.charset)

    def near(collation: str) -> str:
        found = fit_collation(collation, name, in_key=True, server=server, kind=plain.name)
        return "" if isinstance(found, CannotRender) else found[0]

    kind = in_key_collation(kind, place, default, near, notes)
    if kind.collation:
        found = fit_collation(
            kind.collation, name, in_key=bool(place.key), server=server, kind=kind.name
        )
        if isinstance(found, CannotRender):
            return found
        collation, note = found
        if note:
            notes.append(note)
        kind = normal_type(replace(kind, collation=collation), "", "", server)
    return kind


def _fit_generated(
    column: Column, server: ServerContext, notes: list[str]
) -> FittedColumn | CannotRender:
    assert column.generated is not None
    if missing := missing_function(column.generated.expression, server):
        return CannotRender(
            f"the target has no {missing}, by which {column.name} is computed",
            f"make {column.name} an ordinary column on one shard, or use a newer target",
            code="SM-1229",
        )
    text = in_flavour(column.generated.expression, server)
    if text != column.generated.expression:
        column = replace(column, generated=Generated(text, column.generated.stored))
    if not column.nullable and not NOT_NULL_GENERATED.is_in(server):
        notes.append("MariaDB takes no NOT NULL on a computed column")
        column = replace(column, nullable=True)
    return FittedColumn(column, tuple(notes))


def _fit_default(column: Column, place: Place, server: ServerContext, notes: list[str]) -> Column:
    default = column.default
    if default is not None and default.kind is DefaultKind.EXPRESSION:
        default = _fit_expression(default, column, server, notes)
    elif default is not None and default.kind is DefaultKind.LITERAL:
        default = _fit_literal(default, column.type, server, notes)
    if default is None and column.default is not None and column.default != NULL_DEFAULT:
        return without_default(column, place, notes, zero_default(column.type, server))
    return column if default is column.default else replace(column, default=default)


def without_default(column: Column, place: Place, notes: list[str], zero: Default | None) -> Column:
    """The column without its default. Rows that leave it out get the zero value, or NULL."""
    if not place.optional or column.nullable:
        return replace(column, default=NULL_DEFAULT if column.nullable else None)
    notes.append(f"rows without it get {'its zero value' if zero else 'NULL'}")
    return replace(column, nullable=zero is None, default=zero or NULL_DEFAULT)


def _fit_expression(
    default: Default, column: Column, server: ServerContext, notes: list[str]
) -> Default | None:
    """The default, or None with a note when the server does not take it."""
    if default.text.startswith("CURRENT_TIMESTAMP") and column.type.name in TEMPORAL_NAMES:
        return default
    volatile = volatile_default(column)
    if volatile is not None and volatile.differs_by_row:
        # MySQL refuses to add such a column (error 1674, measured), and no shard has the value.
        notes.append(f"the target makes up no value by {volatile.function}()")
        return None
    if not EXPRESSION_DEFAULTS.is_in(server):
        notes.append("the target takes no expression as a default")
        return None
    if missing := missing_function(default.text, server):
        notes.append(f"the target has no {missing} for its default")
        return None
    if server.is_mariadb:
        return _as_literal(default, column.type, server)
    return Default(DefaultKind.EXPRESSION, in_flavour(default.text, server))


def _fit_literal(
    default: Default, kind: ColumnType, server: ServerContext, notes: list[str]
) -> Default | None:
    """The default: for text and blobs, MariaDB takes plain literals, MySQL only expressions."""
    if kind.name not in _WITHOUT_LITERALS or TEXT_LITERAL_DEFAULTS.is_in(server):
        return default
    if not EXPRESSION_DEFAULTS.is_in(server):
        notes.append(f"the target takes no default for {kind.name}")
        return None
    if default.text.startswith("0x") and kind.name in BLOB_NAMES:
        text = "''" if default.text == "0x" else default.text
    else:
        escaped = default.text.replace("\\", "\\\\").replace("'", "\\'")
        text = canonical(f"'{escaped}'", ServerContext())
    return Default(DefaultKind.EXPRESSION, text)


def _as_literal(default: Default, kind: ColumnType, server: ServerContext) -> Default:
    """An expression default as MariaDB stores it: ``DEFAULT ('x')`` becomes ``DEFAULT 'x'``."""
    found = read_default(Cursor(f"({default.text})", server))
    return normal_literal(found, kind) if isinstance(found, WrittenLiteral) else found


def _refused_type(name: str, kind: ColumnType) -> CannotRender:
    return CannotRender(
        f"the target has no type {kind.name}, which {name} has",
        f"give {name} another type on every shard, or use a newer target",
        code="SM-1227",
    )
