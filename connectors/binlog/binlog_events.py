"""The contents of a binlog, as ``SHOW BINLOG EVENTS`` tells them. Pure.

Source: MySQL Reference Manual, "SHOW BINLOG EVENTS Statement"; MariaDB, the same; measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from shardmerge.schemas.ddl.changes import TableName

_GTID_MYSQL = re.compile(r"SET @@SESSION\.GTID_NEXT= '(.*)'")
_GTID_MARIADB = re.compile(r"(BEGIN |XA START .*)?GTID (\d+-\d+-\d+)", re.DOTALL)
_TABLE = re.compile(r"table_id: (\d+) \((.*)\)", re.DOTALL)
_ROWS = re.compile(r"table_id: (\d+)\b")
_USE = re.compile(r"use `((?:[^`]|``)*)`; ", re.IGNORECASE)
_SETTINGS = re.compile(
    r"set (?:(?:foreign_key_checks=0|sql_auto_is_null=1|unique_checks=0|check_constraint_checks=0"
    r"|@@sql_if_exists=1|@@system_versioning_insert_history=1)(?:, |; ))+(?<=; )"
)
"""What MariaDB shows of the session before the text of a statement; it is no part of the text.

Source: MariaDB 10.11, ``Query_log_event::pack_info``; measured, 10.11 and 11.8.
"""
_XID = re.compile(r" /\* xid=\d+ \*/\Z")
_NO_STATEMENT = re.compile(
    r"(?:BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|XA|INSERT|UPDATE|DELETE|REPLACE)\b", re.IGNORECASE
)
_NOT_SENT = ("Annotate_rows",)
"""MariaDB sends these only to a client that asks for them: Debezium, with ``include.query``."""
_BEGIN, _END = "BEGIN", ("COMMIT", "ROLLBACK")


@dataclass(frozen=True, slots=True)
class BinlogEvent:
    """One line of ``SHOW BINLOG EVENTS``. ``pos`` and ``end`` are bytes from the file's begin."""

    file: str
    pos: int
    kind: str
    server_id: int
    end: int
    info: str


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that the server logged as text: DDL, mostly.

    Attributes:
        file, pos, end: The event with its text.
        gtid: Of its transaction; "" without.
        database: The default database; "" without.
        sql: As the server logged it, without what ``SHOW BINLOG EVENTS`` puts around it.
        in_transaction: Whether rows of the same transaction can follow, as behind MySQL's
            ``CREATE TABLE … START TRANSACTION``.
        server_id: Of the server that executed it.
        begin: Where its transaction begins for Debezium; -1 outside of one, as mostly on MySQL.
    """

    file: str
    pos: int
    end: int
    gtid: str
    database: str
    sql: str
    in_transaction: bool = False
    server_id: int = 0
    begin: int = -1

    @property
    def first(self) -> int:
        """Where Debezium begins to read it again."""
        return self.pos if self.begin < 0 else self.begin

    @property
    def recorded(self) -> tuple[str, int]:
        """The place that its record in Debezium's schema history has."""
        return self.file, (self.end if self.begin < 0 else self.begin)


@dataclass(frozen=True, slots=True)
class RowsEvent:
    """An event with rows of one table.

    Attributes:
        file, pos, end: The event.
        transaction_pos: The position of the event with BEGIN.
        index: How many events of the transaction, BEGIN included, a connector gets before it.
        gtid: Of its transaction; "" without.
        table: ``database.table`` as the server writes it, without quotes; "" when not told.
    """

    file: str
    pos: int
    end: int
    transaction_pos: int
    index: int
    gtid: str
    table: str


Logged: TypeAlias = Statement | RowsEvent


def written_name(table: TableName) -> str:
    """A table's name as ``RowsEvent.table``, and Debezium's messages, have it."""
    return f"{table.database}.{table.table}"


def table_name(text: str) -> TableName:
    """The table of ``database.table``; wrong where the database's name has a point."""
    database, _, table = text.partition(".")
    return TableName(database, table)


def logged(events: Iterable[BinlogEvent], gtid: str = "") -> Iterator[Logged]:
    """The statements and rows events among a binlog's events, in order.

    Args:
        events: From the beginning of a transaction, or a statement, on.
        gtid: Of the first event's transaction, when its own event is not among them.
    """
    begin, index, only = -1, 0, -1
    tables: dict[str, str] = {}
    for event in events:
        if event.kind in _NOT_SENT:
            continue
        if (told := _gtid(event)) is not None:
            gtid, opens = told
            begin, index = (event.pos, 1) if opens else (-1, 0)
            # For Debezium, MariaDB's GTID event begins a transaction, even of one statement.
            only = event.pos if _GTID_MARIADB.match(event.info) else -1
            continue
        if event.kind == "Query":
            database, sql = _query(event.info)
            word = sql.strip().rstrip(";").upper()
            if word == _BEGIN:
                begin, index = event.pos, 1
                continue
            if word in _END:
                begin = -1
                continue
            if not _NO_STATEMENT.match(sql.lstrip()):
                yield Statement(
                    file=event.file,
                    pos=event.pos,
                    end=event.end,
                    gtid=gtid,
                    database=database,
                    sql=sql,
                    in_transaction=begin >= 0,
                    server_id=event.server_id,
                    begin=begin if begin >= 0 else only,
                )
        elif event.kind == "Xid":
            begin = -1
            continue
        elif event.kind == "Table_map":
            if (named := _TABLE.match(event.info)) is not None:
                tables[named[1]] = named[2]
        elif "_rows" in event.kind and "query" not in event.kind:
            number = _ROWS.match(event.info)
            table = tables.get(number[1], "") if number is not None else ""
            yield RowsEvent(event.file, event.pos, event.end, begin, index, gtid, table)
        elif event.kind == "Transaction_payload":
            yield RowsEvent(event.file, event.pos, event.end, event.pos, 1, gtid, "")
        index += 1


def transaction_begun(event: BinlogEvent) -> str | None:
    """The GTID of the transaction that an event begins; "" without one, None where it begins none.

    Only for MySQL since 5.7, which writes such an event before transactions without a GTID, too.
    """
    told = _gtid(event)
    return None if told is None else told[0]


def _gtid(event: BinlogEvent) -> tuple[str, bool] | None:
    """A GTID event's name, and whether it begins a transaction; None for another event."""
    if event.kind in ("Anonymous_Gtid", "Gtid_list"):
        return "", False
    if event.kind not in ("Gtid", "Gtid_tagged"):
        return None
    if (mysql := _GTID_MYSQL.search(event.info)) is not None:
        return mysql[1], False
    if (mariadb := _GTID_MARIADB.match(event.info)) is not None:
        return mariadb[2], mariadb[1] is not None
    return "", False


def _query(info: str) -> tuple[str, str]:
    """Default database and text of a Query event's line."""
    text, database = info, ""
    if (use := _USE.match(text)) is not None:
        database, text = use[1].replace("``", "`"), text[use.end() :]
    if (settings := _SETTINGS.match(text)) is not None:
        text = text[settings.end() :]
    return database, _XID.sub("", text)
