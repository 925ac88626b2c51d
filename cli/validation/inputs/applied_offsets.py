"""How far the target is: the offsets that the sink stored with the rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

import pymysql

from shardmerge.cli.clients import mysql_cursor
from shardmerge.connectors.access.mysql import mysql_error
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId, quote_identifier
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.topics import RowTopics
from shardmerge.spark_sink.barrier.partitions import Partition

Offsets: TypeAlias = Mapping[Partition, int]
"""Partition → the first offset that the target has not applied."""
Applied: TypeAlias = Callable[[], Offsets]
"""Reads the offsets.

Raises:
    StackError: The target does not answer.
"""


def control_offsets(pipeline: Pipeline) -> Applied:
    """Reads the offsets from the control database of a target that is a server."""
    control = quote_identifier(pipeline.target.control_database)
    own = f"SELECT topic, partition_number, next_offset FROM {control}.offsets"
    shared = (
        "SELECT topic, partition_number, next_offset, shard_source, shard_database, shard_table"
        f" FROM {control}.shared_offsets"
    )

    def read() -> Offsets:
        found: dict[Partition, int] = {}
        try:
            with mysql_cursor(pipeline.target) as cursor:
                for query in (own, shared):
                    cursor.execute(f"{query} WHERE pipeline = %s", (pipeline.name,))
                    for topic, number, offset, *shard in cursor.fetchall():
                        part = ShardId(*shard) if shard else None
                        found[Partition(topic, int(number), part)] = int(offset)
        except pymysql.MySQLError as error:
            raise StackError(
                f"target: {mysql_error(error)}",
                hint="check that the target runs, and that its user may read the control database",
                code="SM-4411",
            ) from error
        return found

    return read


def reached(
    offsets: Offsets, shards: Collection[ShardId], topics: RowTopics
) -> dict[tuple[str, int], int]:
    """Topic and partition → the first offset that the target has not applied for some shards.

    In a topic that shards share, it is the lowest one of these shards. It is 0 if nothing is stored
    for one of them, although there is for others: the sink has applied none of its rows there.

    Args:
        offsets: What the sink has stored.
        shards: The shards.
        topics: Where their rows are.
    """
    sharing: dict[str, list[ShardId]] = {}
    for shard in shards:
        if topics.is_shared(shard):
            sharing.setdefault(topics.topic_of(shard), []).append(shard)
    found: dict[tuple[str, int], int] = {}
    for topic, number, part in offsets:
        if part is None:
            found[topic, number] = offsets[Partition(topic, number)]
        elif (topic, number) not in found and (own := sharing.get(topic)):
            parts = (Partition(topic, number, shard) for shard in own)
            found[topic, number] = min(offsets.get(each, 0) for each in parts)
    return found
