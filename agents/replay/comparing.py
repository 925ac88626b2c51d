"""What a topic must hold, against what it holds.

A record that was written again with equal bytes is right (delivery is at least once), and so is one
that a tombstone removed. Everything else is a ``Difference``. Of what is written only digests are
kept; the few records that differ are found by a second reading.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeAlias

from shardmerge.agents.effects import Send
from shardmerge.connectors.stored_record import StoredRecord
from shardmerge.schemas import codec
from shardmerge.schemas.errors import ContractError
from shardmerge.schemas.events import Decision, SchemaChange

from .details import details, key_text

Identity: TypeAlias = str
"""What a record is the only one of, in words: a decision's key, a change's id with its target."""
Reader: TypeAlias = Callable[[str], Iterable[StoredRecord]]
"""All records of a topic, partition by partition, each in order of its offsets."""

COUNTED = ("expected", "equal", "altered", "missing", "extra", "unreadable", "out of order",
           "repeated", "removed", "not compared")  # fmt: skip
"""What is counted: ``repeated`` is written again, equal; ``removed`` is by a tombstone."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as the folds give it.

    Attributes:
        kind: ``altered``, ``missing``, ``extra``, ``unreadable`` or ``out of order``.
        place: Where it stands; of what is missing, which record brings it about.
        details: What differs.
    """

    topic: str
    kind: str
    what: Identity
    place: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of one topic; ``counts`` by the names of ``COUNTED``."""

    topic: str
    counts: Counter[str]
    differences: tuple[Difference, ...]


@dataclass(slots=True)
class _Written:
    """A record of the topic: its place and its digest, which is None for a tombstone."""

    place: str
    digest: bytes | None
    expected: bool = False


class Expecting(ABC):
    """What one topic must hold; told record by record, compared at the end."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.counts: Counter[str] = Counter()
        self._differences: list[Difference] = []

    @abstractmethod
    def expect(self, send: Send, cause: StoredRecord) -> None:
        """The topic must hold this, because of that record."""

    @abstractmethod
    def compare(self) -> Comparison:
        """The comparison, after everything was told."""

    def _differs(self, kind: str, what: str, place: str, *why: str) -> None:
        self.counts[kind] += 1
        self._differences.append(Difference(self.topic, kind, what, place, why))

    def _made(self) -> Comparison:
        # Within a kind they are in the order of the topic, or of what brings them about.
        found = sorted(self._differences, key=lambda d: COUNTED.index(d.kind))
        return Comparison(self.topic, self.counts, tuple(found))


class Keyed(Expecting):
    """A topic in which every record has an identity of its own."""

    def __init__(
        self,
        topic: str,
        reader: Reader,
        identity: Callable[[StoredRecord], Identity],
        compared: Callable[[StoredRecord], bool],
    ) -> None:
        """Read the topic.

        Args:
            topic: Its name.
            reader: Reads it, and reads it again when something differs.
            identity: Raises ``ContractError`` when the record is none of ours.
            compared: Which records are to be compared at all.
        """
        super().__init__(topic)
        self._reader = reader
        self._identity = identity
        self._written: dict[Identity, list[_Written]] = {}
        self._altered: dict[str, tuple[Identity, Send]] = {}
        self._missing: list[tuple[Identity, Send, StoredRecord]] = []
        self._furthest: dict[tuple[str, int], int] = {}
        """Per partition of the causes, the highest offset whose record is in the topic."""
        for record in reader(topic):
            self._index(record, compared)

    def _index(self, record: StoredRecord, compared: Callable[[StoredRecord], bool]) -> None:
        try:
            if not compared(record):
                self.counts["not compared"] += 1
                return
            name = self._identity(record)
        except ContractError as error:
            self._differs("unreadable", key_text(record.key), record.place, error.message)
            return
        written = self._written.setdefault(name, [])
        if not written:
            self._first(name, record)
        written.append(_Written(record.place, digest(record)))

    def _first(self, name: Identity, record: StoredRecord) -> None:
        """The first record of an identity, in the topic's order."""

    def expect(self, send: Send, cause: StoredRecord) -> None:
        """See ``Expecting``."""
        self.counts["expected"] += 1
        name, wanted = self._identity(as_record(send)), digest(as_record(send))
        written = self._written.get(name)
        if written is None:
            self._missing.append((name, send, cause))
            return
        at = (cause.topic, cause.partition)
        self._furthest[at] = max(self._furthest.get(at, -1), cause.offset)
        for one in written:
            one.expected = True
        values = [one for one in written if one.digest is not None]
        wrong = [one for one in values if one.digest != wanted]
        for one in wrong:
            self._altered[one.place] = (name, send)
        if not values:
            self.counts["removed"] += 1
        elif not wrong:
            self.counts["equal"] += 1
            self.counts["repeated"] += len(values) - 1

    def compare(self) -> Comparison:
        """See ``Expecting``."""
        for record in self._reader(self.topic) if self._altered else ():
            if (found := self._altered.get(record.place)) is not None:
                name, send = found
                self._differs("altered", name, record.place, *details(as_record(send), record))
        for name, send, cause in self._missing:
            why = [_in_short(send)]
            if cause.offset > self._furthest.get((cause.topic, cause.partition), -1):
                why.append("nothing that comes after it is there either: is the worker behind?")
            self._differs("missing", name, f"brought about by {cause.place}", *why)
        for name, written in self._written.items():
            places = [w.place for w in written if w.digest is not None and not w.expected]
            if places:
                self._differs("extra", name, ", ".join(places), "no record brings it about")
        return self._made()


