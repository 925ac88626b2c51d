"""Reads from the row topics which rows have changed since a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardmerge.connectors.formats.stored_record import Extent
from shardmerge.connectors.kafka.registry import RegistryAddress
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.topics import RowTopics
from shardmerge.spark_sink.validation.compared_table import ComparedTable
from shardmerge.spark_sink.validation.doubts import Key
from shardmerge.spark_sink.validation.proofs import MOST_KEYS, Place
from shardmerge.spark_sink.validation.record_keys import NamesNoKey, RecordKeys

from .range_reader import OffsetRange, RowReader
from .row_avro import row_format


def changed_keys(
    pipeline: Pipeline,
    table: ComparedTable,
    since: Mapping[Place, int],
    extents: Sequence[Extent],
    most: int = MOST_KEYS,
) -> list[Key]:
    """The keys that have a record, sorted.

    Args:
        pipeline: Of the shards.
        table: What is compared.
        since: Partition → the offset to begin at; 0 for a partition that is not named.
        extents: Of all partitions of the shards' topics; each is read up to its end.
        most: How many keys may have changed.

    Raises:
        NamesNoKey: A record changes rows that it does not name, or too many rows have changed.
        UndecodableRow: A record is no row record.
        StackError: Kafka does not answer.
    """
    rows = row_format(RegistryAddress.of(pipeline.kafka))
    topics = RowTopics(pipeline.routes)
    keys_of: dict[str, list[RecordKeys]] = {}
    for side in table.shards:
        assert side.shard is not None
        keys_of.setdefault(topics.topic_of(side.shard), []).append(RecordKeys(side, rows))
    ranges = [
        OffsetRange(each.topic, each.partition, start, each.end)
        for each in extents
        if (start := max(each.begin, since.get((each.topic, each.partition), 0))) < each.end
    ]
    found: set[Key] = set()
    if not ranges:
        return []
    reader = RowReader(pipeline.kafka)
    try:
        cursor = reader.open(ranges)
        while cursor.is_open:
            for records in cursor.read():
                for value in records.values:
                    for keys in keys_of[records.partition.topic] if value is not None else ():
                        found |= keys.of(value or b"")
                if len(found) > most:
                    raise NamesNoKey(f"more than {most:,} rows have changed meanwhile")
        short = [each for each in ranges if cursor.reached(each.place) < each.end]
    finally:
        reader.close()
    if short:
        raise StackError(
            f"{short[0].place} could not be read up to offset {short[0].end}: a transaction is"
            " still open there",
            hint="run the command again",
            code="SM-4420",
        )
    return sorted(found)
