"""Reads shards and target for their comparison, over one connection to each server.

Each query is a transaction of its own. Nothing is written, and no lock outlives its query. The
servers are asked at the same time; the tables of one server are read one after another.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar

import pymysql
from pymysql.constants import CR, ER
from pymysql.cursors import Cursor, SSCursor

from shardmerge.cli.clients import TIMEOUT_S
from shardmerge.connectors.access.mysql import Connection, connect, mysql_error
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.row_conditions import (
    Condition,
    ConditionColumn,
    condition_on,
)
from shardmerge.schemas.pipeline.settings import Pipeline, Source, Target
from shardmerge.spark_sink.loading.chunk_queries import session_settings
from shardmerge.spark_sink.loading.chunk_ranges import KeyRange
from shardmerge.spark_sink.loading.key_order import Boundary
from shardmerge.spark_sink.rows.values.server_values import server_reader
from shardmerge.spark_sink.rows.values.times import moment_text
from shardmerge.spark_sink.validation.compared_table import Side
from shardmerge.spark_sink.validation.doubts import Key, SeenRow
from shardmerge.spark_sink.validation.table_validation import Digests
from shardmerge.spark_sink.validation.validation_queries import (
    condition_columns,
    digest_counts,
    each_digest,
    next_boundary,
    range_digest,
    row_count,
    row_digests,
    rows_by_key,
)

_BITS = (1 << 64) - 1
_LOCK_WAIT_S = 5
_QUERY_S = 600
_TRIES = 4
_PART = 10_000
"""So many rows are read at a time where an answer can be as long as a table."""
_LOST = frozenset((CR.CR_SERVER_GONE_ERROR, CR.CR_SERVER_LOST, CR.CR_CONN_HOST_ERROR, 0))
_OTHER_TABLE = frozenset((ER.BAD_FIELD_ERROR, ER.NO_SUCH_TABLE, ER.TABLE_DEF_CHANGED))
_BUSY = frozenset((ER.LOCK_WAIT_TIMEOUT, ER.LOCK_DEADLOCK))
_Answer = TypeVar("_Answer")
Rows: TypeAlias = Sequence[Sequence[Any]]


class OtherTable(StackError):
    """A table is not the one that the topics describe: DDL changed it meanwhile."""


class Asked(Protocol):
    """A server that answers queries."""

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """The answer to a query.

        Raises:
            OtherTable: A column or table is not there.
            StackError: The server does not answer, or refuses the query.
        """
        ...

    def close(self) -> None:
        """End the connection."""
        ...


class ServerRows:
    """All servers of a pipeline, as ``table_validation.Servers``.

    Args:
        pipeline: Has the servers.
        lake: Reads an Iceberg target; None for a target that is a server.
    """

    def __init__(self, pipeline: Pipeline, lake: Asked | None = None) -> None:
        self._sources = {
            source.name: _Server(f"source {source.name}", source, source.flavour == "mariadb")
            for source in pipeline.sources
        }
        target = pipeline.target
        self._target = lake or _Server("target", target, target.kind == "mariadb")
        self._workers = ThreadPoolExecutor(max_workers=len(self._sources) + 1)

    def close(self) -> None:
        """Close all connections."""
        self._workers.shutdown()
        for server in (*self._sources.values(), self._target):
            server.close()

    def range_digests(self, sides: Sequence[Side], of: KeyRange) -> list[tuple[int, int]]:
        """See the protocol."""

        def ask(server: Asked, side: Side) -> tuple[int, int]:
            ((count, digest),) = server.ask(range_digest(side, of))
            return int(count), int(digest) & _BITS if side.key else int(digest)

        return self._all(sides, ask)

    def next_boundary(self, side: Side, after: Boundary | None, rows: int) -> Boundary | None:
        """See the protocol."""
        found = self._of(side).ask(next_boundary(side, after, rows))
        return tuple(map(_ascii, found[0])) if found else None

    def row_digests(self, sides: Sequence[Side], of: KeyRange) -> list[Digests]:
        """See the protocol."""

        def ask(server: Asked, side: Side) -> Digests:
            width = len(side.key)
            end = width + 1 + len(side.loose)
            return [
                (
                    _key(row, width),
                    None if row[width] is None else int(row[width]),
                    tuple(map(_bytes, row[width + 1 : end])),
                )
                for row in _matching(side, server.ask(row_digests(side, of)), end)
            ]

        return self._all(sides, ask)

    def digest_counts(self, sides: Sequence[Side]) -> list[Mapping[Key, int]]:
        """See the protocol."""

        def ask(server: Asked, side: Side) -> Mapping[Key, int]:
            if side.where and side.shard is not None:
                source = self._sources[side.shard.source]
                return _by_digest(side, source.folded(each_digest(side), partial(_counted, side)))
            return _by_digest(side, dict(server.ask(digest_counts(side))))

        return self._all(sides, ask)

    def rows(self, sides: Sequence[Side], keys: Sequence[Key]) -> list[list[tuple[Key, SeenRow]]]:
        """See the protocol."""

        def ask(server: Asked, side: Side) -> list[tuple[Key, SeenRow]]:
            width = len(side.key)
            judged = sum(text is not None for text in side.texts)
            return [
                (_key(row, width), _seen(side, row[width : width + judged]))
                for row in _matching(side, server.ask(rows_by_key(side, keys)), width + judged)
            ]

        return self._all(sides, ask)

    def row_counts(self, sides: Sequence[Side]) -> list[int]:
        """How many rows each side has."""
        return self._all(sides, lambda server, side: int(server.ask(row_count(side))[0][0]))

    def ask(self, side: Side, sql: str) -> list[tuple[Any, ...]]:
        """The answer of a side's server to another query."""
        return self._of(side).ask(sql)

    def _of(self, side: Side) -> Asked:
        return self._target if side.shard is None else self._sources[side.shard.source]

    def _all(self, sides: Sequence[Side], ask: Callable[[Asked, Side], _Answer]) -> list[_Answer]:
        by_server: dict[int, tuple[Asked, list[int]]] = {}
        for number, side in enumerate(sides):
            server = self._of(side)
            by_server.setdefault(id(server), (server, []))[1].append(number)

        def ask_server(server: Asked, numbers: list[int]) -> list[tuple[int, _Answer]]:
            return [(number, ask(server, sides[number])) for number in numbers]

        running = [self._workers.submit(ask_server, *each) for each in by_server.values()]
        found = dict(pair for each in running for pair in each.result())
        return [found[number] for number in range(len(sides))]


