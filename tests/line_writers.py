"""Writers that insert, change and delete all the time, each on one server."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pymysql
from pymysql.cursors import DictCursor

from shardmerge.connectors.access.mysql import Connection, connect
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.schemas.pipeline.settings import Source

BOUND_S = 180.0


@dataclass(frozen=True, slots=True)
class At:
    """A server of this machine."""

    port: int
    host: str = "127.0.0.1"

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Execute statements; the rows of the last one."""
        rows: list[tuple[Any, ...]] = []
        with self.connected() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
                rows = list(cursor.fetchall())
        return rows

    def row(self, statement: str) -> dict[str, Any]:
        """The first row of a statement, by its columns' names."""
        with self.connected() as connection, connection.cursor(DictCursor) as cursor:
            cursor.execute(statement)
            return dict(cursor.fetchone() or {})

    def connected(self) -> Connection:
        """A connection that commits every statement."""
        source = Source("any", self.host, self.port, USER, PASSWORD, 1)
        return connect(source, autocommit=True, connect_timeout=5)


@dataclass(slots=True)
class Writer:
    """Writes to one shard all the time, each change a transaction.

    Attributes:
        at: Its server; another one after a move.
        last: The number of its latest insert.
    """

    at: At
    first: int
    last: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _go_on: threading.Event = field(default_factory=threading.Event)
    _at_rest: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Write until ``stop``."""
        chance = random.Random(self.first)
        live: list[int] = []
        self._go_on.set()
        numbers = itertools.count(self.first, 2)
        number = next(numbers)
        while not self._stop.is_set():
            try:
                with self.at.connected() as connection, connection.cursor() as cursor:
                    while not self._stop.is_set():
                        if not self._go_on.is_set():
                            break
                        cursor.execute(
                            "INSERT IGNORE INTO app.tbl (id, v) VALUES (%s, 0)", (number,)
                        )
                        # Repeated if the answer was lost: it is a duplicate at the source, too.
                        cursor.execute("INSERT INTO app.log (v) VALUES (%s)", (number,))
                        live.append(number)
                        self.last, number = number, next(numbers)
                        cursor.execute(
                            "UPDATE app.tbl SET v = v + 1 WHERE id = %s", (chance.choice(live),)
                        )
                        if len(live) > 500:
                            gone = live.pop(chance.randrange(400))
                            cursor.execute("DELETE FROM app.tbl WHERE id = %s", (gone,))
                        time.sleep(0.02)
            except pymysql.MySQLError:
                time.sleep(0.05)
            if not self._go_on.is_set():
                self._at_rest.set()
                self._go_on.wait(1)

    def rest(self) -> None:
        """Write nothing until ``go_on``."""
        self._at_rest.clear()
        self._go_on.clear()
        self._at_rest.wait(BOUND_S)

    def go_on(self) -> None:
        """Write again."""
        self._go_on.set()

    def stop(self) -> None:
        """End."""
        self._stop.set()


def wait(is_so: Callable[[], bool], what: str, pause_s: float = 0.2) -> None:
    """Wait until something is so, at most ``BOUND_S``."""
    deadline = time.monotonic() + BOUND_S
    while True:
        try:
            if is_so():
                return
        except pymysql.MySQLError:
            pass  # a server that was killed comes back
        assert time.monotonic() < deadline, f"no {what} after {BOUND_S:.0f} s"
        time.sleep(pause_s)
