"""Makes neutral values of what Debezium writes in JSON or Avro, by the shard's type. Pure.

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
from collections.abc import Callable
from dataclasses import dataclass, replace
from struct import Struct
from types import NoneType
from typing import Any, TypeAlias

from shardmerge.connectors.debezium.value_limits import UNREADABLE_CHARSETS
from shardmerge.schemas.model.types import SPATIAL_NAMES, ColumnType

from .charset_repairs import NO_CHARACTER, element_reader, may_lack_characters, repair_table
from .column_values import ColumnValues, UnfitValue, around_nulls, joined_alike
from .forms import Form, form_of
from .times import ZERO_TIMESTAMP, checked_days, checked_ms, checked_us, timestamps

Convert: TypeAlias = Callable[[ColumnValues, bool], ColumnValues]
"""Debezium's values in row order, and whether some are None → neutral values."""
Check: TypeAlias = Callable[[ColumnValues], None]
"""Raises ``UnfitValue`` if there is a value among neutral ones that the target cannot hold."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Makes neutral values of the values of one column.

    Attributes:
        form: Of the neutral values.
        accepts: Python types of Debezium's values, besides None.
        convert: May raise any of ``_MISFITS``.
        check: Of the kind of target; None when it holds every value of the type.
    """

    form: Form
    accepts: frozenset[type]
    convert: Convert
    check: Check | None = None

    def read(self, values: ColumnValues) -> ColumnValues:
        """Neutral values, in row order; raises ``UnfitValue`` when one does not fit."""
        return self.read_column(values)[0]

    def read_column(self, values: ColumnValues) -> tuple[ColumnValues, bool]:
        """As ``read``, with whether there are NULLs among the values."""
        if not values:
            return [], False
        kinds = set(map(type, values))
        has_nulls = NoneType in kinds
        kinds.discard(NoneType)
        if not kinds <= self.accepts:
            raise UnfitValue(_unfit(values, self.accepts), code="SM-1509")
        try:
            if kinds & _WHOLE.get(self.form, _NONE):
                values = _of_one_type(self.form, values)
            found = self.convert(values, has_nulls)
        except _MISFITS as error:
            raise UnfitValue(f"a value does not fit its type: {error}", code="SM-1509") from None
        if self.check is not None:
            self.check(found)
        return found, has_nulls


_MISFITS = (ValueError, KeyError, TypeError, OverflowError, Base64Error)


def reader(column_type: ColumnType, *, base64: bool = True, check: Check | None = None) -> Reader:
    """The reader for values of a shard column of that type.

    Args:
        column_type: The column's type on the shard.
        base64: Whether bytes come as base64 text, as in JSON, or as bytes.
        check: See ``Reader``.

    Raises:
        UnfitValue: The type is not known here.
    """
    name, form = column_type.name, form_of(column_type)
    convert: Convert
    accepts: tuple[type, ...]
    if form is None:
        raise UnfitValue(f"values of type {name} cannot be applied", code="SM-1509")
    binary, read = (str, _base64) if base64 else (bytes, bytes)
    if form in _PLAIN:
        convert, accepts = _PLAIN[form]
    elif form in (Form.TEXT, Form.ENUM):
        convert, accepts = _texts_of(column_type), (str,)
    elif name in SPATIAL_NAMES:
        convert, accepts = _each(lambda v: _geometry(v, read)), (dict,)
    elif form is Form.BYTES:
        convert, accepts = _bytes_of(column_type, base64=base64), (binary,)
    elif form is Form.BITS:
        convert, accepts = _each(lambda v: _bits(v, read)), (bool, binary)
    else:
        assert form is Form.FLOAT
        convert, accepts = _singles if name == "float" else _as_they_are, (float, int)
    return Reader(form, frozenset(accepts), convert, check)


def not_null_timestamps(how: Reader) -> Reader:
    """The reader for TIMESTAMP values of a column that is NOT NULL, from one for the type.

    A NULL there is the zero timestamp. Debezium takes the column for nullable where a statement
    leaves NOT NULL out, and the server (MySQL 5.7, MariaDB before 10.10) adds it by itself. Then it
    writes NULL for zero (``explicit_defaults_for_timestamp``).
    """
    return replace(how, convert=_with_zero_for_null)


def _with_zero_for_null(values: ColumnValues, nulls: bool) -> ColumnValues:
    found = timestamps(values, nulls)
    return [ZERO_TIMESTAMP if v is None else v for v in found] if nulls else found


def _of_one_type(form: Form, values: ColumnValues) -> ColumnValues:
    """Numbers of several types as numbers of the form's type."""
    if form is Form.INTEGER:
        # tinyint(1), which clients read as a boolean, comes as a boolean in JSON, too.
        return [None if v is None else int(v) for v in values]
    if form is Form.FLOAT:
        # A JSON number may lack the point.
        return [None if v is None else float(v) for v in values]
    return values


def _as_they_are(values: ColumnValues, _: bool) -> ColumnValues:
    return values


def _singles(values: ColumnValues, nulls: bool) -> ColumnValues:
    """The exact value of the nearest single-precision number.

    The shortest text of the greatest such number, 3.4028235e38, is a little above its exact value,
    and MySQL refuses it.
    """
    if nulls:
        return around_nulls(_exact_singles, values)
    return _exact_singles(values)


