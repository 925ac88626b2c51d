"""Converts values from Debezium's JSON or Avro to text for the target, by the shard's type. Pure.

Works on whole columns of a batch, so that checking the types of 100,000 values and converting them
takes a few calls into C. Each conversion expects what Debezium emits with
``decimal.handling.mode=string``, ``bigint.unsigned.handling.mode=precise``,
``time.precision.mode=adaptive_time_microseconds`` and, in JSON, ``binary.handling.mode=base64``.
Avro has bytes where JSON has their base64 text; all other values are the same.

Source: Debezium's MySQL connector documentation, "Data type mappings"; measured,
``tests/integration/spark/test_apply_values.py``.
"""

from __future__ import annotations

import re
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from struct import Struct
from types import NoneType
from typing import Any

from msgspec.json import Encoder as JsonEncoder

from shardmerge.connectors.debezium.value_limits import UNREADABLE_CHARSETS
from shardmerge.schemas.model.types import SPATIAL_NAMES, ColumnType

from .cells import Cells, UnfitValue, around_nulls, joined_alike
from .charset_repairs import NO_CHARACTER, element_reader, may_lack_characters, translation
from .times import DATES, datetimes_ms, datetimes_us, time_text, timestamps


class Form(Enum):
    """What a cell's text means."""

    TEXT = "text"
    """Characters; written as a quoted literal."""
    JSON = "json"
    """JSON text; also written as a quoted literal."""
    NUMBER = "number"
    """A decimal or floating-point literal; checked to be one."""
    DATE = "date"
    TIME = "time"
    DATETIME = "timestamp"
    """DATE, TIME and DATETIME are written as literals of their types; else they would be compared
    as text."""
    HEX = "hex"
    """Bytes as hexadecimal digits."""
    BITS = "bits"
    """Bits as an unsigned decimal number."""


@dataclass(frozen=True, slots=True)
class Encoder:
    """Converts the values of one column.

    Attributes:
        accepts: Python types of the values, besides None.
        convert: Values in row order, and whether some are None → cells. May raise any of
            ``_MISFITS``.
    """

    form: Form
    accepts: frozenset[type]
    convert: Callable[[Sequence[Any], bool], Cells]

    def encode(self, values: Sequence[Any]) -> Cells:
        """Cells of the values, in row order; raises ``UnfitValue`` when one does not fit."""
        return self.encode_column(values)[0]

    def encode_column(self, values: Sequence[Any]) -> tuple[Cells, bool]:
        """As ``encode``, with whether there are NULLs among the cells."""
        if not values:
            return [], False
        kinds = set(map(type, values))
        has_nulls = NoneType in kinds
        kinds.discard(NoneType)
        if not kinds <= self.accepts:
            raise UnfitValue(_unfit(values, self.accepts), code="SM-1509")
        try:
            return self.convert(values, has_nulls), has_nulls
        except _MISFITS as error:
            raise UnfitValue(f"a value does not fit its type: {error}", code="SM-1509") from None


_MISFITS = (ValueError, KeyError, TypeError, OverflowError, Base64Error)


def encoder(column_type: ColumnType, *, base64: bool = True) -> Encoder:
    """The encoder for values of a shard column of that type.

    Args:
        column_type: The column's type on the shard.
        base64: Whether bytes come as base64 text, as in JSON, or as bytes.

    Raises:
        UnfitValue: The type is not known here.
    """
    name = column_type.name
    binary, read = (str, _base64) if base64 else (bytes, bytes)
    if column_type.is_integer:
        # tinyint(1), which clients read as a boolean, comes as a boolean in JSON, too.
        return _encoder(Form.NUMBER, _integers, int, bool)
    if column_type.is_string:
        return _encoder(Form.TEXT, _texts_of(column_type.charset), str)
    if name == "json":
        return _encoder(Form.JSON, _texts, str)
    if name == "enum":
        return _encoder(Form.TEXT, _enum(column_type.elements), str)
    if name == "set":
        return _encoder(Form.TEXT, _set(column_type.elements), str)
    if column_type.is_binary:
        width = (column_type.length or 1) if name == "binary" else 0
        return _encoder(Form.HEX, _each(lambda v: _bytes_hex(read(v), width)), binary)
    if name in SPATIAL_NAMES:
        return _encoder(Form.HEX, _each(lambda v: _geometry_hex(v, read)), dict)
    fsp = column_type.fsp
    simple: dict[str, Encoder] = {
        "decimal": _encoder(Form.NUMBER, _decimals, str, int),
        "float": _encoder(Form.NUMBER, _singles, float, int),
        "double": _encoder(Form.NUMBER, _numbers, float, int),
        "bit": _encoder(Form.BITS, _each(lambda v: _bits(v, read)), bool, binary),
        "year": _encoder(Form.NUMBER, _each(_year_text), int),
        "date": _encoder(Form.DATE, _each(DATES.__getitem__), int),
        "time": _encoder(Form.TIME, _each(lambda v: time_text(v, fsp)), int),
        "datetime": _encoder(Form.DATETIME, datetimes_ms if fsp <= 3 else datetimes_us, int),
        "timestamp": _encoder(Form.DATETIME, timestamps, str),
    }
    if name not in simple:
        raise UnfitValue(f"values of type {name} cannot be applied", code="SM-1509")
    return simple[name]


def _encoder(
    form: Form, convert: Callable[[Sequence[Any], bool], Cells], *accepts: type
) -> Encoder:
    return Encoder(form, frozenset(accepts), convert)


