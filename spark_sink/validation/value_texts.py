"""The SQL that gives one text for one value, on a shard and on the target alike. Pure.

A value can have different types on the two sides: an INT of a shard can be a BIGINT in the target,
a latin1 text can be one in utf8mb4. Both sides write it as the target's type is written. So equal
values give equal bytes on every server of the family:

* whole numbers, YEAR and BIT by their digits, so that ZEROFILL and display widths do not count;
* decimals with the target's digits behind the point;
* FLOAT and DOUBLE by the eight bytes of the double, since their digits differ between versions.
  Every server of MySQL and MariaDB gives these bytes as a coordinate of a point. TiDB has no
  points: there, and on shards that are compared with it, the digits of a DECIMAL(65,30) are used;
* dates and times with the target's digits behind the second, TIMESTAMP in UTC;
* texts, ENUM and SET in utf8mb4, byte by byte, whatever the collation;
* BINARY with the target's length; spatial values in the server's own form.

A shard that is compared with an Iceberg table writes its values as Spark can write them, too
(``lake_texts``): bytes as hexadecimal digits, and BINARY with the shard's own length. Spark cannot
write JSON as MySQL does, so JSON texts are compared by what they mean.

A shard's zero date is written as the sink writes it: NULL in a column that may be NULL, otherwise
0000-00-00 (``rows.values.server_values``).

Source: MySQL Reference Manual, "Cast Functions and Operators", "Bit Functions and Operators",
"Spatial Geometry Formats"; the texts of all types on real servers:
tests/integration/mysql/test_validation_types.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from shardmerge.schemas.model.tables import Column, Default, DefaultKind
from shardmerge.schemas.model.types import BLOB_NAMES, SPATIAL_NAMES, TEXT_NAMES, ColumnType
from shardmerge.spark_sink.rows.values.forms import form_of

UTF8 = frozenset(("utf8mb4", "utf8mb3", "ascii"))
"""Character sets whose bytes are those of utf8mb4."""
LONG_NAMES = frozenset((*TEXT_NAMES, *BLOB_NAMES, "json", *SPATIAL_NAMES)) - {
    "tinytext",
    "tinyblob",
}
_DIGITS = frozenset(("bit", "year"))
DOUBLE_NAMES = frozenset(("float", "double"))
DATE_NAMES = frozenset(("date", "datetime", "timestamp"))
_TEXTS = frozenset(("enum", "set"))


@dataclass(frozen=True, slots=True)
class ValueText:
    """How one value becomes bytes.

    Attributes:
        sql: Gives the text or the bytes; NULL for NULL.
        length: SQL of the value's length, if its end cannot be seen in the text of a row; otherwise
            "".
        is_long: Whether a row's text has a digest in place of the value, so that the row's text
            stays shorter than ``max_allowed_packet``.
        is_json: Whether different texts can mean the same value.
        value: SQL of the value itself, which is NULL when the text is.
    """

    sql: str
    length: str = ""
    is_long: bool = False
    is_json: bool = False
    value: str = ""

    @property
    def in_row(self) -> str:
        """SQL of what stands for the value in a row's text."""
        return f"SHA2({self.sql}, 256)" if self.is_long else self.sql


def value_text(
    value: str, kind: ColumnType, wanted: ColumnType, *, points: bool = True, lake: bool = False
) -> ValueText | None:
    """The text of a value.

    Args:
        value: SQL that gives it: a quoted column, or a literal of the type ``kind``.
        kind: Of the value.
        wanted: The target's type of the column.
        points: Whether all servers that are compared know points (TiDB does not).
        lake: Whether the target is an Iceberg table.

    Returns:
        None for a type whose values cannot be compared.
    """
    if form_of(kind) is None or form_of(wanted) is None:
        return None
    written = _written(value, kind, wanted, points)
    if lake:
        written = _for_lake(written, value, kind, wanted)
    return replace(written, value=value)


def _for_lake(text: ValueText, value: str, kind: ColumnType, wanted: ColumnType) -> ValueText:
    """As Spark writes it, too: see ``lake_texts``."""
    if wanted.is_binary:
        return ValueText(
            f"HEX({value})", is_long=wanted.name in LONG_NAMES or kind.name in LONG_NAMES
        )
    return ValueText(f"CAST({value} AS CHAR)") if wanted.name == "uuid" else text


