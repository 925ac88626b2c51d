"""Values: from Debezium's JSON to text that the target takes, by the shard column's type. Pure.

Works on whole columns of a batch: checking the types of 100,000 values and converting them is
a few calls into C then. What each conversion expects is what Debezium emits with
``decimal.handling.mode=string``, ``bigint.unsigned.handling.mode=precise``,
``time.precision.mode=adaptive_time_microseconds`` and ``binary.handling.mode=base64``.

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
from functools import lru_cache
from struct import Struct
from typing import Any, TypeAlias

from shardmerge.schemas.errors import SourceError
from shardmerge.schemas.types import SPATIAL_NAMES, ColumnType

Cells: TypeAlias = list[str | None]
"""Converted values of one column, in row order; None is NULL."""


class Form(Enum):
    """How a cell's text has to be read."""

    TEXT = "text"
    """Characters; written as a quoted literal."""
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
        encode: Values in row order → cells. Raises ``UnfitValue`` when one does not fit.
    """

    form: Form
    encode: Callable[[Sequence[Any]], Cells]


def encoder(column_type: ColumnType) -> Encoder:
    """The encoder for values of a shard column of that type.

    Raises:
        UnfitValue: The type is not known here.
    """
    name = column_type.name
    if column_type.is_integer:
        return Encoder(Form.NUMBER, _integers)
    if column_type.is_string or name in ("set", "json"):
        return Encoder(Form.TEXT, _texts)
    if name == "enum":
        return Encoder(Form.TEXT, _enum(column_type.elements))
    if column_type.is_binary:
        width = (column_type.length or 1) if name == "binary" else 0
        return Encoder(Form.HEX, _converter({str}, lambda v: _bytes_hex(v, width)))
    if name in SPATIAL_NAMES:
        return Encoder(Form.HEX, _converter({dict}, _geometry_hex))
    fsp = column_type.fsp
    simple: dict[str, Encoder] = {
        "decimal": Encoder(Form.NUMBER, _decimals),
        "float": Encoder(Form.NUMBER, _converter({float, int}, _float_text)),
        "double": Encoder(Form.NUMBER, _converter({float, int}, repr)),
        "bit": Encoder(Form.BITS, _converter({bool, str}, _bits)),
        "year": Encoder(Form.NUMBER, _converter({int}, _year_text)),
        "date": Encoder(Form.DATE, _converter({int}, date_text)),
        "time": Encoder(Form.TIME, _converter({int}, lambda v: time_text(v, fsp))),
        "datetime": Encoder(Form.DATETIME, _converter({int}, lambda v: datetime_text(v, fsp))),
        "timestamp": Encoder(Form.DATETIME, _converter({str}, _timestamp_text)),
    }
    if name not in simple:
        raise UnfitValue(f"values of type {name} cannot be applied")
    return simple[name]


def date_text(days: int) -> str:
    """Days since 1970-01-01 → ``YYYY-MM-DD``, for the years 0 to 9999.

    Source: H. Hinnant, "chrono-compatible low-level date algorithms" (civil_from_days);
    Python's ``date`` knows no year 0, MySQL does.
    """
    if not _FIRST_DAY <= days <= _LAST_DAY:
        raise ValueError(f"day {days} is outside the years 0 to 9999")
    return _date_text(days)


@lru_cache(maxsize=65_536)
def _date_text(days: int) -> str:
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
_CLOCK = [f"{s // 3600:02d}:{s // 60 % 60:02d}:{s % 60:02d}" for s in range(86_400)]


def datetime_text(value: int, fsp: int) -> str:
    """A DATETIME(fsp) → ``YYYY-MM-DD hh:mm:ss[.ffffff]``.

    Args:
        value: Milliseconds since 1970 where fsp is at most 3, microseconds above.
        fsp: Digits of fractional seconds that the shard's column has.
    """
    per_second, digits = (1_000, 3) if fsp <= 3 else (1_000_000, 6)
    seconds, fraction = divmod(value, per_second)
    days, second = divmod(seconds, 86_400)
    text = f"{date_text(days)} {_CLOCK[second]}"
    return f"{text}.{fraction:0{digits}d}" if fraction else text


def time_text(value: int, fsp: int) -> str:
    """A TIME(fsp), microseconds → ``[-]hhh:mm:ss[.ffffff]``; may be negative or beyond 24 h."""
    sign = "-" if value < 0 else ""
    seconds, micros = divmod(abs(value), 1_000_000)
    text = f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{micros:06d}" if fsp else text


def _timestamp_text(value: str) -> str:
    """ISO 8601 in UTC → MySQL's form, to be written in a session with time zone ``+00:00``.

    1970-01-01T00:00:00Z is below the range of TIMESTAMP: Debezium writes it for the zero
    timestamp of a NOT NULL column.
    """
    match = _TIMESTAMP.fullmatch(value)
    if match is None:
        raise ValueError("not an ISO timestamp in UTC")
    text = f"{match[1]} {match[2]}"
    return "0000-00-00 00:00:00" if text == "1970-01-01 00:00:00" else text


_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d(?:\.\d{1,6})?)(?:Z|\+00:00)")


def _float_text(value: float) -> str:
    """The exact value of the nearest single-precision number.

    The shortest text that names the greatest one, 3.4028235e38, is beyond it: MySQL refuses it.
    """
    return repr(_SINGLE.unpack(_SINGLE.pack(value))[0])


_SINGLE = Struct("<f")


def _year_text(value: int) -> str:
    """Four digits, because MySQL reads the text '0' as 2000 (and the number 0000 as 0000).

    1900 is no YEAR: Debezium writes it for 0000 (measured, from the binlog).
    """
    if not 0 <= value <= 9_999:
        raise ValueError("not a year")
    return "0000" if value == 1900 else f"{value:04d}"


def _bits(value: bool | str) -> str:
    """BIT(1) is a boolean, longer ones are little-endian bytes in base64."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(int.from_bytes(a2b_base64(value, strict_mode=True), "little"))


