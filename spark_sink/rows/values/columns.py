"""Values: from Debezium's JSON or Avro to text that the target takes, by the shard's type. Pure.

Works on whole columns of a batch: checking the types of 100,000 values and converting them is
a few calls into C then. What each conversion expects is what Debezium emits with
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
from typing import Any, TypeAlias

from msgspec.json import Encoder as JsonEncoder

from shardmerge.connectors.debezium.value_limits import UNREADABLE_CHARSETS
from shardmerge.schemas.model.errors import SourceError
from shardmerge.schemas.model.types import (
    SPATIAL_NAMES,
    ColumnType,
)

from .charset_repairs import (
    NO_CHARACTER,
    element_reader,
    may_lack_characters,
    translation,
)

Cells: TypeAlias = list[str | None]
"""Converted values of one column, in row order; None is NULL."""


class Form(Enum):
    """How a cell's text has to be read."""

    TEXT = "text"
    """Characters; written as a quoted literal."""
    JSON = "json"
    """JSON text, likewise."""
    NUMBER = "number"
    """A decimal or floating-point literal, checked to be one."""
    DATE = "date"
    TIME = "time"
    DATETIME = "timestamp"
    """These three are compared as text unless they are written as literals of their type."""
    HEX = "hex"
    """Bytes as hexadecimal digits."""
    BITS = "bits"
    """Bits as an unsigned decimal number."""


class UnfitValue(SourceError):
    """A value is not what Debezium emits for a column of its type."""


@dataclass(frozen=True, slots=True)
class Encoder:
    """Converts the values of one column.

    Attributes:
        accepts: Types of the values, beside None.
        convert: Values in row order, and whether there are None among them → cells. May raise
            any of ``_MISFITS``.
    """

    form: Form
    accepts: frozenset[type]
    convert: Callable[[Sequence[Any], bool], Cells]

    def encode(self, values: Sequence[Any]) -> Cells:
        """Cells of the values, in row order; raises ``UnfitValue`` when one does not fit."""
        return self.encode_column(values)[0]

    def encode_column(self, values: Sequence[Any]) -> tuple[Cells, bool]:
        """As ``encode``, and whether there are NULLs among the cells."""
        if not values:
            return [], False
        kinds = set(map(type, values))
        has_nulls = NoneType in kinds
        kinds.discard(NoneType)
        if not kinds <= self.accepts:
            raise UnfitValue(_unfit(values, self.accepts))
        try:
            return self.convert(values, has_nulls), has_nulls
        except _MISFITS as error:
            raise UnfitValue(f"a value does not fit its type: {error}") from None


_MISFITS = (ValueError, KeyError, TypeError, OverflowError, Base64Error)


def encoder(column_type: ColumnType, *, base64: bool = True) -> Encoder:
    """The encoder for values of a shard column of that type.

    Args:
        column_type: On the shard.
        base64: Whether bytes come as base64 text, as in JSON; else as bytes.

    Raises:
        UnfitValue: The type is not known here.
    """
    name = column_type.name
    binary, read = (str, _base64) if base64 else (bytes, bytes)
    if column_type.is_integer:
        # tinyint(1), which clients read as a boolean, is one in JSON too.
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
        "date": _encoder(Form.DATE, _each(_DATES.__getitem__), int),
        "time": _encoder(Form.TIME, _each(lambda v: time_text(v, fsp)), int),
        "datetime": _encoder(Form.DATETIME, _datetimes_ms if fsp <= 3 else _datetimes_us, int),
        "timestamp": _encoder(Form.DATETIME, _timestamps, str),
    }
    if name not in simple:
        raise UnfitValue(f"values of type {name} cannot be applied")
    return simple[name]


def _encoder(
    form: Form, convert: Callable[[Sequence[Any], bool], Cells], *accepts: type
) -> Encoder:
    return Encoder(form, frozenset(accepts), convert)


ZERO_DAY = -100_000_000
"""The day that ``connectors/java/ExactValues.java`` gives for a zero date that is NOT NULL; in
milliseconds and microseconds it is midnight of that day."""


