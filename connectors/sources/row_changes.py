"""Reads from a server's binlog which rows of one table were changed, with their values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pymysql
from pymysql.cursors import Cursor, DictCursor
from pymysqlreplication import event, row_event

from shardmerge.connectors.access.mysql import Server, mysql_error, show_status
from shardmerge.connectors.binlog.binlog_changes import BinlogEnd, Change, ChangedRow, LoggedText
from shardmerge.schemas.ddl.changes import TableName

from .source_binlog import UNDECODABLE, binlog_cursor, binlog_stream, text_of

_ROWS = (row_event.WriteRowsEvent, row_event.UpdateRowsEvent, row_event.DeleteRowsEvent)
_CHANGES_NOTHING = (
    event.RotateEvent, event.StopEvent, event.FormatDescriptionEvent, event.XidEvent,
    event.GtidEvent, event.PreviousGtidsEvent, event.HeartbeatLogEvent, event.RowsQueryLogEvent,
    event.MariadbGtidEvent, event.MariadbGtidListEvent, event.MariadbBinLogCheckPointEvent,
    event.MariadbAnnotateRowsEvent, event.RandEvent, event.UserVarEvent, event.XAPrepareEvent,
    row_event.TableMapEvent,
)  # fmt: skip
_INTVAR, _ANONYMOUS_GTID, _XA_PREPARE, _HEARTBEAT_V2, _TAGGED_GTID = 5, 34, 38, 41, 42
_TRANSACTION_CONTEXT, _VIEW_CHANGE = 36, 37  # of group replication
_HARMLESS = frozenset(
    {_INTVAR, _ANONYMOUS_GTID, _XA_PREPARE, _HEARTBEAT_V2, _TAGGED_GTID,
     _TRANSACTION_CONTEXT, _VIEW_CHANGE}
)  # fmt: skip
"""Events that the library has no class for, and that change no row."""
_OF_SERVER = ("server_uuid", "hostname", "port", "server_id")


class BinlogUnreadable(Exception):
    """The binlog does not tell which rows were changed; the text says why."""


class RowChanges:
    """The binlog of a server.

    Args:
        server: Its user needs REPLICATION SLAVE and REPLICATION CLIENT.
    """

    def __init__(self, server: Server) -> None:
        self._server = server

    def end(self) -> BinlogEnd:
        """Where the binlog ends now.

        Raises:
            BinlogUnreadable: The server writes none, or leaves databases out of it, or the user may
                not see it, or the server does not answer.
        """
        with self._cursor() as cursor:
            # The first word is that of MySQL from 8.2 on.
            rows = show_status(cursor, "BINARY LOG", "MASTER")
            if not rows:
                raise BinlogUnreadable("its server writes no binlog (log_bin is off)")
            names = {str(name).lower(): value for name, value in rows[0].items()}
            if names.get("binlog_do_db") or names.get("binlog_ignore_db"):
                raise BinlogUnreadable("its server leaves databases out of the binlog")
            variables = _variables(cursor, (*_OF_SERVER, "binlog_order_commits"))
            if variables.get("binlog_order_commits") == "OFF":
                raise BinlogUnreadable("binlog_order_commits is off")
            server = "/".join(variables.get(name, "") for name in _OF_SERVER)
            return BinlogEnd(server, str(names["file"]), int(str(names["position"])))

    def columns(self, table: TableName) -> list[str]:
        """The names of a table's columns, in the order in which the binlog has their values.

        Raises:
            BinlogUnreadable: The server does not answer.
        """
        with self._cursor() as cursor:
            cursor.execute(
                "SELECT COLUMN_NAME AS name FROM information_schema.COLUMNS"
                " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION",
                (table.database, table.table),
            )
            return [str(row["name"]) for row in cursor.fetchall()]

    def since(self, place: BinlogEnd, table: TableName) -> Iterator[Change]:
        """The changes of a table's rows from a place on, and all statements logged as text.

        Args:
            place: Where the binlog ended at an earlier moment.
            table: The table.

        Raises:
            BinlogUnreadable: The server has this part of its binlog no more, or an event is not
                understood, or the server does not answer.
        """
        now = self.end()
        if now.server != place.server:
            raise BinlogUnreadable("another server is the target now")
        with self._cursor() as cursor:
            cursor.execute("SHOW BINARY LOGS")
            sizes = {str(row["Log_name"]): int(row["File_size"]) for row in cursor.fetchall()}
        if sizes.get(place.file, -1) < place.pos:
            raise BinlogUnreadable(f"its server has no {place.file}:{place.pos} any more")
        try:
            yield from self._changes(place, table)
        except pymysql.MySQLError as error:
            raise BinlogUnreadable(mysql_error(error)) from error
        except UNDECODABLE as error:
            raise BinlogUnreadable(f"an event is not understood: {error!r}") from error

    def _changes(self, place: BinlogEnd, table: TableName) -> Iterator[Change]:
        with binlog_stream(
            self._server,
            place.file,
            place.pos,
            filter_non_implemented_events=False,
        ) as stream:
            for found in stream:
                yield from _of_event(found, table)

    @contextmanager
    def _cursor(self) -> Iterator[DictCursor]:
        try:
            with binlog_cursor(self._server, DictCursor) as cursor:
                yield cursor
        except pymysql.MySQLError as error:
            raise BinlogUnreadable(mysql_error(error)) from error


def _of_event(found: Any, table: TableName) -> Iterator[Change]:
    if isinstance(found, (*_ROWS, row_event.PartialUpdateRowsEvent)):
        if (found.schema, found.table) != (table.database, table.table):
            return
        if not isinstance(found, _ROWS):
            raise BinlogUnreadable("its server logs parts of JSON values (PARTIAL_JSON)")
        for row in found.rows:
            for name in ("values", "before_values", "after_values"):
                if name in row:
                    yield ChangedRow(tuple(row[name].values()))
    elif isinstance(found, event.QueryEvent):
        yield LoggedText(text_of(found.schema), text_of(found.query))
    elif isinstance(found, event.NotImplementedEvent):
        if found.event_type not in _HARMLESS:
            raise BinlogUnreadable(f"events of the kind {found.event_type} are not read")
    elif not isinstance(found, _CHANGES_NOTHING):
        raise BinlogUnreadable(f"{type(found).__name__} does not tell rows")


def _variables(cursor: Cursor, names: Sequence[str]) -> dict[str, str]:
    listed = ", ".join(f"'{name}'" for name in names)
    cursor.execute(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({listed})")
    rows: Any = cursor.fetchall()
    return {str(row["Variable_name"]).lower(): str(row["Value"]) for row in rows}
