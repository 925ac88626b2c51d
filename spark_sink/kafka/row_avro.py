"""Rows in Avro with a schema registry, in Confluent's framing. Pure but for asking for schemas.

A record names its schema by number; the function that gives schemas is passed in. A quick decoder
is compiled for each record schema and row shape (``avro_envelope``). A record that it refuses is
decoded as a whole, which finds out what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Any

from msgspec import DecodeError, Struct, defstruct

from shardmerge.connectors.formats import avro_wire
from shardmerge.connectors.formats.avro_names import avro_name
from shardmerge.connectors.formats.avro_wire import (
    HEAD_BYTES,
    AvroSchema,
    SchemaText,
    UndecodableAvro,
    UnknownSchema,
)
from shardmerge.connectors.kafka.registry import RegistryAddress, SchemaRegistry
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.tables import Column, DefaultKind
from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.rows.decoding.avro_code import Unreadable, fields_of, kinds_of
from shardmerge.spark_sink.rows.decoding.avro_envelope import (
    envelope_reader,
    image_reader,
    names_reader,
)
from shardmerge.spark_sink.rows.decoding.row_decoder import RowDecoder, Shape
from shardmerge.spark_sink.rows.decoding.row_envelope import (
    DELETE,
    UPSERTS,
    Names,
    RowRecord,
    UndecodableRow,
    image_names,
    row_record,
)
from shardmerge.spark_sink.rows.decoding.row_format import JSON_ROWS, RowFormat
from shardmerge.spark_sink.rows.values.readers import Check, Reader, reader


class AvroRows:
    """See ``row_format.RowFormat``; one object per process keeps schemas and decoders.

    Args:
        schema_text: Gives schemas by number.
        nulls_are_lost: See ``RegistryAddress``.
    """

    def __init__(self, schema_text: SchemaText, *, nulls_are_lost: bool = False) -> None:
        self._schema_text = schema_text
        self._nulls_are_lost = nulls_are_lost
        self._schemas: dict[bytes, AvroSchema] = {}
        self._names: dict[bytes, Callable[[bytes], Names | None]] = {}
        self._unreadable: dict[bytes, UnknownSchema] = {}
        self._decoders: dict[tuple[ShardId, Shape, tuple[str, ...], int], RowDecoder] = {}

    def decode(self, value: bytes) -> RowRecord:
        """See ``RowFormat``."""
        try:
            return row_record(avro_wire.decode(value, self.schema_of(value)))
        except (UndecodableAvro, UnknownSchema) as error:
            raise UndecodableRow(error.message, hint=error.hint, code=error.code) from error

    def names_of(self, value: bytes) -> Names | None:
        """See ``RowFormat``."""
        head = value[:HEAD_BYTES]
        try:
            reader = self._names.get(head)
            if reader is None:
                reader = self._names[head] = _names_reader(self.schema_of(value))
            return reader(value)
        except (DecodeError, ShardMergeError):
            # The fold decodes the record again and finds the reason, such as a silent registry.
            return None

    def image_names(self, column: str) -> tuple[str, str]:
        """See ``RowFormat``."""
        name, quoted = image_names(column)
        return avro_name(name), avro_name(quoted)

    def reader(self, column_type: ColumnType, check: Check | None = None) -> Reader:
        """See ``RowFormat``."""
        return reader(column_type, base64=False, check=check)

    def decoder(
        self, shard: ShardId, columns: Shape, key: tuple[str, ...], epoch: int
    ) -> RowDecoder:
        """See ``RowFormat``."""
        found = self._decoders.get((shard, columns, key, epoch))
        if found is None:
            if len(self._decoders) >= _MOST_DECODERS:
                self._decoders.clear()
            found = _decoder(self, shard, columns, key, epoch)
            self._decoders[shard, columns, key, epoch] = found
        return found

    def loses(self, column: Column) -> str:
        """See ``RowFormat``."""
        default = column.default
        if (
            not self._nulls_are_lost
            or not column.nullable
            or default is None
            or default.kind is DefaultKind.NULL
        ):
            return ""
        return "Apicurio's converter writes the column's default where a row has NULL"

    def schema_of(self, value: bytes) -> AvroSchema:
        """The schema that a record's value names.

        Raises:
            UndecodableAvro, UnknownSchema, RegistryUnreachable: The schema cannot be had.
        """
        head = value[:HEAD_BYTES]
        schema = self._schemas.get(head)
        if schema is None:
            if head in self._unreadable:
                raise self._unreadable[head]
            text = self._schema_text(avro_wire.schema_id(value))
            try:
                schema = self._schemas[head] = avro_wire.avro_schema(text)
            except UnknownSchema as error:
                # The text of a number never changes: it need not be read again.
                self._unreadable[head] = error.with_traceback(None)
                raise
        return schema


def _names_reader(schema: AvroSchema) -> Callable[[bytes], Names | None]:
    """The reader of a schema's names; one that reads none if records of it do not name them."""
    try:
        return names_reader(schema.expanded)
    except Unreadable:
        return lambda _: None