def date_text(days: int) -> str:
    """Days since 1970-01-01 → ``YYYY-MM-DD``, for the years 0 to 9999.

    Source: H. Hinnant, "chrono-compatible low-level date algorithms" (civil_from_days);
    Python's ``date`` knows no year 0, MySQL does. ``ZERO_DAY`` is the zero date.
    """
    if days == ZERO_DAY:
        return "0000-00-00"
    if not _FIRST_DAY <= days <= _LAST_DAY:
        raise ValueError(f"day {days} is outside the years 0 to 9999")
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    year = year_of_era + era * 400 + (month <= 2)
    return f"{year:04d}-{month:02d}-{day:02d}"


_FIRST_DAY, _LAST_DAY = -719_528, 2_932_896


class _Dates(dict[int, str]):
    """Days since 1970-01-01 → text, of days that were asked for."""

    def __missing__(self, days: int) -> str:
        if len(self) >= 65_536:
            self.clear()
        text = self[days] = date_text(days)
        return text


_DATES = _Dates()
# Small enough to stay in the processor's cache.
_MINUTES = [f"{m // 60:02d}:{m % 60:02d}:" for m in range(1_440)]
_SECONDS = [f"{s:02d}" for s in range(60)]
_MILLIS = ["", *(f".{n:03d}" for n in range(1, 1_000))]
_DAY_MS, _DAY_US = 86_400_000, 86_400_000_000


def _datetimes_ms(values: Sequence[Any], has_nulls: bool) -> Cells:
    """DATETIME(0) to (3), milliseconds since 1970 → ``YYYY-MM-DD hh:mm:ss[.fff]``."""
    if has_nulls:
        return _around_nulls(_datetimes_ms, values)
    dates, minutes, seconds, millis = _DATES, _MINUTES, _SECONDS, _MILLIS
    return [
        f"{dates[v // _DAY_MS]} {minutes[(in_day := v % _DAY_MS) // 60_000]}"
        f"{seconds[(in_minute := in_day % 60_000) // 1_000]}{millis[in_minute % 1_000]}"
        for v in values
    ]


def _datetimes_us(values: Sequence[Any], has_nulls: bool) -> Cells:
    """DATETIME(4) to (6), microseconds since 1970 → ``YYYY-MM-DD hh:mm:ss[.ffffff]``."""
    if has_nulls:
        return _around_nulls(_datetimes_us, values)
    dates, minutes, seconds = _DATES, _MINUTES, _SECONDS
    return [
        f"{dates[v // _DAY_US]} {minutes[(in_day := v % _DAY_US) // 60_000_000]}"
        f"{seconds[(in_minute := in_day % 60_000_000) // 1_000_000]}"
        + (f".{micros:06d}" if (micros := in_minute % 1_000_000) else "")
        for v in values
    ]


def time_text(value: int, fsp: int) -> str:
    """A TIME(fsp), microseconds → ``[-]hhh:mm:ss[.ffffff]``; may be negative or beyond 24 h."""
    sign = "-" if value < 0 else ""
    seconds, micros = divmod(abs(value), 1_000_000)
    text = f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{micros:06d}" if fsp else text


def _timestamps(values: Sequence[Any], has_nulls: bool) -> Cells:
    """ISO 8601 in UTC → MySQL's form, to be written in a session with time zone ``+00:00``.

    1970-01-01T00:00:00Z is below the range of TIMESTAMP: Debezium writes it for the zero
    timestamp of a NOT NULL column.
    """
    if has_nulls:
        return _around_nulls(_timestamps, values)
    if "+" in "".join(values):
        values = [v.replace("+00:00", "Z") for v in values]
    joined = _joined(values, _TIMESTAMP, "is not an ISO timestamp in UTC")
    cells: Cells = [*joined.replace("T", " ").replace("Z", "").split(",")]
    if "1970-01-01T00:00:00" in joined:
        zero = "0000-00-00 00:00:00"
        return [zero if c == "1970-01-01 00:00:00" else c for c in cells]
    return cells


_TIMESTAMP = re.compile(r"0000-00-00T00:00:00(?:\.0{1,6})?Z")


