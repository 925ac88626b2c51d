"""Makes the signal table of a source, checks that its user may write to it, and writes to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pymysql
from pymysql.cursors import Cursor

from shardmerge.connectors.access.mysql import NOT_ADMITTED, connect, mysql_error
from shardmerge.connectors.debezium.signals import signal_database, signal_table_ddl
from shardmerge.connectors.debezium.unread_types import Unread
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import SIGNAL_TABLE, quote_identifier
from shardmerge.schemas.pipeline.settings import Pipeline, Source

from .unread_tables import compresses_binlog, unread_tables

_NO_DATABASE = 1044
_DENIED = (_NO_DATABASE, 1142)
_PROBE, _MOVE = "shardmerge-probe", "shardmerge-reading"


def prepare_signal_table(pipeline: Pipeline, source: Source, timeout_s: int = 10) -> None:
    """Make a source's signal table if it is missing, and try the rights that marks need.

    Safe to call again. A connector stops when it meets rows of a table that it does not know: it
    must have read the table in its first snapshot, or see the CREATE TABLE in the binlog.

    Raises:
        StackError: The server cannot be reached or refuses; the hint says what to grant.
    """
    database = signal_database(pipeline, source)
    table = _table(database)
    with _connected(database, source, timeout_s) as connection, connection.cursor() as cursor:
        try:
            for statement in signal_table_ddl(pipeline, source):
                cursor.execute(statement)
        except pymysql.MySQLError as error:
            # It may be there already, made by somebody who has the right.
            if error.args[0] not in _DENIED:
                raise
        cursor.execute(f"INSERT INTO {table} VALUES (%s, 'probe', NULL)", (_PROBE,))
        cursor.execute(f"DELETE FROM {table} WHERE id = %s", (_PROBE,))
        # Never committed, so it is not in the binlog.
        connection.rollback()


def move_binlog(pipeline: Pipeline, source: Source, timeout_s: int = 10) -> None:
    """Write to a source's signal table, so that its binlog ends at a new position.

    The table stays empty. The connector reads the row as a signal that asks for a line in its log.

    Raises:
        StackError: The server cannot be reached or refuses; the hint says what to grant.
    """
    write_mark(pipeline, source, _MOVE, "tables are read as a whole", timeout_s)


def write_mark(
    pipeline: Pipeline, source: Source, name: str, message: str, timeout_s: int = 10
) -> None:
    """Write a row with a name into a source's signal table, and delete it.

    When this returns, the server has committed everything that its binlog has before the mark:
    servers commit in the binlog's order. The connector writes the row into the table's row topic,
    and reads it as a signal that asks for a line in its log.

    Args:
        pipeline: Has the source.
        source: The source.
        name: Of the mark, at most 255 characters; another one for each mark.
        message: The line; without quotes.
        timeout_s: For the connection.

    Raises:
        StackError: The server cannot be reached or refuses; the hint says what to grant.
    """
    write_mark_into(signal_database(pipeline, source), source, name, message, timeout_s)


def write_mark_into(
    database: str, source: Source, name: str, message: str, timeout_s: int = 10
) -> None:
    """As ``write_mark``, for a process that has no pipeline file.

    Args:
        database: Of the source's signal table (``signals.signal_database``).
        source: The source.
        name: See ``write_mark``.
        message: See ``write_mark``.
        timeout_s: For the connection.

    Raises:
        StackError: See ``write_mark``.
    """
    table = _table(database)
    with _connected(database, source, timeout_s) as connection, connection.cursor() as cursor:
        told = f'{{"message": "{message}"}}'
        cursor.execute(f"INSERT INTO {table} VALUES (%s, 'log', %s)", (name, told))
        cursor.execute(f"DELETE FROM {table} WHERE id = %s", (name,))
        connection.commit()


def reading_settings(
    pipeline: Pipeline, source: Source, timeout_s: int = 10
) -> tuple[str, str, str, str]:
    """What tells how a source reads statements, as ``source_differences`` takes it.

    That is its ``VERSION()``, and the global ``sql_mode``, ``lower_case_table_names`` and
    ``explicit_defaults_for_timestamp``.

    Raises:
        StackError: The server cannot be reached or refuses.
    """
    database = signal_database(pipeline, source)
    with _connected(database, source, timeout_s) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT VERSION(), @@GLOBAL.sql_mode, @@GLOBAL.lower_case_table_names,"
            " @@GLOBAL.explicit_defaults_for_timestamp"
        )
        ((version, mode, names, timestamps),) = cursor.fetchall()
        return str(version), str(mode), str(names), str(timestamps)


def unread_by_debezium(pipeline: Pipeline, source: Source, timeout_s: int = 10) -> Unread:
    """The tables of a source that Debezium cannot read.

    Raises:
        StackError: The server cannot be reached or refuses.
    """
    database = signal_database(pipeline, source)
    with _connected(database, source, timeout_s) as connection, connection.cursor() as cursor:
        return unread_tables(cursor, source)


def compresses(pipeline: Pipeline, source: Source, timeout_s: int = 10) -> bool:
    """Whether a source's server compresses its binlog so that Debezium passes over it.

    Only MariaDB does: Debezium reads the compressed transactions of MySQL.

    Raises:
        StackError: The server cannot be reached or refuses.
    """
    if source.flavour != "mariadb":
        return False
    database = signal_database(pipeline, source)
    with _connected(database, source, timeout_s) as connection, connection.cursor() as cursor:
        return compresses_binlog(cursor)


def _table(database: str) -> str:
    return f"{quote_identifier(database)}.{SIGNAL_TABLE}"


@contextmanager
def _connected(
    database: str, source: Source, timeout_s: int
) -> Iterator[pymysql.Connection[Cursor]]:
    try:
        with connect(source, connect_timeout=timeout_s) as connection:
            yield connection
    except pymysql.MySQLError as error:
        reason = mysql_error(error)
        if error.args[0] in NOT_ADMITTED - {_NO_DATABASE}:
            raise StackError(
                f"source {source.name}: user {source.user!r} is not admitted: {reason}",
                hint="see user, password and tls of the source in the pipeline file",
                code="SM-4406",
            ) from None
        raise StackError(
            f"source {source.name}: user {source.user!r} cannot make or write "
            f"{_table(database)}, which snapshots of single tables need: {reason}",
            hint=f"GRANT CREATE, SELECT, INSERT, DELETE ON {quote_identifier(database)}.*"
            f" TO {source.user!r}",
            code="SM-4405",
        ) from None
