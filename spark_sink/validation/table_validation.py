"""Compares one target with its shards, step by step. Pure: ``Servers`` reads for it.

1. The target and each shard give the digest of a range of keys. If the shards' digests together are
   the target's, the range is done.
2. Otherwise they give the digest of each row, and the rows whose digests differ are read.
3. Rows that differ are in doubt. They are looked at again until they are equal, or a difference
   (``doubts``).

If one side has far more rows in a range than planned, the range is cut first, so that memory is
bounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import xor
from typing import Any, Protocol, TypeAlias

from shardmerge.spark_sink.loading.chunk_ranges import KeyRange
from shardmerge.spark_sink.loading.key_order import Boundary

from .compared_table import ComparedTable, Side
from .counted_rows import count_difference, doubtful_counts, total
from .doubts import (
    Difference,
    Doubt,
    Key,
    SeenRow,
    Verdict,
    difference_of,
    differing,
    doubtful_keys,
    look_again,
)
from .row_keys import first_boundary

_SPLIT = 4
"""A range is cut when a side has more than this many times the rows that were planned."""
_KEYS_A_LOOK, _KEYS_A_LOOK_OF_SPARK = 200, 2_000
"""Spark needs a good part of a second for a query, however little it reads."""


Values: TypeAlias = tuple[bytes | None, ...]
Digests: TypeAlias = list[tuple[Key, int | None, Values]]
"""Of each row: its key, its digest, and the values of ``Side.loose``."""


class Servers(Protocol):
    """Reads the sides. Each method asks the servers of all given sides, and raises their errors."""

    def range_digests(self, sides: Sequence[Side], of: KeyRange) -> list[tuple[int, int]]:
        """For each side the number of rows of a range, and their digest."""
        ...

    def next_boundary(self, side: Side, after: Boundary | None, rows: int) -> Boundary | None:
        """The key of the last of ``rows`` rows behind a boundary; None for fewer rows."""
        ...

    def row_digests(self, sides: Sequence[Side], of: KeyRange) -> list[Digests]:
        """For each side key, digest and loose values of each row of a range."""
        ...

    def digest_counts(self, sides: Sequence[Side]) -> list[Mapping[Key, int]]:
        """For each side how many rows have each digest; of shards only rows of the target."""
        ...

    def rows(self, sides: Sequence[Side], keys: Sequence[Key]) -> list[list[tuple[Key, SeenRow]]]:
        """For each side its rows with these keys."""
        ...


class Passing(Protocol):
    """Knows how far the target has applied what the shards' sources wrote."""

    def note(self) -> object:
        """The positions at which the shards' sources are now."""
        ...

    def passed(self, noted: object) -> bool:
        """Wait until the target has applied everything before these positions.

        Returns:
            False when that took too long.
        """
        ...


