"""A toy of Debezium's incremental snapshots: a table is read again, chunk by chunk, on request."""

from __future__ import annotations

from dataclasses import dataclass, field

from shardmerge.schemas.model.names import ShardId
from tests.toy_kafka import ToySource


@dataclass
class ToySnapshots:
    """The snapshots of one source, one after the other.

    A chunk is read at its first mark; what the binlog has of its rows up to its second mark wins.
    When the table changes in between, the chunk is read again.

    Attributes:
        asked: Tables that are to be read; the first one is at work.
        left: Keys of its rows that are still to be read; None before it is begun.
        chunk: Rows that were read and are not sent yet; None between two chunks.
    """

    source: ToySource
    asked: list[ShardId] = field(default_factory=list)
    left: list[int] | None = None
    chunk: dict[int, dict[str, object]] | None = None

    def ask(self, shard: ShardId) -> None:
        """A request for a table that is not there has no effect."""
        if shard in self.source.schemas:
            self.asked.append(shard)

    def read_chunk(self, size: int) -> None:
        """Set the first mark, and read."""
        if self.chunk is not None or not self.asked:
            return
        rows = self.source.rows[self.asked[0]]
        if self.left is None:
            self.left = sorted(rows)
        self.chunk = {key: dict(rows[key]) for key in self.left[:size] if key in rows}
        self._size = size

    def send_chunk(self) -> tuple[ShardId, dict[int, dict[str, object]]] | None:
        """Set the second mark: what is sent there; None when no chunk was read."""
        if self.chunk is None or self.left is None:
            return None
        shard, chunk, self.chunk = self.asked[0], self.chunk, None
        self.left = self.left[self._size :]
        if not self.left:
            self._end()
        return shard, chunk

    def is_reading(self, shard: ShardId) -> bool:
        """Whether rows of a table that is being read are still to come."""
        return self.left is not None and self.asked[0] == shard

    def row_changed(self, shard: ShardId, key: int) -> None:
        """The binlog has a newer row."""
        if self.chunk is not None and shard == self.asked[0]:
            self.chunk.pop(key, None)

    def table_changed(self, shard: ShardId) -> None:
        """A chunk that was read before is read again; a table that is gone is not read."""
        if self.asked and shard == self.asked[0]:
            self.chunk = None
        if shard not in self.source.schemas:
            if self.asked and shard == self.asked[0]:
                self._end()
            self.asked = [other for other in self.asked if other != shard]

    def _end(self) -> None:
        self.asked, self.left = self.asked[1:], None
