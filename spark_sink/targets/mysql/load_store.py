"""The state of first loads in the target: a row for each load, and one for each of its chunks.

The tables are made for a pipeline that has a source whose first rows the sink reads.

A chunk's own row is its fence. The transaction that writes the chunk's rows begins by marking it as
done, provided that it is still given out for the attempt that has read it (``finish``); this is
``Load.accepts``. The driver's transaction that moves a base, or plans a chunk again, changes the
same row. So one of the two waits for the other, and then finds what it did.

A driver reads the state when it becomes the writer, and from then on nobody else changes it, except
by ``finish``. The driver learns from the results of tasks which chunks are done. If a task gave no
result, the driver reads ``loads`` again.
"""

from __future__ import annotations

import json
from dataclasses import replace

from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.records.plain import dump, from_plain
from shardmerge.schemas.records.plain import load as from_bytes
from shardmerge.spark_sink.loading.chunk_ranges import KeyRange
from shardmerge.spark_sink.loading.load_state import Attempt, Chunk, ChunkState, Load

from .control_tables import add_later_columns, has_column, make_tables, qualified
from .session import MySqlSession

LOAD_KEY = "pipeline, shard_source, shard_database, shard_table, version"
"""The columns that name a load; see ``load_place``."""
LOAD_COLUMNS = """
        pipeline VARCHAR(64) NOT NULL,
        shard_source VARCHAR(128) NOT NULL,
        shard_database VARCHAR(64) NOT NULL,
        shard_table VARCHAR(64) NOT NULL,
        version BIGINT NOT NULL,"""
"""Their definitions, at the beginning of a table's."""
OF_LOAD = " AND ".join(f"{column} = %s" for column in LOAD_KEY.split(", "))
"""The condition for the rows of one load; its parameters are ``load_place``."""
LOAD_TABLES = {
    "loads": f"""({LOAD_COLUMNS}
        state LONGTEXT NOT NULL,
        PRIMARY KEY ({LOAD_KEY})
    )""",
    "load_chunks": f"""({LOAD_COLUMNS}
        number INT NOT NULL,
        key_range LONGTEXT NOT NULL,
        state VARCHAR(8) NOT NULL,
        base BIGINT NOT NULL,
        rows_read BIGINT NOT NULL,
        bytes_read BIGINT NOT NULL,
        read_before LONGTEXT NULL,
        attempt INT NOT NULL DEFAULT 0,
        PRIMARY KEY ({LOAD_KEY}, number)
    )""",
}
"""The definitions of the two tables. ``version``: of the decision that orders the load."""
LATER_COLUMNS = (("load_chunks", "attempt", "INT NOT NULL DEFAULT 0"),)
"""See ``control_tables.LATER_COLUMNS``."""
_OF_ATTEMPT = "number = %s AND base = %s AND attempt = %s"
_CHUNK = "number, key_range, state, base, rows_read, bytes_read, read_before"


