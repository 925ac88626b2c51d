"""The sink's control tables in the target: offsets, row topics, writer epoch, closed targets.

Theory of operation of a transaction that applies rows (``fence``, then ``advance``):

1. ``fence`` reads the writer epoch under a shared lock, which it keeps until the transaction ends.
   ``take_epoch`` needs the lock exclusively. So once ``take_epoch`` has returned, no transaction of
   an earlier epoch is open, and none can begin. TiDB has only exclusive locks. There the epoch is
   stored in many rows, the *slots*: ``fence`` locks one slot, which the session has chosen, and
   ``take_epoch`` locks all slots in one transaction. So every open transaction keeps ``take_epoch``
   waiting, as with a shared lock. Two sessions of one epoch seldom have the same slot; if they do,
   one waits for the other.
2. ``advance`` moves the partition's offset from where the rows begin to where they end, provided
   that the stored offset is where they begin. So of two writers of one partition one is refused. A
   shared topic has a row for each partition and shard, in a table of its own.

A target that was cut over, or changes places with its shadow, is *closed*. ``fence`` reads that
mark by the same locking query, and refuses the transaction. ``cutover_store.close`` needs the
epoch's lock exclusively. So once it has returned, no transaction of the sink is open on the target,
and none can begin.

When the acknowledgement of a COMMIT is lost, the stored offset tells whether it took effect
(``offset_of``, which waits for a transaction that is still committing).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.records.plain import load
from shardmerge.spark_sink.barrier.closing import Closing, Marks
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.row_topics import RowTopic
from shardmerge.spark_sink.planning.ranges import Advance
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord
from shardmerge.spark_sink.rebuilding.route_changes import RouteChange
from shardmerge.spark_sink.targets.interface import closed_error, moved_error, taken_over

from .control_tables import SLOTS, prepare_tables, qualified
from .server_notes import Statement
from .session import MySqlSession

_sessions = itertools.count()
_SHARD = "shard_source, shard_database, shard_table"
_MOST_TOGETHER = 500


class ControlStore:
    """The control tables of one pipeline.

    Args:
        session: The caller's session: ``fence`` and ``advance`` run in the caller's transaction.
    """

    def __init__(self, session: MySqlSession, control_database: str, pipeline: str) -> None:
        self._session = session
        self._pipeline = pipeline
        self._database = control_database
        # Processes of one machine, and sessions of one process, get different slots as a rule.
        self._slot = (os.getpid() + next(_sessions)) % SLOTS

    def table(self, name: str) -> str:
        """The quoted, qualified name of a control table."""
        return qualified(self._database, name)

    def prepare(self) -> None:
        """Make the control database and its tables where they are missing."""
        prepare_tables(self._session, self._database)

    def take_epoch(self) -> int:
        """Become the writer, with the next epoch; every earlier one is fenced from now on.

        Raises:
            TargetError: An earlier writer's transaction did not end within the lock wait
                timeout (retryable).
        """
        with self._session.transaction():
            return self.next_epoch()

    def next_epoch(self) -> int:
        """Within a transaction: begin another epoch, of which nobody is the writer yet."""
        self._session.execute(
            f"INSERT INTO {self.table('writer_epoch')} (pipeline, epoch) VALUES (%s, 1)"
            " ON DUPLICATE KEY UPDATE epoch = epoch + 1",
            (self._pipeline,),
        )
        epoch = self.epoch()
        if self._session.is_tidb:
            values: list[object] = []
            for slot in range(SLOTS):
                values += [self._pipeline, slot, epoch]
            self._session.execute(
                f"INSERT INTO {self.table('writer_slots')} (pipeline, slot, epoch)"
                f" VALUES {', '.join(['(%s, %s, %s)'] * SLOTS)}"
                " ON DUPLICATE KEY UPDATE epoch = VALUES(epoch)",
                values,
            )
        return epoch

    def epoch(self) -> int:
        """The current writer's epoch; 0 before the first."""
        rows = self._session.query(
            f"SELECT epoch FROM {self.table('writer_epoch')} WHERE pipeline = %s",
            (self._pipeline,),
        )
        return int(rows[0][0]) if rows else 0

    def offsets(self) -> dict[Partition, int]:
        """Partition → next offset to apply; every partition that was ever applied."""
        found = {
            Partition(topic, number): int(offset)
            for topic, number, offset in self._session.query(
                f"SELECT topic, partition_number, next_offset FROM {self.table('offsets')}"
                " WHERE pipeline = %s",
                (self._pipeline,),
            )
        }
        return found | {
            Partition(topic, number, ShardId(*shard)): int(offset)
            for topic, number, *shard, offset in self._session.query(
                f"SELECT topic, partition_number, {_SHARD}, next_offset"
                f" FROM {self.table('shared_offsets')} WHERE pipeline = %s",
                (self._pipeline,),
            )
        }

    def rows(self) -> dict[TargetTable, int]:
        """Target → row events applied to it since the control tables were made."""
        found: dict[TargetTable, int] = {}
        for name in ("offsets", "shared_offsets"):
            for database, table, count in self._session.query(
                "SELECT target_database, target_table, SUM(row_events)"
                f" FROM {self.table(name)} WHERE pipeline = %s"
                " GROUP BY target_database, target_table",
                (self._pipeline,),
            ):
                target = TargetTable(database, table)
                found[target] = found.get(target, 0) + int(count)
        return found

    def row_topics(self) -> dict[str, RowTopic]:
        """Row topic → what it was when the pipeline first read it."""
        return {
            topic: RowTopic(topic_id, int(partitions))
            for topic, topic_id, partitions in self._session.query(
                f"SELECT topic, topic_id, partitions FROM {self.table('row_topics')}"
                " WHERE pipeline = %s",
                (self._pipeline,),
            )
        }

    def keep_row_topics(self, epoch: int, row_topics: Mapping[str, RowTopic]) -> None:
        """Store the ids and numbers of partitions of row topics, in one transaction.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target cannot be written now (``retryable``).
        """
        kept = list(row_topics.items())
        with self._session.transaction():
            self.fence(epoch)
            for first in range(0, len(kept), _MOST_TOGETHER):
                values: list[object] = []
                for topic, (topic_id, partitions) in kept[first : first + _MOST_TOGETHER]:
                    values += [self._pipeline, topic, topic_id, partitions]
                rows = ", ".join(["(%s, %s, %s, %s)"] * (len(values) // 4))
                self._session.execute(
                    f"REPLACE INTO {self.table('row_topics')}"
                    f" (pipeline, topic, topic_id, partitions) VALUES {rows}",
                    values,
                )

    def executed_statements(self, target: TargetTable) -> int:
        """How many statements the sink has executed on the target; each may change its keys."""
        return int(self._session.query(*self.count_query(target))[0][0])

    def count_query(self, target: TargetTable) -> Statement:
        """The query of ``executed_statements``."""
        return Statement(
            f"SELECT COUNT(*) FROM {self.table('ddl_journal')} WHERE pipeline = %s"
            " AND target_database = %s AND target_table = %s AND state = 'done'",
            (self._pipeline, target.database, target.table),
        )

    def closed_targets(self) -> dict[TargetTable, Closing]:
        """The targets that the sink may not change, and why."""
        return {
            TargetTable(database, table): Closing(int(closed))
            for database, table, closed in self._session.query(
                f"SELECT target_database, target_table, closed FROM {self.table('cutovers')}"
                " WHERE pipeline = %s AND closed <> 0",
                (self._pipeline,),
            )
        }

    def marks(self) -> Marks:
        """See ``WriterState``; the swaps are read last."""
        closed = self.closed_targets()
        ((number,),) = self._session.query(
            f"SELECT COALESCE(MAX(number), 0) FROM {self.table('rebuilds')}"
            " WHERE pipeline = %s AND stage IN ('swapped', 'ended')",
            (self._pipeline,),
        )
        return Marks(closed, int(number))

    def route_changes(self) -> list[RouteChange]:
        """See ``WriterState``."""
        rows = self._session.query(
            f"SELECT record FROM {self.table('rebuilds')}"
            " WHERE pipeline = %s AND stage IN ('swapped', 'ended') ORDER BY number",
            (self._pipeline,),
        )
        records = (load(RebuildRecord, str(text).encode()) for (text,) in rows)
        return [change for record in records for change in record.changes]

    def lock_epoch(self) -> None:
        """Within a transaction: wait for all transactions with ``fence``, and let none begin.

        Raises:
            TargetError: One did not end within the lock wait timeout (``retryable``).
        """
        table = self.table("writer_slots" if self._session.is_tidb else "writer_epoch")
        self._session.query(
            f"SELECT epoch FROM {table} WHERE pipeline = %s FOR UPDATE", (self._pipeline,)
        )

    def fence(self, epoch: int, target: TargetTable | None = None) -> None:
        """Within a transaction: make sure that the epoch stays current until the transaction ends.

        Args:
            epoch: Of this writer.
            target: Must not be closed, either; None for a transaction that changes no target.

        Raises:
            WriterReplaced: The epoch is not the current one.
            TargetClosed: The target was cut over, or changes places with its shadow.
        """
        check_fence(self._session.query(*self.fence_query(target)), epoch, target)

    def fence_query(self, target: TargetTable | None) -> Statement:
        """The query of ``fence``; ``check_fence`` judges its answer."""
        if self._session.is_tidb:
            # TiDB refuses LOCK IN SHARE MODE (error 1235). With tidb_enable_noop_functions it
            # accepts the clause, and locks nothing.
            table, lock = self.table("writer_slots"), "AND w.slot = %s FOR UPDATE"
            where: tuple[object, ...] = (self._pipeline, self._slot)
        else:
            table, lock = self.table("writer_epoch"), "LOCK IN SHARE MODE"
            where = (self._pipeline,)
        closed, joined = "0", ""
        of: tuple[object, ...] = ()
        if target is not None:
            closed = "COALESCE(c.closed, 0)"
            joined = (
                f" LEFT JOIN {self.table('cutovers')} c ON c.pipeline = w.pipeline"
                " AND c.target_database = %s AND c.target_table = %s"
            )
            of = (target.database, target.table)
        return Statement(
            f"SELECT w.epoch, {closed} FROM {table} w{joined} WHERE w.pipeline = %s {lock}",
            (*of, *where),
        )

    def offset_of(self, partition: Partition) -> int | None:
        """Within a transaction: the partition's stored offset, locked; None without one."""
        table, where, place = self._place(partition)
        rows = self._session.query(
            f"SELECT next_offset FROM {table} WHERE {where} FOR UPDATE", place
        )
        return int(rows[0][0]) if rows else None

    def advance(self, move: Advance) -> None:
        """Within a transaction: compare-and-set the partition's offset, and add to its counts.

        Raises:
            WriterReplaced: The offset is not where the move starts.
        """
        if self._session.execute(*self.advance_update(move)) == 1:
            return
        stored = self.offset_of(move.place)
        if stored is not None:
            raise moved_error(move, stored)
        self._insert([move])

    def advance_update(self, move: Advance) -> Statement:
        """The statement of ``advance``; it changes one row if the offset is where the move starts.

        It is not for shards that ``advance_all`` moves together.
        """
        table, where, place = self._place(move.place)
        counts = (move.rows, move.written, move.deleted)
        target = (move.target.database, move.target.table)
        return Statement(
            f"UPDATE {table} SET next_offset = %s, target_database = %s,"
            " target_table = %s, row_events = row_events + %s, rows_written = rows_written + %s,"
            f" rows_deleted = rows_deleted + %s WHERE {where} AND next_offset = %s",
            (move.next_offset, *target, *counts, *place, move.start_offset),
        )

    def advance_all(self, moves: Iterable[Advance]) -> None:
        """As ``advance``, for several; shards of a shared topic without rows move together.

        Raises:
            WriterReplaced: An offset is not where its move starts.
        """
        idle: dict[tuple[str, int, int], list[Advance]] = {}
        for move in moves:
            if move.part is None or move.rows:
                self.advance(move)
                continue
            idle.setdefault((move.topic, move.partition, move.next_offset), []).append(move)
        for group in idle.values():
            for first in range(0, len(group), _MOST_TOGETHER):
                self._pass_over(group[first : first + _MOST_TOGETHER])

    def move(self, epoch: int, moves: Iterable[Advance], target: TargetTable | None = None) -> None:
        """Set offsets of partitions, forward or back, in one transaction; see ``WriterState``."""
        with self._session.transaction():
            self.fence(epoch, target)
            self.advance_all(moves)

    def _pass_over(self, moves: Sequence[Advance]) -> None:
        """Move shards without rows together to one offset of a partition."""
        first, table = moves[0], self.table("shared_offsets")
        by_shard = {move.part: move for move in moves}
        shards = ", ".join(["(%s, %s, %s)"] * len(moves))
        where = (
            f"pipeline = %s AND topic = %s AND partition_number = %s AND ({_SHARD}) IN ({shards})"
        )
        place: list[object] = [self._pipeline, first.topic, first.partition]
        for move in moves:
            assert move.part is not None
            place += [move.part.source, move.part.database, move.part.table]
        stored = {
            ShardId(*shard): int(offset)
            for *shard, offset in self._session.query(
                f"SELECT {_SHARD}, next_offset FROM {table} WHERE {where} FOR UPDATE", place
            )
        }
        for shard, offset in stored.items():
            if offset != by_shard[shard].start_offset:
                raise moved_error(by_shard[shard], offset)
        if stored:
            self._session.execute(
                f"UPDATE {table} SET next_offset = %s WHERE {where}", (first.next_offset, *place)
            )
        if new := [move for move in moves if move.part not in stored]:
            self._insert(new)

    def _place(self, partition: Partition) -> tuple[str, str, tuple[object, ...]]:
        """The table of a partition's offset, the condition for its row, the condition's values."""
        where = "pipeline = %s AND topic = %s AND partition_number = %s"
        place = (self._pipeline, partition.topic, partition.number)
        shard = partition.shard
        if shard is None:
            return self.table("offsets"), where, place
        where += "".join(f" AND {column} = %s" for column in _SHARD.split(", "))
        return (
            self.table("shared_offsets"),
            where,
            (*place, shard.source, shard.database, shard.table),
        )

    def _insert(self, moves: Sequence[Advance]) -> None:
        """Insert the first rows of partitions, all into one control table."""
        is_part = moves[0].part is not None
        values: list[object] = []
        for move in moves:
            values += [self._pipeline, move.topic, move.partition]
            if move.part is not None:
                values += [move.part.source, move.part.database, move.part.table]
            values += [move.next_offset, move.target.database, move.target.table]
            values += [move.rows, move.written, move.deleted]
        row = f"({', '.join(['%s'] * (len(values) // len(moves)))})"
        self._session.execute(
            f"INSERT INTO {self.table('shared_offsets' if is_part else 'offsets')}"
            f" (pipeline, topic, partition_number, {_SHARD + ', ' if is_part else ''}next_offset,"
            " target_database, target_table, row_events, rows_written, rows_deleted)"
            f" VALUES {', '.join([row] * len(moves))}",
            values,
        )


def check_fence(
    rows: Sequence[tuple[Any, ...]], epoch: int, target: TargetTable | None = None
) -> None:
    """Judge the answer to ``ControlStore.fence_query``; see ``ControlStore.fence``."""
    current, is_closed = rows[0] if rows else (0, 0)
    if int(current) != epoch:
        raise taken_over(int(current), epoch)
    if is_closed:
        raise closed_error(target, Closing(int(is_closed)))
