"""The control tables' definitions; ``control`` and ``journal`` say what they are for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import quote_identifier

from .session import MySqlSession

TABLES = {
    "offsets": """(
        pipeline VARCHAR(64) NOT NULL,
        topic VARCHAR(255) NOT NULL,
        partition_number INT NOT NULL,
        next_offset BIGINT NOT NULL,
        target_database VARCHAR(64) NOT NULL,
        target_table VARCHAR(64) NOT NULL,
        row_events BIGINT NOT NULL,
        rows_written BIGINT NOT NULL,
        rows_deleted BIGINT NOT NULL,
        changed_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)
            ON UPDATE CURRENT_TIMESTAMP(3),
        PRIMARY KEY (pipeline, topic, partition_number)
    )""",
    "shared_offsets": """(
        pipeline VARCHAR(64) NOT NULL,
        topic VARCHAR(249) NOT NULL,
        partition_number INT NOT NULL,
        shard_source VARCHAR(128) NOT NULL,
        shard_database VARCHAR(64) NOT NULL,
        shard_table VARCHAR(64) NOT NULL,
        next_offset BIGINT NOT NULL,
        target_database VARCHAR(64) NOT NULL,
        target_table VARCHAR(64) NOT NULL,
        row_events BIGINT NOT NULL,
        rows_written BIGINT NOT NULL,
        rows_deleted BIGINT NOT NULL,
        changed_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)
            ON UPDATE CURRENT_TIMESTAMP(3),
        PRIMARY KEY (
            pipeline, topic, partition_number, shard_source, shard_database, shard_table
        )
    )""",
    "row_topics": """(
        pipeline VARCHAR(64) NOT NULL,
        topic VARCHAR(255) NOT NULL,
        topic_id VARCHAR(32) NOT NULL,
        partitions INT NOT NULL,
        changed_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)
            ON UPDATE CURRENT_TIMESTAMP(3),
        PRIMARY KEY (pipeline, topic)
    )""",
    "writer_epoch": """(
        pipeline VARCHAR(64) NOT NULL PRIMARY KEY,
        epoch BIGINT NOT NULL,
        taken_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)
            ON UPDATE CURRENT_TIMESTAMP(3)
    )""",
    "writer_slots": """(
        pipeline VARCHAR(64) NOT NULL,
        slot INT NOT NULL,
        epoch BIGINT NOT NULL,
        PRIMARY KEY (pipeline, slot)
    )""",
    "cutovers": """(
        pipeline VARCHAR(64) NOT NULL,
        target_database VARCHAR(64) NOT NULL,
        target_table VARCHAR(64) NOT NULL,
        closed TINYINT NOT NULL,
        record LONGTEXT NOT NULL,
        changed_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)
            ON UPDATE CURRENT_TIMESTAMP(3),
        PRIMARY KEY (pipeline, target_database, target_table)
    )""",
    "rebuilds": """(
        pipeline VARCHAR(64) NOT NULL,
        number INT NOT NULL,
        target_database VARCHAR(64) NOT NULL,
        target_table VARCHAR(64) NOT NULL,
        stage VARCHAR(16) NOT NULL,
        record LONGTEXT NOT NULL,
        changed_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)
            ON UPDATE CURRENT_TIMESTAMP(3),
        PRIMARY KEY (pipeline, number)
    )""",
    "ddl_journal": """(
        pipeline VARCHAR(64) NOT NULL,
        target_database VARCHAR(64) NOT NULL,
        target_table VARCHAR(64) NOT NULL,
        version BIGINT NOT NULL,
        ordinal INT NOT NULL,
        state VARCHAR(8) NOT NULL,
        statement LONGTEXT NOT NULL,
        actions LONGTEXT NULL,
        schema_before LONGTEXT NULL,
        error LONGTEXT NOT NULL,
        code VARCHAR(16) NOT NULL DEFAULT '',
        changed_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)
            ON UPDATE CURRENT_TIMESTAMP(3),
        PRIMARY KEY (pipeline, target_database, target_table, version, ordinal)
    )""",
    "drift": """(
        pipeline VARCHAR(64) NOT NULL,
        target_database VARCHAR(64) NOT NULL,
        target_table VARCHAR(64) NOT NULL,
        subject VARCHAR(128) NOT NULL,
        kind VARCHAR(16) NOT NULL,
        expected LONGTEXT NOT NULL,
        found LONGTEXT NOT NULL,
        since_ms BIGINT NOT NULL,
        clear_ms BIGINT NOT NULL,
        PRIMARY KEY (pipeline, target_database, target_table, subject)
    )""",
}
LATER_COLUMNS = (
    ("ddl_journal", "actions", "LONGTEXT NULL AFTER statement"),
    ("ddl_journal", "code", "VARCHAR(16) NOT NULL DEFAULT '' AFTER error"),
)
"""Table, column and definition of columns that tables made by an earlier version lack."""
TIDB_ONLY = frozenset({"writer_slots"})
SLOTS = 64
"""Rows of a pipeline in ``writer_slots``: many more than there are sessions that write at once."""
# Names are compared byte by byte, and utf8mb4 keys of 255 characters fit from MySQL 5.7 on.
OPTIONS = "ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"


def qualified(database: str, name: str) -> str:
    """The quoted, qualified name of a table of the control database."""
    return f"{quote_identifier(database)}.{quote_identifier(name)}"


def prepare_tables(session: MySqlSession, database: str) -> None:
    """Make the control database and its tables where they are missing; outside a transaction.

    Args:
        session: The caller's.
        database: The control database.
    """
    if not session.query(
        "SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s", (database,)
    ):
        session.execute(
            f"CREATE DATABASE IF NOT EXISTS {quote_identifier(database)} CHARACTER SET utf8mb4"
        )
    left_out = frozenset() if session.is_tidb else TIDB_ONLY
    tables = {name: text for name, text in TABLES.items() if name not in left_out}
    make_tables(session, database, tables)
    add_later_columns(session, database, LATER_COLUMNS)


def make_tables(session: MySqlSession, database: str, tables: Mapping[str, str]) -> None:
    """Make tables of the control database where they are missing; outside a transaction.

    Args:
        session: The caller's.
        database: The control database.
        tables: Name → definition, as in ``TABLES``.
    """
    for name, definition in tables.items():
        session.execute(
            f"CREATE TABLE IF NOT EXISTS {qualified(database, name)} {definition} {OPTIONS}"
        )


def add_later_columns(
    session: MySqlSession, database: str, columns: Iterable[tuple[str, str, str]]
) -> None:
    """Add columns to control tables of an earlier version that lack them.

    Args:
        session: The caller's.
        database: The control database.
        columns: As ``LATER_COLUMNS``.
    """
    for table, column, definition in columns:
        if has_column(session, database, table, column):
            continue
        try:
            session.execute(
                f"ALTER TABLE {qualified(database, table)} ADD COLUMN {column} {definition}"
            )
        except TargetError:
            # Another sink may have begun at the same time.
            if not has_column(session, database, table, column):
                raise


def has_column(session: MySqlSession, database: str, table: str, column: str) -> bool:
    """Whether a control table has a column."""
    return bool(
        session.query(
            "SELECT 1 FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s"
            " AND TABLE_NAME = %s AND COLUMN_NAME = %s",
            (database, table, column),
        )
    )
