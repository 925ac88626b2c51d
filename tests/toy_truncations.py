"""How a toy sink goes on behind a TRUNCATE: with the real search for the rows behind it."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar, cast

from shardmerge.spark_sink.barrier.applied import Applied, RowProgress
from shardmerge.spark_sink.barrier.truncations import Truncation
from shardmerge.spark_sink.kafka.range_reader import OffsetRange, Records
from shardmerge.spark_sink.kafka.rewind import first_offset_from
from shardmerge.spark_sink.kafka.windows.window import Kept
from tests.toy_kafka import Place, Row, ToyKafka


@dataclass(frozen=True)
class Move:
    """A partition's way to its first row behind a TRUNCATE.

    Attributes:
        passed: Offset → number of the row events before ``end`` that it passes; backwards none.
    """

    place: Place
    start: int
    end: int
    passed: dict[int, int]


def moves_behind(truncation: Truncation, kafka: ToyKafka, rows: RowProgress) -> list[Move]:
    """What the driver does when the shard's rows are deleted."""
    moves = []
    for place in rows.partitions_of(truncation.shard):
        start = rows.applied.get(place, Applied(0)).offset
        end = truncation.offset + 1
        if place != truncation.partition:
            reader, form = cast(Any, _ToyReader(kafka)), cast(Any, _ToyFormat())
            end = first_offset_from(reader, place, start, truncation.position, form)
        if end != start:
            passed = {o: r.number for o, r in _rows(kafka, place, start, end)}
            moves.append(Move(place, start, end, passed))
    return moves


def _rows(kafka: ToyKafka, place: Place, start: int, end: int) -> Iterator[tuple[int, Row]]:
    for offset, row in kafka.logs[place].committed(start, end):
        assert isinstance(row, Row)
        yield offset, row


class _ToyReader:
    """Reads rows as they are."""

    kept: ClassVar[dict[Place, Kept]] = {}
    seen: ClassVar[dict[Place, Kept]] = {}

    def __init__(self, kafka: ToyKafka) -> None:
        self._kafka = kafka

    def beginning(self, place: Place) -> int:
        return 0

    def open(self, ranges: Sequence[OffsetRange]) -> _ToyCursor:
        [wanted] = ranges
        place = wanted.place
        return _ToyCursor(place, _rows(self._kafka, place, wanted.start, wanted.end))


class _ToyCursor:
    is_open = True

    def __init__(self, place: Place, rows: Iterable[tuple[int, Row]]) -> None:
        self._place, self._rows = place, list(rows)

    def read(self, most: int) -> list[Records]:
        self.is_open = False
        values = [pickle.dumps(row) for _, row in self._rows]
        return [Records(self._place, [offset for offset, _ in self._rows], values)]


class _ToyFormat:
    def decode(self, value: bytes) -> SimpleNamespace:
        row: Row = pickle.loads(value)
        return SimpleNamespace(position=row.position, is_incremental=row.reread)
