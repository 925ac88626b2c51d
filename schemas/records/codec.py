"""Records of our topics ⇄ bytes: Avro single-object encoding.

The two marker bytes ``C3 01``, the CRC-64-AVRO fingerprint of the writer's schema (8 bytes,
little-endian), then Avro binary. The contract is ``avro/*.avsc``, one self-contained file per
record. A record is read with the schema that its fingerprint names: the current contract, or one of
``avro/earlier.json``. Records of an earlier contract take the default for each field that they do
not have. A decision's statements that have no actions get them from their texts
(``earlier_statements``), and reasons without a code get one that says so (``earlier_codes``).

``avro`` reads the contract and computes the fingerprints; ``fastavro``, which is compiled, writes
and reads the bytes. A test checks that both write the same bytes.

Source: Apache Avro specification, "Single-object encoding".
"""

from __future__ import annotations

import io
import json
import types
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from enum import Enum
from functools import cache, lru_cache
from importlib import import_module, resources
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeAlias, Union, get_args, get_origin

import avro.errors
import avro.schema
import fastavro

from shardmerge.schemas.model.errors import ContractError, UnknownSchemaVersion
from shardmerge.schemas.model.frozen import Hashed
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import TableSchema

from .decisions import Decision, JoinedSchema
from .earlier_codes import with_codes
from .operator_commands import OperatorCommand
from .plain import from_plain
from .plain_fields import PlainField, alternatives, plain_fields, record_writer
from .progress import SinkProgress
from .schema_changes import SchemaChange
from .validations import TargetValidation

Record: TypeAlias = (
    SchemaChange | OperatorCommand | Decision | JoinedSchema | SinkProgress | TargetValidation
)

RECORDS: dict[str, type[Record]] = {
    "schema_change": SchemaChange,
    "operator_command": OperatorCommand,
    "decision": Decision,
    "joined_schema": JoinedSchema,
    "sink_progress": SinkProgress,
    "target_validation": TargetValidation,
}
"""Name of the schema file → record type."""

MARKER = b"\xc3\x01"
HEADER_BYTES = 10
"""Bytes of the marker and the fingerprint."""
MAX_LATEST_BYTES = 2 * 1024 * 1024
"""Of the records that are kept since they were encoded; in memory they take ten times that."""
_MOST_CONVERTED = 1_024
"""Tables, and columns, whose converted forms are remembered."""
_MOST_ENCODED = 1_024
"""Values of each field of ``_REPEATED`` whose bytes are remembered."""
_REPEATED = frozenset({TableSchema, ShardColumn})
"""Of these the records of many shards hold the same, one or several in a field."""
_NAMESPACE = "shardmerge"
_PRIMITIVES = {str: "string", bool: "boolean", int: "long"}


@dataclass(frozen=True, slots=True)
class _Contract:
    """One record type's schema, the current one or one of an earlier version.

    Attributes:
        header: Marker and fingerprint. Every record of this schema begins with them.
        text: The schema as JSON.
        compiled: The schema in the form that ``fastavro`` takes.
        parts: Give the bytes of the fields, in order; each part is one field or several.
    """

    record_type: type[Record]
    header: bytes
    text: str
    compiled: Any
    parts: tuple[Callable[[Any], bytes], ...]


class _Latest:
    """The records that were encoded last, by their bytes.

    They are in two halves, and the older one is forgotten when the newer one is full. So what was
    written just before is always known.

    Several threads may use it: each step is one operation on a dict, or gives another dict.
    """

    def __init__(self) -> None:
        self._records: dict[bytes, Record] = {}
        self._older: dict[bytes, Record] = {}
        self._bytes = 0

    def get(self, data: bytes) -> Record | None:
        """The record of which ``encode`` made these bytes; None when it was too long ago."""
        return self._records.get(data) or self._older.get(data)

    def put(self, data: bytes, record: Record) -> None:
        """Keep a record, and forget the older half when the newer one is too large."""
        half = MAX_LATEST_BYTES // 2
        if len(data) > half:
            return
        self._bytes += len(data)
        if self._bytes > half:
            self._older, self._records, self._bytes = self._records, {}, len(data)
        self._records[data] = record


_LATEST = _Latest()


def encode(record: Record) -> bytes:
    """The bytes of a record; equal records give equal bytes."""
    record_type: Any = type(record)
    contract = _current()[record_type]
    data = contract.header + b"".join([part(record) for part in contract.parts])
    _LATEST.put(data, record)
    return data


