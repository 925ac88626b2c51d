"""The sink's control tables in the target: offsets, writer epoch, DDL journal.

Theory of operation of a transaction that applies rows (``fence``, then ``advance``):

1. ``fence`` reads the writer epoch under a shared lock, kept until the transaction ends.
   ``take_epoch`` needs it exclusively. So once it returned, no transaction of an earlier epoch
   is open, and none can begin.
2. ``advance`` moves the partition's offset from where the rows begin to where they end, if it
   stands exactly there. Two writers of one partition meet at this row.

After a lost acknowledgement of COMMIT the stored offset tells whether it took effect
(``offset_of``, which waits for a transaction that is still committing).
"""

from __future__ import annotations

from collections.abc import Iterable

from shardmerge.schemas.errors import TargetError
from shardmerge.schemas.names import TargetTable, quote_identifier
from shardmerge.spark_sink.ranges import Advance
from shardmerge.spark_sink.targets.interface import taken_over

from .session import MySqlSession

_TABLES = {
    "offsets": """(
        pipeline VARCHAR(64) NOT NULL,
        topic VARCHAR(255) NOT NULL,
        partition_number INT NOT NULL,
        next_offset BIGINT NOT NULL,
        target_database VARCHAR(64) NOT NULL,
        target_table VARCHAR(64) NOT NULL,
        row_events BIGINT NOT NULL,
        rows_written BIGINT NOT NULL,
        rows_deleted BIGINT NOT NULL,
        changed_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)
            ON UPDATE CURRENT_TIMESTAMP(3),
        PRIMARY KEY (pipeline, topic, partition_number)
    )""",
    "writer_epoch": """(
        pipeline VARCHAR(64) NOT NULL PRIMARY KEY,
        epoch BIGINT NOT NULL,
        taken_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)
            ON UPDATE CURRENT_TIMESTAMP(3)
    )""",
    "ddl_journal": """(
        pipeline VARCHAR(64) NOT NULL,
        target_database VARCHAR(64) NOT NULL,
        target_table VARCHAR(64) NOT NULL,
        version BIGINT NOT NULL,
        ordinal INT NOT NULL,
        state VARCHAR(8) NOT NULL,
        statement LONGTEXT NOT NULL,
        schema_before LONGTEXT NULL,
        error LONGTEXT NOT NULL,
        changed_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)
            ON UPDATE CURRENT_TIMESTAMP(3),
        PRIMARY KEY (pipeline, target_database, target_table, version, ordinal)
    )""",
}
# Names are compared byte by byte, and utf8mb4 keys of 255 characters fit from MySQL 5.7 on.
_OPTIONS = "ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"


