"""Encodes neutral values for the MySQL family: lines for LOAD DATA, and SQL literals. Pure.

``cells_of`` gives the text by which a server of the family reads a value exactly. Lines and
literals are made of these texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from msgspec.json import Encoder as JsonEncoder

from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.rows.values.column_values import Cells, ColumnValues, UnfitValue
from shardmerge.spark_sink.rows.values.forms import Form
from shardmerge.spark_sink.rows.values.readers import Check
from shardmerge.spark_sink.rows.values.times import (
    DATES,
    datetime_texts_ms,
    datetime_texts_us,
    time_text,
    timestamp_texts,
)
from shardmerge.spark_sink.sources.packed_rows import NULL, ROW, VALUE, PackedRows

from .json_numbers import MAY_CHANGE, read_exactly

Convert: TypeAlias = Callable[[ColumnValues, bool], Sequence[str | None]]
"""Neutral values, and whether some are None → cells."""


def limits_of(column_type: ColumnType) -> Check | None:
    """A check of values of a shard's type, for values that no server of the family can store."""
    elements = column_type.elements
    if column_type.name != "enum" or "" in elements or "0" not in elements:
        return None

    def check(values: ColumnValues) -> None:
        if "" in values:
            raise UnfitValue(
                "the empty enum value (index 0) cannot be written beside '0'", code="SM-1509"
            )

    return check


def cells_of(form: Form, values: ColumnValues, nulls: bool) -> Sequence[str | None]:
    """The texts of neutral values. ``nulls``: whether some are None, which stay None."""
    return _CELLS[form](values, nulls)


def load_lines(
    forms: Sequence[Form], columns: Sequence[ColumnValues], nullable: Sequence[bool]
) -> list[bytes]:
    """Rows, at least one, as MySQL's LOAD DATA reads them; see ``LineMaker.of_values``."""
    if Form.JSON in forms:
        columns = [
            _exact_json(values) if form is Form.JSON else values
            for form, values in zip(forms, columns, strict=True)
        ]
    return load_lines_as_they_are(forms, columns, nullable)


def load_lines_as_they_are(
    forms: Sequence[Form], columns: Sequence[ColumnValues], nullable: Sequence[bool]
) -> list[bytes]:
    """The same for MariaDB, which stores JSON as unchanged text."""
    fields: list[Sequence[str]] = []
    for form, values, nulls in zip(forms, columns, nullable, strict=True):
        cells = cells_of(form, values, nulls)
        if form in _TEXTS:
            # Texts that need escaping are rare. Four searches in all texts together are quicker
            # than one search in each.
            text = "".join(filter(None, cells))
            if "\\" in text or "\t" in text or "\n" in text or "\0" in text:
                fields.append([_NULL if c is None else c.translate(_LOAD_ESCAPES) for c in cells])
                continue
        if nulls:
            fields.append([_NULL if c is None else c for c in cells])
        else:
            fields.append(cast("Sequence[str]", cells))
    # A newline within a text is written as an escape, so the lines can be encoded all at once.
    return "\n".join(map("\t".join, zip(*fields, strict=True))).encode().split(b"\n")


def can_be_packed(column: Column, form: Form) -> bool:
    """Whether a target reads a column's value from the text in which its source sends it.

    That is so for all texts that ``read_column_as_text`` asks for, with these exceptions: an ENUM
    with values that no target has; bytes that may be so long that a server does not give their
    digits; some dates, see ``has_other_dates``; and some numbers in JSON, see ``packed_lines``.
    """
    if form is Form.BYTES:
        return column.type.name in _SHORT_BYTES
    return limits_of(column.type) is None


def has_other_dates(packed: PackedRows, columns: Sequence[Column]) -> bool:
    """Whether rows may have dates that are not written as they were sent (``server_values``).

    Those are dates before the year 1, with a month or day 0, and zero dates in a column that may be
    NULL. A text that begins like such a date is taken for one.
    """
    temporal = [column for column in columns if column.type.name in _WITH_DATES]
    if not temporal:
        return False
    data, may_be_null = packed.data, any(column.nullable for column in temporal)
    if VALUE + b"0000-" in data and (may_be_null or _YEAR_0.search(data)):
        return True
    return b"-00" in data and _PART_0.search(data) is not None


def packed_lines(packed: PackedRows, head: str, *, json_columns: int = 0) -> bytearray:
    """Rows, at least one, as the data of LOAD DATA.

    Args:
        packed: Rows whose values a target reads as they are.
        head: The fields that each line begins with, each with the tab behind it.
        json_columns: How many columns at the end of a row are JSON for a server of MySQL.
    """
    data, row = packed.data, ROW
    if packed.has_pads:
        data, row = data.translate(None, ROW[:1]), ROW[-1:]
    # From here on every value, NULL or not, has the same mark before it.
    data = data.replace(NULL, VALUE + NULL)
    if json_columns:
        data = _with_exact_json(data, row, json_columns)
    for byte, escaped in _PACKED_ESCAPES:
        if byte in data:
            data = data.replace(byte, escaped)
    data = data.replace(NULL, _NULL.encode())
    lines = data.replace(row + VALUE, b"\n" + head.encode()).replace(VALUE, b"\t")
    del lines[:1]
    lines += b"\n"
    return lines


