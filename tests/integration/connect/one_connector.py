"""A connector of a source of its own, stopped, moved and started again by a test."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pymysql
from pymysql.cursors import Cursor

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.formats.connector_status import ConnectorStatus
from shardmerge.local.servers.mysql import PASSWORD, USER

from .conftest import Play

TIMEOUT_S = 180


class OneConnector:
    """A connector whose source has a table ``t``, its offset, and the server behind it."""

    def __init__(self, play: Play, rest: ConnectRest, cursor: Cursor) -> None:
        self._rest = rest
        self._cursor = cursor
        self._table = f"`{play.database}`.t"
        self.name = connector_name(play.pipeline, play.pipeline.sources[0])
        self._server = play.source
        self._rows = 0

    def query(self, sql: str) -> tuple[tuple[Any, ...], ...]:
        """Execute a statement on the server and return its rows."""
        self._cursor.execute(sql)
        return tuple(self._cursor.fetchall())

    def write(self) -> int:
        """Insert the next row and return its id."""
        self._rows += 1
        self.query(f"INSERT INTO {self._table} (id) VALUES ({self._rows})")
        return self._rows

    def alter(self, column: str) -> None:
        """Add a column to the table."""
        self.query(f"ALTER TABLE {self._table} ADD {column} INT")

    def offset(self) -> dict[str, Any]:
        """What Connect has committed for it."""
        offset = self._rest.offset(self.name)
        assert offset is not None
        return dict(offset)

    def is_running(self) -> bool:
        """Whether it and its task run."""
        status = self._rest.status(self.name)
        return status is not None and status.is_running

    def stop(self) -> None:
        """Stop it, so that its offset can be changed."""
        self._rest.stop(self.name)

    def go_on(self, offset: Mapping[str, Any] | None = None) -> None:
        """Let the stopped connector run, from another offset if one is given."""
        if offset is not None:
            self._rest.set_offset(self.name, self._server, offset)
        self.resume()
        self._rest.wait_running(self.name, TIMEOUT_S)

    def resume(self) -> None:
        """Let the stopped connector run; it may fail."""
        self._rest.resume(self.name)

    def wait_failed(self) -> ConnectorStatus:
        """What it says when it has failed."""
        deadline = time.monotonic() + TIMEOUT_S
        while (status := self._rest.status(self.name)) is None or not status.is_failed:
            assert time.monotonic() < deadline, status
            time.sleep(0.2)
        return status

    def pass_over(self, gtid: str) -> None:
        """Let the stopped or failed connector go on as if it had read one transaction more."""
        self.stop()
        offset = self.offset()
        ((text,),) = self.query(f"SELECT GTID_SUBTRACT('{offset['gtids']},{gtid}', '')")
        self.go_on(offset | {"gtids": str(text).replace("\n", "")})


@contextmanager
def connected(play: Play, rest: ConnectRest) -> Iterator[OneConnector]:
    """With a connection to the source's server; the connector is not made yet."""
    connection = pymysql.connect(
        host="127.0.0.1", port=play.port, user=USER, password=PASSWORD, autocommit=True
    )
    with connection, connection.cursor() as cursor:
        yield OneConnector(play, rest, cursor)
