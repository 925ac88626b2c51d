"""What first loads ask of sources, in threads beside the driver's loop: marks, plans, proofs.

A mark is a row with a name of its own that is written into a source's signal table.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from shardmerge.connectors.sources.signal_table import write_mark
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.origin import origin_part
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.settings import Pipeline, Source
from shardmerge.spark_sink.barrier.shard_gates import Gate
from shardmerge.spark_sink.loading.chunk_queries import key_extent, next_boundary
from shardmerge.spark_sink.loading.chunk_ranges import even_boundaries
from shardmerge.spark_sink.loading.key_order import Boundary, KeyColumn
from shardmerge.spark_sink.loading.load_state import Chunk, Load, LoadKind
from shardmerge.spark_sink.sources.replica_reader import ReplicaReader, chunk_reader
from shardmerge.spark_sink.sources.table_reader import TableReader

from .load_marks import MarkSearch

_PROOF_S = 60.0
_BOUNDARIES = 16
"""This many chunks are planned at once. They are read while more are planned."""
_CHUNK_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """More boundaries of a table's chunks.

    Attributes:
        is_last: Whether the chunk behind the last boundary is the table's last one.
        rows: About how many rows each chunk has.
    """

    boundaries: tuple[Boundary, ...]
    is_last: bool
    rows: int


class LoadJobs:
    """Asks sources. Every method may run in any thread, and may raise ``StackError``.

    Args:
        pipeline: Has the sources.
        name: Name of this writer; it is part of the names of its marks.
        open_reader: Opens a connection to a source, or to the replica that is read.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        name: str,
        open_reader: Callable[[Source], TableReader] = chunk_reader,
    ) -> None:
        self._pipeline = pipeline
        # Another driver may have written marks with the same numbers.
        self._name = f"shardmerge-load-{name}-{uuid.uuid4().hex[:8]}"
        self._numbers = itertools.count(1)
        self._open = open_reader
        self._idle: dict[str, list[TableReader]] = {}
        self._keeping = Lock()

    def commit_seen(self, source: Source) -> None:
        """Wait until the server that is read has everything that the source's binlog has now.

        Raises:
            StackError: Also if a replica does not get there in time.
        """
        write_mark(self._pipeline, source, self._mark(), "first load: reads from here on")
        if not source.load_host:
            return
        reader = self._reader(source)
        assert isinstance(reader, ReplicaReader)
        reader.wait()
        self._give_back(source, reader)

    def prove(self, source: Source) -> SourcePosition:
        """Write a mark, and wait until it has come through Kafka.

        Returns:
            A position before the mark. Everything that was read before this call precedes it.
        """
        reader = self._reader(source)
        end = reader.binlog_end()
        self._give_back(source, reader)
        search, mark = MarkSearch(self._pipeline, source), self._mark()
        write_mark(self._pipeline, source, mark, "first load: was read up to here")
        search.wait(mark, _PROOF_S)
        return end

    def plan(self, source: Source, load: Load, gate: Gate, most_rows: int) -> PlannedPart:
        """The next boundaries of a load's chunks.

        Args:
            source: Of the shard.
            load: Its load; planning goes on behind ``planned_to``.
            gate: The gate at which the load stands.
            most_rows: How many rows a chunk should have at most.
        """
        reader, shard, key = self._reader(source), load.shard, key_of(gate)
        count, size = reader.statistics(shard)
        if load.kind is LoadKind.SNAPSHOT:
            self._give_back(source, reader)
            return PlannedPart((), True, count)
        rows = max(1, min(most_rows, _CHUNK_BYTES * max(count, 1) // max(size, 1)))
        if load.planned_to is None and len(key) == 1 and key[0].kind.is_integer:
            ((least, greatest),) = reader.query(key_extent(shard, key[0]))
            if least is None:
                self._give_back(source, reader)
                return PlannedPart((), True, 0)
            even = even_boundaries(int(least), int(greatest), count, rows)
            if even is not None:
                self._give_back(source, reader)
                return PlannedPart(even, True, count // (len(even) + 1))
        found: list[Boundary] = []
        after, is_last = load.planned_to, False
        while len(found) < _BOUNDARIES and not is_last:
            answer = reader.query(next_boundary(shard, key, after, rows))
            is_last = not answer
            if answer:
                after = tuple(map(str, answer[0]))
                found.append(after)
        self._give_back(source, reader)
        return PlannedPart(tuple(found), is_last, rows)

    def middle(
        self, source: Source, shard: ShardId, gate: Gate, chunk: Chunk, rows: int
    ) -> Boundary | None:
        """A boundary with about ``rows`` rows of a chunk before it; None when there is none."""
        reader = self._reader(source)
        answer = reader.query(next_boundary(shard, key_of(gate), chunk.range.low, rows))
        self._give_back(source, reader)
        return tuple(map(str, answer[0])) if answer else None

    def close(self) -> None:
        """Close the connections. No other method may run any more."""
        for readers in self._idle.values():
            for reader in readers:
                reader.close()
        self._idle.clear()

    def _mark(self) -> str:
        return f"{self._name}-{next(self._numbers)}"

    def _reader(self, source: Source) -> TableReader:
        with self._keeping:
            idle = self._idle.setdefault(source.name, [])
            return idle.pop() if idle else self._open(source)

    def _give_back(self, source: Source, reader: TableReader) -> None:
        """Keep a connection for the next use. One that has failed is not kept."""
        with self._keeping:
            self._idle[source.name].append(reader)


def key_of(gate: Gate) -> tuple[KeyColumn, ...]:
    """The columns of a shard's primary key behind a gate."""
    own = {c.column.name.lower(): c.column for c in gate.columns if origin_part(c.id) is None}
    named = (own.get(name.lower()) for name in gate.key)
    return tuple(KeyColumn(column.name, column.type) for column in named if column is not None)
