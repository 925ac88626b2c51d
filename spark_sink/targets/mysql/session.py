"""A session with a MySQL (or MariaDB) target: connecting, statements, errors."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn

import pymysql
from pymysql.constants import CLIENT
from pymysql.cursors import Cursor

from shardmerge.connectors.access import mysql
from shardmerge.connectors.access.lease_names import take_mark
from shardmerge.schemas.model.errors import TargetError, TargetLost
from shardmerge.schemas.model.server_facts import (
    FACT_VARIABLES,
    ServerFacts,
    kind_and_version,
    server_facts,
)
from shardmerge.schemas.pipeline.settings import Target
from shardmerge.schemas.pipeline.tls import Tls

from . import tidb_loads
from .server_errors import LOST, PACKET_TOO_LARGE, RESULT_TOO_LARGE, target_error
from .server_notes import Answer, ServerNote, Statement, changed_value_note

SQL_MODE = "STRICT_TRANS_TABLES,STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION"
"""Strict, but zero dates are values like others, and 0 in an AUTO_INCREMENT column is 0."""
_OPTIONS = {"charset": "utf8mb4", "autocommit": True, "local_infile": True, "connect_timeout": 10}
_DEFAULT_COLLATION_FROM = (7, 4)
"""The first TiDB with ``default_collation_for_utf8mb4``; earlier ones always use utf8mb4_bin."""


@dataclass(frozen=True, slots=True)
class MySqlAddress:
    """Where the target is and who logs in."""

    host: str
    port: int
    user: str
    password: str
    tls: Tls = field(default_factory=Tls)

    @classmethod
    def of(cls, target: Target) -> MySqlAddress:
        """The address that a pipeline file gives its target."""
        return cls(target.host, target.port, target.user, target.password, target.tls)


class MySqlSession:
    """One connection with the settings that the sink needs; it reconnects after it was lost.

    Statements outside ``transaction`` commit by themselves.

    Args:
        lock_wait_timeout_s: Most seconds to wait for a metadata lock (DDL) or a row lock.
        idle_s: The server ends the connection after so many seconds without a statement, and with
            it the locks of a client whose machine was cut off; 0: after the server's own time,
            which is eight hours by default. A connection that was idle for half as long outside of
            a transaction is made anew, unless ``keeping`` forbids it.
        mark: Beginning of the names of locks (``lease_names.session_mark``). The connection has one
            of them, so that the sink's successor finds it; "" for none. TiDB does not tell who
            has a lock, so there it has none.
        together: Whether several statements may be sent in one message.

    Attributes:
        generation: Number of connections made so far. Code that remembers something about a
            connection compares it.
        max_packet: Bytes of the largest statement that the server takes (max_allowed_packet).
    """

    def __init__(
        self,
        address: MySqlAddress,
        *,
        lock_wait_timeout_s: int = 30,
        idle_s: int = 0,
        mark: str = "",
        together: bool = False,
    ) -> None:
        self.address = address
        self._flags = CLIENT.MULTI_STATEMENTS if together else 0
        self._together = together
        self._mark = mark
        self._idle_s, self._used = idle_s, 0.0
        self._in_transaction = self._is_kept = False
        self.generation = 0
        self._can_load = self._is_mariadb = self._is_tidb = False
        self.max_packet = 4 << 20
        self._lock_wait_timeout_s = lock_wait_timeout_s
        self._connection: pymysql.Connection[Cursor] | None = None
        self._facts: tuple[int, ServerFacts] | None = None

    @property
    def facts(self) -> ServerFacts:
        """The server's version, variables and collations; read once per connection."""
        if self._facts is None or self._facts[0] != self.generation or not self.is_open:
            ((version,),) = self.query("SELECT VERSION()")
            names = ", ".join(f"'{name}'" for name in FACT_VARIABLES)
            variables = self.query(f"SHOW VARIABLES WHERE Variable_name IN ({names})")
            collations = self.query(
                "SELECT CHARACTER_SET_NAME, DEFAULT_COLLATE_NAME"
                " FROM information_schema.CHARACTER_SETS"
            )
            found = server_facts(
                version, {str(n).lower(): str(v) for n, v in variables}, dict(collations)
            )
            self._facts = self.generation, found
        return self._facts[1]

    @property
    def is_open(self) -> bool:
        """Whether there is a connection, as far as known."""
        return self._connection is not None

    @property
    def can_load(self) -> bool:
        """Whether rows are written by LOAD DATA LOCAL; raises ``TargetError`` without an answer.

        For a TiDB that depends on conditions: see ``tidb_loads``.
        """
        if self._connection is None:
            self.execute("DO 0")
        return self._can_load

    @property
    def is_mariadb(self) -> bool:
        """Whether the server is MariaDB; raises ``TargetError`` without an answer."""
        if self._connection is None:
            self.execute("DO 0")
        return self._is_mariadb

    @property
    def is_tidb(self) -> bool:
        """Whether the server is TiDB; raises ``TargetError`` without an answer."""
        if self._connection is None:
            self.execute("DO 0")
        return self._is_tidb

    def close(self) -> None:
        """Close the connection; the next statement opens another one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            # Closing a connection that was lost before raises an error.
            with suppress(pymysql.Error):
                connection.close()

    def query(self, sql: str, arguments: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Rows of a SELECT or SHOW."""
        with self._cursor(sql, arguments) as cursor:
            return list(cursor.fetchall())

    def queries(self, *asked: Statement) -> list[list[tuple[Any, ...]]]:
        """Rows of several SELECTs, asked together."""
        return [answer.rows for answer in self._answers(asked)]

    def execute(self, sql: str, arguments: Sequence[object] = ()) -> int:
        """Run a statement; how many rows it changed."""
        with self._cursor(sql, arguments) as cursor:
            return int(cursor.rowcount)

    def execute_strictly(self, sql: str) -> int:
        """Run a statement that must store values as they are; how many rows it changed.

        Raises:
            TargetError: Also for a warning about a changed value: see ``server_notes``.
        """
        with self._cursor(sql, ()) as cursor:
            rows = int(cursor.rowcount)
            if cursor.warning_count:
                self._refuse_changed_values(cursor, sql)
            return rows

    def load(self, sql: str, data: bytes | bytearray) -> int:
        """Run ``LOAD DATA LOCAL INFILE '{path}' …`` with the bytes as its file.

        Returns:
            How many rows it changed.

        Raises:
            TargetError: Also for a warning about a changed value: LOAD DATA LOCAL changes values
                that do not fit, and only warns.
        """
        try:
            return self._load(sql, data)
        except TargetError:
            if self._is_tidb:
                tidb_loads.note_refusal(self.address.host, self.address.port)
                self._can_load = False
            raise

    def _load(self, sql: str, data: bytes | bytearray) -> int:
        with (
            mysql.readable_path(data) as path,
            self._cursor(sql.replace("{path}", path, 1), ()) as cursor,
        ):
            rows = int(cursor.rowcount)
            if cursor.warning_count:
                self._refuse_changed_values(cursor, sql)
            return rows

    @contextmanager
    def transaction(self, first: Sequence[Statement] = ()) -> Iterator[list[Answer]]:
        """A transaction: committed at the end, rolled back by an exception.

        Args:
            first: Statements with which it begins, sent together with START TRANSACTION. The server
                executes them one by one, and stops at an error.

        Returns:
            The answers to these statements.

        If the connection is lost at COMMIT, ``TargetError`` with a number of ``LOST`` is raised.
        Then the caller must find out whether the COMMIT took effect.
        """
        answers = self._begin(first)
        self._in_transaction = True
        try:
            try:
                yield answers
            except BaseException:
                self._roll_back()
                raise
            self.execute("COMMIT")
        finally:
            self._in_transaction = False

    def _begin(self, first: Sequence[Statement]) -> list[Answer]:
        try:
            return self._answers([Statement("START TRANSACTION"), *first])[1:]
        except BaseException:
            self._roll_back()
            raise

    def _answers(self, sent: Sequence[Statement]) -> list[Answer]:
        """Run statements, by one message if the server takes several in one."""
        if len(sent) > 1 and self._together:
            try:
                return self._answers_to_message(sent)
            except TargetError as error:
                if error.retryable or error.statement != sent[0].sql[:2_000]:
                    raise
                # Perhaps a proxy between does not let such a message pass.
                self._together = False
        return [self._answers_to_message([each])[0] for each in sent]

    def _answers_to_message(self, sent: Sequence[Statement]) -> list[Answer]:
        answers = list[Answer]()
        try:
            with self._connected().cursor() as cursor:
                cursor.execute(";".join(cursor.mogrify(s, tuple(a) or None) for s, a in sent))
                while len(answers) < len(sent):
                    rows = list(cursor.fetchall())
                    answers.append(Answer(rows, int(cursor.rowcount), cursor.warning_count))
                    cursor.nextset()
            self._used = time.monotonic()
        except pymysql.Error as error:
            self._raise(error, sent[len(answers)].sql)
        return answers

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """While it lasts an idle connection is not made anew, because it holds a named lock."""
        self._is_kept = True
        try:
            yield
        finally:
            self._is_kept = False

    def _roll_back(self) -> None:
        if self._connection is None or not self._connection.open:
            self.close()
            return
        try:
            self._connection.rollback()
        except pymysql.Error:
            # The server rolls back when the connection ends.
            self.close()

    @contextmanager
    def _cursor(self, sql: str, arguments: Sequence[object]) -> Iterator[Cursor]:
        connection: pymysql.Connection[Cursor] | None = None
        try:
            connection = self._connected()
            with connection.cursor() as cursor:
                cursor.execute(sql, tuple(arguments) if arguments else None)
                yield cursor
            self._used = time.monotonic()
        except pymysql.Error as error:
            self._raise(error, sql)
        except AttributeError as error:
            if connection is None or connection.open:
                raise
            # When the server hangs up in the middle of LOAD DATA, PyMySQL closes its socket and
            # then tries to write to it.
            gone = pymysql.OperationalError(2013, "the server hung up while it was sent rows")
            gone.__cause__ = error
            self._raise(gone, sql)

    def _raise(self, error: pymysql.Error, sql: str) -> NoReturn:
        number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        text = mysql.mysql_error(error)
        if number == 0 or number in LOST:
            # PyMySQL reports a closed connection as InterfaceError(0, '').
            number, text = number or 2006, text or "the connection to the target was lost"
            self.close()
        elif number in (PACKET_TOO_LARGE, RESULT_TOO_LARGE):
            # The next connection gets max_allowed_packet anew: the operator may have raised it.
            self.close()
        where = f"{self.address.host}:{self.address.port}"
        raise target_error(number, text, sql, where, self.max_packet) from error

    def _refuse_changed_values(self, cursor: Cursor, sql: str) -> None:
        count = cursor.warning_count
        cursor.execute("SHOW WARNINGS")
        said = [ServerNote(str(level), int(n), str(text)) for level, n, text in cursor.fetchall()]
        note = changed_value_note(said, count)
        if note is None:
            return
        if note.number == RESULT_TOO_LARGE:
            self.close()
        raise TargetError(
            f"{note.text} [{note.number}, {note.level}]",
            number=note.number,
            statement=sql[:2_000],
            code="SM-3112",
        )

    def _connect(self) -> pymysql.Connection[Cursor]:
        try:
            return mysql.connect(self.address, **_OPTIONS, client_flag=self._flags)
        except pymysql.MySQLError as error:
            if error.args[0] not in mysql.NOT_ADMITTED:
                raise
            raise TargetLost(
                f"the target does not admit user {self.address.user!r}: {error.args[1]}"
                f" [{error.args[0]}]",
                number=error.args[0],
                hint="see user, password and tls under [target] of the pipeline file",
                code="SM-3114",
            ) from error

    def _connected(self) -> pymysql.Connection[Cursor]:
        idle_s, needed = time.monotonic() - self._used, self._in_transaction or self._is_kept
        if self._idle_s and not needed and idle_s > self._idle_s / 2:
            self.close()
        if self._connection is None:
            self._connection = self._connect()
            self.generation += 1
            self._together = bool(self._flags)
            try:
                self._set_up(self._connection)
            except BaseException:
                # Half set up it would write rows without strict mode.
                self.close()
                raise
        return self._connection

    def _set_up(self, connection: pymysql.Connection[Cursor]) -> None:
        mysql.keep_alive(connection)
        with connection.cursor() as cursor:
            cursor.execute(
                "SET SESSION sql_mode = %s, time_zone = '+00:00', lock_wait_timeout = %s,"
                " innodb_lock_wait_timeout = %s",
                (SQL_MODE, self._lock_wait_timeout_s, self._lock_wait_timeout_s),
            )
            if self._idle_s:
                cursor.execute("SET SESSION wait_timeout = %s", (self._idle_s,))
            # Without gap locks tasks do not block each other when they write keys side by side.
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            cursor.execute("SELECT @@local_infile, @@max_allowed_packet, VERSION()")
            ((can_load, max_packet, version),) = cursor.fetchall()
            kind, version_numbers = kind_and_version(version)
            self._is_mariadb, self._is_tidb = kind == "mariadb", kind == "tidb"
            self._can_load = bool(can_load)
            self.max_packet = int(max_packet)
            if self._is_tidb:
                # An optimistic transaction holds no lock, so the fence would not work.
                cursor.execute("SET SESSION tidb_txn_mode = 'pessimistic'")
                if version_numbers >= _DEFAULT_COLLATION_FROM:
                    # The renderer relies on this: see tidb_rules.collation_of.
                    cursor.execute("SET SESSION default_collation_for_utf8mb4 = utf8mb4_bin")
                self._can_load &= tidb_loads.may_load(
                    cursor, version_numbers, self.address.host, self.address.port
                )
            elif self._mark:
                take_mark(partial(_asked, cursor), self._mark)


def _asked(cursor: Cursor, sql: str, arguments: Sequence[object]) -> Sequence[tuple[Any, ...]]:
    cursor.execute(sql, arguments)
    return cursor.fetchall()