@dataclass(slots=True)
class TableValidation:
    """The comparison of one target.

    Attributes:
        rows_a_range: About how many rows a range has in the target.
        after: The key up to which ranges are compared; None before the first.
        scanned: Whether all ranges are compared.
        ranges, rows: How many ranges, and how many rows of shards, were compared.
        doubts: Rows in doubt.
        unsettled: Rows that changed each time that they were read.
        behind: Whether the target did not pass a position in time; rows are left in doubt then.
    """

    table: ComparedTable
    servers: Servers
    passing: Passing
    rows_a_range: int = 20_000
    after: Boundary | None = None
    scanned: bool = False
    ranges: int = 0
    rows: int = 0
    doubts: dict[Key, Doubt] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)
    unsettled: list[Key] = field(default_factory=list)
    behind: bool = False
    _cut: list[KeyRange] = field(default_factory=list)

    @property
    def is_between_ranges(self) -> bool:
        """Whether everything up to ``after`` is compared."""
        return not self._cut

    def compare_next(self) -> int:
        """Compare the next range.

        Returns:
            How many rows were read on all sides, for a limit of rows a second.
        """
        if not self.table.side.key:
            return self._compare_counts()
        if self._cut:
            return self._compare_cut(self._cut.pop())
        boundary = self._next_boundary()
        of = KeyRange(self.after, boundary)
        read = self._compare(of)
        self.after, self.scanned = boundary, boundary is None
        return read

    def _next_boundary(self) -> Boundary | None:
        """Where the next range ends. Spark would read a whole table for it, shards an index."""
        table = self.table
        if not table.side.lake:
            return self.servers.next_boundary(table.side, self.after, self.rows_a_range)
        rows = max(1, self.rows_a_range // len(table.shards))
        ends = [self.servers.next_boundary(side, self.after, rows) for side in table.shards]
        return first_boundary(table.side.range_key, [end for end in ends if end is not None])

    def compare_keys(self, keys: Sequence[Key]) -> int:
        """Compare the rows with these keys, in place of a range.

        A server can find other rows under a key, too, such as ``A`` under ``a``. They are compared,
        too.

        Returns:
            How many rows were read on all sides.
        """
        table, read = self.table, 0
        for part in self._parts(keys):
            shards = _by_key(self.servers.rows(table.shards, part))
            target = _by_key(self.servers.rows((table.side,), part))
            for key in shards.keys() | target.keys():
                own, theirs = shards.get(key, []), target.get(key, [])
                if difference_of(table, key, own, _one(theirs)) is not None:
                    self.doubts.setdefault(key, Doubt(key))
                self.rows += len(own)
                read += len(own) + len(theirs)
        return read

    @property
    def is_compared(self) -> bool:
        """Whether no range is left."""
        return self.scanned and not self._cut

    def settle(self) -> bool:
        """Look once at the rows in doubt.

        Returns:
            Whether the target passed the position. If not, nothing new is known of the rows.
        """
        keys = sorted(self.doubts)
        if not keys:
            return True
        return self._settle_rows(keys) if self.table.side.key else self._settle_counts(keys)

    # --- ranges --------------------------------------------------------------------------------

    def _compare(self, of: KeyRange) -> int:
        sides = (self.table.side, *self.table.shards)
        (count, digest), *others = self.servers.range_digests(sides, of)
        counts = [count, *(number for number, _ in others)]
        shard_rows = sum(counts[1:])
        largest = counts.index(max(counts))
        if counts[largest] > _SPLIT * self.rows_a_range and self._split(sides[largest], of):
            return sum(counts)
        combined = reduce(xor, (part for _, part in others), 0)
        read = sum(counts)
        if self.table.only_rows or (count, digest) != (shard_rows, combined):
            self._compare_rows(sides, of)
            read *= 2
        # Not before: if DDL changes a table meanwhile, the range is compared again.
        self.ranges += 1
        self.rows += shard_rows
        return read

    def _compare_cut(self, of: KeyRange) -> int:
        try:
            return self._compare(of)
        except Exception:
            self._cut.append(of)  # it is compared when the server answers again
            raise

    def _split(self, side: Side, of: KeyRange) -> bool:
        boundary = self.servers.next_boundary(side, of.low, self.rows_a_range)
        if boundary is None or boundary in (of.low, of.high):
            return False
        self._cut += reversed(of.cut(boundary))
        return True

    def _compare_rows(self, sides: Sequence[Side], of: KeyRange) -> None:
        target, *shards = self.servers.row_digests(sides, of)
        theirs = {key: digest for key, digest, _ in target}
        loose = {key: values for key, _, values in target if values}
        found: dict[Key, list[Any]] = {}
        for side, rows in zip(sides[1:], shards, strict=True):
            for key, digest, values in rows:
                # An unknown digest makes a row one in doubt.
                is_other = key in loose and bool(differing(side.loose, values, loose[key]))
                found.setdefault(key, []).append(None if is_other else digest)
        keys = doubtful_keys(found, theirs)
        for key, differs in self._differences(sides, keys).items():
            if differs is not None:
                self.doubts.setdefault(key, Doubt(key))

    def _differences(
        self, sides: Sequence[Side], keys: Sequence[Key]
    ) -> dict[Key, Difference | None]:
        found = {}
        for part in self._parts(keys):
            target, shards = self._look(sides[:1], part), self._look(sides[1:], part)
            for key in part:
                found[key] = difference_of(self.table, key, shards[key], _one(target[key]))
        return found

    def _parts(self, keys: Sequence[Key]) -> list[Sequence[Key]]:
        size = _KEYS_A_LOOK_OF_SPARK if self.table.side.lake else _KEYS_A_LOOK
        return [keys[at : at + size] for at in range(0, len(keys), size)]

    def _look(self, sides: Sequence[Side], keys: Sequence[Key]) -> dict[Key, list[SeenRow]]:
        found: dict[Key, list[SeenRow]] = {key: [] for key in keys}
        for rows in self.servers.rows(sides, keys):
            for key, row in rows:
                if key in found:
                    found[key].append(row)
        return found

    # --- doubts --------------------------------------------------------------------------------

    def _settle_rows(self, keys: Sequence[Key]) -> bool:
        table = self.table
        before: dict[Key, list[SeenRow]] = {}
        for part in self._parts(keys):
            before |= self._look(table.shards, part)
        if not self._passed():
            return False
        for part in self._parts(keys):
            target, after = self._look((table.side,), part), self._look(table.shards, part)
            for key in part:
                row = _one(target[key])
                found = [difference_of(table, key, rows, row) for rows in (before[key], after[key])]
                self._judge(key, before[key], after[key], found)
        return True

    def _judge(
        self,
        key: Key,
        before: Sequence[object],
        after: Sequence[object],
        found: Sequence[Difference | None],
    ) -> None:
        differs = [difference is not None for difference in found]
        verdict, doubt = look_again(self.doubts[key], before, after, differs)
        if verdict is Verdict.AGAIN:
            self.doubts[key] = doubt
            return
        del self.doubts[key]
        if verdict is Verdict.DIFFERENT and (last := found[-1]) is not None:
            self.differences.append(last)
        elif verdict is Verdict.UNSETTLED:
            self.unsettled.append(key)

    def _passed(self) -> bool:
        self.behind = not self.passing.passed(self.passing.note())
        return not self.behind

    # --- tables without a primary key ----------------------------------------------------------

    def _compare_counts(self) -> int:
        sides = (self.table.side, *self.table.shards)
        if any(side.where for side in self.table.shards):
            return self._compare_each_count(sides)  # the servers would count other rows, too
        (count, digest), *others = self.servers.range_digests(sides, KeyRange())
        self.scanned, self.ranges = True, 1
        self.rows = sum(number for number, _ in others)
        if (count, digest) != (self.rows, sum(part for _, part in others)):
            self._compare_each_count(sides)
        return count + self.rows

    def _compare_each_count(self, sides: Sequence[Side]) -> int:
        target, *shards = self.servers.digest_counts(sides)
        found = total(shards)
        self.scanned, self.ranges = True, 1
        self.rows = sum(found.values())
        for key in doubtful_counts(found, target):
            self.doubts.setdefault(key, Doubt(key))
        return self.rows + sum(target.values())

    def _settle_counts(self, keys: Sequence[Key]) -> bool:
        table = self.table
        before = self.servers.digest_counts(table.shards)
        if not self._passed():
            return False
        (target,) = self.servers.digest_counts((table.side,))
        after = self.servers.digest_counts(table.shards)
        for key in keys:
            found = [
                count_difference(table, key, counts, target.get(key, 0))
                for counts in (before, after)
            ]
            was, is_now = ([sum(of.get(key, 0) for of in counts)] for counts in (before, after))
            self._judge(key, was, is_now, found)
        return True


def _by_key(found: Sequence[Sequence[tuple[Key, SeenRow]]]) -> dict[Key, list[SeenRow]]:
    rows: dict[Key, list[SeenRow]] = {}
    for key, row in (pair for each in found for pair in each):
        rows.setdefault(key, []).append(row)
    return rows


def _one(rows: Sequence[SeenRow]) -> SeenRow | None:
    return rows[0] if rows else None