def _exact_singles(values: ColumnValues) -> ColumnValues:
    single = Struct(f"<{len(values)}f")
    return single.unpack(single.pack(*values))


def _year(value: int) -> int:
    """Debezium writes 1900, which is no valid YEAR, for 0000 (measured, from the binlog)."""
    if not 0 <= value <= 9_999:
        raise ValueError("not a year")
    return 0 if value == 1900 else value


def _base64(text: str) -> bytes:
    return a2b_base64(text, strict_mode=True) if text else b""


def _bits(value: Any, read: Callable[[Any], bytes]) -> int:
    """Debezium writes BIT(1) as a boolean, and longer bit fields as little-endian bytes."""
    if isinstance(value, bool):
        return int(value)
    return int.from_bytes(read(value), "little")


def _bytes_of(column_type: ColumnType, *, base64: bool) -> Convert:
    """Bytes; BINARY(n) gets back the zero bytes that the binlog leaves out."""
    read = _base64 if base64 else bytes
    if column_type.name == "binary":
        width = column_type.length or 1
        return _each(lambda v: read(v).ljust(width, b"\0"))
    return _each(_base64) if base64 else _as_they_are


def _geometry(value: dict[str, Any], read: Callable[[Any], bytes]) -> bytes:
    """Debezium's ``{wkb, srid}`` → MySQL's internal form: SRID, little-endian, then the WKB.

    Debezium's WKB has the axes in the order of the internal form. ST_GeomFromWKB would swap them in
    geographic systems, so it is not used.

    Source: MySQL Reference Manual, "Internal Geometry Storage Format".
    """
    srid = int(value.get("srid") or 0)
    return srid.to_bytes(4, "little") + read(value["wkb"])


def _texts_of(column_type: ColumnType) -> Convert:
    if column_type.is_string:
        return _characters(column_type.charset)
    element = element_reader(column_type.elements)
    if element is None:
        return _as_they_are
    if column_type.name == "enum":
        return _each(element)
    return _each(lambda v: ",".join(map(element, v.split(","))))


def _characters(charset: str) -> Convert:
    """Texts of a charset; see ``charset_repairs``."""
    if charset in UNREADABLE_CHARSETS:
        raise UnfitValue(
            f"Debezium reads text of character set {charset} by another one, wrongly",
            hint="convert the column to utf8mb4 on the shard",
            code="SM-1522",
        )
    if not may_lack_characters(charset):
        return _as_they_are
    table = repair_table(charset)

    def convert(values: ColumnValues, nulls: bool) -> ColumnValues:
        text = "".join(filter(None, values))
        if text.isascii() and table is None:
            return values
        if NO_CHARACTER in text:
            raise UnfitValue(
                f"Debezium found no character for a byte of this text in {charset}",
                hint="take the shard out with command leave, then convert the column to utf8mb4 on "
                "the shard: it counts again from then on; let command reread bring its rows",
                code="SM-1522",
            )
        if table is None:
            return values
        return _each(lambda v: v.translate(table))(values, nulls)

    return convert


def _decimals(values: ColumnValues, nulls: bool) -> ColumnValues:
    if nulls:
        return around_nulls(_digits, values)
    return _digits(values)


def _digits(values: ColumnValues) -> ColumnValues:
    texts = [*map(str, values)]
    # A target may write decimals without quotes: only digits may get there.
    joined_alike(texts, _DECIMAL, "is not a decimal number")
    return texts


_DECIMAL = re.compile(r"-?0+(?:\.0+)?")


def _each(convert: Callable[[Any], Any]) -> Convert:
    def convert_all(values: ColumnValues, nulls: bool) -> ColumnValues:
        if nulls:
            return [None if v is None else convert(v) for v in values]
        return [*map(convert, values)]

    return convert_all


_PLAIN: dict[Form, tuple[Convert, tuple[type, ...]]] = {
    Form.INTEGER: (_as_they_are, (int, bool)),
    Form.JSON: (_as_they_are, (str,)),
    Form.DECIMAL: (_decimals, (str, int)),
    Form.YEAR: (_each(_year), (int,)),
    Form.DATE: (checked_days, (int,)),
    Form.TIME: (_as_they_are, (int,)),
    Form.DATETIME_MS: (checked_ms, (int,)),
    Form.DATETIME_US: (checked_us, (int,)),
    Form.TIMESTAMP: (timestamps, (str,)),
}
"""Form with one conversion for all of its types → the conversion, and the Python types of
Debezium's values."""


_NONE: frozenset[type] = frozenset()
_WHOLE = {Form.INTEGER: frozenset({bool}), Form.FLOAT: frozenset({int})}
"""Types of numbers that are converted to the form's type."""


def _unfit(values: ColumnValues, accepts: frozenset[type]) -> str:
    bad = next(v for v in values if v is not None and type(v) not in accepts)
    expected = " or ".join(sorted(k.__name__ for k in accepts))
    return f"{str(bad)[:60]!r} is a {type(bad).__name__}, expected {expected}"
