"""Column types: every spelling, read into ``ColumnType``.

``normalize`` fills in what depends on the table, such as an inherited charset or the size of
``TEXT(n)``. Until then charset "" means "inherited", collation ``_bin`` means the attribute BINARY,
and a text or blob type has the length that was written.

Source: MySQL Reference Manual, "Data Types"; sql_yacc.yy, rule ``type``.
"""

from __future__ import annotations

import re

from shardmerge.schemas.ddl.grammar.expressions.literal_text import binary_literal
from shardmerge.schemas.ddl.grammar.tokens.charset_words import accept_charset, charset_word
from shardmerge.schemas.ddl.grammar.tokens.lexer import BIT, HEX, NUMBER, Cursor
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.types import ColumnType

BINARY_ATTRIBUTE = "_bin"
"""The collation of a type that was written with the attribute BINARY, before ``normalize``."""
BYTES = "\udc00"
"""What an element of ENUM or SET begins with that was written in hexadecimal digits or bits, before
``normalize``; its bytes follow as characters of latin1."""

_INTEGERS = {
    "TINYINT": "tinyint", "INT1": "tinyint", "SMALLINT": "smallint", "INT2": "smallint",
    "MEDIUMINT": "mediumint", "MIDDLEINT": "mediumint", "INT3": "mediumint",
    "INT": "int", "INTEGER": "int", "INT4": "int", "BIGINT": "bigint", "INT8": "bigint",
}  # fmt: skip
_DECIMALS = frozenset({"DECIMAL", "NUMERIC", "DEC", "FIXED"})
_FLOATS = {
    "FLOAT": "float", "FLOAT4": "float", "DOUBLE": "double", "FLOAT8": "double", "REAL": "double",
}  # fmt: skip
_TEXTS = {
    "TINYTEXT": "tinytext", "TEXT": "text", "MEDIUMTEXT": "mediumtext", "LONGTEXT": "longtext",
}  # fmt: skip
_BLOBS = {
    "TINYBLOB": "tinyblob", "BLOB": "blob", "MEDIUMBLOB": "mediumblob", "LONGBLOB": "longblob",
}  # fmt: skip
_FRACTIONAL = frozenset({"TIME", "DATETIME", "TIMESTAMP"})
_PLAIN = {
    "DATE": "date", "JSON": "json", "GEOMETRY": "geometry", "POINT": "point",
    "LINESTRING": "linestring", "POLYGON": "polygon", "MULTIPOINT": "multipoint",
    "MULTILINESTRING": "multilinestring", "MULTIPOLYGON": "multipolygon",
    "GEOMETRYCOLLECTION": "geometrycollection", "GEOMCOLLECTION": "geometrycollection",
}  # fmt: skip
_MARIADB = {"UUID": "uuid", "INET4": "inet4", "INET6": "inet6"}
_DECIMAL_NUMBER = re.compile(r"(\d+)\.\d+")
_VECTOR_DIMENSIONS = 2048
"""Dimensions of a VECTOR without a number."""
_SINGLE_PRECISION = 24
"""FLOAT(p) with more bits than this is a double."""


def column_type(cursor: Cursor) -> ColumnType:
    """Read a type with its own attributes (sign, charset), up to the column's attributes."""
    word = cursor.word
    reader = _READERS.get(word)
    if reader is None:
        if word in _MARIADB and cursor.context.is_mariadb:
            cursor.advance()
            return ColumnType(_MARIADB[word])
        cursor.fail("a column type")
    cursor.advance()
    return reader(cursor, word)


def _integer(cursor: Cursor, word: str) -> ColumnType:
    length = _length(cursor)
    kept = 1 if word in ("TINYINT", "INT1") and length == 1 else None
    return _numeric(cursor, ColumnType(_INTEGERS[word], kept))


def _boolean(cursor: Cursor, word: str) -> ColumnType:
    return ColumnType("tinyint", 1)


def _serial(cursor: Cursor, word: str) -> ColumnType:
    return ColumnType("bigint", unsigned=True)


