"""A toy source whose connector takes a first snapshot, and again when it is interrupted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from tests.toy_kafka import Ddl, Row, ToyKafka, ToySource
from tests.toy_server import filled

Read = tuple[ShardId, dict[str, object]]
"""A row that a snapshot is to read; its key is the column id."""


class SnapshotSource(ToySource):
    """See the module.

    What its server does while a snapshot is taken stands in the binlog behind the snapshot's
    place: it is sent when the snapshot has ended, or never, if that begins again.

    Attributes:
        reads: What is to be read next; None when no snapshot is taken.
        place: Of the snapshot.
        brings_rows: Whether it reads rows.
        untold: Places of snapshots that were to read rows and found none: no record says so.
    """

    def __init__(self, name: str, kafka: ToyKafka) -> None:
        super().__init__(name, kafka)
        self.next_position()
        self.reads: list[Read] | None = None
        self.place = self.snapshot_position
        self.brings_rows = True
        self.untold: set[SourcePosition] = set()
        self._wall = 0
        self._behind: list[Ddl | Row] = []

    def describes(self, *, brings_rows: bool = True) -> SourcePosition:
        """A snapshot begins, or begins again: the caller describes the tables."""
        if self.reads is not None:
            self.lose()
        # Behind the last event, and before the next one, which has its place by its start.
        last = self.snapshot_position
        self.place = replace(last, pos=last.pos + 5)
        self.brings_rows = brings_rows
        self._behind = []
        self.reads = []
        for shard, rows in sorted(self.rows.items()) if brings_rows else ():
            if (schema := self.schemas.get(shard)) is None:
                continue
            for key, image in sorted(rows.items()):
                # What is read is what the server goes on from: it refuses NOT NULL for a NULL.
                rows[key] = {c.name: image.get(c.name, filled(c)) for c in schema.columns}
                self.reads.append((shard, rows[key]))
        if brings_rows and not self.reads:
            self.untold.add(self.place)
        return self.place

    @property
    def clock_ms(self) -> int:
        """The connector's clock: of the last record."""
        return self._wall

    def lose(self) -> None:
        """The worker dies: what is in an open transaction never comes."""
        lost = {id(event) for _, event in (*self._open, *self._again)}
        self.commit(abort=True)
        self._again = []
        self.finish()
        self.sent = [event for event in self.sent if id(event) not in lost]

    def send(self, event: Ddl | Row) -> None:
        """Send an event, or keep it until the snapshot has ended."""
        self._wall += 1
        event = replace(event, ts_ms=self._wall)
        is_read = event.snapshot if isinstance(event, Ddl) else event.read
        if self.reads is None or is_read:
            super().send(event)
        else:
            self._behind.append(event)

    def read_on(self, numbers: Iterable[int]) -> None:
        """Read as many rows as there are numbers for. Behind the last one comes the binlog."""
        if self.reads is None:
            return
        for number in numbers:
            if self.reads:
                shard, image = self.reads.pop(0)
                key = image["id"]
                assert isinstance(key, int)
                self.send(Row(number, shard, self.place, key, tuple(image), image, read=True))
        if not self.reads:
            self.reads = None
            behind, self._behind = self._behind, []
            for event in behind:
                self.send(event)