def _singles(values: Sequence[Any], has_nulls: bool) -> Cells:
    """The exact value of the nearest single-precision number.

    The shortest text that names the greatest one, 3.4028235e38, is beyond it: MySQL refuses it.
    """
    if has_nulls:
        return _around_nulls(_singles, values)
    single = Struct(f"<{len(values)}f")
    return _numbers(single.unpack(single.pack(*values)), has_nulls=False)


def _year_text(value: int) -> str:
    """Four digits, because MySQL reads the text '0' as 2000 (and the number 0000 as 0000).

    1900 is no YEAR: Debezium writes it for 0000 (measured, from the binlog).
    """
    if not 0 <= value <= 9_999:
        raise ValueError("not a year")
    return "0000" if value == 1900 else f"{value:04d}"


def _base64(text: str) -> bytes:
    return a2b_base64(text, strict_mode=True) if text else b""


def _bits(value: Any, read: Callable[[Any], bytes]) -> str:
    """BIT(1) is a boolean, longer ones are little-endian bytes."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(int.from_bytes(read(value), "little"))


def _bytes_hex(data: bytes, width: int) -> str:
    """Hexadecimal; BINARY(n) gets back the zero bytes that the binlog leaves out."""
    return data.ljust(width, b"\0").hex() if width else data.hex()


def _geometry_hex(value: dict[str, Any], read: Callable[[Any], bytes]) -> str:
    """Debezium's ``{wkb, srid}`` → MySQL's internal form: SRID, little-endian, then the WKB.

    ST_GeomFromWKB would swap the axes of geographic systems: Debezium's bytes are the internal
    ones.

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
    """Elements as text; the error value of index 0, which Debezium writes as '', as ``0``.

    Source: measured: in strict mode MySQL takes the text '0' for index 0, and refuses ''.
    """
    element = element_reader(elements)

    def convert(values: Sequence[Any], _: bool) -> Cells:
        if element is not None:
            values = [None if v is None else element(v) for v in values]
        if "" in values and "" not in elements:
            if "0" in elements:
                raise UnfitValue("the empty enum value (index 0) cannot be written beside '0'")
            return ["0" if c == "" else c for c in values]
        return list(values)

    return convert


def _decimals(values: Sequence[Any], has_nulls: bool) -> Cells:
    if has_nulls:
        return _around_nulls(_decimals, values)
    cells = list(map(str, values))
    # They are written without quotes (a quoted one would be compared as a double).
    _joined(cells, _DECIMAL, "is not a decimal number")
    return [*cells]


_DECIMAL = re.compile(r"-?0+(?:\.0+)?")


def _joined(values: Sequence[str], shape: re.Pattern[str], complaint: str) -> str:
    """The values joined by commas, all of the same shape when every digit is a 0.

    The values of a column have few shapes: looking at those is quicker than at every value.

    Raises:
        UnfitValue: One has another shape.
    """
    joined = ",".join(values)
    shapes = joined.translate(_DIGITS_TO_0).split(",")
    if len(shapes) != len(values) or not all(map(shape.fullmatch, set(shapes))):
        bad = next(v for v in values if not shape.fullmatch(v.translate(_DIGITS_TO_0)))
        raise UnfitValue(f"{bad[:60]!r} {complaint}")
    return joined


_DIGITS_TO_0 = str.maketrans("123456789", "000000000")


def _numbers(values: Sequence[Any], has_nulls: bool) -> Cells:
    """The shortest text of each number, as JSON writes it: a column in one call into C."""
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


def _around_nulls(convert: Callable[[Sequence[Any], bool], Cells], values: Sequence[Any]) -> Cells:
    """Convert what is not None."""
    present = [v for v in values if v is not None]
    cells = iter(convert(present, False) if present else ())
    return [None if v is None else next(cells) for v in values]


def _unfit(values: Sequence[Any], accepts: frozenset[type]) -> str:
    bad = next(v for v in values if v is not None and type(v) not in accepts)
    expected = " or ".join(sorted(k.__name__ for k in accepts))
    return f"{str(bad)[:60]!r} is a {type(bad).__name__}, expected {expected}"
