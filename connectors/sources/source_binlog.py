"""Reads a source's binlog as text, and counts the rows of single events."""

from __future__ import annotations

import logging
import secrets
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pymysql
from pymysql.cursors import Cursor
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.exceptions import StatusVariableMismatch
from pymysqlreplication.row_event import (
    DeleteRowsEvent,
    OptionalMetaData,
    TableMapEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)

from shardmerge.connectors.access.mysql import (
    NOT_ADMITTED,
    Server,
    connect,
    connection_arguments,
    mysql_error,
)
from shardmerge.connectors.binlog.binlog_events import BinlogEvent, Logged, RowsEvent, logged
from shardmerge.connectors.binlog.gtids import Gtids, MySqlGtids, gtids_of, is_within
from shardmerge.schemas.ddl.changes import TableName
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import quote_identifier
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.settings import Source

# It warns of settings of the server that make no difference to the number of rows.
logging.getLogger("pymysqlreplication").setLevel(logging.ERROR)
# Optional metadata of a table is not needed to count rows. The library fails on it with IndexError,
# because MySQL 8.0 before 8.0.29 does not count YEAR as a number.
TableMapEvent._get_optional_meta_data = lambda _: OptionalMetaData()
_TIMEOUTS = {"connect_timeout": 10, "read_timeout": 60}
_CHUNK = 5_000
_GTIDS_BEFORE, _FIRST_EVENTS = ("Previous_gtids", "Gtid_list"), 3
"""What tells the transactions of the files before, and among how many events it is: MariaDB's file
begins with its format, then perhaps its encryption."""
_NO_TABLE = 1146
UNDECODABLE = (
    ValueError, LookupError, TypeError, NotImplementedError, struct.error, StatusVariableMismatch,
)  # fmt: skip
"""What the library raises at an event, or at a value, that it cannot decode."""
_FIRST_ID = 1 << 30
"""A replica that reads here has a number by chance, from this one on to twice as much."""
C = TypeVar("C", bound=Cursor)