_MOST_DECODERS = 1_024


@lru_cache(maxsize=8)
def row_format(registry: RegistryAddress | None) -> RowFormat:
    """The format of a pipeline's rows; the same one for every call in a process."""
    if registry is None:
        return JSON_ROWS
    schema_text = SchemaRegistry(registry).schema_text
    return AvroRows(schema_text, nulls_are_lost=registry.nulls_are_lost)


class _Source(Struct, gc=False):
    file: str
    pos: int


class _Envelope(Struct, gc=False):
    op: str
    source: _Source
    before: tuple[bytes, int]
    after: Any


def _decoder(
    rows: AvroRows, shard: ShardId, columns: Shape, key: tuple[str, ...], epoch: int
) -> RowDecoder:
    fields = {name: f"c{number}" for number, (name, _) in enumerate(columns)}
    image: Any = defstruct("Image", [(field, Any) for field in fields.values()], gc=False)
    names = tuple(fields)
    identity = {"name": shard.source, "db": shard.database, "table": shard.table}
    make = {"Image": image, "Source": _Source, "Envelope": _Envelope}

    envelopes: dict[bytes, Callable[[bytes], Any]] = {}
    images: dict[bytes, Callable[[tuple[bytes, int]], Any]] = {}

    def compile_for(value: bytes) -> None:
        """Raises ``DecodeError`` when the record has to be decoded as a whole."""
        try:
            schema = rows.schema_of(value)
            _check_kinds(schema.expanded, columns)
            envelope = envelope_reader(
                schema.expanded,
                identity=identity,
                likely=avro_wire.decode(value, schema)["source"],
                ops=UPSERTS | {DELETE},
                columns=names,
                make=make,
                epoch=epoch,
            )
            images[value[:HEAD_BYTES]] = image_reader(schema.expanded, names, image)
            envelopes[value[:HEAD_BYTES]] = envelope
        except (ShardMergeError, Unreadable) as error:
            raise DecodeError(str(error)) from None

    def decode(value: bytes) -> Any:
        try:
            function = envelopes[value[:HEAD_BYTES]]
        except KeyError:
            compile_for(value)
            function = envelopes[value[:HEAD_BYTES]]
        return function(value)

    def decode_image(place: tuple[bytes, int]) -> Any:
        return images[place[0][:HEAD_BYTES]](place)

    return RowDecoder(
        image,
        attrgetter(*(fields[name] for name in key)) if key else None,
        decode,
        None,
        decode_image,
    )


def _check_kinds(schema: Any, columns: Shape) -> None:
    """Check the columns' types in the schema, once, instead of the values of every row.

    Raises:
        Unreadable: The schema has other columns, or a column of another type.
    """
    fields = (fields_of(schema) or {}).get("after")
    of_image = fields_of(fields) if fields is not None else None
    if of_image is None or of_image.keys() != {name for name, _ in columns}:
        raise Unreadable("other columns")
    for name, accepts in columns:
        kinds = kinds_of(of_image[name]) - {type(None)}
        if accepts is not None and not kinds <= accepts:
            raise Unreadable(f"column {name}: {kinds} instead of {accepts}")