class OrderedKeyed(Keyed):
    """The schema-log: a source's changes must also stand in the source's order."""

    def __init__(self, topic: str, reader: Reader) -> None:
        self._places: dict[tuple[int, str], tuple[int, int]] = {}
        super().__init__(topic, reader, change_identity, _is_change)

    def _first(self, name: Identity, record: StoredRecord) -> None:
        change = codec.decode(record.value or b"")
        assert isinstance(change, SchemaChange)
        at, place = (record.partition, change.id.source), (change.id.offset, change.id.ordinal)
        before = self._places.get(at, (-1, -1))
        if place < before:
            after = f"it stands after {change.id.source}@{before[0]}.{before[1]}"
            self._differs("out of order", name, record.place, after)
        else:
            self._places[at] = place


class Latest(Expecting):
    """A topic of which the last record per key counts; the older ones counted once."""

    def __init__(self, topic: str, reader: Reader) -> None:
        """Read the topic."""
        super().__init__(topic)
        self._written: dict[bytes, list[_Written]] = {}
        self._last: dict[bytes, StoredRecord] = {}
        self._expected: dict[bytes, Send] = {}
        for record in reader(topic):
            key = record.key or b""
            self._written.setdefault(key, []).append(_Written(record.place, digest(record)))
            self._last[key] = record

    def expect(self, send: Send, cause: StoredRecord) -> None:
        """See ``Expecting``."""
        self._expected[send.key] = send
        wanted = digest(as_record(send))
        for one in self._written.get(send.key, ()):
            one.expected = one.expected or one.digest == wanted

    def compare(self) -> Comparison:
        """See ``Expecting``."""
        self.counts["expected"] = len(self._expected)
        for key, send in self._expected.items():
            self._compare(f"target {key_text(key)}", self._written.get(key), as_record(send))
        for key, last in self._last.items():
            if key not in self._expected:
                why = "no record brings it about"
                self._differs("extra", f"target {key_text(key)}", last.place, why)
        return self._made()

    def _compare(self, name: str, written: list[_Written] | None, wanted: StoredRecord) -> None:
        if written is None:
            self._differs("missing", name, f"in all of {self.topic}")
            return
        last = self._last[wanted.key or b""]
        if last.value is None:
            self.counts["removed"] += 1
        elif written[-1].digest == digest(wanted):
            self.counts["equal"] += 1
        else:
            self._differs("altered", name, last.place, *details(wanted, last))
        for one in written[:-1]:
            if one.digest is not None and not one.expected:
                self._differs("altered", name, one.place, "no version of the target is like this")


def decision_identity(record: StoredRecord) -> Identity:
    """A decision's: its key."""
    return f"decision {key_text(record.key)}"


def change_identity(record: StoredRecord) -> Identity:
    """A schema change's; raises ``ContractError`` when it is none."""
    change = codec.decode(record.value or b"")
    if not isinstance(change, SchemaChange):
        raise ContractError(f"a {type(change).__name__}")
    return f"change {change.id} of {change.shard} for {change.target}"


def _is_change(record: StoredRecord) -> bool:
    """Other records of the schema-log come from no source."""
    return isinstance(codec.decode(record.value or b""), SchemaChange)


def as_record(send: Send) -> StoredRecord:
    """What is to be sent, as if it stood in its topic."""
    headers = tuple((name, text.encode()) for name, text in send.headers)
    return StoredRecord(send.topic, -1, -1, send.key, send.value, headers)


def digest(record: StoredRecord) -> bytes | None:
    """Of key, value and headers; None for a tombstone."""
    if record.value is None:
        return None
    found = blake2b(digest_size=16)
    for part in (record.key, record.value, *(p for header in record.headers for p in header)):
        data = part.encode() if isinstance(part, str) else part
        found.update(b"-" if data is None else b"%d:" % len(data) + data)
    return found.digest()


def _in_short(send: Send) -> str:
    record = codec.decode(send.value)
    if isinstance(record, Decision):
        return f"{record.outcome}: {record.reason}"
    return str(getattr(record, "ddl", type(record).__name__))
