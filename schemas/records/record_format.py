"""How records of our own topics stand in Kafka. Pure.

Everything that folds, stores or compares records has them in one form, ``codec``'s; what carries
them to and from Kafka puts them into the format of the pipeline file:

- ``avro``: Avro single-object encoding, ``codec``'s own bytes.
- ``avro-registry``: the same Avro in Confluent's framing: a zero byte, the schema's id (4 bytes,
  big-endian), Avro binary. Any consumer that knows the registry reads it.
- ``json``: one object per record; ``record`` names its type, the other keys are its fields.

Each is read whatever the format is, so that it can be changed while records are in the topics; but
what is in Confluent's framing is read with ``avro-registry`` only, since only the registry knows
its ids.

Source: Avro specification, "Single-object encoding"; Confluent's documentation, "Wire format".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from shardmerge.schemas.model.errors import ContractError, UnknownSchemaVersion

from .codec import HEADER_BYTES, MARKER, RECORDS, Record, decode, encode
from .earlier_statements import with_actions
from .plain import from_plain, to_plain

_ZERO = b"\x00"
_FRAME_BYTES = 5
_TYPES = {record_type.__name__: record_type for record_type in RECORDS.values()}


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """One format, with what is needed to read the others.

    Attributes:
        name: One of ``pipeline.file.RECORD_FORMATS``.
        ids: Header of a contract's records → the registry's id of its schema; of
            ``avro-registry`` only.
    """

    name: str = "avro"
    ids: Mapping[bytes, int] = field(default_factory=dict)

    def write(self, record: Record) -> bytes:
        """A record as it stands in Kafka; equal records give equal bytes."""
        return self.of_canonical(encode(record))

    def read(self, value: bytes) -> Record:
        """A record from Kafka.

        Raises:
            ContractError: It is not ours, or of no contract that this version knows.
        """
        return _of_json(value) if value[:1] == b"{" else decode(self.to_canonical(value))

    def of_canonical(self, value: bytes) -> bytes:
        """``codec``'s bytes → those in Kafka."""
        if self.name == "json":
            return _to_json(decode(value))
        if self.name == "avro-registry":
            number = self.ids[value[:HEADER_BYTES]]
            return _ZERO + number.to_bytes(_FRAME_BYTES - 1, "big") + value[HEADER_BYTES:]
        return value

    def to_canonical(self, value: bytes) -> bytes:
        """The bytes in Kafka, of any format → ``codec``'s.

        Raises:
            ContractError: They are of no format of ours.
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
        )

    def _header(self, number: int) -> bytes:
        for header, known in self.ids.items():
            if known == number:
                return header
        if not self.ids:
            raise ContractError(
                f"a record names schema {number} of a registry, and none is asked",
                hint='give the pipeline record_format = "avro-registry" as long as its topics '
                "hold such records",
            )
        raise UnknownSchemaVersion(
            f"a record has the schema {number} of the registry, which is of no known contract",
            hint="it was written by another version of shardmerge (run that version or a newer "
            "one), or with another registry",
        )


AVRO = RecordFormat()
"""``codec``'s own bytes."""


def _to_json(record: Record) -> bytes:
    plain = {"record": type(record).__name__, **to_plain(record)}
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False).encode()


def _of_json(value: bytes) -> Record:
    try:
        plain = json.loads(value)
    except ValueError as error:
        raise ContractError(f"not a record of shardmerge: {error}") from error
    name = plain.pop("record", None)
    if (record_type := _TYPES.get(name)) is None:
        raise ContractError(
            f"a JSON record of the unknown type {name!r}",
            hint=f"the key 'record' names one of {', '.join(_TYPES)}",
        )
    return with_actions(from_plain(record_type, plain))
