"""What writers committed against what row topics hold: lost, doubled, wrong, out of order. Pure.

Every change of a row gets a number of its own, which the row holds in the column ``n``: an insert
and an update in the new image, a delete in the old one. So a record tells which change it is,
whatever became of the table's other columns.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

NUMBER = "n"
Image = tuple[tuple[str, Any], ...]
"""Column names and values, in the order of the columns."""
_OPERATIONS = {"c": "insert", "u": "update", "d": "delete", "r": "read", "t": "truncate"}


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a row that a writer committed.

    Attributes:
        image: The row after it; of a delete the row before it.
        committed_s: When the commit was answered, by a monotonic clock.
    """

    table: str
    operation: str
    number: int
    image: Image
    committed_s: float


@dataclass(frozen=True, slots=True)
class Seen:
    """A record of a row topic.

    Attributes:
        place: Binlog file, position and row of the record.
        high_watermark: End of the source's schema-change topic, read after the record was.
        seen_s: When a reader of committed records had it, by the same clock.
    """

    table: str
    operation: str
    number: int
    image: Image
    place: tuple[str, int, int]
    high_watermark: int
    seen_s: float


@dataclass(slots=True)
class Tally:
    """What is not as it must be; all zero is right.

    Attributes:
        lost: Changes that were passed over: a later one of their table was readable.
        doubled: Records beyond the first of a change.
        wrong: Records whose names or values are not those that were written, or whose columns
            the tracked schema of their place does not have.
        disordered: Records that come behind a later change of their table.
        early: Records that were readable before a schema change that stands before them.
        ddl_lost, ddl_doubled: Schema changes that the tracker did not see, or took twice.
        ddl_wrong: Tables whose tracked schema is not the server's in the end.
    """

    lost: int = 0
    doubled: int = 0
    wrong: int = 0
    disordered: int = 0
    early: int = 0
    ddl_lost: int = 0
    ddl_doubled: int = 0
    ddl_wrong: int = 0

    def add(self, other: Tally) -> None:
        """Add another one's counts."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))


def wire_value(value: object) -> object:
    """A value of a client as a row record holds it; bytes are those of a BIT column."""
    return base64.b64encode(value[::-1]).decode() if isinstance(value, bytes) else value


def seen_record(
    table: str, value: Mapping[str, Any], high_watermark: int, seen_s: float
) -> Seen | None:
    """A row topic's record; None for one that holds no row (TRUNCATE)."""
    image = value["before"] if value["op"] == "d" else value["after"]
    if image is None:
        return None
    source = value["source"]
    place = (source["file"], source["pos"], source["row"] or 0)
    operation = _OPERATIONS[value["op"]]
    number = image.get(NUMBER, -1)
    return Seen(table, operation, number, tuple(image.items()), place, high_watermark, seen_s)


def compare(changes: Iterable[Change], seen: Sequence[Seen], tally: Tally) -> list[str]:
    """Count rows that are lost, doubled, wrong and out of order; gives a line for each.

    Args:
        changes: In the order of their commits within each table.
        seen: In the order of each topic.
        tally: Is added to.
    """
    wanted = {(c.table, c.operation, c.number): c for c in changes}
    found = Counter((s.table, s.operation, s.number) for s in seen)
    order = {key: at for at, key in enumerate(wanted)}
    told = []
    reached: dict[str, int] = {}
    for key in found.keys() & order.keys():
        reached[key[0]] = max(order[key], reached.get(key[0], -1))
    for key in wanted.keys() - found.keys():
        if order[key] < reached.get(key[0], -1):
            told.append(f"lost: {' '.join(map(str, key))} {dict(wanted[key].image)}")
            tally.lost += 1
    for key, count in found.items():
        if count > 1:
            told.append(f"{count} times: {' '.join(map(str, key))}")
            tally.doubled += count - 1
    last: dict[str, int] = {}
    for record in seen:
        change = wanted.get((record.table, record.operation, record.number))
        if change is None or change.image != record.image:
            was = "nothing" if change is None else dict(change.image)
            told.append(
                f"wrong: {record.table} {record.operation} at {record.place}: "
                f"{dict(record.image)}, written was {was}"
            )
            tally.wrong += 1
        at = order.get((record.table, record.operation, record.number), -1)
        if 0 <= at < last.get(record.table, -1):
            told.append(f"out of order: {record.table} {record.number} at {record.place}")
            tally.disordered += 1
        last[record.table] = max(at, last.get(record.table, -1))
    return told


def longest_wait(changes: Iterable[Change], seen: Iterable[Seen], since_s: float) -> float | None:
    """The longest that a row committed after a moment took to be readable, in seconds.

    None when nothing was committed after it, or something was never readable.
    """
    times: dict[tuple[str, str, int], float] = {}
    for record in seen:
        times.setdefault((record.table, record.operation, record.number), record.seen_s)
    waited = [
        times.get((c.table, c.operation, c.number), float("inf")) - c.committed_s
        for c in changes
        if c.committed_s > since_s
    ]
    longest = max(waited, default=float("inf"))
    return None if longest == float("inf") else longest