class LoadStore:
    """The two tables of one pipeline.

    Args:
        session: The caller's: every method but ``loads`` runs in the caller's transaction, after
            ``ControlStore.fence``.
    """

    def __init__(self, session: MySqlSession, control_database: str, pipeline: str) -> None:
        self._session = session
        self._database = control_database
        self._pipeline = pipeline

    def table(self, name: str) -> str:
        """The quoted, qualified name of a table."""
        return qualified(self._database, name)

    def prepare(self) -> None:
        """Make the tables, and later columns, where they are missing; outside a transaction."""
        make_tables(self._session, self._database, LOAD_TABLES)
        add_later_columns(self._session, self._database, LATER_COLUMNS)

    def is_prepared(self) -> bool:
        """Whether the tables are there."""
        found = self._session.query(
            "SELECT COUNT(*) FROM information_schema.TABLES"
            " WHERE TABLE_SCHEMA = %s AND TABLE_NAME IN (%s, %s)",
            (self._database, *LOAD_TABLES),
        )
        return int(found[0][0]) == len(LOAD_TABLES)

    def loads(self) -> list[Load]:
        """All loads, those that are complete included; by shard and version."""
        # Who reads the loads beside the sink may find a table of an earlier version.
        has_attempts = has_column(self._session, self._database, "load_chunks", "attempt")
        numbered = "attempt" if has_attempts else "0"
        chunks: dict[tuple[object, ...], list[Chunk]] = {}
        for *place, number, key_range, state, base, rows, size, end, attempt in self._session.query(
            f"SELECT {LOAD_KEY}, {_CHUNK}, {numbered} FROM {self.table('load_chunks')}"
            f" WHERE pipeline = %s ORDER BY {LOAD_KEY}, number",
            (self._pipeline,),
        ):
            chunk = Chunk(
                int(number),
                from_plain(KeyRange, json.loads(key_range)),
                ChunkState(state),
                int(base),
                int(rows),
                int(size),
                None if end is None else from_plain(SourcePosition, json.loads(end)),
                int(attempt),
            )
            chunks.setdefault(tuple(place), []).append(chunk)
        return [
            replace(from_bytes(Load, _bytes(state)), chunks=tuple(chunks.get(tuple(place), ())))
            for *place, state in self._session.query(
                f"SELECT {LOAD_KEY}, state FROM {self.table('loads')}"
                f" WHERE pipeline = %s ORDER BY {LOAD_KEY}",
                (self._pipeline,),
            )
        ]

    def keep(self, before: Load | None, after: Load) -> None:
        """Store what a step of the driver changed.

        Args:
            before: The load as it was stored; None for a new one.
            after: The same load after the step.
        """
        place = load_place(self._pipeline, after)
        if before is None or replace(before, chunks=()) != replace(after, chunks=()):
            self._session.execute(
                f"REPLACE INTO {self.table('loads')} ({LOAD_KEY}, state)"
                " VALUES (%s, %s, %s, %s, %s, %s)",
                (*place, dump(replace(after, chunks=())).decode()),
            )
        known = () if before is None else before.chunks
        for number, chunk in enumerate(after.chunks):
            if number < len(known) and known[number] == chunk:
                continue
            end = chunk.read_before
            self._session.execute(
                f"REPLACE INTO {self.table('load_chunks')} ({LOAD_KEY}, {_CHUNK}, attempt)"
                " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
                (
                    *place,
                    number,
                    dump(chunk.range).decode(),
                    chunk.state.value,
                    chunk.base,
                    chunk.rows,
                    chunk.size,
                    None if end is None else dump(end).decode(),
                    chunk.attempt,
                ),
            )
        if len(known) > len(after.chunks):
            self._session.execute(
                f"DELETE FROM {self.table('load_chunks')} WHERE {OF_LOAD} AND number >= %s",
                (*place, len(after.chunks)),
            )

    def finish(
        self,
        load: Load,
        attempt: Attempt,
        *,
        rows: int,
        size: int,
        read_before: SourcePosition,
    ) -> bool:
        """Mark a chunk as done, in the transaction of its rows.

        Args:
            load: Names the load; its state may be old.
            attempt: Which has read it.
            rows: See ``Chunk``.
            size: See ``Chunk``.
            read_before: See ``Chunk``.

        Returns:
            False when its rows must not be written.
        """
        changed = self._session.execute(
            f"UPDATE {self.table('load_chunks')} SET state = %s, rows_read = %s, bytes_read = %s,"
            f" read_before = %s WHERE {OF_LOAD} AND {_OF_ATTEMPT} AND state = %s",
            (
                ChunkState.DONE.value,
                rows,
                size,
                dump(read_before).decode(),
                *load_place(self._pipeline, load),
                *_attempt_place(attempt),
                ChunkState.RUNNING.value,
            ),
        )
        return changed == 1

    def is_given_out(self, load: Load, attempt: Attempt) -> bool:
        """Whether a chunk is still given out for an attempt; its row is locked until then."""
        return self._locked_state(load, attempt) is ChunkState.RUNNING

    def is_done(self, load: Load, attempt: Attempt) -> bool:
        """Whether an attempt has marked its chunk as done, after a COMMIT was lost.

        Waits for a transaction that is still committing.
        """
        return self._locked_state(load, attempt) is ChunkState.DONE

    def _locked_state(self, load: Load, attempt: Attempt) -> ChunkState | None:
        """The state of an attempt's chunk, with its row locked; None if it was given out again."""
        rows = self._session.query(
            f"SELECT state FROM {self.table('load_chunks')} WHERE {OF_LOAD}"
            f" AND {_OF_ATTEMPT} FOR UPDATE",
            (*load_place(self._pipeline, load), *_attempt_place(attempt)),
        )
        return ChunkState(rows[0][0]) if rows else None


def load_place(pipeline: str, load: Load) -> tuple[object, ...]:
    """The values of ``LOAD_KEY`` for a load."""
    shard = load.shard
    return (pipeline, shard.source, shard.database, shard.table, load.version)


def _attempt_place(attempt: Attempt) -> tuple[int, int, int]:
    """The parameters of ``_OF_ATTEMPT``."""
    return (attempt.chunk, attempt.base, attempt.number)


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()
