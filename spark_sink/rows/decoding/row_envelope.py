"""Debezium row records: bytes of a record's value → operation, image and position. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from msgspec import DecodeError, Struct
from msgspec.json import Decoder

from shardmerge.connectors.debezium.envelope import epoch_of
from shardmerge.schemas.model.errors import SourceError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition

UPSERTS = frozenset("rcu")
"""Operations after which the row exists: read by a snapshot, create, update."""
CREATE, READ, UPDATE, DELETE, TRUNCATE = "crudt"
INCREMENTAL = "incremental"
"""The value of ``source.snapshot`` in rows of an incremental snapshot. While such a snapshot runs,
rows that the connector reads from the binlog have it too (measured, Debezium 3.6.1)."""
UNDECODABLE = (DecodeError, UnicodeDecodeError)
"""Errors of decoding bytes that are no JSON, or not of the requested type."""


class MovedRow(bytes):
    """The value of one of the two records of an UPDATE that changed a primary key."""

    __slots__ = ()


MOVES = frozenset(("__debezium.newkey", "__debezium.oldkey"))
"""Headers by which Debezium marks these records: the delete, and the create behind it.

Source: Debezium, "MySQL connector", "Primary key updates".
"""

Names: TypeAlias = tuple[str, str, str]
"""Source, database and table, as a ``source`` block names them."""

_decode: Callable[[bytes], Any] = Decoder().decode


class UndecodableRow(SourceError):
    """A record's value is not a Debezium row envelope."""


class RowRecord(NamedTuple):
    """One row change. A named tuple, because one is made per record of a backlog.

    Attributes:
        op: Debezium's operation: ``r``, ``c``, ``u``, ``d`` or ``t``; any other text is passed on.
        image: Column name → value: the row after an upsert, before a delete; None when the
            envelope has none.
        source: Debezium's ``source`` block.
        before: The row before an update or a delete.
        wrapped: The value has Connect's embedded schema.
        epoch: Of the source, see ``Source``.
        ts_ms: When the connector made the record, in milliseconds by its clock; 0 if not given.
    """

    op: str
    image: dict[str, Any] | None
    source: Mapping[str, Any]
    before: dict[str, Any] | None = None
    wrapped: bool = False
    epoch: int = 0
    ts_ms: int = 0

    @property
    def is_incremental(self) -> bool:
        """Whether an incremental snapshot read the row.

        A row of the binlog is no such row, even if its ``source`` block says ``incremental``.
        """
        return self.op == READ and self.source.get("snapshot") == INCREMENTAL

    @property
    def position(self) -> SourcePosition:
        """Where the row stands.

        Raises:
            UndecodableRow: See ``position_of``.
        """
        return position_of(self.source, self.epoch)


def decode_row(value: bytes) -> RowRecord:
    """Decode the value of a row record: JSON with or without Connect's embedded schema.

    A tombstone has no value: the caller leaves it out.

    Raises:
        UndecodableRow: Not JSON, or no envelope: ``op`` or ``source`` is missing.
    """
    try:
        envelope = _decode(value)
    except UNDECODABLE as error:
        hint = "is row_format of the pipeline file what the connector writes?"
        raise UndecodableRow(
            f"the record is not JSON: {error}", hint=hint, code="SM-1514"
        ) from None
    if isinstance(envelope, dict) and "op" not in envelope:
        return row_record(envelope.get("payload"), wrapped=True)
    return row_record(envelope)


def row_record(envelope: Any, *, wrapped: bool = False) -> RowRecord:
    """The row change of a decoded envelope.

    Raises:
        UndecodableRow: It is none: ``op``, ``source`` or the row image is missing.
    """
    try:
        op = envelope["op"]
        image = envelope["before" if op == DELETE else "after"] if op != TRUNCATE else None
        before, epoch = envelope.get("before"), epoch_of(envelope)
        ts_ms = int(envelope.get("ts_ms") or 0)
        return RowRecord(str(op), image, envelope["source"], before, wrapped, epoch, ts_ms)
    except (KeyError, TypeError, ValueError):
        raise UndecodableRow(
            "the record is no Debezium row envelope: op, source or the row image is missing",
            hint="stop or correct the program that wrote the record",
            code="SM-1514",
        ) from None


def position_of(source: Mapping[str, Any], epoch: int) -> SourcePosition:
    """The binlog position that a ``source`` block names.

    Raises:
        UndecodableRow: ``file``, ``pos`` or ``row`` is missing, or has a value of another type.
    """
    try:
        return SourcePosition(epoch, source["file"], int(source["pos"]), int(source["row"] or 0))
    except (KeyError, TypeError, ValueError):
        raise UndecodableRow(
            "the record's source block names no binlog position",
            hint="stop or correct the program that wrote the record",
            code="SM-1514",
        ) from None


def shard_of(source: Mapping[str, Any]) -> ShardId:
    """The shard that a ``source`` block names; missing parts are empty."""
    return ShardId(*(str(source.get(part) or "") for part in ("name", "db", "table")))


class _Names(Struct, gc=False):
    name: str
    db: str
    table: str


class _Named(Struct, gc=False):
    source: _Names


class _MaybeWrapped(Struct, gc=False):
    source: _Names | None = None
    payload: _Named | None = None


_decode_names = Decoder(_MaybeWrapped).decode


def names_of(value: bytes) -> Names | None:
    """The shard of a record in JSON, with or without an embedded schema; None if it names none.

    The rest of the record is skipped without making objects.
    """
    try:
        found = _decode_names(value)
    except UNDECODABLE:
        return None
    source = found.source
    if source is None:
        if found.payload is None:
            return None
        source = found.payload.source
    return source.name, source.db, source.table


def image_names(column: str) -> tuple[str, str]:
    """A column's name as Debezium writes it into row images: as it is, or quoted.

    Source: measured with Debezium 3.6: a backtick inside a name stays doubled when the table was
    made by a statement, not when a snapshot read it.
    """
    return column, column.replace("`", "``")