def _bytes_hex(value: str, width: int) -> str:
    """Base64 → hexadecimal; BINARY(n) gets back the zero bytes that the binlog leaves out."""
    data = a2b_base64(value, strict_mode=True) if value else b""
    return data.ljust(width, b"\0").hex() if width else data.hex()


def _geometry_hex(value: dict[str, Any]) -> str:
    """Debezium's ``{wkb, srid}`` → MySQL's internal form: SRID, little-endian, then the WKB.

    ST_GeomFromWKB would swap the axes of geographic systems: Debezium's bytes are the internal
    ones.

    Source: MySQL Reference Manual, "Internal Geometry Storage Format".
    """
    srid = int(value.get("srid") or 0)
    return srid.to_bytes(4, "little").hex() + a2b_base64(value["wkb"], strict_mode=True).hex()


def _kinds(values: Sequence[Any]) -> set[type]:
    kinds = set(map(type, values))
    kinds.discard(type(None))
    return kinds


def _integers(values: Sequence[Any]) -> Cells:
    kinds = _kinds(values)
    if not kinds <= {int, bool}:
        raise UnfitValue(_unfit(values, {int, bool}))
    if bool in kinds:  # tinyint(1), which clients read as a boolean
        values = [int(v) if isinstance(v, bool) else v for v in values]
    return _mapped(values, str)


def _texts(values: Sequence[Any]) -> Cells:
    if not _kinds(values) <= {str}:
        raise UnfitValue(_unfit(values, {str}))
    return list(values)


def _enum(elements: tuple[str, ...]) -> Callable[[Sequence[Any]], Cells]:
    """Elements as text; the error value of index 0, which Debezium writes as '', as ``0``.

    Source: measured: in strict mode MySQL takes the text '0' for index 0, and refuses ''.
    """

    def encode(values: Sequence[Any]) -> Cells:
        cells = _texts(values)
        if "" in cells and "" not in elements:
            if "0" in elements:
                raise UnfitValue("the empty enum value (index 0) cannot be written beside '0'")
            cells = ["0" if c == "" else c for c in cells]
        return cells

    return encode


def _decimals(values: Sequence[Any]) -> Cells:
    if not _kinds(values) <= {str, int}:
        raise UnfitValue(_unfit(values, {str, int}))
    cells = _mapped(values, str)
    # They are written without quotes (a quoted one would be compared as a double).
    present = [c for c in cells if c is not None]
    joined = "".join([f"{c}," for c in present])
    if joined.count(",") != len(present) or not _DECIMALS.fullmatch(joined):
        bad = next(c for c in present if "," in c or not _DECIMALS.fullmatch(f"{c},"))
        raise UnfitValue(f"{bad[:60]!r} is not a decimal number")
    return cells


_DECIMALS = re.compile(r"(?:-?\d+(?:\.\d+)?,)*+", re.ASCII)


def _mapped(values: Sequence[Any], convert: Callable[[Any], str]) -> Cells:
    if None in values:
        return [None if v is None else convert(v) for v in values]
    return list(map(convert, values))


def _converter(kinds: set[type], convert: Callable[[Any], str]) -> Callable[[Sequence[Any]], Cells]:
    def encode(values: Sequence[Any]) -> Cells:
        if not _kinds(values) <= kinds:
            raise UnfitValue(_unfit(values, kinds))
        try:
            return _mapped(values, convert)
        except (ValueError, KeyError, TypeError, OverflowError, Base64Error) as error:
            raise UnfitValue(f"a value does not fit its type: {error}") from None

    return encode


def _unfit(values: Sequence[Any], kinds: set[type]) -> str:
    bad = next(v for v in values if v is not None and type(v) not in kinds)
    expected = " or ".join(sorted(k.__name__ for k in kinds))
    return f"{str(bad)[:60]!r} is a {type(bad).__name__}, expected {expected}"
