"""Asks a source's server for columns that Debezium cannot read."""

from __future__ import annotations

from pymysql.cursors import Cursor

from shardmerge.connectors.debezium.unread_types import UNREAD
from shardmerge.schemas.pipeline.settings import Source


def unread_columns(cursor: Cursor, source: Source) -> tuple[str, ...]:
    """Such columns of a source's captured databases, as ``database.table.column (TYPE)``."""
    types = UNREAD.get(source.flavour)
    if not types:
        return ()
    cursor.execute(
        "SELECT table_schema, table_name, column_name, data_type FROM information_schema.columns"
        " WHERE data_type IN %s ORDER BY 1, 2, ordinal_position",
        (types,),
    )
    return tuple(
        f"{database}.{table}.{column} ({kind.upper()})"
        for database, table, column, kind in cursor.fetchall()
        if source.reads_database(database)
    )
