"""Reads what ``compare`` judges: columns, indexes and rows of the target, rows of the shards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TypeAlias

import pymysql
from pymysql.cursors import Cursor

from shardmerge.local.union import Table, read_table
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Kafka, Pipeline
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.offsets import OffsetReader

from .compare import FoundColumn, FoundIndex

Connection: TypeAlias = "pymysql.Connection[Cursor]"


def columns(connection: Connection, database: str, table: str) -> list[FoundColumn]:
    """The columns of a table, in order; empty when it does not exist."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, column_type, is_nullable, column_default, character_set_name, "
            "collation_name, generation_expression FROM information_schema.columns "
            "WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
            (database, table),
        )
        return [
            FoundColumn(
                name, _text(kind), nullable == "YES", _text_or_none(default), charset, collation,
                _text(generated or ""),
            )
            for name, kind, nullable, default, charset, collation, generated in cursor.fetchall()
        ]  # fmt: skip


def indexes(connection: Connection, database: str, table: str) -> list[FoundIndex]:
    """The indexes of a table."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT index_name, non_unique, column_name FROM information_schema.statistics "
            "WHERE table_schema = %s AND table_name = %s ORDER BY index_name, seq_in_index",
            (database, table),
        )
        found: dict[str, FoundIndex] = {}
        for name, non_unique, column in cursor.fetchall():
            earlier = found.get(name)
            before = earlier.columns if earlier else ()
            found[name] = FoundIndex(name, not int(non_unique), (*before, column or "(expression)"))
    return list(found.values())


def shards(
    connections: Iterable[tuple[str, Connection]], databases: Iterable[str], tables: str
) -> list[tuple[str, Table]]:
    """The shards that exist now, with their rows, under ``source/database.table``.

    ``tables`` is a regular expression of their whole names.
    """
    found = []
    wanted = sorted(databases)
    for source, connection in connections:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT table_schema, table_name FROM information_schema.tables "
                "WHERE table_schema IN %s AND table_type = 'BASE TABLE' ORDER BY 1, 2",
                (wanted,),
            )
            names = [entry for entry in cursor.fetchall() if re.fullmatch(tables, entry[1])]
        for database, table in names:
            content = read_table(connection, database, table)
            if content is not None:
                found.append((f"{source}/{database}.{table}", content))
    return found


def _text(value: object) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def row_ends(pipeline: Pipeline, shards: Sequence[ShardId]) -> dict[ShardId, int]:
    """Where the row topics end (read committed); shards without a row have none."""
    reader = _offset_reader(pipeline.kafka.bootstrap_servers)
    counts = reader.partitions({topics.row_topic(shard) for shard in shards})
    ends = reader.stable_ends(Partition(t, n) for t, count in counts.items() for n in range(count))
    return {
        shard: sum(end for where, end in ends.items() if where.topic == topics.row_topic(shard))
        for shard in shards
    }


@cache
def _offset_reader(bootstrap_servers: str) -> OffsetReader:
    return OffsetReader(Kafka(bootstrap_servers))
