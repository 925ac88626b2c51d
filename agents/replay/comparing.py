"""Compares what a topic must hold with what it holds.

A record that was written again with equal bytes is right (delivery is at least once), and so is one
that a tombstone removed. Everything else is a ``Difference``. Only digests of the written records
are kept in memory; the few records that differ are found by reading the topic again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeAlias

from shardmerge.agents.handling.effects import Send
from shardmerge.connectors.formats.stored_record import StoredRecord
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.decisions import Decision
from shardmerge.schemas.records.schema_changes import ChangeId, SchemaChange
from shardmerge.schemas.records.topic_records import logged_change

from .details import details, key_text

Identity: TypeAlias = str
"""What identifies a record, in words: a decision's key, a change's id with its target."""
Reader: TypeAlias = Callable[[str], Iterable[StoredRecord]]
"""All records of a topic, partition by partition, each in order of its offsets."""

COUNTED = ("expected", "equal", "altered", "missing", "extra", "unreadable", "out of order",
           "repeated", "removed", "not compared")  # fmt: skip
"""What is counted: ``repeated`` is written again with equal bytes; ``removed`` by a tombstone."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One record that is not as the folds give it.

    Attributes:
        kind: ``altered``, ``missing``, ``extra``, ``unreadable`` or ``out of order``.
        place: Where it stands; for a missing record, the record that should have caused it.
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
        identity: Callable[[StoredRecord], Identity | None],
    ) -> None:
        """Read the topic.

        Args:
            topic: Its name.
            reader: Reads it, and reads it again when something differs.
            identity: Of a record in the topic; None when it is not to be compared. Raises
                ``ContractError`` when it is none of ours.
        """
        super().__init__(topic)
        self._reader = reader
        self._written: dict[Identity, list[_Written]] = {}
        self._altered: dict[str, tuple[Identity, Send]] = {}
        self._missing: list[tuple[Identity, Send, StoredRecord]] = []
        self._furthest: dict[tuple[str, int], int] = {}
        """Partition of the causes → the highest offset of a cause whose record is in the topic."""
        for record in reader(topic):
            try:
                name = identity(record)
            except ContractError as error:
                self._differs("unreadable", key_text(record.key), record.place, error.message)
                continue
            if name is None:
                self.counts["not compared"] += 1
            else:
                written = self._written.setdefault(name, [])
                written.append(_Written(record.place, digest(record)))

    @abstractmethod
    def _identity(self, send: Send) -> Identity:
        """The identity of a record that must be there."""

    def expect(self, send: Send, cause: StoredRecord) -> None:
        """See ``Expecting``."""
        self.counts["expected"] += 1
        name, wanted = self._identity(send), digest(as_record(send))
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


class Decisions(Keyed):
    """The ddl topic: a decision's key is its identity."""

    def __init__(self, topic: str, reader: Reader, *, without: Iterable[str]) -> None:
        """Read the topic.

        Args:
            topic: Its name.
            reader: Reads it.
            without: Sources whose ``ignored`` decisions (the statement concerns no routed shard)
                are not compared.
        """
        left_out = tuple(f"ignored/{source}@".encode() for source in without)

        def identity(record: StoredRecord) -> Identity | None:
            if left_out and (record.key or b"").startswith(left_out):
                return None
            return f"decision {key_text(record.key)}"

        super().__init__(topic, reader, identity)

    def _identity(self, send: Send) -> Identity:
        return f"decision {key_text(send.key)}"


class Changes(Keyed):
    """The schema-log. The records of one source, and those of the commands, keep their order there.

    Attributes:
        told_after: A command's offset in its topic → the offset in its shard's source topic that
            the tracker had reached when it forwarded the command; -1 before the first. Only the log
            tells this, since the tracker reads the two topics side by side.
    """

    def __init__(self, topic: str, reader: Reader) -> None:
        """Read the topic."""
        self._places: dict[tuple[int, str], tuple[int, int]] = {}
        """Per partition and source, offset and ordinal of the furthest change."""
        self._seen: set[Identity] = set()
        self.told_after: dict[int, int] = {}
        super().__init__(topic, reader, self._identity_in_topic)

    def _identity_in_topic(self, record: StoredRecord) -> Identity:
        change = logged_change(codec.decode(record.value or b""), record.place)
        if isinstance(change, SchemaChange):
            name = _change_name(str(change.id), str(change.shard), str(change.target))
        else:
            name = _command_name(str(change.id), str(change.target))
            if change.shard is not None:
                at = (record.partition, change.shard.source)
                self.told_after[change.id.offset] = self._places.get(at, (-1, -1))[0]
        if name not in self._seen:
            self._seen.add(name)
            self._check_order(name, change.id, record)
        return name

    def _check_order(self, name: Identity, change: ChangeId, record: StoredRecord) -> None:
        at, place = (record.partition, change.source), (change.offset, change.ordinal)
        before = self._places.get(at, (-1, -1))
        if place < before:
            after = f"it stands after {change.source}@{before[0]}.{before[1]}"
            self._differs("out of order", name, record.place, after)
        else:
            self._places[at] = place

    def _identity(self, send: Send) -> Identity:
        # The fold just wrote the headers from the record.
        headers = dict(send.headers)
        if "shard" in headers:
            return _change_name(headers["id"], headers["shard"], headers["target"])
        return _command_name(headers["id"], headers["target"])


class Latest(Expecting):
    """A topic in which the last record per key counts; each older one counted at its time."""

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


class Requests(Expecting):
    """A topic that must hold every expected request; it may hold requests by others, too."""

    def __init__(self, topic: str, reader: Reader) -> None:
        """Read the topic."""
        super().__init__(topic)
        self._written = Counter(digest(record) for record in reader(topic))
        self._found: set[bytes | None] = set()

    def expect(self, send: Send, cause: StoredRecord) -> None:
        """See ``Expecting``."""
        self.counts["expected"] += 1
        wanted = digest(as_record(send))
        if wanted in self._written:
            self.counts["equal"] += 1
            self._found.add(wanted)
        else:
            what = f"request {send.value.decode('utf-8', 'backslashreplace')}"
            self._differs("missing", what, f"brought about by {cause.place}")

    def compare(self) -> Comparison:
        """See ``Expecting``."""
        for one, count in self._written.items():
            if one in self._found:
                self.counts["repeated"] += count - 1
            else:
                self.counts["not compared"] += count
        return self._made()


def _change_name(change_id: str, shard: str, target: str) -> Identity:
    return f"change {change_id} of {shard} for {target}"


def _command_name(command_id: str, target: str) -> Identity:
    return f"command {command_id} for {target}"


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
