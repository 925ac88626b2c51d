"""The control table of cut-overs: how far each one is, and whether the sink may change its target.

``close`` sets a mark. It first takes the target's DDL lock, so it waits for the sink's statement.
Then it takes the lock of the writer epoch, so it waits for the sink's transactions. Each later
statement or transaction of the sink reads the mark under the same lock, and is refused
(``ControlStore.fence``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.spark_sink.barrier.closing import Closing

from .control import ControlStore
from .ddl.ddl_lock import lock_name
from .session import MySqlSession

_WHERE = "pipeline = %s AND target_database = %s AND target_table = %s"


class CutoverStore:
    """The cut-over of one target.

    Args:
        session: A session without an open transaction.
        control: The control tables, on the same session.
        pipeline: Name of the target's pipeline.
        target: The target.
        wait_s: Longest wait for a statement of the sink, in seconds.
    """

    def __init__(
        self,
        session: MySqlSession,
        control: ControlStore,
        pipeline: str,
        target: TargetTable,
        wait_s: int,
    ) -> None:
        self._session, self._control, self._wait_s = session, control, wait_s
        self._pipeline, self._target = pipeline, target
        self._place = (pipeline, target.database, target.table)
        self._table = control.table("cutovers")

    def read(self) -> tuple[str, bool]:
        """The stored record, or "" without one, and whether the target was cut over."""
        rows = self._session.query(
            f"SELECT record, closed FROM {self._table} WHERE {_WHERE}", self._place
        )
        return (str(rows[0][0]), rows[0][1] == Closing.CUT_OVER) if rows else ("", False)

    def keep(self, record: str) -> None:
        """Store a record. The mark that closes the target stays as it is."""
        self._session.execute(
            f"INSERT INTO {self._table} (pipeline, target_database, target_table, closed, record)"
            " VALUES (%s, %s, %s, 0, %s) ON DUPLICATE KEY UPDATE record = VALUES(record)",
            (*self._place, record),
        )

    def pass_commits(self) -> None:
        """Wait until everything is committed that the server's binlog has now.

        A server writes a transaction into its binlog before others see the transaction's rows. It
        commits in the order of the binlog, so a later transaction is committed after it. This one
        leaves nothing behind.

        Source: MySQL Reference Manual, ``binlog_order_commits``; MariaDB always does so.
        """
        place = (self._pipeline, "", "")
        with self._session.transaction():
            self._session.execute(
                f"INSERT INTO {self._table}"
                " (pipeline, target_database, target_table, closed, record)"
                " VALUES (%s, %s, %s, 0, '')",
                place,
            )
            self._session.execute(f"DELETE FROM {self._table} WHERE {_WHERE}", place)

    def close(self) -> None:
        """Forbid the sink to change the target, and wait until its last change has ended.

        Raises:
            TargetError: A statement or transaction of the sink did not end in time. It is
                ``retryable``.
        """
        self._mark(Closing.CUT_OVER)

    def close_for_swap(self) -> None:
        """As ``close``, while the target changes places with its shadow.

        Raises:
            TargetError: See ``close``.
        """
        self._session.execute(
            f"INSERT IGNORE INTO {self._table}"
            " (pipeline, target_database, target_table, closed, record) VALUES (%s, %s, %s, 0, '')",
            self._place,
        )
        self._mark(Closing.SWAPPING)

    def reopen(self) -> None:
        """Allow the sink to change the target again.

        Raises:
            TargetError: See ``close``.
        """
        self._mark(None)

    def forget(self) -> None:
        """Remove the record and the mark."""
        self._session.execute(f"DELETE FROM {self._table} WHERE {_WHERE}", self._place)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other calls of ``cutover`` and ``rebuild`` for this target out meanwhile.

        Raises:
            TargetError: Another call is running.
        """
        name = lock_name(self._pipeline, self._target).replace("-ddl-", "-cut-")
        with self._locked(
            name, 0, "another shardmerge cutover or rebuild of this target is running"
        ):
            yield

    def _mark(self, why: Closing | None) -> None:
        name = lock_name(self._pipeline, self._target)
        busy = f"a statement of the sink on {self._target} has not ended in {self._wait_s} s"
        with self._locked(name, self._wait_s, busy), self._session.transaction():
            self._control.lock_epoch()
            self._session.execute(
                f"UPDATE {self._table} SET closed = %s WHERE {_WHERE}",
                (why or 0, *self._place),
            )

    @contextmanager
    def _locked(self, name: str, wait_s: int, busy: str) -> Iterator[None]:
        ((taken,),) = self._session.query("SELECT GET_LOCK(%s, %s)", (name, wait_s))
        if taken != 1:
            raise TargetError(
                busy,
                retryable=True,
                hint="wait for it, and run the command again",
                code="SM-3105",
            )
        try:
            yield
        finally:
            if self._session.is_open:
                self._session.query("SELECT RELEASE_LOCK(%s)", (name,))
