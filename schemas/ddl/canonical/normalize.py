"""The canonical form of a schema: the definition that the server stores.

In this form two schemas are equal exactly when the servers' tables are equal. The rules follow what
SHOW CREATE TABLE and ``information_schema`` show.

Source: measured on MySQL 5.7, 8.0, 9.7 and MariaDB 10.11 (tests/integration/mysql).
"""

from __future__ import annotations

from shardmerge.schemas.ddl.changes import WrittenLiteral
from shardmerge.schemas.ddl.expressions import spell_columns
from shardmerge.schemas.ddl.grammar.definitions.defaults import current_timestamp
from shardmerge.schemas.ddl.grammar.definitions.types import BYTES
from shardmerge.schemas.model.charsets import (
    binary_collation,
    charset_of,
    default_collation,
    max_bytes,
)
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.mysql_facts import (
    MAX_KEY_BYTES,
    MAX_VARCHAR_BYTES,
    NULL_DEFAULT,
    size_index,
)
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.tables import Column, DefaultKind, Index, IndexKind, TableSchema
from shardmerge.schemas.model.types import (
    BLOB_NAMES,
    TEXT_NAMES,
    WITHOUT_LITERAL_DEFAULT,
    ColumnType,
)

from .constraints import normal_checks, normal_foreign_keys
from .indexing import normal_indexes
from .literals import element_of_bytes, normal_literal
from .text_sizes import expected_characters
from .timestamps import with_implicit_defaults, zero_moment

_CHARSET_TYPES = frozenset({"char", "varchar", *TEXT_NAMES, "enum", "set"})
_BINARY_FORMS = {
    "char": "binary", "varchar": "varbinary", "tinytext": "tinyblob", "text": "blob",
    "mediumtext": "mediumblob", "longtext": "longblob",
}  # fmt: skip
_MYISAM_KEY_BYTES = 1000
_WITHOUT_FOREIGN_KEYS = frozenset({"MYISAM", "ARIA", "MEMORY", "HEAP", "ARCHIVE", "CSV"})
"""Engines that parse a foreign key and ignore it, but keep its index."""
_DEFAULT_ENGINE = ("ENGINE", "INNODB")


def normalize(
    schema: TableSchema, table_name: str, context: ServerContext, *, is_new: bool = False
) -> TableSchema:
    """Bring a schema to its canonical form; idempotent.

    Args:
        schema: The schema as written, or normalised already.
        table_name: For the names that the server generates for checks and foreign keys.
        context: The server, for its defaults.
        is_new: Whether a CREATE TABLE with this schema is executed; else the schema is only read.
    """
    charset, collation = normal_charset(
        schema.charset, schema.collation, context.charset, context.collation, context
    )
    columns = tuple(normal_column(column, charset, collation, context) for column in schema.columns)
    defined = frozenset(column.name for column in columns)
    columns = with_implicit_defaults(columns, defined, context)
    options = tuple(
        (name, value)
        for name, value in schema.options
        if (name, value.upper()) != _DEFAULT_ENGINE and value.upper() != "DEFAULT"
    )
    return settle(
        replace(schema, columns=columns, charset=charset, collation=collation, options=options),
        table_name,
        context,
        lose_default=frozenset() if context.at_least(80016, 0) else defined,
        known_indexes=0 if is_new else None,
    )


def settle(
    schema: TableSchema,
    table_name: str,
    context: ServerContext,
    lose_default: frozenset[str] = frozenset(),
    *,
    known_indexes: int | None = None,
) -> TableSchema:
    """Normalise the effects that columns, indexes and constraints have on each other.

    Args:
        schema: Its columns must be normalised already: ``apply`` normalises only those it changes.
        table_name: As for ``normalize``.
        context: The server.
        lose_default: Names of columns that lose an expression default if they are in the primary
            key.
        known_indexes: How many of the indexes the table had before; None means all of them.
    """
    schema = _spelled(schema)
    columns = _primary_key_columns(schema, context, lose_default)
    made_not_null: frozenset[str] = frozenset()
    if columns is not schema.columns:
        made_not_null = frozenset(
            new.name.lower()
            for old, new in zip(schema.columns, columns, strict=True)
            if old.nullable and not new.nullable
        )
    foreign_keys = normal_foreign_keys(schema, table_name, context)
    engine = next((value.upper() for name, value in schema.options if name == "ENGINE"), "")
    return TableSchema(
        columns,
        normal_indexes(
            columns,
            schema.indexes,
            mariadb=context.is_mariadb,
            plain_spatial=not context.at_least(80000, None),
            made_not_null=made_not_null,
            max_key_bytes=_MYISAM_KEY_BYTES if engine == "MYISAM" else MAX_KEY_BYTES,
            known=known_indexes,
        ),
        normal_checks(schema.checks, columns, table_name, context),
        () if engine in _WITHOUT_FOREIGN_KEYS else foreign_keys,
        schema.charset,
        schema.collation,
        schema.comment,
        schema.options,
        schema.partitioning,
    )