def _singles(values: Sequence[Any], has_nulls: bool) -> Cells:
    """The exact value of the nearest single-precision number.

    The shortest text of the greatest such number, 3.4028235e38, is a little above its exact value,
    and MySQL refuses it.
    """
    if has_nulls:
        return around_nulls(_singles, values)
    single = Struct(f"<{len(values)}f")
    return _numbers(single.unpack(single.pack(*values)), has_nulls=False)


def _year_text(value: int) -> str:
    """Four digits, because MySQL reads the text '0' as 2000 (and the number 0000 as 0000).

    Debezium writes 1900, which is no valid YEAR, for 0000 (measured, from the binlog).
    """
    if not 0 <= value <= 9_999:
        raise ValueError("not a year")
    return "0000" if value == 1900 else f"{value:04d}"


def _base64(text: str) -> bytes:
    return a2b_base64(text, strict_mode=True) if text else b""


def _bits(value: Any, read: Callable[[Any], bytes]) -> str:
    """Debezium writes BIT(1) as a boolean, and longer bit fields as little-endian bytes."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(int.from_bytes(read(value), "little"))


def _bytes_hex(data: bytes, width: int) -> str:
    """Hexadecimal; BINARY(n) gets back the zero bytes that the binlog leaves out."""
    return data.ljust(width, b"\0").hex() if width else data.hex()


def _geometry_hex(value: dict[str, Any], read: Callable[[Any], bytes]) -> str:
    """Debezium's ``{wkb, srid}`` → MySQL's internal form: SRID, little-endian, then the WKB.

    Debezium's WKB has the axes in the order of the internal form. ST_GeomFromWKB would swap them in
    geographic systems, so it is not used.

    Source: MySQL Reference Manual, "Internal Geometry Storage Format".
    """
    srid = int(value.get("srid") or 0)
    return srid.to_bytes(4, "little").hex() + read(value["wkb"]).hex()


def _integers(values: Sequence[Any], has_nulls: bool) -> Cells:
    text = _json_text(values)
    if "e" in text:
        text = text.replace("true", "1").replace("false", "0")
    return _split(text, has_nulls)


def _texts(values: Sequence[Any], _: bool) -> Cells:
    return list(values)


def _texts_of(charset: str) -> Callable[[Sequence[Any], bool], Cells]:
    """Texts of a charset; see ``charset_repairs``."""
    if charset in UNREADABLE_CHARSETS:
        raise UnfitValue(
            f"Debezium reads text of character set {charset} by another one, wrongly",
            hint="convert the column to utf8mb4 on the shard",
            code="SM-1522",
        )
    if not may_lack_characters(charset):
        return _texts
    table = translation(charset)

    def convert(values: Sequence[Any], _: bool) -> Cells:
        text = "".join(filter(None, values))
        if text.isascii() and table is None:
            return list(values)
        if NO_CHARACTER in text:
            raise UnfitValue(
                f"Debezium found no character for a byte of this text in {charset}",
                hint="take the shard out with command leave, convert the column to utf8mb4 on the "
                "shard, with which it counts again, and let command reread bring its rows",
                code="SM-1522",
            )
        if table is None:
            return list(values)
        return [None if v is None else v.translate(table) for v in values]

    return convert


def _set(elements: tuple[str, ...]) -> Callable[[Sequence[Any], bool], Cells]:
    """Members as text."""
    element = element_reader(elements)
    if element is None:
        return _texts

    def convert(values: Sequence[Any], _: bool) -> Cells:
        return [None if v is None else ",".join(map(element, v.split(","))) for v in values]

    return convert


def _enum(elements: tuple[str, ...]) -> Callable[[Sequence[Any], bool], Cells]:
    """Elements as text. The error value (index 0), which Debezium writes as '', becomes ``0``.

    Source: measured: in strict mode MySQL takes the text '0' for index 0, and refuses ''.
    """
    element = element_reader(elements)

    def convert(values: Sequence[Any], _: bool) -> Cells:
        if element is not None:
            values = [None if v is None else element(v) for v in values]
        if "" in values and "" not in elements:
            if "0" in elements:
                raise UnfitValue(
                    "the empty enum value (index 0) cannot be written beside '0'", code="SM-1509"
                )
            return ["0" if c == "" else c for c in values]
        return list(values)

    return convert


def _decimals(values: Sequence[Any], has_nulls: bool) -> Cells:
    if has_nulls:
        return around_nulls(_decimals, values)
    cells = list(map(str, values))
    # Decimals are written without quotes: MySQL would compare a quoted one as a double.
    joined_alike(cells, _DECIMAL, "is not a decimal number")
    return [*cells]


_DECIMAL = re.compile(r"-?0+(?:\.0+)?")


def _numbers(values: Sequence[Any], has_nulls: bool) -> Cells:
    """The shortest text of each number, as JSON writes it; one call into C for a column."""
    return _split(_json_text(values), has_nulls)


def _json_text(values: Sequence[Any]) -> str:
    return _encode_json(values)[1:-1].decode()


_encode_json = JsonEncoder().encode


def _split(text: str, has_nulls: bool) -> Cells:
    cells: Cells = [*text.split(",")]
    return [None if c == "null" else c for c in cells] if has_nulls else cells


def _each(convert: Callable[[Any], str]) -> Callable[[Sequence[Any], bool], Cells]:
    def convert_all(values: Sequence[Any], has_nulls: bool) -> Cells:
        if has_nulls:
            return [None if v is None else convert(v) for v in values]
        return list(map(convert, values))

    return convert_all


def _unfit(values: Sequence[Any], accepts: frozenset[type]) -> str:
    bad = next(v for v in values if v is not None and type(v) not in accepts)
    expected = " or ".join(sorted(k.__name__ for k in accepts))
    return f"{str(bad)[:60]!r} is a {type(bad).__name__}, expected {expected}"