def _decimal(cursor: Cursor, word: str) -> ColumnType:
    precision, scale = _precision(cursor)
    return _numeric(cursor, ColumnType("decimal", precision or 10, scale or 0))


def _float(cursor: Cursor, word: str) -> ColumnType:
    name = _FLOATS[word]
    if word == "DOUBLE":
        cursor.accept("PRECISION")
    if word == "REAL" and cursor.context.real_as_float:
        name = "float"
    precision, scale = _precision(cursor)
    if precision is not None and scale is None:
        if name == "float" and precision > _SINGLE_PRECISION:
            name = "double"
        precision = None
    return _numeric(cursor, ColumnType(name, precision, scale))


def _bit(cursor: Cursor, word: str) -> ColumnType:
    return ColumnType("bit", _length(cursor) or 1)


def _temporal(cursor: Cursor, word: str) -> ColumnType:
    return ColumnType(word.lower(), fsp=_length(cursor) or 0)


def _year(cursor: Cursor, word: str) -> ColumnType:
    _length(cursor)
    return _numeric(cursor, ColumnType("year"), keep=False)


def _plain(cursor: Cursor, word: str) -> ColumnType:
    return ColumnType(_PLAIN[word])


def _char(cursor: Cursor, word: str) -> ColumnType:
    name = "varchar" if cursor.accept("VARYING") else "char"
    return _charset(cursor, ColumnType(name, _string_length(cursor, name)))


def _varchar(cursor: Cursor, word: str) -> ColumnType:
    return _charset(cursor, ColumnType("varchar", _string_length(cursor, "varchar")))


def _national(cursor: Cursor, word: str) -> ColumnType:
    name = "char"
    if word == "NVARCHAR":
        name = "varchar"
    elif word == "NCHAR":
        if cursor.accept("VARCHAR") or cursor.accept("VARCHARACTER") or cursor.accept("VARYING"):
            name = "varchar"
    elif cursor.accept("VARCHAR") or cursor.accept("VARCHARACTER"):
        name = "varchar"
    elif cursor.accept("CHAR") or cursor.accept("CHARACTER"):
        name = "varchar" if cursor.accept("VARYING") else "char"
    else:
        cursor.fail("CHAR or VARCHAR")
    length = _string_length(cursor, name)
    collation = BINARY_ATTRIBUTE if cursor.accept("BINARY") else ""
    return ColumnType(name, length, charset="utf8mb3", collation=collation)


def _text(cursor: Cursor, word: str) -> ColumnType:
    length = _length(cursor) if word == "TEXT" else None
    return _charset(cursor, ColumnType(_TEXTS[word], length))


def _blob(cursor: Cursor, word: str) -> ColumnType:
    return ColumnType(_BLOBS[word], _length(cursor) if word == "BLOB" else None)


def _long(cursor: Cursor, word: str) -> ColumnType:
    if cursor.accept("VARBINARY"):
        return ColumnType("mediumblob")
    if cursor.word in ("CHAR", "CHARACTER") and cursor.ahead() != "SET":
        cursor.advance()
        cursor.expect("VARYING")
    elif not cursor.accept("VARCHAR"):
        cursor.accept("VARCHARACTER")
    return _charset(cursor, ColumnType("mediumtext"))


def _binary(cursor: Cursor, word: str) -> ColumnType:
    return ColumnType("binary", _string_length(cursor, "char"))


def _varbinary(cursor: Cursor, word: str) -> ColumnType:
    return ColumnType("varbinary", _string_length(cursor, "varchar"))


def _vector(cursor: Cursor, word: str) -> ColumnType:
    length = _length(cursor)
    return ColumnType("vector", _VECTOR_DIMENSIONS if length is None else length)


def _enumeration(cursor: Cursor, word: str) -> ColumnType:
    cursor.expect("(")
    elements = [_element(cursor)]
    while cursor.accept(","):
        elements.append(_element(cursor))
    cursor.expect(")")
    return _charset(cursor, ColumnType(word.lower(), elements=tuple(elements)))