class ControlStore:
    """The control tables of one pipeline.

    Args:
        session: Used by this store's caller too: ``fence`` and ``advance`` run in its transaction.
    """

    def __init__(self, session: MySqlSession, control_database: str, pipeline: str) -> None:
        self._session = session
        self._pipeline = pipeline
        self._database = control_database

    def table(self, name: str) -> str:
        """The quoted, qualified name of a control table."""
        return f"{quote_identifier(self._database)}.{quote_identifier(name)}"

    def prepare(self) -> None:
        """Make the control database and its tables where they are missing."""
        if not self._session.query(
            "SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s", (self._database,)
        ):
            self._session.execute(
                f"CREATE DATABASE IF NOT EXISTS {quote_identifier(self._database)}"
                " CHARACTER SET utf8mb4"
            )
        for name, definition in _TABLES.items():
            self._session.execute(
                f"CREATE TABLE IF NOT EXISTS {self.table(name)} {definition} {_OPTIONS}"
            )

    def take_epoch(self) -> int:
        """Become the writer: the next epoch. Every earlier one is fenced from now on.

        Raises:
            TargetError: An earlier writer's transaction did not end within the lock wait
                timeout (retryable).
        """
        with self._session.transaction():
            self._session.execute(
                f"INSERT INTO {self.table('writer_epoch')} (pipeline, epoch) VALUES (%s, 1)"
                " ON DUPLICATE KEY UPDATE epoch = epoch + 1",
                (self._pipeline,),
            )
            return self.epoch()

    def epoch(self) -> int:
        """The current writer's epoch; 0 before the first."""
        rows = self._session.query(
            f"SELECT epoch FROM {self.table('writer_epoch')} WHERE pipeline = %s",
            (self._pipeline,),
        )
        return int(rows[0][0]) if rows else 0

    def offsets(self) -> dict[tuple[str, int], int]:
        """(topic, partition) → next offset to apply, of every partition that was ever applied."""
        return {
            (topic, partition): int(offset)
            for topic, partition, offset in self._session.query(
                f"SELECT topic, partition_number, next_offset FROM {self.table('offsets')}"
                " WHERE pipeline = %s",
                (self._pipeline,),
            )
        }

    def rows(self) -> dict[TargetTable, int]:
        """Target → row events applied to it since the control tables were made."""
        return {
            TargetTable(database, table): int(count)
            for database, table, count in self._session.query(
                "SELECT target_database, target_table, SUM(row_events)"
                f" FROM {self.table('offsets')} WHERE pipeline = %s"
                " GROUP BY target_database, target_table",
                (self._pipeline,),
            )
        }

    def executed_statements(self, target: TargetTable) -> int:
        """How many statements the sink has executed on the target: tells when keys may differ."""
        rows = self._session.query(
            f"SELECT COUNT(*) FROM {self.table('ddl_journal')} WHERE pipeline = %s"
            " AND target_database = %s AND target_table = %s AND state = 'done'",
            (self._pipeline, target.database, target.table),
        )
        return int(rows[0][0])

    def fence(self, epoch: int) -> None:
        """Within a transaction: be sure that the epoch is the current one until it ends.

        Raises:
            TargetError: It is not.
        """
        rows = self._session.query(
            f"SELECT epoch FROM {self.table('writer_epoch')} WHERE pipeline = %s"
            " LOCK IN SHARE MODE",
            (self._pipeline,),
        )
        current = int(rows[0][0]) if rows else 0
        if current != epoch:
            raise taken_over(current, epoch)

    def offset_of(self, topic: str, partition: int) -> int | None:
        """Within a transaction: the partition's stored offset, locked; None without one."""
        rows = self._session.query(
            f"SELECT next_offset FROM {self.table('offsets')} WHERE pipeline = %s AND topic = %s"
            " AND partition_number = %s FOR UPDATE",
            (self._pipeline, topic, partition),
        )
        return int(rows[0][0]) if rows else None

    def advance(self, move: Advance) -> None:
        """Within a transaction: compare-and-set the partition's offset, and count.

        Raises:
            TargetError: The offset is not where the move starts.
        """
        place = (self._pipeline, move.topic, move.partition)
        changed = self._session.execute(
            f"UPDATE {self.table('offsets')} SET next_offset = %s, target_database = %s,"
            " target_table = %s, row_events = row_events + %s, rows_written = rows_written + %s,"
            " rows_deleted = rows_deleted + %s"
            " WHERE pipeline = %s AND topic = %s AND partition_number = %s AND next_offset = %s",
            (
                move.next_offset,
                move.target.database,
                move.target.table,
                move.rows,
                move.written,
                move.deleted,
                *place,
                move.start_offset,
            ),
        )
        if changed == 1:
            return
        stored = self.offset_of(move.topic, move.partition)
        if stored is not None:
            raise TargetError(
                f"another writer moved {move.topic}/{move.partition}: its offset is {stored},"
                f" expected {move.start_offset}",
                hint="only one sink may run per pipeline; it starts again from the stored offsets",
            )
        self._session.execute(
            f"INSERT INTO {self.table('offsets')} (pipeline, topic, partition_number, next_offset,"
            " target_database, target_table, row_events, rows_written, rows_deleted)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (
                *place,
                move.next_offset,
                move.target.database,
                move.target.table,
                move.rows,
                move.written,
                move.deleted,
            ),
        )

    def move(self, epoch: int, moves: Iterable[Advance]) -> None:
        """Set offsets of partitions, forward or back, in one transaction.

        Raises:
            TargetError: An offset is not where its move starts, another writer took over, or the
                target cannot be written now (``retryable``).
        """
        with self._session.transaction():
            self.fence(epoch)
            for one in moves:
                self.advance(one)
