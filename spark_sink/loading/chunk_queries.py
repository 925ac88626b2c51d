"""The SQL that reads a shard for its load. Pure.

All statements of a chunk run in one read-only transaction with a consistent snapshot
(``begin_snapshot``). The first SELECT locks the table's metadata until the transaction ends. Then
SHOW CREATE TABLE and the rows are read. So the schema that was shown is the schema of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from shardmerge.schemas.model.mysql_text import string_literal
from shardmerge.schemas.model.names import ShardId, quote_identifier
from shardmerge.schemas.model.tables import Column

from .chunk_ranges import KeyRange, behind, condition
from .key_order import Boundary, KeyColumn, order_by


def session_settings(lock_wait_s: int, query_s: int, *, mariadb: bool) -> tuple[str, ...]:
    """Statements for each new connection to a source.

    Args:
        lock_wait_s: Longest wait for a metadata lock that DDL holds. While a reader waits for it,
            later statements on the table wait behind the reader.
        query_s: Longest time of one SELECT.
        mariadb: The kind of server.
    """
    longest = (
        f"max_statement_time = {query_s}" if mariadb else f"max_execution_time = {query_s * 1000}"
    )
    return (
        # Without strict modes, dates that these refuse are values like others. A TIMESTAMP is read
        # in UTC.
        f"SET SESSION sql_mode = '', time_zone = '+00:00', lock_wait_timeout = {lock_wait_s}, "
        f"{longest}",
        "SET NAMES utf8mb4",
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    )


def long_read_settings(query_s: int, *, mariadb: bool) -> tuple[str, ...]:
    """Statements for a connection that reads a whole table by one SELECT.

    Args:
        query_s: Longest time of the SELECT; 0 for no limit.
        mariadb: The kind of server.
    """
    longest = (
        f"max_statement_time = {query_s}" if mariadb else f"max_execution_time = {query_s * 1000}"
    )
    # The server waits this long while the target takes what was read.
    return (f"SET SESSION {longest}, net_write_timeout = 600",)


def begin_snapshot() -> str:
    """Begins the transaction of a chunk. Its snapshot is taken at this moment."""
    return "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"


def show_table(shard: ShardId) -> tuple[str, str]:
    """Two statements: one locks the table's metadata until the transaction ends, one shows it."""
    name = table_name(shard)
    return f"SELECT 1 FROM {name} LIMIT 0", f"SHOW CREATE TABLE {name}"


def table_statistics(shard: ShardId) -> str:
    """Asks for the server's estimates: rows, and bytes of rows. They may be far off."""
    return (
        "SELECT TABLE_ROWS, DATA_LENGTH FROM information_schema.TABLES"
        f" WHERE TABLE_SCHEMA = {string_literal(shard.database)}"
        f" AND TABLE_NAME = {string_literal(shard.table)}"
    )


def key_extent(shard: ShardId, column: KeyColumn) -> str:
    """Asks for the least and the greatest key; both NULL for an empty table."""
    quoted = quote_identifier(column.name)
    return f"SELECT MIN({quoted}), MAX({quoted}) FROM {table_name(shard)}"


def next_boundary(
    shard: ShardId, key: Sequence[KeyColumn], after: Boundary | None, rows: int
) -> str:
    """Asks for the key of the last of ``rows`` rows; the answer is empty when there are fewer.

    Args:
        shard: The table.
        key: The columns of its primary key.
        after: Where the range begins; None for the first range.
        rows: At least 1.
    """
    columns = ", ".join(column.selected for column in key)
    where = "" if after is None else f" WHERE {behind(key, after)}"
    return (
        f"SELECT {columns} FROM {table_name(shard)} FORCE INDEX (PRIMARY){where}"
        f" ORDER BY {order_by(key)} LIMIT {rows - 1}, 1"
    )


def chunk_rows(
    shard: ShardId,
    key: Sequence[KeyColumn],
    of: KeyRange,
    columns: Sequence[Column],
    row_filter: str = "",
    *,
    read: Callable[[Column], str] | None = None,
) -> str:
    """Asks for the rows of a range, in the key's order.

    Args:
        shard: The table.
        key: The columns of its primary key; empty for a table without one, which is read whole.
        of: The range.
        columns: The columns to read, in this order; see ``wanted_columns``.
        row_filter: SQL condition that every row that is merged fulfils, see ``row_filters``; "" for
            all rows.
        read: SQL that gives a column's values; None for ``read_column``.
    """
    names = ", ".join(map(read or read_column, columns))
    conditions = [part for part in (condition(key, of), row_filter and f"({row_filter})") if part]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    if not key:
        return f"SELECT {names} FROM {table_name(shard)}{where}"
    return (
        f"SELECT {names} FROM {table_name(shard)} FORCE INDEX (PRIMARY){where}"
        f" ORDER BY {order_by(key)}"
    )


def wanted_columns(
    columns: Sequence[Column], written: Collection[str], needed: Collection[str]
) -> tuple[Column, ...]:
    """The columns that a chunk reads, in the table's order.

    Args:
        columns: The columns of the shard.
        written: Names of the columns whose values go into the target.
        needed: Names, in lower case, of the key's columns and of those in the route's condition.
    """
    return tuple(c for c in columns if c.name in written or c.name.lower() in needed)


def read_column(column: Column) -> str:
    """SQL that gives a column's exact values.

    Servers write a FLOAT with six digits, so it is read as the double of the same value. They send
    a BIT as bytes, so it is read as a number. Texts come in utf8mb4, spatial values in the server's
    form.
    """
    quoted = quote_identifier(column.name)
    if column.type.name == "float":
        return f"{quoted} + 0e0"
    if column.type.name == "bit":
        return f"{quoted} + 0"
    return quoted


def read_column_as_text(column: Column) -> str:
    """SQL that gives a column's exact values as texts; of bytes, their hexadecimal digits.

    The error value of an ENUM is '0', as servers read it. Not for all types: see
    ``packed_lines.can_be_packed``.
    """
    quoted = quote_identifier(column.name)
    if column.type.is_binary:
        return f"HEX({quoted})"
    if column.type.name == "enum" and "" not in column.type.elements:
        return f"IF({quoted} = 0, '0', {quoted})"
    return read_column(column)


def table_name(shard: ShardId) -> str:
    """The shard's quoted, qualified name on its server."""
    return f"{quote_identifier(shard.database)}.{quote_identifier(shard.table)}"
