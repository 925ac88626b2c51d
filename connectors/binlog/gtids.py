"""Sets of GTIDs as they stand in a connector's offset. Pure.

MySQL names a transaction ``uuid:number`` (since 8.3 also ``uuid:tag:number``) and a set
``uuid:1-5:7,uuid:tag:1-3``. MariaDB names it ``domain-server-number``; what a connector has read is
the last of each domain.

Source: MySQL Reference Manual, "GTID Format and Storage"; MariaDB, "Global Transaction ID".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

_INTERVAL = re.compile(r"(\d+)(?:-(\d+))?")
_MARIADB = re.compile(r"\d+-\d+-\d+")

Intervals: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class MySqlGtids:
    """A set of MySQL's GTIDs.

    Attributes:
        intervals: ``uuid`` or ``uuid:tag`` → closed intervals of numbers, sorted, not touching.
    """

    intervals: Mapping[str, Intervals]

    def has(self, gtid: str) -> bool:
        """Whether the set holds this one transaction."""
        name, number = _split(gtid)
        return any(first <= number <= last for first, last in self.intervals.get(name, ()))

    def adding(self, gtid: str) -> MySqlGtids:
        """The set with one transaction more."""
        name, number = _split(gtid)
        there = (*self.intervals.get(name, ()), (number, number))
        return MySqlGtids({**self.intervals, name: _merged(there)})

    def union(self, other: MySqlGtids) -> MySqlGtids:
        """The transactions of both sets."""
        names = self.intervals.keys() | other.intervals.keys()
        both = {n: (*self.intervals.get(n, ()), *other.intervals.get(n, ())) for n in names}
        return MySqlGtids({name: _merged(intervals) for name, intervals in both.items()})

    def without(self, other: MySqlGtids) -> MySqlGtids:
        """The transactions of this set that are not in the other one."""
        left = {
            name: _subtracted(own, other.intervals.get(name, ()))
            for name, own in self.intervals.items()
        }
        return MySqlGtids({name: own for name, own in left.items() if own})

    @property
    def count(self) -> int:
        """How many transactions it holds."""
        return sum(last - first + 1 for own in self.intervals.values() for first, last in own)

    def within(self, other: MySqlGtids) -> bool:
        """Whether every transaction of this set is in the other one."""
        return all(
            any(low <= first and last <= high for low, high in other.intervals.get(name, ()))
            for name, own in self.intervals.items()
            for first, last in own
        )

    def __str__(self) -> str:
        return ",".join(
            ":".join((name, *(_interval_text(i) for i in own)))
            for name, own in sorted(self.intervals.items())
        )


@dataclass(frozen=True, slots=True)
class MariaDbGtids:
    """The last transaction of each of MariaDB's domains.

    Attributes:
        last: Domain → server and number of its last transaction.
    """

    last: Mapping[int, tuple[int, int]]

    def has(self, gtid: str) -> bool:
        """Whether the transaction is at or before the last one of its domain."""
        domain, _, number = _parts(gtid)
        return domain in self.last and number <= self.last[domain][1]

    def adding(self, gtid: str) -> MariaDbGtids:
        """The set with this transaction as the last of its domain, unless it has a later one."""
        domain, server, number = _parts(gtid)
        if self.has(gtid):
            return self
        return MariaDbGtids({**self.last, domain: (server, number)})

    def within(self, other: MariaDbGtids) -> bool:
        """Whether the other one is as far or further in every domain of this one."""
        return all(
            domain in other.last and number <= other.last[domain][1]
            for domain, (_, number) in self.last.items()
        )

    def without(self, other: MariaDbGtids) -> MariaDbGtids:
        """The domains in which the other one is not as far as this one."""
        return MariaDbGtids(
            {
                domain: last
                for domain, last in self.last.items()
                if not MariaDbGtids({domain: last}).within(other)
            }
        )

    def __str__(self) -> str:
        return ",".join(f"{d}-{server}-{n}" for d, (server, n) in sorted(self.last.items()))


Gtids: TypeAlias = MySqlGtids | MariaDbGtids


def gtids_of(text: str) -> Gtids | None:
    """Read a set; None for a text that names no transaction.

    An interval that ends before it begins is empty, as to Debezium.

    Raises:
        ValueError: It is neither MySQL's nor MariaDB's form.
    """
    parts = [part for part in re.split(r"[\s,]+", text) if part]
    if not parts:
        return None
    if all(_MARIADB.fullmatch(part) for part in parts):
        # A server's state names the last transaction of each server of a domain.
        return reduce(MariaDbGtids.adding, parts, MariaDbGtids({}))
    intervals: dict[str, list[tuple[int, int]]] = {}
    for part in parts:
        uuid, *rest = part.split(":")
        if not rest:
            raise ValueError(f"{part!r} is no GTID set")
        name = uuid.lower()
        for word in rest:
            match = _INTERVAL.fullmatch(word)
            if match is None:
                name = f"{uuid.lower()}:{word}"
                continue
            first, last = int(match[1]), int(match[2] or match[1])
            if first <= last:
                intervals.setdefault(name, []).append((first, last))
    return MySqlGtids({n: _merged(own) for n, own in intervals.items()}) if intervals else None


def is_within(one: Gtids, other: Gtids) -> bool:
    """Whether the second set has all of the first."""
    if isinstance(one, MySqlGtids) and isinstance(other, MySqlGtids):
        return one.within(other)
    if isinstance(one, MariaDbGtids) and isinstance(other, MariaDbGtids):
        return one.within(other)
    return False


def precedes(one: Gtids, other: Gtids) -> bool:
    """Whether the second set has all of the first and more."""
    return is_within(one, other) and not is_within(other, one)


def _split(gtid: str) -> tuple[str, int]:
    name, _, number = gtid.rpartition(":")
    if not name or not number.isdigit():
        raise ValueError(f"{gtid!r} is no GTID of MySQL")
    uuid, colon, tag = name.partition(":")
    return uuid.lower() + colon + tag, int(number)


def _parts(gtid: str) -> tuple[int, int, int]:
    if not _MARIADB.fullmatch(gtid):
        raise ValueError(f"{gtid!r} is no GTID of MariaDB")
    domain, server, number = (int(part) for part in gtid.split("-"))
    return domain, server, number


def _merged(intervals: Iterable[tuple[int, int]]) -> Intervals:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(intervals):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged)


def _subtracted(own: Intervals, other: Intervals) -> Intervals:
    """The numbers of sorted intervals that are in none of the others, which are sorted, too."""
    left: list[tuple[int, int]] = []
    for first, last in own:
        at = first
        for low, high in other:
            if high < at or low > last:
                continue
            if low > at:
                left.append((at, low - 1))
            at = high + 1
        if at <= last:
            left.append((at, last))
    return tuple(left)


def _interval_text(interval: tuple[int, int]) -> str:
    first, last = interval
    return str(first) if first == last else f"{first}-{last}"