def _spelled(schema: TableSchema) -> TableSchema:
    """The schema; expressions and foreign keys spell columns as the table does.

    Source: measured on MySQL 9.7 and MariaDB 10.11.
    """
    columns, indexes = schema.columns, schema.indexes
    computed = any(
        c.generated is not None or (c.default is not None and "`" in c.default.text)
        for c in columns
    )
    functional = any(part.expression for index in indexes for part in index.parts)
    if not (computed or functional or schema.checks or schema.foreign_keys):
        return schema
    names = {column.name.lower(): column.name for column in columns}
    if computed:
        columns = tuple([_spelled_column(column, names) for column in columns])
    if functional:
        indexes = tuple(_spelled_index(index, names) for index in indexes)
    checks = tuple(
        check if text == check.expression else replace(check, expression=text)
        for check in schema.checks
        for text in (spell_columns(check.expression, names),)
    )
    keys = tuple(
        key if own == key.columns else replace(key, columns=own)
        for key in schema.foreign_keys
        for own in (tuple(names.get(name.lower(), name) for name in key.columns),)
    )
    return replace(schema, columns=columns, indexes=indexes, checks=checks, foreign_keys=keys)


def _spelled_column(column: Column, names: dict[str, str]) -> Column:
    if column.generated is not None:
        text = spell_columns(column.generated.expression, names)
        if text != column.generated.expression:
            return replace(column, generated=replace(column.generated, expression=text))
    elif column.default is not None and column.default.kind is DefaultKind.EXPRESSION:
        text = spell_columns(column.default.text, names)
        if text != column.default.text:
            return replace(column, default=replace(column.default, text=text))
    return column


def _spelled_index(index: Index, names: dict[str, str]) -> Index:
    parts = tuple(
        replace(part, expression=spell_columns(part.expression, names)) if part.expression else part
        for part in index.parts
    )
    return index if parts == index.parts else replace(index, parts=parts)


def normal_charset(
    charset: str, collation: str, outer: str, outer_collation: str, context: ServerContext
) -> tuple[str, str]:
    """The charset and collation of a column, table or database, with what it inherits.

    Args:
        charset: As written; "" when not written.
        collation: As written; "" when not written.
        outer: The charset that it inherits, from its table, database or server.
        outer_collation: The collation that it inherits.
        context: The server.

    Returns:
        The charset, and the collation or "" for the charset's default.
    """
    is_default = collation == "default"
    if is_default:
        charset, collation = charset or "default", ""
    if charset == "default":
        charset = ""
        if context.is_mariadb and not collation:
            # The variable character_set_collations names a collation of UCA 14.0.0. COLLATE
            # DEFAULT follows it; CHARACTER SET DEFAULT alone does not. (Measured on 11.8.)
            collation = (
                context.default_collation(outer)
                if is_default
                else default_collation(outer, 0, mariadb=True)
            )
    if not charset and collation and collation != "_bin":
        charset = charset_of(collation)
    if not charset:
        charset = outer
        if not collation:
            collation = outer_collation
    if collation == "_bin":
        collation = binary_collation(charset)
    elif collation.startswith("uca1400_"):
        collation = f"{charset}_{collation}"
    if collation and collation == context.default_collation(charset):
        collation = ""
    return charset, collation


def normal_column(column: Column, charset: str, collation: str, context: ServerContext) -> Column:
    """Normalise one column of a table with this default charset and collation."""
    kind = normal_type(column.type, charset, collation, context)
    nullable = column.nullable
    default = column.default
    if isinstance(default, WrittenLiteral):
        default = normal_literal(default, kind, rounds=not context.is_mariadb)
        if not context.is_mariadb and kind.name in WITHOUT_LITERAL_DEFAULT:
            default = None
    is_expression = default is not None and default.kind is DefaultKind.EXPRESSION
    if column.generated is not None:
        default = None
    elif column.auto_increment:
        # MariaDB keeps an expression that ALTER COLUMN gave to an AUTO_INCREMENT column.
        default = default if context.is_mariadb and is_expression else None
    elif default is None and nullable:
        default = NULL_DEFAULT
    elif default is not None and default.kind is DefaultKind.NULL and not nullable:
        default = None
    on_update = column.on_update
    if context.is_mariadb and kind.name in ("timestamp", "datetime"):
        # In MariaDB the current time gets the column's fractional digits, whatever was written.
        if default is not None and default.text.startswith("CURRENT_TIMESTAMP"):
            default = replace(default, text=current_timestamp(kind.fsp))
        if on_update:
            on_update = current_timestamp(kind.fsp)
            if not nullable and default is None:
                default = zero_moment(kind.fsp)
    if (kind, nullable, default, on_update) == (
        column.type, column.nullable, column.default, column.on_update,
    ):  # fmt: skip
        return column
    return replace(column, type=kind, nullable=nullable, default=default, on_update=on_update)


