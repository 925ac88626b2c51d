"""Writers of rows that know what they committed: one thread and one table each."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pymysql
from pymysql.cursors import Cursor

from shardmerge.local.servers.mysql import PASSWORD, USER

from .chaos_rows import NUMBER, Change, Image, wire_value

_KEY = "id"


def connect(port: int, database: str | None = None) -> pymysql.Connection[Cursor]:
    """A session of the stack's user; each statement is committed by itself."""
    return pymysql.connect(
        host="127.0.0.1", port=port, user=USER, password=PASSWORD, database=database,
        autocommit=True, charset="utf8mb4",
    )  # fmt: skip


class Journal:
    """What was committed, by all writers of a line; changes have numbers without gaps."""

    def __init__(self) -> None:
        self._changes: list[Change] = []
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def number(self) -> int:
        """A number that no other change has."""
        return next(self._numbers)

    def add(self, change: Change) -> None:
        """Record a committed change."""
        with self._lock:
            self._changes.append(change)

    def changes(self) -> list[Change]:
        """All of them, in the order of their commits within each table."""
        with self._lock:
            return list(self._changes)


class TableWriter:
    """Writes rows of one table while it changes: one transaction a row, with pauses between.

    A statement on the table runs between two of its rows (``statement``), so that the order of
    the journal is that of the binlog.

    Args:
        port: Of the server.
        database, table: What is written; the table has an INT column ``id`` and ``n``.
        journal: Gets what was committed.
        seed: Of what is written.
        pause_s: Longest pause between two rows.
    """

    def __init__(
        self, port: int, database: str, table: str, journal: Journal, *, seed: int, pause_s: float
    ) -> None:
        self.table = table
        self._port, self._database, self._journal = port, database, journal
        self._chance, self._pause_s = random.Random(seed), pause_s
        self._turn = threading.RLock()
        self._stop = threading.Event()
        self._rows: list[int] = []
        self._connection: pymysql.Connection[Cursor] | None = None
        self._columns: list[tuple[str, str]] = []
        self._failures: list[BaseException] = []
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Write from now on, beside the caller."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write no more; raises what a transaction failed with."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self.close_session()
        if self._failures:
            raise AssertionError(f"the writer of {self.table} failed") from self._failures[0]

    def statement(self, sql: str, table: str | None = None) -> None:
        """Execute a statement on the table; ``table`` is its name from then on."""
        with self._turn:
            with self._cursor() as cursor:
                cursor.execute(sql)
            self.table = table or self.table
            self._columns = []

    def write(self, count: int) -> None:
        """So many changes, now."""
        for _ in range(count):
            with self._turn:
                self._change()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """No transaction is open meanwhile."""
        with self._turn:
            yield

    def close_session(self) -> None:
        """End the session; the next row, or statement, opens another one."""
        with self._turn:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _run(self) -> None:
        try:
            while not self._stop.wait(self._chance.uniform(0, self._pause_s)):
                self.write(1)
        except BaseException as error:  # told when the writer is stopped
            self._failures.append(error)

    def _change(self) -> None:
        kind = self._chance.random()
        number = self._journal.number()
        with self._cursor() as cursor:
            cursor.execute("BEGIN")
            if kind < 0.7 or len(self._rows) < 5:
                operation, image = "insert", self._insert(cursor, number)
            else:
                row = self._rows.pop(self._chance.randrange(len(self._rows)))
                if kind < 0.9:
                    operation, image = "update", self._update(cursor, row, number)
                else:
                    operation, number, image = "delete", row, self._image(cursor, row)
                    cursor.execute(f"DELETE FROM `{self.table}` WHERE {NUMBER} = {row}")
            cursor.execute("COMMIT")
        if operation != "delete":
            self._rows.append(number)
        self._journal.add(Change(self.table, operation, number, image, time.monotonic()))

    def _insert(self, cursor: Cursor, number: int) -> Image:
        named = {_KEY: number, **self._values(cursor, number)}
        names = ", ".join(f"`{name}`" for name in named)
        marks = ", ".join(["%s"] * len(named))
        cursor.execute(
            f"INSERT INTO `{self.table}` ({names}) VALUES ({marks})", list(named.values())
        )
        return self._image(cursor, number)

    def _update(self, cursor: Cursor, row: int, number: int) -> Image:
        named = self._values(cursor, number)
        marks = ", ".join(f"`{name}` = %s" for name in named)
        cursor.execute(
            f"UPDATE `{self.table}` SET {marks} WHERE {NUMBER} = {row}", list(named.values())
        )
        return self._image(cursor, number)

    def _image(self, cursor: Cursor, number: int) -> Image:
        """The row as the server has it within the transaction."""
        cursor.execute(f"SELECT * FROM `{self.table}` WHERE {NUMBER} = {number}")
        (row,) = cursor.fetchall()
        names = [entry[0] for entry in cursor.description or ()]
        return tuple((name, wire_value(v)) for name, v in zip(names, row, strict=True))

    def _values(self, cursor: Cursor, number: int) -> dict[str, Any]:
        """A value for each column but the key that differs from column to column."""
        if not self._columns:
            cursor.execute(
                "SELECT column_name, data_type FROM information_schema.columns"
                " WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
                (self._database, self.table),
            )
            self._columns = [(str(name), str(kind)) for name, kind in cursor.fetchall()]
        return {
            name: number if name == NUMBER else _value(kind, place, number)
            for place, (name, kind) in enumerate(self._columns)
            if name != _KEY
        }

    @contextmanager
    def _cursor(self) -> Iterator[Cursor]:
        if self._connection is None:
            self._connection = connect(self._port, self._database)
        with self._connection.cursor() as cursor:
            yield cursor


def _value(kind: str, place: int, number: int) -> object:
    kinds: dict[str, Callable[[], object]] = {
        "varchar": lambda: f"v{place}-{number}",
        "bit": lambda: (number + place) % 8,
        "year": lambda: 1901 + (number + place) % 200,
        "smallint": lambda: (number + 100 * place) % 30_000,
    }
    return kinds.get(kind, lambda: 1000 * number + place)()


@contextmanager
def all_paused(writers: Sequence[TableWriter]) -> Iterator[None]:
    """No writer has a transaction open meanwhile."""
    if not writers:
        yield
        return
    with writers[0].paused(), all_paused(writers[1:]):
        yield
