"""Finds the offset from which a partition's rows behind a binlog position begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from shardmerge.schemas.model.position import SourcePosition
from shardmerge.spark_sink.barrier.applied import Applied
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.barrier.shard_gates import Gate
from shardmerge.spark_sink.barrier.truncations import Truncation
from shardmerge.spark_sink.planning.ranges import Advance
from shardmerge.spark_sink.rows.decoding.row_envelope import READ, UndecodableRow
from shardmerge.spark_sink.rows.decoding.row_format import JSON_ROWS, RowFormat

from .range_reader import OffsetRange, RowReader
from .range_records import records_in

_BLOCK = 1_000


def moves_behind(
    truncation: Truncation,
    partitions: Sequence[Partition],
    applied: Mapping[Partition, Applied],
    reader: RowReader,
    rows: RowFormat = JSON_ROWS,
) -> list[Advance]:
    """The moves of a shard's partitions to their first rows behind a TRUNCATE.

    Args:
        truncation: The TRUNCATE.
        partitions: Of the shard's rows.
        applied: Partition → where it stands.
        reader: Of row topics.
        rows: The records' format.

    Raises:
        StackError, ContractError: As ``first_offset_from``.
    """
    moves = []
    for partition in partitions:
        start = applied.get(partition, Applied(0)).offset
        to = truncation.offset + 1
        if partition != truncation.partition:
            to = first_offset_from(reader, partition, start, truncation.position, rows)
        if to != start:
            topic, number, part = partition
            moves.append(Advance(topic, number, start, to, truncation.target, 0, 0, 0, part))
    return moves


def first_offset_from(
    reader: RowReader,
    partition: Partition,
    end: int,
    position: SourcePosition,
    rows: RowFormat = JSON_ROWS,
) -> int:
    """Offset of a partition's first row that stands at or beyond a position; ``end`` if none.

    Args:
        reader: Of row topics.
        partition: A partition of one shard, whose rows are in position order there.
        end: Offset at which to stop looking (exclusive).
        position: The position to look for.
        rows: The records' format.

    Raises:
        StackError: Kafka cannot be read, or the registry of the rows' schemas.
        ContractError: A range's start does not exist any more.
    """
    lowest = reader.beginning(partition)
    found, block_end, size = end, end, _BLOCK
    while block_end > lowest:
        start = max(block_end - size, lowest)
        wanted = OffsetRange(partition.topic, partition.number, start, block_end, partition.shard)
        before = False
        for offset, value in records_in(reader, wanted, rows):
            place = _position(value, rows)
            if place is None:
                continue
            if place >= position:
                found = offset
                break
            before = True
        if before:
            return found
        block_end, size = start, size * 2
    return found


def last_operation(
    reader: RowReader, partition: Partition, end: int, rows: RowFormat = JSON_ROWS
) -> str | None:
    """The operation of a partition's last row before an offset; None when there is no row.

    Rows that cannot be decoded are skipped.

    Raises:
        StackError, ContractError: As ``first_offset_from``.
    """
    lowest, block_end, size = reader.beginning(partition), end, _BLOCK
    while block_end > lowest:
        start = max(block_end - size, lowest)
        wanted = OffsetRange(partition.topic, partition.number, start, block_end, partition.shard)
        last = None
        for _, value in records_in(reader, wanted, rows):
            with suppress(UndecodableRow):
                last = rows.decode(value).op
        if last is not None:
            return last
        block_end, size = start, size * 2
    return None


def has_snapshot_row(
    reader: RowReader, partition: Partition, end: int, gate: Gate, rows: RowFormat = JSON_ROWS
) -> bool:
    """Whether a partition has a row of the snapshot that described its shard at a gate.

    Args:
        reader: Of row topics.
        partition: The shard's.
        end: Offset at which to stop looking (exclusive).
        gate: The snapshot's rows have the gate's position, and were made at or after the gate's
            ``began_ms``.
        rows: The records' format.

    Raises:
        StackError, ContractError: As ``first_offset_from``.
    """
    start = first_offset_from(reader, partition, end, gate.position, rows)
    wanted = OffsetRange(partition.topic, partition.number, start, end, partition.shard)
    for _, value in records_in(reader, wanted, rows):
        if (position := _position(value, rows)) is None:
            continue
        if position > gate.position:
            return False
        record = rows.decode(value)
        if record.op == READ and record.ts_ms >= gate.began_ms:
            return True
    return False


def _position(value: bytes, rows: RowFormat) -> SourcePosition | None:
    """The binlog position of a row; None if the row says nothing about its order.

    That is so for rows of an incremental snapshot, which come between rows of the binlog, and for
    records that cannot be decoded.
    """
    try:
        record = rows.decode(value)
        position = record.position
    except (UndecodableRow, KeyError, TypeError):
        return None
    return None if record.is_incremental else position
