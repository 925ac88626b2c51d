"""Records of one table partition that are folded one after the other and performed together. Pure.

Each record is folded onto the rows that the records before it leave, as if these were stored. So
the group's effects are those that the records have one by one: of several puts of a row the last
one counts, and all sends stand in their order.

Nobody else writes the partition's rows while a group is filled. So a row is read from the table
once for all records of the group: Faust and RocksDB take longer for one row than a fold looks at.
"""

from __future__ import annotations

from collections.abc import Iterator

from .effects import (
    Effects,
    JournalEntry,
    Rows,
    Send,
    SourceRecord,
    from_bytes,
    journal_key,
    to_bytes,
)

MAX_RECORDS = 100
MAX_BYTES = 256 * 1024
"""A group that is larger takes no further record. Its effects are one row of the table."""


class RecordGroup:
    """The records so far, and the rows as they leave them; a fold reads it as its rows.

    Args:
        rows: The table's.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._read: dict[bytes, bytes | None] = {}
        """The table's rows that were asked for."""
        self._puts: dict[bytes, bytes | None] = {}
        self._sends: list[Send] = []
        self._offsets: dict[tuple[str, int], int] = {}
        """Topic and partition → offset of the last one of its records."""
        self._last: SourceRecord | None = None
        self._count = self._bytes = 0

    def get(self, key: bytes) -> bytes | None:
        """The row behind the group's records, or None."""
        if key in self._puts:
            return self._puts[key]
        if key not in self._read:
            self._read[key] = self._rows.get(key)
        return self._read[key]

    def keys(self) -> Iterator[bytes]:
        """All row keys behind the group's records, without those of the journals."""
        yield from (key for key in self._rows.keys() if key not in self._puts)  # noqa: SIM118
        yield from (key for key, value in self._puts.items() if value is not None)

    def journal(self, topic: str, partition: int) -> JournalEntry | None:
        """The journal of a source partition behind the group's records; None: it has none yet."""
        offset = self._offsets.get((topic, partition))
        if offset is not None:
            return JournalEntry(offset, Effects())
        stored = self.get(journal_key(topic, partition))
        return None if stored is None else from_bytes(stored)

    def add(self, record: SourceRecord, effects: Effects) -> None:
        """Take a record and what its fold gave; its journal is one of the group's effects now."""
        self._puts |= effects.puts
        self._sends += effects.sends
        self._offsets[record.topic, record.partition] = record.offset
        self._last = record
        self._count += 1
        self._bytes += sum(len(value or b"") for value in effects.puts.values())
        self._bytes += sum(len(send.value) for send in effects.sends)

    @property
    def is_full(self) -> bool:
        """Whether it takes no further record."""
        return self._count >= MAX_RECORDS or self._bytes >= MAX_BYTES

    @property
    def at_hand(self) -> JournalEntry | None:
        """The records at hand: the last one's offset, the effects of all. None without a record."""
        if self._last is None:
            return None
        journals = {
            journal_key(*place): to_bytes(JournalEntry(offset, Effects()))
            for place, offset in self._offsets.items()
        }
        return JournalEntry(self._last.offset, Effects(self._puts | journals, tuple(self._sends)))