class SourceBinlog:
    """The binlog of one source, over a connection for each call.

    Args:
        source: Its user needs REPLICATION SLAVE and REPLICATION CLIENT, as Debezium does.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    def logged(self, file: str, pos: int, gtid: str = "") -> Iterator[Logged]:
        """The statements and rows events from a place on, to the binlog's end.

        Args:
            file: A binlog file of the server.
            pos: Where an event begins in it.
            gtid: Of that event's transaction, when it is not its first event.

        Raises:
            StackError: The server does not answer, or has no such place any more.
        """
        return logged(self.events(file, pos), gtid)

    def end(self) -> SourcePosition:
        """Where the binlog ends now, without an epoch.

        Raises:
            StackError: The server does not answer, or writes no binlog.
        """
        with self._cursor() as cursor:
            cursor.execute("SHOW BINARY LOGS")
            rows = cursor.fetchall()
        if not rows:
            raise StackError(
                f"source {self._source.name}: its server writes no binlog", code="SM-4402"
            )
        return SourcePosition(0, str(rows[-1][0]), int(rows[-1][1]), 0)

    def gives_gtids(self) -> bool:
        """Whether Debezium reads the binlog by GTIDs, as the server is now.

        Raises:
            StackError: The server does not answer.
        """
        return self._source.flavour == "mariadb" or self.gtid_mode() == "ON"

    def gtid_mode(self) -> str:
        """MySQL's ``gtid_mode`` now; OFF for a server without one.

        Raises:
            StackError: The server does not answer.
        """
        row = self._row("SHOW GLOBAL VARIABLES LIKE 'gtid_mode'")
        return "OFF" if row is None else str(row[1]).upper()

    def gtid_executed(self) -> MySqlGtids:
        """The transactions with a GTID that a MySQL server has executed.

        Raises:
            StackError: The server does not answer.
        """
        row = self._row("SELECT @@GLOBAL.gtid_executed")
        gtids = None if row is None else gtids_of(str(row[0] or ""))
        return gtids if isinstance(gtids, MySqlGtids) else MySqlGtids({})

    def events(self, file: str, pos: int = 4) -> Iterator[BinlogEvent]:
        """Every event from a place on, to the binlog's end.

        Args:
            file: A binlog file of the server.
            pos: Where an event begins in it.

        Raises:
            StackError: The server does not answer, or has no such place any more.
        """
        with self._cursor() as cursor:
            cursor.execute("SHOW BINARY LOGS")
            files = [str(row[0]) for row in cursor.fetchall()]
            if file not in files:
                raise StackError(
                    f"source {self._source.name}: its server has no binlog file {file!r} any more",
                    hint="the connector cannot go on from its offset: take a new snapshot of the "
                    "source",
                    code="SM-4403",
                )
            for name in files[files.index(file) :]:
                yield from self._of_file(cursor, name, max(pos, 4) if name == file else 4)

    def file_within(self, read: Gtids) -> str:
        """The last binlog file before whose beginning there are only transactions of a set.

        The first file, if there is no such one. So every transaction that is not in the set, and is
        in the binlog, is in that file or behind it.

        Raises:
            StackError: The server does not answer, or writes no binlog.
        """
        with self._cursor() as cursor:
            cursor.execute("SHOW BINARY LOGS")
            files = [str(row[0]) for row in cursor.fetchall()]
            for file in reversed(files):
                before = gtids_before(cursor, file)
                if before is None or is_within(before, read):
                    return file
        return files[0] if files else self.end().file

    def create_table(self, table: TableName) -> str | None:
        """``SHOW CREATE TABLE`` of a table now; None when there is none.

        Raises:
            StackError: The server does not answer.
        """
        name = f"{quote_identifier(table.database)}.{quote_identifier(table.table)}"
        with self._cursor() as cursor:
            # Debezium does not read ANSI_QUOTES, nor names without quotes.
            cursor.execute("SET SESSION sql_mode = '', SESSION sql_quote_show_create = 1")
            try:
                cursor.execute(f"SHOW CREATE TABLE {name}")
            except pymysql.ProgrammingError as error:
                if error.args[0] == _NO_TABLE:
                    return None
                raise
            row = cursor.fetchone()
        return None if row is None else str(row[1])

    def number_of_rows(self, event: RowsEvent) -> int | None:
        """How many rows an event holds; None if a value in it cannot be decoded.

        Args:
            event: Of this server's binlog.

        Raises:
            StackError: The server does not answer, or gives no such event.
        """
        source = self._source
        try:
            with binlog_stream(
                source,
                event.file,
                event.transaction_pos,
                only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent],
            ) as stream:
                for found in stream:
                    if found.packet.log_pos == event.end:
                        return len(found.rows)
                    if found.packet.log_pos > event.end:
                        break
        except pymysql.MySQLError as error:
            raise _unreadable(source, error) from error
        except UNDECODABLE:
            return None
        raise StackError(
            f"source {source.name}: no rows event ends at {event.file}:{event.end}",
            hint="the server's binlog is not the one that the connector reads",
            code="SM-4404",
        )

    def _row(self, sql: str) -> tuple[object, ...] | None:
        with self._cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchone()

    def _of_file(self, cursor: Cursor, file: str, pos: int) -> Iterator[BinlogEvent]:
        while True:
            cursor.execute("SHOW BINLOG EVENTS IN %s FROM %s LIMIT %s", (file, pos, _CHUNK))
            rows = cursor.fetchall()
            for name, start, kind, server_id, end, info in rows:
                yield BinlogEvent(
                    str(name), int(start), str(kind), int(server_id), int(end), text_of(info)
                )
            if len(rows) < _CHUNK:
                return
            pos = int(rows[-1][4])

    @contextmanager
    def _cursor(self) -> Iterator[Cursor]:
        try:
            with binlog_cursor(self._source, Cursor) as cursor:
                yield cursor
        except pymysql.MySQLError as error:
            raise _unreadable(self._source, error) from error


def gtids_before(cursor: Cursor, file: str) -> Gtids | None:
    """The transactions before a binlog file's beginning, as the file tells them; None for none.

    Args:
        cursor: Of the file's server.
        file: The binlog file.
    """
    cursor.execute("SHOW BINLOG EVENTS IN %s LIMIT %s", (file, _FIRST_EVENTS))
    told = (text_of(row[5]) for row in cursor.fetchall() if row[2] in _GTIDS_BEFORE)
    return gtids_of(next(told, "").strip("[]"))


def _unreadable(source: Source, error: pymysql.MySQLError) -> StackError:
    reason = mysql_error(error)
    if error.args[0] in NOT_ADMITTED:
        return StackError(
            f"source {source.name}: user {source.user!r} is not admitted: {reason}",
            hint="see user, password and tls of the source in the pipeline file",
            code="SM-4406",
        )
    return StackError(
        f"source {source.name}: its binlog cannot be read: {reason}",
        hint=f"user {source.user!r} needs REPLICATION SLAVE and REPLICATION CLIENT",
        code="SM-4401",
    )


@contextmanager
def binlog_cursor(server: Server, kind: type[C]) -> Iterator[C]:
    """A cursor of a kind, over a connection of its own.

    Raises:
        pymysql.MySQLError: The server does not answer, or refuses something.
    """
    with (
        connect(server, **_TIMEOUTS, autocommit=True) as connection,
        connection.cursor(kind) as cursor,
    ):
        yield cursor


@contextmanager
def binlog_stream(
    server: Server, file: str, pos: int, **options: Any
) -> Iterator[BinLogStreamReader]:
    """The events from a place on, to the binlog's end.

    It reads as a replica with a number of its own: a server ends the stream of another replica that
    has the same one, such as the connector's.

    Args:
        server: Its user needs REPLICATION SLAVE and REPLICATION CLIENT.
        file: A binlog file of the server.
        pos: Where an event begins in it.
        options: More of the library's.

    Raises:
        pymysql.MySQLError: The server does not answer, or refuses something.
    """
    stream = BinLogStreamReader(
        connection_settings={**connection_arguments(server), **_TIMEOUTS},
        server_id=_FIRST_ID + secrets.randbelow(_FIRST_ID),
        resume_stream=True,
        blocking=False,
        enable_logging=False,
        # By default a server does not tell the charset of text.
        ignore_decode_errors=True,
        log_file=file,
        log_pos=pos,
        **options,
    )
    try:
        yield stream
    finally:
        stream.close()


def text_of(logged: object) -> str:
    """A text of the binlog; "" for none."""
    return logged.decode("utf-8", "replace") if isinstance(logged, bytes) else str(logged or "")
