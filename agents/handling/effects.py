"""What one source record makes an agent do, as data, and the rows that remember it.

Pure. ``delivery`` performs effects, and completes those that a crash interrupted, byte for byte.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol, TypeAlias

from shardmerge.schemas.model.errors import ContractError

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Send:
    """One record to send.

    Attributes:
        headers: Names and texts that repeat the essentials for plain Kafka tools; sorted.
    """

    topic: str
    key: bytes
    value: bytes
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Effects:
    """State to store, then records to send, in this order.

    Attributes:
        puts: Row key → bytes; None deletes the row.
    """

    puts: Mapping[bytes, bytes | None] = field(default_factory=dict)
    sends: tuple[Send, ...] = ()


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """What an agent remembers of records that it folded.

    With effects it is the records at hand of a partition of the table. Without effects it is the
    journal of a source partition.

    Attributes:
        offset: Of the last one of the records.
        effects: Of all of them.
    """

    offset: int
    effects: Effects


class Rows(Protocol):
    """The rows of an agent's table, as folds read them."""

    def get(self, key: bytes) -> bytes | None:
        """The row, or None."""
        ...

    def keys(self) -> Iterable[bytes]:
        """All row keys of this worker's partitions."""
        ...


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """One record that an agent folds.

    Attributes:
        empty_since: From this offset on no record stands before this one; None: nobody knows.
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    empty_since: int | None = None


Fold: TypeAlias = Callable[[Rows, SourceRecord], Effects]
"""An agent's reducer: pure, so that folding a record again gives the same bytes."""


class Arrival(Enum):
    """How a record relates to the journal of its partition."""

    NEXT = auto()
    """Directly after the journal's: fold it."""
    BEYOND = auto()
    """After a gap in the offsets: fold it if the gap holds no record."""
    REPEATED = auto()
    """The journal's own: everything about it is stored and sent."""
    PAST = auto()
    """Before the journal's."""


def classify(journal: JournalEntry | None, offset: int) -> Arrival:
    """Relate a record's offset to the journal; None is the journal before the first record."""
    expected = 0 if journal is None else journal.offset + 1
    if offset == expected:
        return Arrival.NEXT
    if offset > expected:
        return Arrival.BEYOND
    return Arrival.REPEATED if offset == expected - 1 else Arrival.PAST


def at_hand_key(partition: int) -> bytes:
    """The row key of the records at hand in a partition of the table.

    The partition is part of the key, since Faust remembers one partition per key.
    """
    return f"at-hand/{partition}".encode()


def journal_key(topic: str, partition: int) -> bytes:
    """The row key of a partition's journal."""
    return f"journal/{topic}/{partition}".encode()


def to_bytes(entry: JournalEntry) -> bytes:
    """Canonical bytes: equal entries give equal bytes."""
    plain = {
        "format": _FORMAT,
        "offset": entry.offset,
        "puts": [
            [_to_text(key), None if value is None else _to_text(value)]
            for key, value in sorted(entry.effects.puts.items())
        ],
        "sends": [
            [send.topic, _to_text(send.key), _to_text(send.value), send.headers]
            for send in entry.effects.sends
        ],
    }
    return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()


def from_bytes(data: bytes) -> JournalEntry:
    """Read what ``to_bytes`` wrote.

    Raises:
        ContractError: Another format.
    """
    plain = json.loads(data)
    if plain.get("format") != _FORMAT:
        raise ContractError(
            f"the stored journal has format {plain.get('format')!r}, not {_FORMAT}",
            hint="it was written by another version of shardmerge: run that version or a newer one",
            code="SM-2201",
        )
    return JournalEntry(
        offset=plain["offset"],
        effects=Effects(
            puts={
                b64decode(key): None if value is None else b64decode(value)
                for key, value in plain["puts"]
            },
            sends=tuple(
                Send(topic, b64decode(key), b64decode(value), tuple((n, t) for n, t in headers))
                for topic, key, value, headers in plain["sends"]
            ),
        ),
    )


def _to_text(data: bytes) -> str:
    return b64encode(data).decode("ascii")