class _Server:
    def __init__(self, name: str, server: Source | Target, is_mariadb: bool) -> None:
        self._name, self._server, self._is_mariadb = name, server, is_mariadb
        self._connection: Connection | None = None

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """The answer to a query.

        Raises:
            OtherTable: A column or table is not there.
            StackError: The server does not answer, or refuses the query.
        """
        return self._tried(sql, Cursor, lambda cursor: list(cursor.fetchall()))

    def folded(self, sql: str, fold: Callable[[Iterator[Rows]], _Answer]) -> _Answer:
        """What is made of the answer to a query, which is not held in memory as a whole.

        Args:
            sql: The query.
            fold: Takes the rows in parts. It is called again if the server is lost meanwhile.

        Raises:
            OtherTable: A column or table is not there.
            StackError: The server does not answer, or refuses the query.
        """

        def parts(cursor: Cursor) -> Iterator[Rows]:
            while part := cursor.fetchmany(_PART):
                yield part

        return self._tried(sql, SSCursor, lambda cursor: fold(parts(cursor)))

    def _tried(self, sql: str, kind: type[Cursor], read: Callable[[Cursor], _Answer]) -> _Answer:
        for attempt in range(1, _TRIES + 1):
            try:
                with self._connected().cursor(kind) as cursor:
                    cursor.execute(sql)
                    return read(cursor)
            except pymysql.MySQLError as error:
                number = error.args[0] if error.args else 0
                if number in _LOST:
                    self.close()
                if number in _OTHER_TABLE:
                    message = f"{self._name}: {mysql_error(error)}"
                    raise OtherTable(message, code="SM-4412") from error
                if number not in _LOST | _BUSY or attempt == _TRIES:
                    raise StackError(
                        f"{self._name}: {mysql_error(error)}",
                        hint=f"the query was: {sql[:300]}",
                        code="SM-4411",
                    ) from error
                time.sleep(attempt)
        raise AssertionError

    def close(self) -> None:
        if self._connection is not None and self._connection.open:
            self._connection.close()
        self._connection = None

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = connect(
                self._server,
                connect_timeout=TIMEOUT_S,
                read_timeout=_QUERY_S + TIMEOUT_S,
                autocommit=None,  # PyMySQL cannot set it without conversions
                conv={},
            )
            with self._connection.cursor() as cursor:
                cursor.execute("SET SESSION autocommit = 1")
                for statement in session_settings(_LOCK_WAIT_S, _QUERY_S, mariadb=self._is_mariadb):
                    cursor.execute(statement)
        return self._connection


def _ascii(value: Any) -> str:
    return value.decode("ascii") if isinstance(value, bytes) else str(value)


def _key(row: Sequence[Any], width: int) -> Key:
    return tuple(map(_ascii, row[:width]))


def _counted(side: Side, parts: Iterator[Rows]) -> Counter[Any]:
    """Digest → how many rows have it of those for which the route's condition is true."""
    counts: Counter[Any] = Counter()
    for part in parts:
        counts.update(row[0] for row in _matching(side, part, 1))
    return counts


def _by_digest(side: Side, counts: Mapping[Any, Any]) -> dict[Key, int]:
    """Digest, as a key → how many rows have it.

    Raises:
        StackError: The server gave some rows no digest.
    """
    if long := counts.get(None):
        raise StackError(
            f"{side.table} of {side.shard or 'the target'} has no primary key, and for {int(long)} "
            "of its rows the server computes no digest: their values together are longer than its "
            "max_allowed_packet",
            hint="raise max_allowed_packet of that server, and start the comparison again",
            code="SM-4413",
        )
    return {(str(int(digest)),): int(number) for digest, number in counts.items()}


def _seen(side: Side, values: Sequence[Any]) -> SeenRow:
    found = iter(values)
    return SeenRow(
        side.shard, tuple(None if text is None else _bytes(next(found)) for text in side.texts)
    )


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _matching(side: Side, rows: Rows, width: int) -> Rows:
    """The rows for which the route's condition is true.

    They are filtered here only if SQL could not express the whole condition.
    """
    if not side.where or not rows:
        return rows
    matches = _condition(side)
    readers = [server_reader(column) for column in condition_columns(side)]
    columns = [
        reader.read(values)
        for reader, values in zip(
            readers, zip(*(row[width:] for row in rows), strict=True), strict=True
        )
    ]
    images = zip(*columns, strict=True)
    return [row for row, image in zip(rows, images, strict=True) if matches(image)]


def _condition(side: Side) -> Condition:
    named = {}
    for place, column in enumerate(condition_columns(side)):
        form = server_reader(column).form
        named[column.name.lower()] = ConditionColumn(place, column.type, partial(moment_text, form))
    return condition_on(side.where, named)
