"""What Debezium cannot read of a MariaDB source's tables. Pure.

* Columns of types that it does not know. For a first snapshot it reads the CREATE TABLE of every
  table of the captured databases, also of tables that ``tables`` leaves out; at such a table it
  ends, and so does each retry. A table that is made later is brought past it by
  ``connectors.repair``.
* System-versioned tables: their rows have the times of each version, also where no CREATE TABLE
  shows these columns. The connector stops at such a row ("internal schema size 2, but row size 4").
* COMPRESSED columns, which the binlog tells with types of their own (140, 141). The client by which
  Debezium reads the binlog ends at rows of such a table, with a NullPointerException: also where
  the connector leaves the table out.
* Rows and statements of a binlog that is compressed (``log_bin_compress``). That client does not
  know their events (165 to 171) and passes them over: they are lost, and nothing says so.

Source: measured with Debezium 3.5.0 and MariaDB 11.8; tests/integration/connect/test_mariadb.py.
The last two: mysql-binlog-connector-java 0.40.6, ``EventType`` and ``ColumnType``; MariaDB,
``log_event.h`` and ``field.h``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Source

UNREAD_TYPES: Mapping[str, tuple[str, ...]] = {"mariadb": ("inet4", "inet6")}
"""Flavour of a source → names of types."""
NO_END = "Debezium 3.5.0 cannot read the CREATE TABLE, so a first snapshot never ends"
OTHER_TYPE = (
    "make it a VARCHAR(39), or move the table to a database that the source's databases leave out"
)
VERSIONED = "is system-versioned: Debezium 3.5.0 stops at its rows, which have two columns more"
UNVERSIONED = (
    "leave the table out with the source's tables, or ALTER TABLE … DROP SYSTEM VERSIONING"
)
COMPRESSED = (
    "ends the connector: it is COMPRESSED, and the client that reads the binlog fails at rows of "
    "its table, also where the connector leaves the table out"
)
UNCOMPRESSED = "ALTER TABLE … MODIFY the column without COMPRESSED"
LOST_ROWS = (
    "log_bin_compress is ON: Debezium passes over compressed events, and the rows and statements "
    "in them are lost without an error"
)
UNCOMPRESSED_BINLOG = (
    "SET GLOBAL log_bin_compress = OFF, also in the server's configuration; what a connector has "
    "passed over must be read again"
)


@dataclass(frozen=True, slots=True)
class Unread:
    """What a source has of that.

    Attributes:
        columns: In captured databases, as ``database.table.column (TYPE)``.
        versioned: Captured tables, as ``database.table``.
        compressed: COMPRESSED columns of all tables of the server, as ``database.table.column``.
    """

    columns: Sequence[str] = ()
    versioned: Sequence[str] = ()
    compressed: Sequence[str] = ()


def refuse_unread(source: Source, unread: Unread) -> None:
    """Refuse to make a connector that could not go on.

    Raises:
        StackError: The source has such tables.
    """
    if unread.columns and source.snapshot_mode != "never":
        raise StackError(
            f"source {source.name}: {', '.join(unread.columns)}: {NO_END}",
            hint=OTHER_TYPE,
            code="SM-4407",
        )
    if unread.versioned:
        raise StackError(
            f"source {source.name}: {', '.join(unread.versioned)} {VERSIONED}",
            hint=UNVERSIONED,
            code="SM-4407",
        )
    if unread.compressed:
        raise StackError(
            f"source {source.name}: {', '.join(unread.compressed)} {COMPRESSED}",
            hint=UNCOMPRESSED,
            code="SM-4407",
        )


def refuse_compressed_binlog(source: Source, *, is_compressed: bool) -> None:
    """Refuse a connector that would lose rows.

    Raises:
        StackError: The source's server compresses its binlog.
    """
    if is_compressed:
        raise StackError(
            f"source {source.name}: {LOST_ROWS}", hint=UNCOMPRESSED_BINLOG, code="SM-6114"
        )