def _with_exact_json(data: bytearray, mark: bytes, columns: int) -> bytearray:
    rows = []
    for row in data.split(mark)[1:]:
        rest, *texts = row.rsplit(VALUE, columns)
        rows.append(VALUE.join((rest, *map(_exact_json_bytes, texts))))
    return bytearray(mark + mark.join(rows))


def _exact_json_bytes(text: bytearray) -> bytearray:
    return bytearray(read_exactly(text.decode()).encode()) if MAY_CHANGE.search(text) else text


def literals(form: Form, values: ColumnValues, *, is_mariadb: bool = False) -> Sequence[str]:
    """Neutral values → SQL literals."""
    if form is Form.JSON and not is_mariadb:
        values = _exact_json(values)
    cells = cells_of(form, values, None in values)
    if (kind := _TEMPORAL.get(form)) is not None:
        return ["NULL" if c is None else f"{kind} '{c}'" for c in cells]
    if form in _TEXTS:
        return ["NULL" if c is None else f"'{c.translate(_SQL_ESCAPES)}'" for c in cells]
    if form is Form.BYTES:
        return ["NULL" if c is None else f"X'{c}'" for c in cells]
    return ["NULL" if c is None else c for c in cells]


def key_literals(form: Form, values: ColumnValues) -> Sequence[str]:
    """Neutral values → SQL literals that equal the stored values in each form of IN.

    Source: measured on MySQL 5.7.22, 8.0.15 and 9.7.1, MariaDB 10.11. The first two compare a TIME
    column with two or more ``time '…'`` as texts, and the two texts differ in their number of
    digits. All three versions of MySQL compare it with a text in a row constructor as texts. Values
    of DATE, DATETIME and TIMESTAMP are not compared as texts.

    ``literals`` has no CAST: an INSERT of rows with two TIME columns out of five takes 1.3 times
    (8.0.15) to 1.7 times (9.7.4) as long with it (measured, 2,000 rows in a statement).
    """
    if form is not Form.TIME:
        return literals(form, values)
    cells = cells_of(form, values, None in values)
    return ["NULL" if c is None else f"CAST('{c}' AS TIME(6))" for c in cells]


def _exact_json(values: ColumnValues) -> ColumnValues:
    return [None if v is None else read_exactly(v) for v in values]


def _as_they_are(values: ColumnValues, _: bool) -> Sequence[str | None]:
    return values


def _each(convert: Callable[[Any], str]) -> Convert:
    def convert_all(values: ColumnValues, nulls: bool) -> Sequence[str | None]:
        if nulls:
            return [None if v is None else convert(v) for v in values]
        return [*map(convert, values)]

    return convert_all


def _numbers(values: ColumnValues, nulls: bool) -> Cells:
    """The shortest text of each number, as JSON writes it; one call into C for a column."""
    cells: Cells = [*_encode_json(values)[1:-1].decode().split(",")]
    return [None if c == "null" else c for c in cells] if nulls else cells


_encode_json = JsonEncoder().encode


def _elements(values: ColumnValues, _: bool) -> Sequence[str | None]:
    """Elements of an ENUM; '0' for the error value.

    Source: measured: in strict mode MySQL takes the text '0' for index 0, and refuses ''.
    """
    return ["0" if v == "" else v for v in values] if "" in values else values


_YEARS = [f"{year:04d}" for year in range(10_000)]
_CELLS: dict[Form, Convert] = {
    Form.TEXT: _as_they_are,
    Form.ENUM: _elements,
    Form.JSON: _as_they_are,
    Form.INTEGER: _numbers,
    # MySQL reads the text '0' as the year 2000, and '0000' as 0000.
    Form.YEAR: _each(_YEARS.__getitem__),
    Form.DECIMAL: _as_they_are,
    Form.FLOAT: _numbers,
    Form.DATE: _each(DATES.__getitem__),
    Form.TIME: _each(time_text),
    Form.DATETIME_MS: datetime_texts_ms,
    Form.DATETIME_US: datetime_texts_us,
    Form.TIMESTAMP: timestamp_texts,
    Form.BYTES: _each(bytes.hex),
    Form.BITS: _numbers,
}
_TEXTS = (Form.TEXT, Form.ENUM, Form.JSON)
_TEMPORAL = {
    Form.DATE: "date", Form.TIME: "time", Form.TIMESTAMP: "timestamp",
    Form.DATETIME_MS: "timestamp", Form.DATETIME_US: "timestamp",
}  # fmt: skip
"""Written as literals of their types; else they would be compared as text."""
_NULL = r"\N"
_LOAD_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\0": "\\0"})
_PACKED_ESCAPES = [(chr(c).encode(), text.encode()) for c, text in _LOAD_ESCAPES.items()]
"""As ``_LOAD_ESCAPES``, which begin with the backslash."""
_SHORT_BYTES = ("binary", "varbinary", "tinyblob", "blob")
"""HEX() is NULL if its text would be longer than max_allowed_packet. The values of these types are
short; a smaller packet makes a warning, after which the values are read in another way."""
_WITH_DATES = ("date", "datetime", "timestamp")
_YEAR_0 = re.compile(rb"\xff0000-(?!00-00)")
_PART_0 = re.compile(rb"\xff(?!0000)\d{4}-(?:00|\d\d-00)")
_SQL_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\0": "\\0"})
