"""One connection to a source's server, by which shards are read for their first loads.

Values come as texts, or as bytes if the type is binary: PyMySQL's conversions are switched off.
``rows.values.server_values`` turns them into neutral values.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pymysql
from pymysql.cursors import SSCursor

from shardmerge.connectors.access.mysql import NOT_ADMITTED, Connection, connect, mysql_error
from shardmerge.connectors.access.row_pieces import end_of_rows, row_pieces
from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.grammar import parse
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.pipeline.server_differences import server_context
from shardmerge.schemas.pipeline.settings import Source
from shardmerge.spark_sink.loading.chunk_queries import (
    begin_snapshot,
    long_read_settings,
    session_settings,
    show_table,
    table_statistics,
)

from .packed_rows import PackedRows

_CONNECT_S, _READ_S = 10, 120
_LOCK_WAIT_S = 5
"""Longest wait of a reader for DDL. Later statements on the table wait behind the reader."""
_QUERY_S = 60
_NO_TABLE = (1146, 1049)


class TableReader:
    """A connection to one source; it is made again after it was lost.

    Only one thread may use it. Every method raises ``StackError`` when the server does not answer
    or refuses something. Another try can succeed.

    Args:
        source: Its user needs SELECT, and REPLICATION CLIENT, as Debezium's does.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._connection: Connection | None = None

    def begin(self) -> None:
        """See ``ChunkSource``."""
        self._execute(begin_snapshot())

    def table(self, shard: ShardId) -> TableSchema | None:
        """See ``ChunkSource``.

        Raises:
            SourceError: The definition has something that the grammar does not know.
        """
        lock, show = show_table(shard)
        try:
            self._execute(lock)
            ((_, text),) = self._fetch(show)
        except NoTable:
            return None
        context = server_context(self._source)
        statement = parse(str(text), context)
        assert isinstance(statement, CreateTable)
        return apply_create(statement, context)

    def rows(self, sql: str, most: int) -> Sequence[Sequence[Any]]:
        """See ``ChunkSource``."""
        return self._fetch(f"{sql} LIMIT {most}")

    def packed_rows(self, sql: str, most: int, columns: int) -> PackedRows:
        """See ``ChunkSource``."""
        found = PackedRows(columns)
        with self._source_errors():
            connection = self._connected()
            for piece in row_pieces(connection, f"{sql} LIMIT {most}"):
                last = found.add(piece)
                if last is not None:
                    found.warnings = end_of_rows(connection, last)
                    return found
        raise AssertionError  # the pieces do not end before the rows

    def parts(
        self, sql: str, most: int, size: int
    ) -> Generator[Sequence[Sequence[Any]], None, None]:
        """The rows of a query, in parts, while the server sends them.

        A reader that is left before the end is closed: the server would send the other rows first.

        Args:
            sql: The query.
            most: How many rows a part has at most.
            size: Of about how many bytes a part ends, if it has fewer rows.
        """
        with self._source_errors():
            cursor = self._connected().cursor(SSCursor)
            is_over = False
            try:
                cursor.execute(sql)
                part, held = list[Sequence[Any]](), 0
                while row := cursor.fetchone():
                    part.append(row)
                    held += sum(len(value) for value in row if value is not None)
                    if len(part) >= most or held >= size:
                        yield part
                        part, held = [], 0
                is_over = True
                if part:
                    yield part
            finally:
                if not is_over:
                    self.close()
                    # Without a result the cursor does not wait for the other rows.
                    cursor._result = None  # type: ignore[attr-defined]
                cursor.close()

    def read_for(self, seconds: int) -> None:
        """Let queries on this connection take this long; 0 for no limit."""
        for statement in long_read_settings(seconds, mariadb=self._source.flavour == "mariadb"):
            self._execute(statement)

    def wait_for_locks(self, seconds: int) -> None:
        """Wait this long for a lock of a table."""
        self._execute(f"SET SESSION lock_wait_timeout = {seconds}")

    def query(self, sql: str) -> Sequence[Sequence[Any]]:
        """All rows of a query."""
        return self._fetch(sql)

    def named_rows(self, sql: str) -> list[dict[str, str | None]]:
        """All rows of a query; the columns' names are in lower case."""
        with self._source_errors(), self._connected().cursor() as cursor:
            cursor.execute(sql)
            names = [str(column[0]).lower() for column in cursor.description]
            return [
                {
                    name: None if value is None else str(value)
                    for name, value in zip(names, row, strict=True)
                }
                for row in cursor.fetchall()
            ]

    @property
    def is_open(self) -> bool:
        """Whether there is a connection; without one, the next use makes another one."""
        return self._connection is not None and self._connection.open

    def statistics(self, shard: ShardId) -> tuple[int, int]:
        """The server's estimates of a table: rows, and bytes of rows."""
        rows = self._fetch(table_statistics(shard))
        if not rows:
            return 0, 0
        count, size = rows[0]
        return int(count or 0), int(size or 0)

    def end(self) -> None:
        """See ``ChunkSource``; a connection that is lost is no error."""
        if self._connection is None:
            return
        try:
            self._connection.rollback()
        except pymysql.Error:
            self.close()

    def binlog_end(self) -> SourcePosition:
        """See ``ChunkSource``."""
        rows = self._fetch("SHOW BINARY LOGS")
        if not rows:
            raise StackError(
                f"source {self._source.name}: its server writes no binlog", code="SM-4402"
            )
        return SourcePosition(self._source.epoch, str(rows[-1][0]), int(rows[-1][1]), 0)

    def close(self) -> None:
        """End the connection; the next use makes another one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(pymysql.Error):
                connection.close()

    def _execute(self, sql: str) -> None:
        self._fetch(sql)

    def _fetch(self, sql: str) -> Sequence[Sequence[Any]]:
        with self._source_errors(), self._connected().cursor() as cursor:
            cursor.execute(sql)
            found: Sequence[Sequence[Any]] = cursor.fetchall()
            return found

    @contextmanager
    def _source_errors(self) -> Iterator[None]:
        """Turn PyMySQL's errors into errors that name the source, and what it has refused."""
        source = self._source
        try:
            yield
        except pymysql.Error as error:
            number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
            reason = mysql_error(error)
            if number in _NO_TABLE:
                raise NoTable(
                    f"source {source.name}: a table cannot be read: {reason} [{number}]",
                    hint="if it was dropped or renamed, nothing has to be done: its load ends when "
                    "the connector has delivered that statement",
                    code="SM-4409",
                ) from error
            # It is not known whether a transaction is still open on the connection.
            self.close()
            if number in NOT_ADMITTED:
                raise StackError(
                    f"source {source.name}: user {source.user!r} is not admitted: {reason}",
                    hint="see user, password and tls of the source in the pipeline file",
                    code="SM-4406",
                ) from error
            raise StackError(
                f"source {source.name}: a table cannot be read: {reason} [{number}]",
                hint=f"user {source.user!r} needs SELECT on the tables, and REPLICATION CLIENT",
                code="SM-4409",
            ) from error

    def _connected(self) -> Connection:
        if self._connection is None or not self._connection.open:
            source = self._source
            connection = connect(
                source,
                charset="utf8mb4",
                connect_timeout=_CONNECT_S,
                read_timeout=_READ_S,
                # Without decoders PyMySQL returns what the server has sent. But then it cannot
                # write values into statements, so it must not set autocommit.
                conv={},
                autocommit=None,
            )
            self._connection = connection
            mariadb = source.flavour == "mariadb"
            with connection.cursor() as cursor:
                cursor.execute("SET SESSION autocommit = 1")
                for statement in session_settings(_LOCK_WAIT_S, _QUERY_S, mariadb=mariadb):
                    cursor.execute(statement)
        return self._connection


class NoTable(StackError):
    """The table, or its database, is not there."""
