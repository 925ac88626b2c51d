"""The loop that reads ranges: to their ends, or until a bound is reached."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from shardmerge.spark_sink.rows.decoding.row_format import RowFormat

from .range_reader import OffsetRange, Records, RowReader
from .shard_demux import Cursor, open_ranges


def chunks(
    cursor: Cursor, most_records: int = sys.maxsize, most_bytes: int = sys.maxsize
) -> Iterator[tuple[Records, int]]:
    """Read ranges to their ends, or until a bound is reached.

    The caller may leave the range of a chunk that it got (``Cursor.leave``). The cursor can go on
    later with what was not read.

    Args:
        cursor: Of the ranges.
        most_records: Most records to read.
        most_bytes: Reading ends with the chunk that reaches this many bytes of values.

    Yields:
        Records of one range, and the bytes of their values.

    Raises:
        ContractError: A range's start does not exist any more.
        StackError: Kafka cannot be read.
    """
    count = total = 0
    while cursor.is_open and count < most_records and total < most_bytes:
        for records in cursor.read(most_records - count):
            size = sum(map(len, filter(None, records.values)))
            count += len(records.values)
            total += size
            yield records, size


def records_in(
    reader: RowReader, wanted: OffsetRange, rows: RowFormat
) -> Iterator[tuple[int, bytes]]:
    """The records of one range, without tombstones: their offsets and values.

    Args:
        reader: It can be used for other ranges once the caller has stopped iterating.
        wanted: The range.
        rows: The records' format: it tells the shard of a record in a shared topic.

    Raises:
        ContractError, StackError: As ``chunks``.
    """
    for records, _ in chunks(open_ranges(reader, [wanted], rows)):
        for offset, value in zip(records.offsets, records.values, strict=True):
            if value is not None:
                yield offset, value
