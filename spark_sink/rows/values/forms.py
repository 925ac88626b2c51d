"""The neutral form of each MySQL type's values: one table for readers and for targets. Pure.

Inside the sink a value has no target's spelling. ``readers`` makes neutral values of what Debezium
writes; each kind of target encodes them for itself (``targets.mysql.lines.encoders``,
``targets.iceberg.texts.encoders``).

==============================  ============  ====================================================
MySQL type                      form          value
==============================  ============  ====================================================
tinyint … bigint                INTEGER       int
year                            YEAR          int, 0 to 9999; 0 is the year 0000
decimal                         DECIMAL       str: its digits, with a point and a sign
float, double                   FLOAT         float; of a FLOAT column the exact single
bit                             BITS          int, unsigned
date                            DATE          int: days since 1970-01-01 (``times``)
time                            TIME          int: microseconds, may be negative
datetime, datetime(1) to (3)    DATETIME_MS   int: milliseconds since 1970, without a time zone
datetime(4) to (6)              DATETIME_US   int: microseconds since 1970, without a time zone
timestamp                       TIMESTAMP     str: ISO 8601 in UTC with a Z (``times``)
char, varchar, … text, set      TEXT          str; a SET's members are joined by commas
enum with an element ''         TEXT          str
any other enum                  ENUM          str; '' is the error value (index 0)
json                            JSON          str: JSON text
uuid                            TEXT          str: 36 characters, small letters
binary … blob                   BYTES         bytes
geometry, point, …              BYTES         bytes: SRID, little-endian, then the WKB
==============================  ============  ====================================================

Some forms were chosen because they are fast with targets of the MySQL family. Measured by
``benchmarks/row_values.py``, CPU time of a value from Debezium's form to the text for LOAD DATA:

* DECIMAL and TIMESTAMP are texts: 167 and 228 ns. With ``Decimal`` objects and microseconds it
  would be 285 and 2,416 ns. Every target reads the text that Debezium writes, or nearly that text.
* DATETIME has the two units that Debezium has. Milliseconds take 366 ns; as microseconds the same
  values would take 909 ns, because Python divides by large numbers slowly.
"""

from __future__ import annotations

from enum import Enum

from shardmerge.schemas.model.types import SPATIAL_NAMES, ColumnType


class Form(Enum):
    """What a column's neutral values are; see the table."""

    TEXT = "text"
    ENUM = "enum"
    JSON = "json"
    INTEGER = "integer"
    YEAR = "year"
    DECIMAL = "decimal"
    FLOAT = "float"
    DATE = "date"
    TIME = "time"
    DATETIME_MS = "datetime in milliseconds"
    DATETIME_US = "datetime in microseconds"
    TIMESTAMP = "timestamp"
    BYTES = "bytes"
    BITS = "bits"


def form_of(column_type: ColumnType) -> Form | None:
    """The form of a MySQL type's values; None for a type whose values cannot be applied."""
    if column_type.is_integer:
        return Form.INTEGER
    if column_type.is_string:
        return Form.TEXT
    if column_type.is_binary or column_type.name in SPATIAL_NAMES:
        return Form.BYTES
    if column_type.name == "enum":
        return Form.TEXT if "" in column_type.elements else Form.ENUM
    if column_type.name == "datetime":
        return Form.DATETIME_MS if column_type.fsp <= 3 else Form.DATETIME_US
    return _FORMS.get(column_type.name)


_FORMS = {
    "year": Form.YEAR, "decimal": Form.DECIMAL, "float": Form.FLOAT, "double": Form.FLOAT,
    "bit": Form.BITS, "date": Form.DATE, "time": Form.TIME,
    "timestamp": Form.TIMESTAMP, "set": Form.TEXT, "json": Form.JSON,
    "uuid": Form.TEXT,
}  # fmt: skip