def decode(data: bytes) -> Record:
    """Read a record of any of our topics.

    A worker reads again what it wrote just before: the coordinator the tracker's changes, the
    status pages all decisions. Of such bytes the record is known.

    Raises:
        UnknownSchemaVersion: This version knows no contract with the record's fingerprint.
        ContractError: The bytes are not in this framing, or not readable with their schema.
    """
    known = _LATEST.get(data)
    if known is not None:
        return with_known_actions(known)
    if data[:2] != MARKER or len(data) < HEADER_BYTES:
        raise ContractError(
            f"not an Avro single-object record: it begins with {data[:4].hex() or 'nothing'}",
            hint="the topic holds a record that shardmerge did not write",
            code="SM-2101",
        )
    contract = _readers().get(data[:HEADER_BYTES])
    if contract is None:
        raise UnknownSchemaVersion(
            f"a record has the unknown schema fingerprint {data[2:HEADER_BYTES].hex()}",
            hint="it was written by another version of shardmerge: run that version or a newer one",
            code="SM-2102",
        )
    body = io.BytesIO(data[HEADER_BYTES:])
    try:
        plain = fastavro.schemaless_reader(
            body,
            contract.compiled,
            None,
            return_record_name=True,
            return_record_name_override=True,
        )
    except (EOFError, IndexError, ValueError, OverflowError, MemoryError) as error:
        raise _damaged(contract, f"{type(error).__name__} {error}".strip()) from error
    if left := len(data) - HEADER_BYTES - body.tell():
        raise _damaged(contract, f"{left} bytes are left over")
    record = with_known_actions(from_plain(contract.record_type, plain))
    return record if contract.header in _current_headers() else with_codes(record)


def with_known_actions(record: Record) -> Record:
    """The record; a decision's statements without actions get the actions of their texts.

    The module that reads these texts imports MySQL's grammar, which only earlier records need.
    """
    if not isinstance(record, Decision) or all(s.actions for s in record.statements):
        return record
    earlier = import_module("shardmerge.schemas.records.earlier_statements")
    found: Decision = earlier.with_actions(record)
    return found


def header_of(schema: str) -> bytes:
    """The header of the records of a schema, given as JSON; descriptions do not count.

    Returns:
        Marker and fingerprint; nothing if it is not a schema of Avro.
    """
    try:
        fingerprint: bytes = avro.schema.parse(schema).fingerprint()
    except avro.errors.AvroException:
        return b""
    return MARKER + fingerprint


def contracts() -> tuple[tuple[str, bytes, str], ...]:
    """Every contract that can be read; for each record type the oldest comes first.

    Returns:
        Per contract the record type's full name, the header of its records, the schema as JSON.
    """
    return tuple(
        (f"{_NAMESPACE}.{contract.record_type.__name__}", header, contract.text)
        for header, contract in _readers().items()
    )


def _damaged(contract: _Contract, what: str) -> ContractError:
    return ContractError(
        f"a {contract.record_type.__name__} record is damaged: {what}",
        hint="shardmerge did not write these bytes: see which program wrote into the topic",
        code="SM-2103",
    )


@cache
def _datum(kind: Any) -> Callable[[Any], Any] | None:
    """The function that converts a field's value for the writer; None: the value is not converted.

    It gives the plain form, but a union's value comes with the name of its branch. Without the name
    the writer would try the branches, which costs more than the encoding.
    """
    origin = get_origin(kind)
    if records := alternatives(kind):
        named = {cls: _branched(_branch(cls), _datum(cls)) for cls in records}
        return lambda value: named[type(value)](value)
    if origin in (Union, types.UnionType):
        (member,) = (m for m in get_args(kind) if m is not type(None))
        return _branched(_branch(member), _datum(member))
    if origin is tuple:
        item = _datum(get_args(kind)[0])
        return list if item is None else lambda values: [item(value) for value in values]
    if is_dataclass(kind):
        record: Any = kind
        made = record_writer(plain_fields(record), _datum)
        # Records of many shards hold the same tables and columns, whose hashes are remembered.
        is_hashed_once = isinstance(kind, type) and issubclass(kind, Hashed)
        return lru_cache(maxsize=_MOST_CONVERTED)(made) if is_hashed_once else made
    if issubclass(kind, Enum):
        return attrgetter("value")
    if kind in _PRIMITIVES:
        return None
    raise TypeError(f"{kind} is not in the contract")


