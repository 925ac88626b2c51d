"""Records in Avro with Confluent's framing: a zero byte, the schema's id, the value. Pure.

Connect's converters write this form, whichever registry is behind them. Logical types are ignored
except one: whole numbers that Connect writes as decimals (BIGINT UNSIGNED) become numbers.

Source: Confluent's documentation, "Wire format"; Avro 1.12 specification; measured,
tests/integration/connect.
"""

from __future__ import annotations

import io
import json
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import Any

import fastavro
from fastavro.read import LOGICAL_READERS
from fastavro.schema import expand_schema, parse_schema

from shardmerge.schemas.model.errors import ContractError, StackError

HEAD_BYTES = 5
"""The zero byte and the id."""
OWN_JSON = b'{"source": {"version": "shardmerge"'
"""How a record begins that a repair has written, for a statement that Debezium cannot read. It is
JSON, whatever the connectors write (``repair.source_topics``)."""
SchemaText = Callable[[int], str]
"""A schema's id → its JSON text. Raises ``RegistryUnreachable`` or ``UnknownSchema``."""
INTEGER = "shardmerge-integer"
_HEAD = Struct(">BI")


class UndecodableAvro(ContractError):
    """A record is not in Confluent's framing, or not of the schema that it names."""


class UnknownSchema(ContractError):
    """The registry has no schema of that id, or one that is no Avro."""


class RegistryUnreachable(StackError):
    """The registry does not answer: the same record can be read later."""


def schema_id(value: bytes) -> int:
    """The id that a record's value begins with.

    Raises:
        UndecodableAvro: It does not begin like that.
    """
    if len(value) < HEAD_BYTES or value[0] != 0:
        raise UndecodableAvro(
            "the record is not Avro in Confluent's framing: it does not begin with a zero byte "
            f"and a schema's id, but with {value[:8].hex(' ')}",
            hint="row_format of the pipeline file must be what the connectors write",
            code="SM-2122",
        )
    number: int = _HEAD.unpack_from(value)[1]
    return number


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A schema without logical types except ``INTEGER``.

    Attributes:
        parsed: As fastavro wants it.
        expanded: With every named type written out where it is used.
    """

    parsed: Any
    expanded: Any


def avro_schema(text: str) -> AvroSchema:
    """Read a schema's JSON.

    Raises:
        UnknownSchema: It is no Avro schema.
    """
    try:
        plain = _plain(json.loads(text))
        return AvroSchema(parse_schema(plain), expand_schema(plain))
    except Exception as error:  # fastavro names no common base of what it raises
        raise UnknownSchema(
            f"the registry's schema is no Avro schema: {error}",
            hint="look at it in the registry; the connectors must write with an Avro converter",
            code="SM-2123",
        ) from error


def decode(value: bytes, schema: AvroSchema) -> Any:
    """A record's value, by the schema that it names.

    Raises:
        UndecodableAvro: It is not of that schema.
    """
    body = io.BytesIO(value)
    body.seek(HEAD_BYTES)
    try:
        document = fastavro.schemaless_reader(body, schema.parsed, None)
    except Exception as error:  # whatever a wrong byte leads to
        raise UndecodableAvro(
            f"the record is not of the schema that it names: {type(error).__name__}: {error}",
            hint="stop or correct the program that wrote the record",
            code="SM-2122",
        ) from error
    if body.tell() != len(value):
        raise UndecodableAvro(
            f"the record is longer than its schema says: {len(value) - body.tell()} bytes are left",
            hint="stop or correct the program that wrote the record",
            code="SM-2122",
        )
    return document


class JsonOfAvro:
    """Turns records in Avro into what Connect's JSON converter would have written.

    Schemas are asked for once. What a repair writes passes: see ``OWN_JSON``.
    """

    def __init__(self, schema_text: SchemaText) -> None:
        self._schema_text = schema_text
        self._known: dict[int, AvroSchema] = {}

    def __call__(self, value: bytes | None) -> bytes | None:
        """The JSON; a null stays null.

        Raises:
            UndecodableAvro, UnknownSchema: The record cannot be read.
            RegistryUnreachable: Not now.
        """
        if value is None or value.startswith(OWN_JSON):
            return value
        number = schema_id(value)
        schema = self._known.get(number)
        if schema is None:
            schema = self._known[number] = avro_schema(self._schema_text(number))
        return json.dumps(decode(value, schema), ensure_ascii=False, default=_text).encode()


def _plain(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: _plain(part) for key, part in schema.items() if key in _STRUCTURE}
    if (
        schema.get("logicalType") == "decimal"
        and schema["type"] == "bytes"
        and not schema.get("scale")
    ):
        plain["logicalType"] = INTEGER
    return plain


_STRUCTURE = ("type", "name", "namespace", "fields", "items", "values", "symbols", "size")
"""What decides how bytes are read. Defaults do not: both sides use the writer's schema."""


def _integer(data: bytes, *_: Any) -> int:
    return int.from_bytes(data, "big", signed=True)


LOGICAL_READERS[f"bytes-{INTEGER}"] = _integer


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} is not a value of Avro")
