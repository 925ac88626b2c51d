"""The sources of a target: whether they take writes, and what was written to them."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice

import pymysql
from pymysql.cursors import Cursor, DictCursor

from shardmerge.cli.clients import TIMEOUT_S
from shardmerge.connectors.access.mysql import connect, mysql_error, show_status
from shardmerge.connectors.binlog.binlog_events import Logged, RowsEvent, table_name
from shardmerge.connectors.sources.source_binlog import SourceBinlog
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.routing import route
from shardmerge.schemas.pipeline.settings import Pipeline, Source

from .obstacles import SourceState
from .replica_status import replication_left
from .seen import SourceSeen, Step

_LOCK_WAIT_S = 30
_DENIED = frozenset((1227, 1142, 1044))
_MOST = 3
_MOMENT_S, _PAUSE_S = 5.0, 0.3
"""How long a transaction may be open, and the pause between two looks."""


class SourceServers:
    """The sources that have shards of a target.

    Args:
        pipeline: Their pipeline.
        target: The target.
        shards: Its live shards.
        shared: Source → other targets that have shards there.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        target: TargetTable,
        shards: Sequence[ShardId],
        shared: Mapping[str, tuple[str, ...]],
    ) -> None:
        self._pipeline, self._target, self._shards, self._shared = pipeline, target, shards, shared
        names = {shard.source for shard in shards}
        self.sources = [source for source in pipeline.sources if source.name in names]
        self.notes: set[str] = set()

    def seen(
        self, noted: Mapping[str, SourcePosition], handed_over: Collection[str] = ()
    ) -> tuple[SourceSeen, ...]:
        """The state of the servers now.

        Args:
            noted: Source → where its binlog ended. Its later events are read.
            handed_over: Targets that were cut over.

        Raises:
            StackError: A server does not answer.
        """
        return tuple(
            self._seen(source, noted.get(source.name), handed_over)
            for source in sorted(self.sources, key=lambda source: source.name)
        )

    def states(self) -> tuple[SourceState, ...]:
        """What may still write to the servers although their applications are stopped.

        Raises:
            StackError: A server does not answer.
        """
        return tuple(map(self._state, self.sources))

    def execute(self, step: Step) -> None:
        """Change a source's settings as a step says.

        Raises:
            StackError: The server refuses it, or waits longer than ``_LOCK_WAIT_S`` for a lock.
        """
        assert step.source is not None
        source = self._pipeline.source(step.source.name)
        with _cursor(source) as cursor:
            cursor.execute("SET SESSION lock_wait_timeout = %s", (_LOCK_WAIT_S,))
            for statement in step.statements:
                try:
                    cursor.execute(statement)
                except pymysql.MySQLError as error:
                    raise _refused(source, statement, error) from error

    def _seen(
        self, source: Source, noted: SourcePosition | None, handed_over: Collection[str]
    ) -> SourceSeen:
        shared = self._shared.get(source.name, ())
        maria = source.flavour == "mariadb"
        names = ("read_only",) if maria else ("super_read_only", "read_only")
        with _cursor(source) as cursor:
            cursor.execute(f"SELECT {', '.join(f'@@GLOBAL.{name}' for name in names)}")
            values = [_switch(value) for value in cursor.fetchall()[0]]
        return SourceSeen(
            source.name,
            source.flavour,
            read_only=values[0] != "OFF",
            before=tuple(zip(names, values, strict=True)),
            written=() if noted is None else tuple(islice(self._written(source, noted), _MOST)),
            shared=shared,
            handed_over=tuple(name for name in shared if name in handed_over),
        )

    def _written(self, source: Source, noted: SourcePosition) -> Iterator[str]:
        for event in SourceBinlog(source).logged(noted.file, noted.pos):
            if what := self._concerns(source, event):
                yield f"source {source.name} has {what} at {event.file}:{event.pos}"

    def _concerns(self, source: Source, event: Logged) -> str:
        """What an event changes, for people; "" for an event that does not concern the target.

        Statements are judged by their default database and by the names in their text. So DDL of
        other tables may count, and no DDL of a shard is overlooked.
        """
        own = [shard for shard in self._shards if shard.source == source.name]
        if isinstance(event, RowsEvent):
            if not event.table:
                return "rows of a table that the binlog does not name"
            found = table_name(event.table)
            routed = route(self._pipeline.routes, ShardId(source.name, found.database, found.table))
            written = {f"{shard.database}.{shard.table}" for shard in own}
            is_ours = self._target in routed or event.table in written
            return f"rows of {event.table}" if is_ours else ""
        text = event.sql.lower()
        names = {name.lower() for shard in own for name in (shard.database, shard.table)}
        near = event.database.lower() in {shard.database.lower() for shard in own}
        named = any(re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", text) for name in names)
        return f"{event.sql[:100]!r}" if near or named else ""

    def _state(self, source: Source) -> SourceState:
        with _cursor(source) as cursor:
            return SourceState(
                source.name,
                self._replicates(source, cursor),
                self._writing(source, cursor),
            )

    def _replicates(self, source: Source, cursor: Cursor) -> str:
        words = ("ALL SLAVES",) if source.flavour == "mariadb" else ("REPLICA", "SLAVE")
        with cursor.connection.cursor(DictCursor) as by_name:
            rows = show_status(by_name, *words)
        left, note = replication_left(rows)
        if note:
            self.notes.add(f"source {source.name} {note}")
        return left

    def _writing(self, source: Source, cursor: Cursor) -> int:
        """How many transactions with changed rows are open and stay open for some seconds.

        Those of other tables begin and end all the time.
        """
        try:
            still = _transactions(cursor)
            until = time.monotonic() + _MOMENT_S
            while still and time.monotonic() < until:
                time.sleep(_PAUSE_S)
                still &= _transactions(cursor)
        except pymysql.MySQLError as error:
            if error.args[0] not in _DENIED:
                raise
            self.notes.add(
                f"user {source.user!r} cannot see open transactions on source {source.name}: it "
                "needs PROCESS"
            )
            return 0
        return len(still)

    def note_privileged(self) -> None:
        """Note which accounts can write although their MariaDB server is read-only.

        Source: MariaDB documentation, "read_only": it does not stop users with READ ONLY ADMIN,
        before 10.11 with SUPER. MySQL's ``super_read_only`` stops every user. A user without SELECT
        on the database ``mysql`` sees only its own privileges (measured, 11.8).
        """
        for source in self.sources:
            if source.flavour != "mariadb":
                continue
            with _cursor(source) as cursor:
                cursor.execute(
                    "SELECT DISTINCT grantee FROM information_schema.user_privileges"
                    " WHERE privilege_type IN ('READ_ONLY ADMIN', 'READ ONLY ADMIN', 'SUPER')"
                    " ORDER BY 1"
                )
                found = [str(row[0]) for row in cursor.fetchall()]
            names = ", ".join(found) or "accounts with READ ONLY ADMIN, which its user cannot list"
            self.notes.add(
                f"source {source.name} is MariaDB: read_only does not stop {names}. Without SELECT "
                f"on mysql.* user {source.user!r} sees only itself here. The command sees in the "
                "binlog whether one of them writes"
            )


def _transactions(cursor: Cursor) -> set[str]:
    cursor.execute(
        "SELECT trx_id, trx_started FROM information_schema.innodb_trx WHERE trx_rows_modified > 0"
    )
    return {f"{number} {started}" for number, started in cursor.fetchall()}


def _switch(value: object) -> str:
    """A variable's value as ``SET`` takes it. MariaDB 12 has more values than ON and OFF."""
    return {"0": "OFF", "1": "ON"}.get(str(value), str(value))


@contextmanager
def _cursor(source: Source) -> Iterator[Cursor]:
    try:
        connection = connect(
            source,
            connect_timeout=TIMEOUT_S,
            read_timeout=_LOCK_WAIT_S + TIMEOUT_S,
            autocommit=True,
        )
        with connection, connection.cursor() as cursor:
            yield cursor
    except pymysql.MySQLError as error:
        raise StackError(
            f"source {source.name}: {mysql_error(error)}",
            hint="check the server, and the user's rights: it needs REPLICATION CLIENT, on MariaDB "
            "also SLAVE MONITOR",
            code="SM-6720",
        ) from error


def _refused(source: Source, statement: str, error: pymysql.MySQLError) -> StackError:
    hint = (
        f"GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO {source.user!r}, on MySQL 5.7 SUPER, on "
        "MariaDB READ ONLY ADMIN"
        if error.args[0] in _DENIED
        else "an open transaction or LOCK TABLES may block it: see SHOW PROCESSLIST there"
    )
    return StackError(
        f"source {source.name} refuses {statement!r}: {mysql_error(error)}",
        hint=f"{hint}; or execute the statement yourself, and run the command again",
        code="SM-6718",
    )
