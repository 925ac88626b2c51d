"""Reads windows of shared partitions: which shards have records there, and the records.

A *window* is ``[start, end)`` of a whole partition, below its stable end. The sink reads it before
it plans, and then looks only at the shards that are named there. A task reads the same records just
afterwards. So the reader keeps them, and the task's cursor takes them from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeAlias

from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.range_reader import CHUNK, Kept, OffsetRange, RowReader
from shardmerge.spark_sink.rows.decoding.row_envelope import Names
from shardmerge.spark_sink.rows.decoding.row_format import RowFormat

KEPT_BYTES = 16 << 20
"""Records of windows with more bytes of values than this are not kept."""


class Window(NamedTuple):
    """What a window has.

    Attributes:
        end: The offset up to which it was read (exclusive): less than what was asked for if a
            transaction is still open below.
        names: The shards that have records there. None: a record does not say its shard, so any
            shard may have some.
    """

    end: int
    names: AbstractSet[Names] | None


ReadWindows: TypeAlias = Callable[[Mapping[Partition, tuple[int, int]]], Mapping[Partition, Window]]
"""Whole partition → start and end of its window, to what the window has. Windows that are too large
to be read beforehand are left out.

Raises:
    ContractError: A window's start does not exist any more.
    StackError: Kafka cannot be read, or a schema of the records.
"""


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
    cursor = reader.open(
        [OffsetRange(*p[:2], start, end, tells_moves=True) for p, (start, end) in asked.items()]
    )
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
