"""A consistent snapshot of one table, at a known position of its server's binlog.

Theory of operation. MariaDB tells the position of a snapshot. For other servers

1. the binlog's end is noted, and a mark is written into the source's signal table. Servers commit
   in the binlog's order, unless ``binlog_order_commits`` is off. So everything before the noted end
   is committed when the mark is.
2. The snapshot is taken, and the binlog's end is noted again: S.
3. The events between the two ends are looked through. If none is about the table, the snapshot
   shows the table as of S. Otherwise all of this is tried again. Nobody waits for it.
4. If every attempt has failed, or the server commits in another order, another connection locks
   the table for reading. When it has the lock, no transaction that wrote to the table is open. The
   snapshot is taken, the binlog's end is noted, and the lock is released: it is held for some
   milliseconds. While the lock is waited for, writers of the table wait behind it, so that wait is
   short.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from shardmerge.connectors.sources.signal_table import write_mark_into
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.pipeline.settings import Source
from shardmerge.spark_sink.loading.snapshot_queries import (
    commits_in_order,
    events_between,
    has_snapshots,
    lock_table,
    may_change,
    show_commit_order,
    show_engine,
    show_place,
    told_place,
)

from .table_reader import NoTable, TableReader

_ATTEMPTS = 20
_LOCK_WAIT_S = 2


class TableSnapshot:
    """See ``SnapshotSource``.

    Every method raises ``StackError`` when the server does not answer, or refuses something.

    Args:
        source: The source.
        signals: Database of the source's signal table; this writer may write to it.
        open_reader: Opens a connection to a source.
        clock: Monotonic seconds.
        pause: Waits some seconds.
    """

    def __init__(
        self,
        source: Source,
        signals: str,
        open_reader: Callable[[Source], TableReader] = TableReader,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._source, self._signals, self._open = source, signals, open_reader
        self._clock, self._pause = clock, pause
        self._reader = open_reader(source)
        self._began = 0.0

    def begin(self, shard: ShardId) -> SourcePosition:
        """See ``SnapshotSource``.

        Raises:
            StackError: Also if the table's engine has no snapshots, or if the table must be locked
                and cannot be.
        """
        reader = self._reader
        rows = reader.query(show_engine(shard))
        if rows and not has_snapshots(engine := str(rows[0][0] or "")):
            raise StackError(
                f"{shard} cannot be read as of one moment: its engine is {engine or 'not known'}",
                hint="make it a table of InnoDB, or let Debezium read it, see SM-1616",
                code="SM-1616",
            )
        reader.read_for(self._source.load_snapshot_s)
        self._began = self._clock()
        if not commits_in_order(reader.query(show_commit_order())):
            return self._begin_locked(shard, "its server has binlog_order_commits = OFF")
        for _ in range(_ATTEMPTS):
            first = reader.binlog_end()
            write_mark_into(self._signals, self._source, _mark(), "first load: a snapshot is taken")
            reader.begin()
            place = told_place(self._source.epoch, reader.query(show_place()))
            if place is not None:
                return place
            last = reader.binlog_end()
            if not may_change(shard, first, last, reader.query(events_between(first))):
                return last
            reader.end()
        return self._begin_locked(shard, "it was written to at each attempt")

    def _begin_locked(self, shard: ShardId, reason: str) -> SourcePosition:
        locking = self._open(self._source)
        try:
            locking.wait_for_locks(_LOCK_WAIT_S)
            locking.query(lock_table(shard))
            self._reader.begin()
            return self._reader.binlog_end()
        except NoTable:
            raise
        except StackError as error:
            raise StackError(
                f"{shard} must be locked while a snapshot is taken ({reason}), and cannot be "
                f"locked: {error.message}",
                hint=f"GRANT LOCK TABLES ON the database to {self._source.user!r}, or wait until "
                "no long transaction writes to the table; it is tried again",
                code="SM-1618",
            ) from error
        finally:
            locking.close()

    def table(self, shard: ShardId) -> TableSchema | None:
        """See ``SnapshotSource``."""
        return self._reader.table(shard)

    def rows(self, sql: str, most: int, size: int) -> Iterator[Sequence[Sequence[Any]]]:
        """See ``SnapshotSource``.

        Raises:
            StackError: Also if the transaction has been open for too long (``load_snapshot_s``).
        """
        source, begun, read = self._source, self._clock(), 0
        rate = source.load_rows_per_s / source.load_connections
        for part in self._reader.parts(sql, most, size):
            yield part
            read += len(part)
            now = self._clock()
            if source.load_snapshot_s and now - self._began > source.load_snapshot_s:
                raise StackError(
                    f"source {source.name}: a snapshot was open for more than "
                    f"{source.load_snapshot_s} s, after {read} rows",
                    hint="raise load_snapshot_s of the source, or load_rows_per_s if it is set",
                    code="SM-1619",
                )
            if rate:
                self._pause(max(0.0, begun + read / rate - now))

    def end(self) -> None:
        """See ``SnapshotSource``."""
        self._reader.close()


def _mark() -> str:
    return f"shardmerge-snapshot-{uuid.uuid4().hex}"
