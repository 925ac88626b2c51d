"""The quick path of a fold: records that are like one that was examined. Pure.

They belong to the same segment, since their positions lie within its bounds, and its decoder checks
all else of them. There are two ways:

* ``images`` decodes each record to an image, which becomes a line or values later;
* ``lines`` lets the target's ``RecordLines`` make lines of the records at once. It is used where
  earlier rows are lines already (``Changes.is_settled``), so few rows stay values, as they have to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from shardmerge.spark_sink.rows.decoding.row_envelope import (
    DELETE,
    INCREMENTAL,
    READ,
    UNDECODABLE,
    UPDATE,
)

from .line_maker import RecordLines
from .row_batches import Changes
from .segment_locator import SegmentLocator
from .segment_plan import SegmentPlan


@dataclass(slots=True)
class Tally:
    """What was taken.

    Attributes:
        place: Index of the first record that was not taken.
        rows: Row events among the taken ones.
        growth: By how many rows the shard's table grew.
        refused: Whether ``RecordLines`` refused the record at the place.
    """

    place: int
    rows: int = 0
    growth: int = 0
    refused: bool = False


@dataclass(slots=True)
class DirectLines:
    """A segment's ``RecordLines``, and whether it is worth asking.

    Attributes:
        taken: Records that it took.
        refused: Records that it refused.
    """

    lines: RecordLines
    taken: int = 0
    refused: int = 0

    @property
    def is_useful(self) -> bool:
        """Whether most records are taken: a refusal costs as much as decoding a hundred records."""
        return _LEAST_TAKEN * self.refused <= self.taken + _FIRST_RECORDS


_LEAST_TAKEN, _FIRST_RECORDS = 128, 1_024


@dataclass(slots=True)
class QuickPath:
    """Takes records of one segment.

    Attributes:
        plan: Of the segment.
        last: Where changes are kept.
        at: Where the record stands that was examined.
        wrapped: Whether that record has Connect's embedded schema.
        counts_reads: Whether a row that an initial snapshot read is new to the target.
        goes: Whether every row is taken back.
        ignores: Operation and record → whether the record is ignored; None if none is.
    """

    plan: SegmentPlan
    last: Changes
    at: SegmentLocator
    wrapped: bool
    counts_reads: bool
    goes: bool
    ignores: Callable[[str, bytes], bool] | None
    _key_places: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._key_places = tuple(map(self.plan.names.index, self.plan.key))

    def lines(
        self,
        direct: DirectLines,
        offsets: Sequence[int],
        values: Sequence[bytes | None],
        place: int,
    ) -> Tally:
        """Take some records, beginning at a place; all earlier changes are settled."""
        some: Sequence[Any] = values[place : place + _MOST_RECORDS]
        places: Sequence[int] = range(place, place + len(some))
        if None in some:
            places = [n for n in places if values[n] is not None]
            some = [values[n] for n in places]
        end = place + _MOST_RECORDS if len(values) > place + _MOST_RECORDS else len(values)
        if not some:
            return Tally(end)
        at = self.at
        assert at.file is not None
        found = direct.lines.take(some, at.file[1], at.low[0], at.high[0], wrapped=self.wrapped)
        rows = len(found.keys)
        direct.taken += rows
        direct.refused += found.refused
        operations = found.operations
        deletes = [
            (n, (offsets[places[n]], at.number, self._image_of(found.keys[n]), True))
            for n in _all_of(operations, DELETE)
        ]
        self.last.take_lines(at.number, found.keys, found.lines, deletes)
        unchanged = operations.count(UPDATE.encode()) + 2 * len(deletes)
        if reads := _all_of(operations, READ):
            again = self._is_again(some[reads[0]])
            if again == self._is_again(some[reads[-1]]):
                unchanged += again * len(reads)
            else:
                unchanged += sum(self._is_again(some[n]) for n in reads)
        after = end if rows == len(some) else places[rows]
        return Tally(after, rows, rows - unchanged, found.refused)

    def _image_of(self, key: Any) -> Any:
        """An image that has the primary key's values alone: enough to delete the row."""
        values: list[Any] = [None] * len(self.plan.names)
        parts = (key,) if len(self._key_places) == 1 else key
        for place, part in zip(self._key_places, parts, strict=True):
            values[place] = part
        return self.plan.decoder.make(*values)

    def _is_again(self, value: bytes) -> bool:
        """Whether a row that was read is not new to the target."""
        return not self.counts_reads or _INCREMENTAL in value

    def images(
        self, offsets: Sequence[int], values: Sequence[bytes | None], places: range
    ) -> Tally:
        """Take records up to the first that has to be examined."""
        decoder = self.plan.decoder
        decode = decoder.decode_wrapped if self.wrapped else decoder.decode
        decode_image, key_of = decoder.decode_image, self.plan.key_of
        if decode is None or decode_image is None or key_of is None:
            return Tally(places.start)
        at = self.at
        number, file = at.number, at.file[1] if at.file else None
        low, high = at.low[0], at.high[0]
        last, place, tombstones, goes = self.last, places.start, 0, self.goes
        deleted = unchanged = 0
        ignores = self.ignores
        # Rows with one position are all of a table's first snapshot, or all read again.
        read_at, again = -1, True
        try:
            for place in places:
                value = values[place]
                if value is None:
                    tombstones += 1
                    continue
                record = decode(value)
                source = record.source
                if source.file != file or not low < source.pos < high:
                    break
                op = record.op
                if ignores is not None and ignores(op, value):
                    continue
                if op == DELETE:
                    image = decode_image(record.before)
                    last[key_of(image)] = (offsets[place], number, image, True)
                    deleted += 1
                elif (image := record.after) is not None:
                    last[key_of(image)] = (offsets[place], number, image, goes)
                    if op == UPDATE:
                        unchanged += 1
                    elif op == READ:
                        if source.pos != read_at:
                            read_at = source.pos
                            again = self._is_again(value)
                        unchanged += again
                else:
                    break
            else:
                place = places.stop
        except (*UNDECODABLE, TypeError):
            pass  # the record is examined again, which finds the reason
        taken = place - places.start - tombstones
        return Tally(place, taken, taken - unchanged - 2 * deleted)


def _all_of(operations: bytes, wanted: str) -> list[int]:
    """The places of an operation."""
    letter = wanted.encode()
    found = []
    place = operations.find(letter)
    while place >= 0:
        found.append(place)
        place = operations.find(letter, place + 1)
    return found


_MOST_RECORDS = 1_000
_INCREMENTAL = INCREMENTAL.encode()
"""Searched for in the bytes of the whole record, in any format. A value of the row that contains it
also makes the row count as incremental, which only lowers the growth."""
