"""About how many rows the shards' tables have, by their servers' own statistics."""

from __future__ import annotations

from collections.abc import Sequence

import pymysql

from shardmerge.cli.clients import mysql_cursor
from shardmerge.connectors.access.mysql import mysql_error
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.settings import Pipeline


def row_counts(pipeline: Pipeline, shards: Sequence[ShardId]) -> dict[ShardId, int]:
    """Shard → its server's estimate of its rows. A shard without an estimate is missing.

    Source: MySQL Reference Manual, "The INFORMATION_SCHEMA TABLES Table": for InnoDB the number is
    an estimate.

    Raises:
        StackError: A source's server does not answer.
    """
    wanted = set(shards)
    found: dict[ShardId, int] = {}
    for source in pipeline.sources:
        if not any(shard.source == source.name for shard in wanted):
            continue
        try:
            with mysql_cursor(source) as cursor:
                cursor.execute(
                    "SELECT table_schema, table_name, table_rows FROM information_schema.tables"
                    " WHERE table_type = 'BASE TABLE' AND table_rows IS NOT NULL"
                )
                for database, table, rows in cursor.fetchall():
                    shard = ShardId(source.name, str(database), str(table))
                    if shard in wanted:
                        found[shard] = int(rows)
        except pymysql.MySQLError as error:
            raise StackError(
                f"source {source.name} at {source.host}:{source.port}: {mysql_error(error)}",
                hint="leave out --rows: a plan does not need the numbers of rows",
                code="SM-6101",
            ) from error
    return found
