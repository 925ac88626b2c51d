"""Typed decoding of row records: one compiled decoder per shape of a shard's rows. Pure.

A decoder knows a row's column names, the JSON types of the columns' values, and the shard that the
row must belong to. It decodes a record and checks all of that in one call into C. Parts that are
not needed, such as the row before an update, are skipped without making objects. A record that it
refuses is decoded again by ``row_envelope``, which can say what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, Literal, TypeAlias, Union

from msgspec import Raw, Struct, defstruct
from msgspec.json import Decoder

from shardmerge.connectors.debezium.envelope import EPOCH_FIELD
from shardmerge.schemas.model.names import ShardId

from .row_envelope import DELETE, UNDECODABLE, UPSERTS

Shape: TypeAlias = tuple[tuple[str, frozenset[type] | None], ...]
"""For each column of a row image: its name there, and its values' Python types (None: any)."""
_CLOSING = ord("}")


@dataclass(frozen=True, slots=True)
class RowDecoder:
    """How the records of one shape are decoded.

    Attributes:
        make: Values in column order, of any type → an image as ``decode`` gives it: a struct,
            see ``msgspec.structs.astuple``.
        key_of: Image → primary key; None without one.
        decode: A record's value → ``op``, ``source`` (``file``, ``pos``), ``before``
            (not decoded yet) and ``after`` (an image or None). Raises ``UNDECODABLE``. None when
            a column's name does not allow such a decoder.
        decode_wrapped: The same for JSON with Connect's embedded schema; None for Avro.
        decode_image: Such a ``before`` → an image. Raises ``UNDECODABLE``.
    """

    make: Callable[..., Any]
    key_of: Callable[[Any], Any] | None
    decode: Callable[[bytes], Any] | None
    decode_wrapped: Callable[[bytes], Any] | None
    decode_image: Callable[[Any], Any] | None


@lru_cache(maxsize=1_024)
def row_decoder(
    shard: ShardId,
    columns: Shape,
    key: tuple[str, ...],
    epoch: int,
) -> RowDecoder:
    """The decoder for a shard's rows with exactly these columns.

    Making a decoder costs about a millisecond, so decoders are kept.

    Args:
        shard: The shard that the ``source`` block must name.
        columns: Of the row image.
        key: Names of the primary key's columns.
        epoch: The source's epoch; rows of any other epoch are refused.
    """
    fields = [f"c{number}" for number in range(len(columns))]
    types: list[Any] = [_optional(kinds) for _, kinds in columns]
    names = {field: name for field, (name, _) in zip(fields, columns, strict=True)}
    field_of = {name: field for field, name in names.items()}
    key_of = attrgetter(*(field_of[name] for name in key)) if key else None
    try:
        # Values decoded from JSON form no cycles, so the garbage collector need not track them.
        image: Any = _struct("Image", fields, types, rename=names, forbid_unknown_fields=True)
    except ValueError:
        # A column's name has a quote, a backslash or a control character.
        return RowDecoder(_struct("Image", fields, types), key_of, None, None, None)
    literal: Any = Literal
    source: Any = _struct(
        "Source",
        ["name", "db", "table", "file", "pos"],
        [*(literal[part] for part in (shard.source, shard.database, shard.table)), str, int],
    )
    envelope: Any = defstruct(
        "Envelope",
        [
            ("op", literal[(*sorted(UPSERTS), DELETE)]),
            ("source", source),
            ("epoch", literal[str(epoch)]) if epoch else ("epoch", None, None),
            ("before", Raw, Raw(b"null")),
            ("after", image | None, None),
        ],
        gc=False,
        rename={"epoch": EPOCH_FIELD},
    )
    wrapped = _struct("Wrapped", ["payload"], [envelope])
    decode = Decoder(envelope).decode
    return RowDecoder(
        image,
        key_of,
        decode,
        _unwrapping(decode, Decoder(wrapped).decode),
        Decoder(image).decode,
    )


def _unwrapping(
    decode: Callable[[bytes], Any], decode_wrapped: Callable[[bytes], Any]
) -> Callable[[bytes], Any]:
    """A decoder of envelopes with an embedded schema.

    The schema makes up most of a record, and stays the same until the shard's next DDL. So it is
    compared with the schema of the last record instead of being parsed.
    """
    prefix = b""

    def unwrapped(value: bytes) -> Any:
        nonlocal prefix
        known = prefix  # another thread may set another prefix meanwhile
        if known and value.startswith(known) and value[-1] == _CLOSING:
            return decode(value[len(known) : -1])
        envelope = decode_wrapped(value).payload
        prefix = before_payload(value)
        return envelope

    return unwrapped


class _Schema(Struct, gc=False):
    schema: Raw


_decode_schema = Decoder(_Schema).decode


def before_payload(value: bytes) -> bytes:
    """The bytes before the payload, if Connect's converter wrote the record; else empty."""
    try:
        schema = _decode_schema(value).schema
    except UNDECODABLE:
        return b""
    prefix = b'{"schema":%b,"payload":' % bytes(schema)
    return prefix if value.startswith(prefix) else b""


def _struct(name: str, fields: Sequence[str], types: Sequence[Any], **options: Any) -> type[Struct]:
    return defstruct(name, list(zip(fields, types, strict=True)), gc=False, **options)


def _optional(kinds: frozenset[type] | None) -> Any:
    if kinds is None:
        return Any
    union: Any = Union
    return union[(*sorted(kinds, key=lambda k: k.__name__), type(None))]