def normal_type(
    kind: ColumnType, charset: str, collation: str, context: ServerContext
) -> ColumnType:
    """Normalise a type of a column in a table with this default charset and collation."""
    name = kind.name
    if name in BLOB_NAMES:
        return _sized(kind, BLOB_NAMES, kind.length)
    if name == "tinyint" and kind.length is not None and kind.unsigned:
        return replace(kind, length=None)
    if name == "varbinary" and (kind.length or 0) > MAX_VARCHAR_BYTES:
        return _sized(ColumnType("blob"), BLOB_NAMES, kind.length)
    if name not in _CHARSET_TYPES:
        # A collation of a type that is not a string has no effect.
        return replace(kind, charset="", collation="") if kind.collation else kind
    own, own_collation = normal_charset(kind.charset, kind.collation, charset, collation, context)
    if own == "binary" and name in _BINARY_FORMS:
        return normal_type(ColumnType(_BINARY_FORMS[name], kind.length), "", "", context)
    if any(element.startswith(BYTES) for element in kind.elements):
        kind = replace(kind, elements=tuple(_element(e, own) for e in kind.elements))
    if kind.elements and own != "binary" and any(e.endswith(" ") for e in kind.elements):
        kind = replace(kind, elements=tuple(e.rstrip(" ") for e in kind.elements))
    length = kind.length
    if name in TEXT_NAMES and length is not None:
        sized = _sized(kind, TEXT_NAMES, length * max_bytes(own))
        return replace(sized, charset=own, collation=own_collation)
    if name == "varchar" and (length or 0) * max_bytes(own) > MAX_VARCHAR_BYTES:
        sized = _sized(kind, TEXT_NAMES, (length or 0) * max_bytes(own))
        return replace(sized, charset=own, collation=own_collation)
    if own == kind.charset and own_collation == kind.collation:
        return kind
    return replace(kind, charset=own, collation=own_collation)


def _element(written: str, charset: str) -> str:
    if not written.startswith(BYTES):
        return written
    return element_of_bytes(written[len(BYTES) :].encode("latin-1"), charset)


def converted_type(
    kind: ColumnType,
    charset: str,
    collation: str,
    context: ServerContext,
    *,
    before: ColumnType | None,
) -> ColumnType:
    """A string type after CONVERT TO: with another charset, and a size that holds the values.

    ``before`` is the type whose values the column holds; None: a text type keeps its size.
    """
    if kind.name not in _CHARSET_TYPES or kind.charset == "binary":
        return kind
    length = kind.length
    if kind.name in TEXT_NAMES and before is not None:
        length = expected_characters(before)
    return normal_type(
        replace(kind, charset=charset, collation=collation, length=length), "", "", context
    )


def converted_column(column: Column, kind: ColumnType) -> Column:
    """A column after CONVERT TO gave it this type. A default that is text may become bytes."""
    default = column.default
    if default is not None and default.kind is DefaultKind.LITERAL and not kind.charset:
        literal = WrittenLiteral(DefaultKind.LITERAL, default.text, charset=column.type.charset)
        default = normal_literal(literal, kind)
    return replace(column, type=kind, default=default)


def _sized(kind: ColumnType, names: tuple[str, ...], size_bytes: int | None) -> ColumnType:
    if size_bytes is None:
        return kind
    return replace(kind, name=names[size_index(size_bytes)], length=None)


def _primary_key_columns(
    schema: TableSchema, context: ServerContext, lose_default: frozenset[str]
) -> tuple[Column, ...]:
    key = next((i for i in schema.indexes if i.kind is IndexKind.PRIMARY), None)
    if key is None:
        return schema.columns
    names = {part.column.lower() for part in key.parts}
    columns = tuple(
        _of_primary_key(c, context, loses_default=c.name in lose_default)
        if c.name.lower() in names
        else c
        for c in schema.columns
    )
    return schema.columns if columns == schema.columns else columns


def _of_primary_key(column: Column, context: ServerContext, *, loses_default: bool) -> Column:
    """A column of the primary key: it is NOT NULL.

    An expression default other than CURRENT_TIMESTAMP is dropped with ``loses_default``, and by
    MySQL before 8.0.16 also if the key makes the column NOT NULL. (Measured on 8.0.15; 9.7 keeps
    most of them, see ``apply``.)
    """
    default = column.default
    if default is None:
        gone = False
    elif default.kind is DefaultKind.EXPRESSION:
        forgets = loses_default or (column.nullable and not context.at_least(80016, 0))
        gone = forgets and not default.text.startswith("CURRENT_TIMESTAMP")
    else:
        gone = default.kind is DefaultKind.NULL
    if not (column.nullable or gone):
        return column
    if context.is_mariadb and column.on_update and gone:
        return replace(column, nullable=False, default=zero_moment(column.type.fsp))
    return replace(column, nullable=False, default=None if gone else default)
