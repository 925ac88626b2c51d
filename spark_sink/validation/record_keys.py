"""Which rows of the target a record of a row topic concerns. Pure.

A key is written as the servers write it (``row_keys``). A record of an UPDATE names the row before
it, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.rows.decoding.row_envelope import READ, TRUNCATE, shard_of
from shardmerge.spark_sink.rows.decoding.row_format import RowFormat
from shardmerge.spark_sink.rows.values.forms import Form, form_of
from shardmerge.spark_sink.rows.values.readers import Reader
from shardmerge.spark_sink.rows.values.times import moment_text

from .compared_table import Side
from .doubts import Key
from .row_keys import RowKeyColumn

_MOMENTS = frozenset((Form.DATE, Form.DATETIME_MS, Form.DATETIME_US, Form.TIMESTAMP))
_NAMED = frozenset((Form.INTEGER, Form.YEAR, Form.DECIMAL, Form.TEXT, Form.BYTES)) | _MOMENTS
_BY_NUMBER = frozenset(("enum", "set"))
_TEXT_CONSTANT = re.compile(r"_utf8mb4 X'([0-9A-F]*)'")


class NamesNoKey(Exception):
    """A record changes rows that it does not name."""


def unnamed_reason(side: Side) -> str:
    """Why records of a shard do not say which rows they concern; "" if they do."""
    for column in side.key:
        if column.constant:
            continue
        form = form_of(column.kind)
        if form not in _NAMED or column.kind.name in _BY_NUMBER or column.kind.name == "uuid":
            return f"keys of type {column.kind.name} are not read from records"
    return ""


class RecordKeys:
    """Reads keys of the target from the records of one shard.

    Args:
        side: The shard; ``unnamed_reason`` is "".
        rows: The format of the records.
    """

    def __init__(self, side: Side, rows: RowFormat) -> None:
        self._side, self._rows = side, rows
        own = {column.name: column for column in side.columns}
        self._readers: dict[str, Reader] = {
            column.name: rows.reader(own[column.name].type)
            for column in side.key
            if not column.constant
        }

    def of(self, value: bytes) -> set[Key]:
        """The keys of the rows that a record concerns; none for a record of another shard.

        Raises:
            NamesNoKey: It is a TRUNCATE, or a row of a snapshot that is not an incremental one.
            UndecodableRow: It is no row record.
        """
        record = self._rows.decode(value)
        if shard_of(record.source) != self._side.shard:
            return set()
        if record.op == TRUNCATE:
            raise NamesNoKey(f"{self._side.shard} was truncated meanwhile")
        if record.op == READ and not record.is_incremental:
            raise NamesNoKey(f"a snapshot of {self._side.shard} was taken again meanwhile")
        images = (image for image in (record.image, record.before) if image is not None)
        return {self._key(image) for image in images}

    def _key(self, image: Mapping[str, Any]) -> Key:
        return tuple(self._text(column, image) for column in self._side.key)

    def _text(self, column: RowKeyColumn, image: Mapping[str, Any]) -> str:
        if column.constant:
            found = _TEXT_CONSTANT.fullmatch(column.constant)
            return column.constant if found is None else found[1]
        name = next((n for n in self._rows.image_names(column.name) if n in image), None)
        if name is None:
            raise NamesNoKey(f"a record of {self._side.shard} has no column {column.name}")
        reader = self._readers[column.name]
        (value,) = reader.read([image[name]])
        return key_text(reader.form, column.target_type, value)


def key_text(form: Form, wanted: ColumnType, value: Any) -> str:
    """The text of a key's value, as ``RowKeyColumn.selected`` gives it.

    Args:
        form: Of the neutral value.
        wanted: The target's type of the column.
        value: The neutral value.
    """
    if wanted.is_string:
        return str(value).encode().hex().upper()
    if form is Form.BYTES:
        padded = value.ljust(wanted.length or 0, b"\0") if wanted.name == "binary" else value
        return bytes(padded).hex().upper()
    if wanted.name == "decimal":
        return f"{Decimal(value):.{wanted.scale or 0}f}"
    if form in _MOMENTS:
        return _moment(moment_text(form, value) or "", wanted)
    return str(value)


def _moment(text: str, wanted: ColumnType) -> str:
    """A date or time with the digits behind the second that the target's type has."""
    if wanted.name == "date":
        return text
    if " " not in text:
        text += " 00:00:00"
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction.ljust(wanted.fsp, '0')[: wanted.fsp]}" if wanted.fsp else whole