def _element(cursor: Cursor) -> str:
    if cursor.word in (HEX, BIT):
        digits = binary_literal(cursor).removeprefix("0x")
        raw = bytes.fromhex(digits.rjust(len(digits) + len(digits) % 2, "0"))
        return BYTES + raw.decode("latin-1")
    return cursor.string("a quoted value")


def _length(cursor: Cursor) -> int | None:
    if not cursor.accept("("):
        return None
    length = _whole("a length", cursor)
    cursor.expect(")")
    return length


def _whole(what: str, cursor: Cursor) -> int:
    """Read a length. The server also accepts one like ``19.5``, and truncates it."""
    if cursor.word == NUMBER and (cut := _DECIMAL_NUMBER.fullmatch(cursor.text())) is not None:
        cursor.advance()
        return int(cut[1])
    return cursor.integer(what)


def _string_length(cursor: Cursor, name: str) -> int:
    length = _length(cursor)
    if length is None:
        if name == "varchar":
            cursor.fail("a length in parentheses")
        return 1
    return length


def _precision(cursor: Cursor) -> tuple[int | None, int | None]:
    if not cursor.accept("("):
        return None, None
    cut = "." in cursor.text()
    precision = _whole("a precision", cursor)
    scale = cursor.integer("a scale") if not cut and cursor.accept(",") else None
    cursor.expect(")")
    return precision, scale


def _numeric(cursor: Cursor, found: ColumnType, *, keep: bool = True) -> ColumnType:
    unsigned = zerofill = False
    while word := cursor.accept_any(("UNSIGNED", "SIGNED", "ZEROFILL")):
        unsigned = unsigned or word == "UNSIGNED"
        zerofill = zerofill or word == "ZEROFILL"
    if not keep or not (unsigned or zerofill):
        return found
    return replace(found, unsigned=True, zerofill=zerofill)


def _charset(cursor: Cursor, found: ColumnType) -> ColumnType:
    charset = ""
    binary = False
    if cursor.word == "COMPRESSED":
        accept_compressed(cursor)
    while True:
        if accept_charset(cursor):
            charset = charset_word(cursor)
        elif cursor.accept("ASCII"):
            charset = "latin1"
        elif cursor.accept("UNICODE"):
            charset = "ucs2"
        elif cursor.accept("BYTE"):
            charset = "binary"
        elif cursor.accept("BINARY"):
            binary = True
        else:
            break
    if not charset and not binary:
        return found
    return replace(found, charset=charset, collation=BINARY_ATTRIBUTE if binary else "")


def accept_compressed(cursor: Cursor) -> bool:
    """Step over MariaDB's COMPRESSED[=method], which may be before or after the charset."""
    if not cursor.context.is_mariadb:
        return False
    cursor.expect("COMPRESSED")
    if cursor.accept("="):
        cursor.identifier("a compression method")
    return True


_READERS = {
    **dict.fromkeys(_INTEGERS, _integer),
    **dict.fromkeys(("BOOL", "BOOLEAN"), _boolean),
    "SERIAL": _serial,
    **dict.fromkeys(_DECIMALS, _decimal),
    **dict.fromkeys(_FLOATS, _float),
    "BIT": _bit,
    **dict.fromkeys(_FRACTIONAL, _temporal),
    **dict.fromkeys(("YEAR", "SQL_TSI_YEAR"), _year),
    **dict.fromkeys(_PLAIN, _plain),
    **dict.fromkeys(("CHAR", "CHARACTER"), _char),
    **dict.fromkeys(("VARCHAR", "VARCHARACTER"), _varchar),
    **dict.fromkeys(("NATIONAL", "NCHAR", "NVARCHAR"), _national),
    **dict.fromkeys(_TEXTS, _text),
    **dict.fromkeys(_BLOBS, _blob),
    "LONG": _long,
    "BINARY": _binary,
    "VARBINARY": _varbinary,
    "VECTOR": _vector,
    **dict.fromkeys(("ENUM", "SET"), _enumeration),
}