def _written(value: str, kind: ColumnType, wanted: ColumnType, points: bool) -> ValueText:
    name = wanted.name
    if name in DOUBLE_NAMES:
        return ValueText(_double(value, points))
    if wanted.is_integer or name in _DIGITS:
        return ValueText(f"CAST({value} + 0 AS CHAR)")
    if name == "decimal":
        return ValueText(f"CAST(CAST({value} AS {_decimal(wanted)}) AS CHAR)")
    if name in DATE_NAMES or name == "time":
        return ValueText(_moment(value, kind, wanted))
    if wanted.is_string or name in _TEXTS:
        return _text(value, kind, wanted)
    if name == "json":
        return ValueText(f"CAST(CAST({value} AS CHAR) AS BINARY)", is_long=True, is_json=True)
    if name in SPATIAL_NAMES:
        return ValueText(f"HEX({value})", is_long=True)
    padded = name == "binary" and kind.length != wanted.length
    sql = f"RPAD({value}, {wanted.length}, X'00')" if padded else value
    length = "" if name == "binary" else f"LENGTH({value})"
    return ValueText(sql, length, is_long=name in LONG_NAMES or kind.name in LONG_NAMES)


def _double(value: str, points: bool) -> str:
    """``+ 0e0`` turns a FLOAT, which is written with six digits, into a double, and -0 into 0."""
    if points:
        return f"HEX(ST_AsBinary(POINT({value} + 0e0, 0)))"
    return f"CAST(CAST({value} + 0e0 AS DECIMAL(65,30)) AS CHAR)"


def _decimal(wanted: ColumnType) -> str:
    return f"DECIMAL({wanted.length or 10},{wanted.scale or 0})"


def _moment(value: str, kind: ColumnType, wanted: ColumnType) -> str:
    if kind.name != wanted.name or kind.fsp != wanted.fsp:
        precision = f"({wanted.fsp})" if wanted.fsp else ""
        name = "DATETIME" if wanted.name == "timestamp" else wanted.name.upper()
        value = f"CAST({value} AS {name}{precision})"
    return f"CAST({value} AS CHAR)"


def _text(value: str, kind: ColumnType, wanted: ColumnType) -> ValueText:
    is_text = kind.is_string or kind.name in _TEXTS
    if is_text and kind.charset not in UTF8:
        sql = f"CAST(CONVERT({value} USING utf8mb4) AS BINARY)"
    else:
        sql = f"CAST({value} AS BINARY)" if is_text else f"CAST({value} AS CHAR)"
    return ValueText(
        sql, f"CHAR_LENGTH({value})", is_long=wanted.name in LONG_NAMES or kind.name in LONG_NAMES
    )


def shard_value(column: Column, quoted: str, *, lake: bool = False) -> str:
    """SQL of a shard's value as the sink writes it: see the module on zero dates.

    A date whose month or day is zero, and one before the year 1, is a zero date. In an Iceberg
    table it is always NULL.
    """
    nullable = column.nullable or lake
    if column.type.name not in DATE_NAMES or column.type.name == "timestamp":
        if column.type.name == "timestamp" and nullable:
            return f"IF({quoted} = 0, NULL, {quoted})"
        return quoted
    zero = "NULL" if nullable else _zero(column.type)
    return (
        f"IF({quoted} < '0001-01-01' OR MONTH({quoted}) = 0 OR DAYOFMONTH({quoted}) = 0,"
        f" {zero}, {quoted})"
    )


def _zero(kind: ColumnType) -> str:
    if kind.name == "date":
        return "CAST('0000-00-00' AS DATE)"
    precision = f"({kind.fsp})" if kind.fsp else ""
    return f"CAST('0000-00-00 00:00:00' AS DATETIME{precision})"


def default_value(default: Default | None, kind: ColumnType) -> str | None:
    """SQL of the value that a row gets when it leaves the column out; None if it is not known.

    Args:
        default: The default of the target's column.
        kind: The type of that column.
    """
    if default is None or default.kind is DefaultKind.EXPRESSION or kind.name == "timestamp":
        return None
    if default.kind is DefaultKind.NULL:
        return "NULL"
    text = default.text
    if kind.is_string or kind.name in _TEXTS:
        return text_value(text)
    if kind.is_binary:
        return f"X'{text.removeprefix('0x')}'" if text.startswith("0x") else _hex(text)
    if kind.name == "bit":
        return str(int(text.removeprefix("b").strip("'"), 2))
    if kind.name in DATE_NAMES or kind.name == "time":
        precision = f"({kind.fsp})" if kind.fsp else ""
        return f"CAST({text_value(text)} AS {kind.name.upper()}{precision})"
    if kind.is_integer or kind.name in DOUBLE_NAMES or kind.name in ("decimal", "year"):
        return f"({text})"
    return None


def text_value(text: str) -> str:
    """SQL of a text, in ASCII, whatever the session's modes are."""
    return f"_utf8mb4 {_hex(text)}"


def _hex(text: str) -> str:
    return f"X'{text.encode().hex().upper()}'"
