"""Reads windows, and keeps their records.

A task reads the same records just afterwards. So the task's cursor takes them from the reader.
"""

from __future__ import annotations

from collections.abc import Mapping

from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.range_reader import CHUNK, OffsetRange, RowReader
from shardmerge.spark_sink.kafka.windows.window import Kept
from shardmerge.spark_sink.rows.decoding.row_envelope import Names
from shardmerge.spark_sink.rows.decoding.row_format import RowFormat

from .kept_records import kept_cursor
from .window import Window

KEPT_BYTES = 16 << 20
"""Records of windows with more bytes of values than this are not kept."""


def read_windows(
    reader: RowReader, asked: Mapping[Partition, tuple[int, int]], rows: RowFormat
) -> dict[Partition, Window]:
    """Read windows, and keep their records in the reader until the next call.

    Args:
        reader: Its last cursor is not used any more.
        asked: Whole partition → start and end.
        rows: The records' format: it tells the shard of a record.

    Raises:
        ContractError, StackError: As ``ReadWindows``.
    """
    reader.kept = {}
    kept = {p: Kept(start, end, [], []) for p, (start, end) in asked.items()}
    names: dict[Partition, set[Names] | None] = {p: set() for p in asked}
    size = 0
    wanted = [
        OffsetRange(*p[:2], start, end, tells_moves=True) for p, (start, end) in asked.items()
    ]
    cursor = kept_cursor(reader, wanted) or reader.open(wanted)
    while cursor.is_open:
        for partition, offsets, values in cursor.read(CHUNK):
            named = names[partition]
            for value in values:
                if value is None:
                    continue
                size += len(value)
                name = rows.names_of(value)
                if name is None:
                    named = names[partition] = None
                elif named is not None:
                    named.add(name)
            if size <= KEPT_BYTES:
                kept[partition].offsets.extend(offsets)
                kept[partition].values.extend(values)
    ends = {partition: cursor.reached(partition) for partition in asked}
    if size <= KEPT_BYTES:
        reader.kept = {p: one._replace(end=ends[p]) for p, one in kept.items()}
    return {partition: Window(ends[partition], names[partition]) for partition in asked}
