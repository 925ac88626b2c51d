"""What the compiled code has to know of a segment's records."""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import c_uint32
from dataclasses import dataclass
from enum import IntEnum

from msgspec.json import encode

from shardmerge.connectors.debezium.envelope import EPOCH_FIELD
from shardmerge.spark_sink.rows.folding.segment_plan import SegmentPlan, WrittenColumn
from shardmerge.spark_sink.rows.values.charset_repairs import has_spellings, may_lack_characters
from shardmerge.spark_sink.rows.values.forms import Form

from .library import CColumn, CLayout, text


class Kind(IntEnum):
    """How a column's values are read and written: ``enum kind`` of values.h."""

    UNWRITTEN = 0
    INTEGER = 1
    YEAR = 2
    DECIMAL = 3
    DOUBLE = 4
    SINGLE = 5
    DATE = 6
    TIME = 7
    MILLISECONDS = 8
    MICROSECONDS = 9
    TIMESTAMP = 10
    TEXT = 11
    CHARSET_TEXT = 12
    ELEMENT = 13
    EXACT_JSON = 14
    BYTES = 15
    BITS = 16


class Key(IntEnum):
    """How the values of a key's column are given back: ``enum key`` of values.h."""

    NONE = 0
    INTEGER = 1
    UNSIGNED = 2
    TEXT = 3

    @property
    def is_integer(self) -> bool:
        """Whether the values are given back as integers."""
        return self in (Key.INTEGER, Key.UNSIGNED)


@dataclass(frozen=True)
class Layout:
    """The structure for the compiled code, and what Python needs beside it.

    Attributes:
        structure: It keeps what it points to.
        columns: How many columns a row image has.
        widths: The sum of the columns' widths, in bytes.
        ending: The bytes that each line ends with.
        key: For each column of the primary key, in its order: how its values are given back, and
            its index among the key's integers or its texts.
    """

    structure: CLayout
    columns: int
    widths: int
    ending: bytes
    key: tuple[tuple[Key, int], ...]

    @property
    def integers(self) -> int:
        """How many columns of the key are integers."""
        return sum(kind.is_integer for kind, _ in self.key)

    @property
    def texts(self) -> int:
        """How many columns of the key are texts."""
        return len(self.key) - self.integers


def layout_of(plan: SegmentPlan, ending: bytes, *, is_mariadb: bool) -> Layout | None:
    """The layout of a segment's records in JSON; None if Python has to read them.

    Args:
        plan: Of the segment, which has a primary key.
        ending: What each line ends with: the values that all rows have in common.
        is_mariadb: Whether the target is MariaDB, which stores JSON as unchanged text.
    """
    kinds: dict[int, Kind] = {}
    for written in plan.columns:
        kind = kind_of(written, is_mariadb=is_mariadb)
        if kind is None:
            return None
        kinds[written.place] = kind
    types = {written.place: written for written in plan.columns}
    keys = {name: _key_kind(types.get(plan.names.index(name)), kinds) for name in plan.key}
    if not keys or Key.NONE in keys.values():
        return None
    columns = []
    for place, name in enumerate(plan.names):
        kind, own = kinds.get(place, Kind.UNWRITTEN), types.get(place)
        columns.append(
            CColumn(
                text((b"," if place else b"{") + encode(name) + b":"),
                kind,
                keys.get(name, Key.NONE),
                own is not None and kind is Kind.TIMESTAMP and not own.nullable,
                _width(own) if kind is Kind.BYTES and own is not None else 0,
            )
        )
    shard = plan.shard
    structure = CLayout(
        (CColumn * len(columns))(*columns),
        (c_uint32 * len(plan.columns))(*(written.place for written in plan.columns)),
        len(columns),
        len(plan.columns),
        text(ending),
        *(text(encode(name)) for name in (shard.source, shard.database, shard.table)),
        text(encode(EPOCH_FIELD) + b":"),
        text(encode(str(plan.epoch)) if plan.epoch else b""),
    )
    return Layout(
        structure,
        len(columns),
        sum(column.width for column in columns),
        ending,
        _key_places(plan, keys),
    )


def kind_of(column: WrittenColumn, *, is_mariadb: bool) -> Kind | None:
    """How the compiled code reads a column's values; None if it cannot.

    It must read and write them as the column's reader and ``lines.encoders`` do together.
    """
    form, own = column.reader.form, column.type
    if column.reader.check is not None:
        return None
    if form is Form.FLOAT:
        return Kind.SINGLE if own.name == "float" else Kind.DOUBLE
    if form is Form.JSON:
        return Kind.TEXT if is_mariadb else Kind.EXACT_JSON
    if form is Form.BYTES:
        return Kind.BYTES if own.is_binary else None
    if form in (Form.TEXT, Form.ENUM):
        if has_spellings(own):
            return None
        if not own.is_string:
            return Kind.ELEMENT if form is Form.ENUM else Kind.TEXT
        return Kind.CHARSET_TEXT if may_lack_characters(own.charset) else Kind.TEXT
    return _KINDS[form]


_KINDS = {
    Form.INTEGER: Kind.INTEGER, Form.YEAR: Kind.YEAR, Form.DECIMAL: Kind.DECIMAL,
    Form.DATE: Kind.DATE, Form.TIME: Kind.TIME, Form.DATETIME_MS: Kind.MILLISECONDS,
    Form.DATETIME_US: Kind.MICROSECONDS, Form.TIMESTAMP: Kind.TIMESTAMP, Form.BITS: Kind.BITS,
}  # fmt: skip
_INTEGERS = (
    Kind.INTEGER, Kind.YEAR, Kind.DATE, Kind.TIME, Kind.MILLISECONDS, Kind.MICROSECONDS,
)  # fmt: skip


def _key_kind(column: WrittenColumn | None, kinds: Mapping[int, Kind]) -> Key:
    """How the values of a key's column are given back; NONE if they cannot be."""
    if column is None:
        return Key.NONE
    kind = kinds[column.place]
    if kind in _INTEGERS:
        return Key.UNSIGNED if column.type.unsigned else Key.INTEGER
    # Python's numbers are no texts, and a fraction cannot be given back as an integer.
    return Key.NONE if kind in (Kind.DOUBLE, Kind.SINGLE) else Key.TEXT


def _key_places(plan: SegmentPlan, keys: Mapping[str, Key]) -> tuple[tuple[Key, int], ...]:
    """The compiled code gives the parts of a key in the order of the image's columns."""
    of_kind = {
        is_integer: [n for n in plan.names if n in keys and keys[n].is_integer is is_integer]
        for is_integer in (False, True)
    }
    return tuple((keys[n], of_kind[keys[n].is_integer].index(n)) for n in plan.key)


def _width(column: WrittenColumn) -> int:
    """Of BINARY(n), whose zero bytes at the end the binlog leaves out."""
    return (column.type.length or 1) if column.type.name == "binary" else 0
