"""A toy Kafka and toy MySQL sources: lists with watermarks, transactions, late commit markers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import BEGINNING, SourcePosition
from shardmerge.schemas.model.shard_columns import Lineage
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.pipeline.topics import RowTopics
from shardmerge.spark_sink.barrier.partitions import Partition

Place = Partition

Change = tuple[ShardId, TableSchema | None, tuple[Lineage, ...]]
"""A shard, its schema after (None: it is gone), where its columns come from."""


@dataclass(frozen=True)
class Ddl:
    """What one event does to the shards that it concerns; none: it is ignored."""

    position: SourcePosition
    changes: tuple[Change, ...]
    snapshot: bool = False
    ts_ms: int = 0


@dataclass(frozen=True)
class Row:
    """A row event.

    Attributes:
        number: Unique.
        key: The primary key; of a TRUNCATE, whose event has none, any number.
        image: After the change; None is a delete.
        truncates: Whether it is a TRUNCATE.
        reread: Whether it comes from an incremental snapshot.
        read: Whether it comes from a snapshot.
        ts_ms: When the connector made it.
    """

    number: int
    shard: ShardId
    position: SourcePosition
    key: int
    names: tuple[str, ...]
    image: dict[str, object] | None
    truncates: bool = False
    reread: bool = False
    read: bool = False
    ts_ms: int = 0

    @property
    def op(self) -> str:
        """As Debezium tells it, as far as that matters."""
        return "r" if self.read or self.reread else "d" if self.image is None else "u"

    @property
    def is_incremental(self) -> bool:
        return self.reread


@dataclass(frozen=True)
class Scanned:
    """What a connector tells when it has read a table again."""

    shard: ShardId


NOTICES = Place("notices", 0)
Event = Ddl | Row | Scanned


@dataclass
class Entry:
    """What an offset holds: a record of a transaction, or its marker (``value`` None)."""

    value: Event | None
    producer: str
    aborted: bool = False


@dataclass
class Log:
    """A log. ``open_from``: by producer, where the transaction begins that is not ended here."""

    entries: list[Entry] = field(default_factory=list)
    open_from: dict[str, int] = field(default_factory=dict)

    @property
    def high_watermark(self) -> int:
        return len(self.entries)

    @property
    def stable_end(self) -> int:
        return min(self.open_from.values(), default=len(self.entries))

    def committed(self, start: int, end: int) -> Iterator[tuple[int, Event]]:
        """Records in ``[start, end)`` that a read-committed consumer gets."""
        for offset in range(start, min(end, self.stable_end)):
            entry = self.entries[offset]
            if entry.value is not None and not entry.aborted:
                yield offset, entry.value


class ToyKafka:
    """Topics come into being with their first record. ``topics``: where shards' rows are."""

    def __init__(self, partitions: int, topics: RowTopics | None = None) -> None:
        self.row_partitions = partitions
        self.topics = topics or RowTopics()
        self.logs: dict[Place, Log] = {}

    def ensure(self, topic: str, count: int) -> None:
        for number in range(count):
            self.logs.setdefault(Place(topic, number), Log())

    def counts(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for place in self.logs:
            found[place.topic] = found.get(place.topic, 0) + 1
        return found


class ToySource:
    """A MySQL server with its exactly-once connector.

    Records of a transaction are appended in binlog order before it commits; its markers then
    land partition by partition, whenever they like. An aborted transaction is sent again.
    """

    def __init__(self, name: str, kafka: ToyKafka) -> None:
        self.name = name
        self.kafka = kafka
        self.schemas: dict[ShardId, TableSchema] = {}
        self.rows: dict[ShardId, dict[int, dict[str, object]]] = {}
        self.sent: list[Ddl | Row] = []
        self._clock = 0
        self._unmarked: list[Place] = []
        self._aborting = False
        self._open: list[tuple[Place, Event]] = []
        self._again: list[tuple[Place, Event]] = []
        kafka.ensure(name, 1)
        kafka.ensure(NOTICES.topic, 1)

    def next_position(self) -> SourcePosition:
        self._clock += 10
        return SourcePosition(0, "binlog.000009", self._clock, 0)

    @property
    def snapshot_position(self) -> SourcePosition:
        return SourcePosition(0, "binlog.000009", self._clock, 0) if self._clock else BEGINNING

    def send(self, event: Ddl | Row) -> None:
        """Append an event of the binlog to its topic, in the open transaction."""
        if isinstance(event, Ddl):
            place = Place(self.name, 0)
        else:
            topic = self.kafka.topics.topic_of(event.shard)
            self.kafka.ensure(topic, self.kafka.row_partitions)
            place = Place(topic, event.key % self.kafka.row_partitions)
        if not self._open:
            self.finish()
        self._append(place, event)
        self.sent.append(event)

    def tell_scanned(self, shard: ShardId) -> None:
        """Tell, in the open transaction, that all rows of a table are sent that were read again."""
        if not self._open:
            self.finish()
        self._append(NOTICES, Scanned(shard))

    def commit(self, *, abort: bool = False) -> None:
        """Decide the open transaction, if there is one; its markers are still on their way."""
        if not self._open:
            return
        self._unmarked = list(dict.fromkeys(place for place, _ in self._open))
        self._aborting = abort
        if abort:
            self._again = self._open
        self._open = []

    def land_marker(self, which: int = 0) -> None:
        """One partition learns how the transaction ended."""
        if not self._unmarked:
            return
        log = self.kafka.logs[self._unmarked.pop(which % len(self._unmarked))]
        begin = log.open_from.pop(self.name)
        if self._aborting:
            for entry in log.entries[begin:]:
                entry.aborted |= entry.producer == self.name
        log.entries.append(Entry(None, self.name))

    def finish(self) -> None:
        """Land every marker, and send again what was aborted (in a transaction that is open)."""
        while self._unmarked:
            self.land_marker()
        again, self._again = self._again, []
        for place, event in again:
            self._append(place, event)

    def settle(self) -> None:
        """Until nothing is open: everything sent is committed and readable."""
        self.commit()
        self.finish()
        self.commit()
        self.finish()

    def _append(self, place: Place, event: Event) -> None:
        log = self.kafka.logs[place]
        log.open_from.setdefault(self.name, len(log.entries))
        log.entries.append(Entry(event, self.name))
        self._open.append((place, event))