def _branched(name: str, inner: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    if inner is None:
        return lambda value: None if value is None else (name, value)
    return lambda value: None if value is None else (name, inner(value))


def _branch(kind: Any) -> str:
    if is_dataclass(kind):
        return f"{_NAMESPACE}.{kind.__name__}"  # type: ignore[union-attr]
    return "string" if issubclass(kind, Enum) else _PRIMITIVES[kind]


@cache
def _current() -> dict[type[Record], _Contract]:
    """Record type → its current contract."""
    folder = resources.files(__package__).joinpath("avro")
    return {
        record_type: _contract(
            record_type,
            folder.joinpath(f"{name}.avsc").read_text(encoding="utf-8"),
            is_written=True,
        )
        for name, record_type in RECORDS.items()
    }


@cache
def _current_headers() -> frozenset[bytes]:
    return frozenset(contract.header for contract in _current().values())


@cache
def _readers() -> dict[bytes, _Contract]:
    """Header of a contract's records → the contract, for every contract that can be read."""
    text = resources.files(__package__).joinpath("avro", "earlier.json").read_text(encoding="utf-8")
    earlier = (
        _contract(RECORDS[name], json.dumps(schema))
        for name, schemas in json.loads(text).items()
        for schema in schemas
    )
    return {contract.header: contract for contract in (*earlier, *_current().values())}


def _contract(record_type: type[Record], text: str, *, is_written: bool = False) -> _Contract:
    schema = json.loads(text)
    parts = _parts(record_type, schema) if is_written else ()
    return _Contract(record_type, header_of(text), text, fastavro.parse_schema(schema), parts)


def _parts(record_type: Any, schema: Any) -> tuple[Callable[[Any], bytes], ...]:
    """Functions that give the bytes of a record's fields, in order.

    A record's bytes are those of its fields, one after the other. So the bytes of a field that many
    records have alike are made once, and the fields between such fields are written together.
    """
    fields = {field.name: field for field in plain_fields(record_type)}
    kinds = {each["name"]: each["type"] for each in schema["fields"]}
    named: dict[str, Any] = {}
    parts: list[Callable[[Any], bytes]] = []
    for repeated, names in groupby(kinds, lambda name: name if _is_repeated(fields[name]) else ""):
        members = [fields[name] for name in names]
        known: set[str] = set()
        write = _fields_writer(
            [{"name": f.name, "type": _standalone(kinds[f.name], named, known)} for f in members]
        )
        parts.append(_remembered(members[0], write) if repeated else _together(members, write))
    return tuple(parts)


def _is_repeated(field: PlainField) -> bool:
    """Whether it holds the columns of a table."""
    return not _REPEATED.isdisjoint(get_args(field.kind))


def _fields_writer(fields: list[Any]) -> Callable[[Any], bytes]:
    """The function that writes a dict of some fields of a record, given as Avro's schema does."""
    part = {"type": "record", "name": f"{_NAMESPACE}.Part", "fields": fields}
    compiled = fastavro.parse_schema(part)

    def write(datum: Any) -> bytes:
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, compiled, datum)
        return buffer.getvalue()

    return write


def _together(fields: list[PlainField], write: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    datum = record_writer(fields, _datum)
    return lambda record: write(datum(record))


def _remembered(field: PlainField, write: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    datum = _datum(field.kind)
    assert datum is not None
    value_of = attrgetter(field.path)
    encoded = lru_cache(maxsize=_MOST_ENCODED)(lambda value: write({field.name: datum(value)}))
    return lambda record: encoded(value_of(record))


def _standalone(kind: Any, named: dict[str, Any], known: set[str]) -> Any:
    """A type of a schema with the definition of each record where its name comes first.

    Args:
        kind: As the schema has it: a record that was defined before is a name.
        named: The records that were defined before; those of this type are added.
        known: Those that the type has defined up to here.
    """
    if isinstance(kind, list):
        return [_standalone(member, named, known) for member in kind]
    if isinstance(kind, str):
        is_defined = kind in known or kind not in named
        return kind if is_defined else _standalone(named[kind], named, known)
    if kind["type"] == "array":
        return {**kind, "items": _standalone(kind["items"], named, known)}
    named[kind["name"]] = kind
    known.add(kind["name"])
    fields = [{**f, "type": _standalone(f["type"], named, known)} for f in kind["fields"]]
    return {**kind, "fields": fields}
