"""The formats that records of our own topics have in Kafka. Pure.

Code that folds, stores or compares records uses one form, ``codec``'s. Code that writes them to
Kafka converts them to the format of the pipeline file:

- ``avro``: Avro single-object encoding, ``codec``'s own bytes.
- ``avro-registry``: the same Avro in Confluent's framing: a zero byte, the schema's id (4 bytes,
  big-endian), Avro binary. Any consumer that knows the registry reads it.
- ``json``: one object per record; ``record`` names its type, the other keys are its fields.

Records of each format are read whatever the pipeline's format is, so the format can be changed
while records are in the topics. One exception: records in Confluent's framing are read only with
``avro-registry``, since only the registry knows their schema ids.

Source: Avro specification, "Single-object encoding"; Confluent's documentation, "Wire format".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from shardmerge.schemas.model.errors import ContractError, UnknownSchemaVersion

from .codec import HEADER_BYTES, MARKER, RECORDS, Record, decode, encode, with_known_actions
from .earlier_codes import lacks_codes, with_codes
from .plain import from_plain, to_plain

_ZERO = b"\x00"
_FRAME_BYTES = 5
_TYPES = {record_type.__name__: record_type for record_type in RECORDS.values()}


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """The format that is written, with what is needed to read the others.

    Attributes:
        name: One of ``pipeline.settings.RECORD_FORMATS``.
        ids: Header of a contract's records → the registry's id of its schema; empty unless the
            format is ``avro-registry``. Records are written with it.
        all_ids: Every id of the registry that names such a schema → header; also ids of schemas
            that differ in their descriptions only. Records are read with it.
    """

    name: str = "avro"
    ids: Mapping[bytes, int] = field(default_factory=dict)
    all_ids: Mapping[int, bytes] = field(default_factory=dict)

    def write(self, record: Record) -> bytes:
        """The bytes of a record in Kafka; equal records give equal bytes."""
        return self.of_canonical(encode(record))

    def read(self, value: bytes) -> Record:
        """A record from Kafka.

        Raises:
            ContractError: It is not a record of ours, or this version does not know its contract.
        """
        return _of_json(value) if value[:1] == b"{" else decode(self.to_canonical(value))

    def of_canonical(self, value: bytes) -> bytes:
        """Convert ``codec``'s bytes to those in Kafka."""
        if self.name == "json":
            return _to_json(decode(value))
        if self.name == "avro-registry":
            number = self.ids[value[:HEADER_BYTES]]
            return _ZERO + number.to_bytes(_FRAME_BYTES - 1, "big") + value[HEADER_BYTES:]
        return value

    def to_canonical(self, value: bytes) -> bytes:
        """Convert bytes in Kafka, of any format, to ``codec``'s.

        Raises:
            ContractError: They are in no format of ours, or their contract is not known.
        """
        if value[:1] == MARKER[:1]:
            return value
        if value[:1] == b"{":
            return encode(_of_json(value))
        if value[:1] == _ZERO and len(value) >= _FRAME_BYTES:
            return self._header(int.from_bytes(value[1:_FRAME_BYTES], "big")) + value[_FRAME_BYTES:]
        raise ContractError(
            f"not a record of shardmerge: it begins with {value[:4].hex() or 'nothing'}",
            hint="the topic holds a record that shardmerge did not write",
            code="SM-2101",
        )

    def _header(self, number: int) -> bytes:
        for header, known in self.ids.items():
            if known == number:
                return header
        if number in self.all_ids:
            return self.all_ids[number]
        if not self.ids:
            raise ContractError(
                f"a record names schema {number} of a registry, and none is asked",
                hint='give the pipeline record_format = "avro-registry" as long as its topics '
                "hold such records",
                code="SM-2104",
            )
        raise UnknownSchemaVersion(
            f"a record has the schema {number} of the registry, which is of no known contract",
            hint="it was written by another version of shardmerge (run that version or a newer "
            "one), or with another registry",
            code="SM-2102",
        )


AVRO = RecordFormat()
"""The format of ``codec``'s own bytes."""


def _to_json(record: Record) -> bytes:
    plain = {"record": type(record).__name__, **to_plain(record)}
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False).encode()


def _of_json(value: bytes) -> Record:
    try:
        plain = json.loads(value)
    except ValueError as error:
        raise ContractError(f"not a record of shardmerge: {error}", code="SM-2101") from error
    name = plain.pop("record", None)
    if (record_type := _TYPES.get(name)) is None:
        raise ContractError(
            f"a JSON record of the unknown type {name!r}",
            hint=f"the key 'record' names one of {', '.join(_TYPES)}",
            code="SM-2101",
        )
    record = with_known_actions(from_plain(record_type, plain))
    return with_codes(record) if lacks_codes(value, record) else record
