"""Finds the segment of a row by its position in the binlog. Pure."""

from __future__ import annotations

from bisect import bisect_right
from enum import Enum

from shardmerge.schemas.model.position import BEGINNING, SourcePosition
from shardmerge.spark_sink.planning.ranges import ShardStream
from shardmerge.spark_sink.rows.decoding.row_envelope import READ, RowRecord


class Found(Enum):
    """Where a row stands."""

    IN_SEGMENT = "in a segment"
    BEHIND_STOP = "at the stream's stop, or beyond it"
    BEFORE_FIRST = "before the first segment"


class SegmentLocator:
    """Remembers the segment of the last row, and its bounds, because most rows are within them.

    Args:
        stream: The shard's segments and stop.

    Attributes:
        number: Of the last row's segment (``segment_plans``); -1 before the first row.
        position: Of the last row that was not within the bounds.
        file: Epoch and binlog file of the bounds.
        low, high: The bounds in that file, each a binlog offset and a row number: ``[low, high)``.
    """

    def __init__(self, stream: ShardStream) -> None:
        self._stream = stream
        self._starts = [segment.start.sort_key for segment in stream.segments]
        self.number = -1
        self.position = BEGINNING
        self.file: tuple[int, str] | None = None
        self.low: tuple[float, float] = (0, 0)
        self.high: tuple[float, float] = (0, 0)

    def is_within(self, record: RowRecord) -> bool:
        """Whether a row is certainly in the last row's segment.

        Raises:
            KeyError, TypeError: The record's source block names no binlog position.
        """
        source = record.source
        if (record.epoch, source["file"]) != self.file:
            return False
        return self.low <= (source["pos"], source["row"]) < self.high

    def locate(self, record: RowRecord) -> Found:
        """Find the segment of a row, and the segment's bounds in the row's binlog file."""
        position = self.position = record.position
        stop, segments = self._stream.stop, self._stream.segments
        if stop is not None and is_behind(record, position, stop, self._stream.stop_began_ms):
            return Found.BEHIND_STOP
        number = bisect_right(self._starts, position.sort_key) - 1
        while number > 0 and not is_behind(
            record, position, segments[number].start, segments[number].began_ms
        ):
            number -= 1
        if number < 0:
            return Found.BEFORE_FIRST
        following = [segment.start for segment in segments[number + 1 : number + 2]]
        if stop is not None:
            following.append(stop)
        self.number = 2 * position.epoch * len(segments) + number
        self.file = _file_of(position)
        start = segments[number].start
        self.low = (start.pos, start.row) if _file_of(start) == self.file else (-1, -1)
        if segments[number].began_ms and position == start:
            # Behind such a row its partition has only rows of the same snapshot, or of the binlog.
            self.low = (start.pos - 1, 0)
        self.high = min(
            ((p.pos, p.row) for p in following if _file_of(p) == self.file),
            default=(float("inf"), 0),
        )
        return Found.IN_SEGMENT


def is_behind(
    record: RowRecord, position: SourcePosition, gate: SourcePosition, began_ms: int
) -> bool:
    """Whether a row stands behind a gate; ``began_ms``: of the gate, see ``shard_gates.Gate``.

    If the binlog did not move between an interrupted snapshot and the one that replaced it, the
    rows of both have one position. Then the connector's clock tells them apart.
    """
    if position != gate or not began_ms or record.op != READ or record.is_incremental:
        return position >= gate
    return record.ts_ms >= began_ms


def _file_of(position: SourcePosition) -> tuple[int, str]:
    """Epoch and binlog file: files of two servers may have the same name."""
    return position.epoch, position.file
