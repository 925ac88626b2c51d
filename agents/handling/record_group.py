"""Records of one table partition that are folded one after the other and performed together. Pure.

Each record is folded onto the rows that the records before it leave, as if these were stored. So
the group's effects are those that the records have one by one: of several puts of a row the last
one counts, and all sends stand in their order.
"""

from __future__ import annotations

from collections.abc import Iterator

from .effects import Effects, JournalEntry, Rows, Send, SourceRecord, journalled

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
        self._puts: dict[bytes, bytes | None] = {}
        self._sends: list[Send] = []
        self._last: SourceRecord | None = None
        self._count = self._bytes = 0

    def get(self, key: bytes) -> bytes | None:
        """The row behind the group's records, or None."""
        return self._puts[key] if key in self._puts else self._rows.get(key)

    def keys(self) -> Iterator[bytes]:
        """All row keys behind the group's records."""
        yield from (key for key in self._rows.keys() if key not in self._puts)  # noqa: SIM118
        yield from (key for key, value in self._puts.items() if value is not None)

    def add(self, record: SourceRecord, effects: Effects) -> None:
        """Take a record and what its fold gave; its journal's row is one of the rows now."""
        more = journalled(record, effects)
        self._puts |= more.puts
        self._sends += more.sends
        self._last = record
        self._count += 1
        self._bytes += sum(len(value or b"") for value in more.puts.values())
        self._bytes += sum(len(send.value) for send in more.sends)

    @property
    def is_full(self) -> bool:
        """Whether it takes no further record."""
        return self._count >= MAX_RECORDS or self._bytes >= MAX_BYTES

    @property
    def at_hand(self) -> JournalEntry | None:
        """The records at hand: the last one's offset, the effects of all. None without a record."""
        if self._last is None:
            return None
        return JournalEntry(self._last.offset, Effects(self._puts, tuple(self._sends)))
