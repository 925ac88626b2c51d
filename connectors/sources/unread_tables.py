"""Asks a source's server for tables that Debezium cannot read."""

from __future__ import annotations

from pymysql.cursors import Cursor

from shardmerge.connectors.debezium.unread_types import UNREAD_TYPES, Unread
from shardmerge.schemas.pipeline.settings import Source


def unread_tables(cursor: Cursor, source: Source) -> Unread:
    """What the source has of such tables; see ``Unread``."""
    if source.flavour not in UNREAD_TYPES:
        return Unread()
    cursor.execute(
        "SELECT table_schema, table_name, column_name, data_type FROM information_schema.columns"
        " WHERE data_type IN %s ORDER BY 1, 2, ordinal_position",
        (UNREAD_TYPES[source.flavour],),
    )
    columns = tuple(
        f"{database}.{table}.{column} ({kind.upper()})"
        for database, table, column, kind in cursor.fetchall()
        if source.reads_database(database)
    )
    cursor.execute(
        "SELECT table_schema, table_name FROM information_schema.tables"
        " WHERE table_type = 'SYSTEM VERSIONED' ORDER BY 1, 2"
    )
    names = [name for name in cursor.fetchall() if source.reads_table(*name)]
    versioned = tuple(f"{database}.{table}" for database, table in names)
    # The values of an ENUM or SET are a part of its type, too.
    cursor.execute(
        "SELECT table_schema, table_name, column_name FROM information_schema.columns"
        " WHERE column_type LIKE '%COMPRESSED*/%' AND data_type NOT IN ('enum', 'set')"
        " ORDER BY 1, 2, ordinal_position"
    )
    return Unread(columns, versioned, tuple(".".join(name) for name in cursor.fetchall()))


def compresses_binlog(cursor: Cursor) -> bool:
    """Whether a MariaDB server compresses the events of its binlog now."""
    cursor.execute("SHOW GLOBAL VARIABLES LIKE 'log_bin_compress'")
    return any(str(value).upper() in ("ON", "1") for _, value in cursor.fetchall())
