"""Records of our topics ⇄ bytes: Avro single-object encoding.

The two marker bytes ``C3 01``, the CRC-64-AVRO fingerprint of the writer's schema (8 bytes,
little-endian), then Avro binary. The contract is ``avro/*.avsc``, one self-contained file per
record; a record is read with the schema that its fingerprint names.

Source: Apache Avro specification, "Single-object encoding".
"""

from __future__ import annotations

import io
import struct
from functools import cache
from importlib import resources
from typing import Any, TypeAlias

import avro.errors
import avro.io
import avro.schema

from .errors import ContractError, UnknownSchemaVersion
from .events import Decision, JoinedSchema, OperatorCommand, SchemaChange, SinkProgress
from .plain import from_plain, to_plain

Record: TypeAlias = SchemaChange | OperatorCommand | Decision | JoinedSchema | SinkProgress

RECORDS: dict[str, type[Record]] = {
    "schema_change": SchemaChange,
    "operator_command": OperatorCommand,
    "decision": Decision,
    "joined_schema": JoinedSchema,
    "sink_progress": SinkProgress,
}
"""Every record type by the name of its schema file."""

_MARKER = b"\xc3\x01"
_HEADER_SIZE = 10


def encode(record: Record) -> bytes:
    """The bytes of a record; equal records give equal bytes."""
    record_type: Any = type(record)
    schema, header = _writer(record_type)
    buffer = io.BytesIO()
    buffer.write(header)
    # write_data leaves out the library's check of the whole datum, which costs more than the
    # encoding: the fields' types are checked statically.
    avro.io.DatumWriter(schema).write_data(schema, to_plain(record), avro.io.BinaryEncoder(buffer))
    return buffer.getvalue()


def decode(data: bytes) -> Record:
    """Read a record of any of our topics.

    Raises:
        UnknownSchemaVersion: The fingerprint is not of a schema of this version.
        ContractError: Not in this framing, or not readable with its schema.
    """
    if data[:2] != _MARKER or len(data) < _HEADER_SIZE:
        raise ContractError(
            f"not an Avro single-object record: it begins with {data[:4].hex() or 'nothing'}",
            hint="the topic holds a record that shardmerge did not write",
        )
    fingerprint = data[2:_HEADER_SIZE]
    if fingerprint not in _readers():
        raise UnknownSchemaVersion(
            f"a record has the unknown schema fingerprint {fingerprint.hex()}",
            hint="it was written by another version of shardmerge: run that version or a newer one",
        )
    record_type, schema = _readers()[fingerprint]
    decoder = avro.io.BinaryDecoder(io.BytesIO(data[_HEADER_SIZE:]))
    try:
        plain = avro.io.DatumReader(schema).read(decoder)
    except (avro.errors.AvroException, EOFError, UnicodeDecodeError, struct.error) as error:
        raise ContractError(f"a {schema.name} record is damaged: {error}") from error
    return from_plain(record_type, plain)


@cache
def _schemas() -> dict[str, avro.schema.RecordSchema]:
    folder = resources.files(__package__).joinpath("avro")
    parsed: dict[str, Any] = {
        name: avro.schema.parse(folder.joinpath(f"{name}.avsc").read_text(encoding="utf-8"))
        for name in RECORDS
    }
    return parsed


@cache
def _writer(record_type: type[Record]) -> tuple[avro.schema.RecordSchema, bytes]:
    name = next(n for n, t in RECORDS.items() if t is record_type)
    schema = _schemas()[name]
    return schema, _MARKER + schema.fingerprint()


@cache
def _readers() -> dict[bytes, tuple[type[Record], avro.schema.RecordSchema]]:
    return {s.fingerprint(): (RECORDS[name], s) for name, s in _schemas().items()}
