"""Ordered partitions: what is committed is a prefix of what the source has emitted.

A toy connector emits one shard's rows to several partitions, transaction by transaction. Records
are acknowledged, transactions end and markers land at moments of their own in each partition. The
sink looks at watermarks and ends, one after the other, and reads what it likes of the ranges.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.barrier.applied import Watermarks
from shardmerge.spark_sink.barrier.collation_keys import is_collation_key
from shardmerge.spark_sink.barrier.partitions import Partition, Stream
from shardmerge.spark_sink.planning.ordered_partitions import (
    Closures,
    PartitionClosure,
    closed_ranges,
)
from shardmerge.spark_sink.planning.ranges import ShardStream
from shardmerge.spark_sink.planning.readings import ordered_readings
from shardmerge.spark_sink.rows.decoding.row_format import JSON_ROWS
from shardmerge.spark_sink.rows.folding.ordered_fold import LaneFold, LaneRecords, ShardLanes
from shardmerge.spark_sink.rows.folding.row_fold import RowFold
from tests.unit.spark_sink.row_events import SHARD, at, marked, row, segment

TOPIC, COUNT = "s1.app.t", 3
STREAM = Stream(TOPIC)
PARTITIONS = [Partition(TOPIC, number) for number in range(COUNT)]
SEGMENT = segment(id=ColumnType("varchar", 20))
MARKER = object()
KINDS = ["row"] * 9 + ["key"] * 4 + ["chunk"] * 3 + ["bad", "junk"]


@dataclass
class Log:
    """One partition: ``acknowledged`` and ``stable`` are offsets."""

    records: list[tuple[int, bytes] | object] = field(default_factory=list)
    acknowledged: int = 0
    stable: int = 0


@dataclass
class World:
    """The connector and its topic; ``emitted`` counts all records."""

    data: st.DataObject
    logs: list[Log] = field(default_factory=lambda: [Log() for _ in range(COUNT)])
    emitted: int = 0
    place: int = 4
    unmarked: set[int] = field(default_factory=set)
    touched: set[int] = field(default_factory=set)

    def go_on(self) -> None:
        """Whatever happens between two looks at the world."""
        steps = [self.emit, self.emit, self.emit, self.acknowledge, self.commit, self.land]
        for step in self.data.draw(st.lists(st.sampled_from(steps), max_size=5)):
            step()

    def draw(self, what: st.SearchStrategy[int]) -> int:
        return self.data.draw(what)

    def emit(self) -> None:
        """An event in the open transaction: a row, a key update, rows read again, or nonsense."""
        self._land(0)
        self.place += self.draw(st.integers(1, 2))
        kind = self.data.draw(
            st.sampled_from(["row"] * 9 + ["key"] * 4 + ["chunk"] * 3 + ["bad", "junk"])
        )
        event_row = self.draw(st.integers(0, 1))
        place = at(self.place, event_row)
        if kind == "key":
            self._append(row("d", {"id": "a"}, place))
            self._append(row("c", {"id": "A"}, place))
        elif kind == "chunk":
            self._append(row("c", {"id": "c"}, place))
            for _ in range(3):
                self._append(_read_again(at(self.place, 0)), self.emitted)
            self.emitted += 1
        elif kind == "junk":
            self._append(b"junk")
        else:
            self._append(row("?" if kind == "bad" else "c", {"id": "b"}, place))

    def _append(self, value: bytes, emission: int | None = None) -> None:
        """Rows that were read at one moment are one emission: they have no order."""
        number = self.draw(st.integers(0, COUNT - 1))
        self.touched.add(number)
        if emission is None:
            emission = self.emitted
            self.emitted += 1
        self.logs[number].records.append((emission, value))

    def acknowledge(self) -> None:
        """Some records of a partition arrive."""
        log = self.logs[self.draw(st.integers(0, COUNT - 1))]
        log.acknowledged = self.draw(st.integers(log.acknowledged, len(log.records)))

    def commit(self) -> None:
        """Everything is acknowledged first; markers come one by one."""
        self._land(0)
        for log in self.logs:
            log.acknowledged = len(log.records)
        self.unmarked, self.touched = self.touched, set()

    def land(self) -> None:
        """A marker comes to a partition."""
        self._land(max(0, len(self.unmarked) - 1))

    def _land(self, left: int) -> None:
        while len(self.unmarked) > left:
            number = self.data.draw(st.sampled_from(sorted(self.unmarked)))
            self.unmarked.remove(number)
            log = self.logs[number]
            log.records.append(MARKER)
            log.stable = log.acknowledged = len(log.records)


def _read_again(place: SourcePosition) -> bytes:
    return marked(row("r", {"id": "d"}, place))


@dataclass
class Sink:
    world: World
    batch: int
    closures: Closures = field(default_factory=Closures)
    watermarks: Watermarks = field(default_factory=Watermarks)
    safe: dict[Partition, int] = field(default_factory=dict)
    applied: dict[Partition, int] = field(default_factory=lambda: dict.fromkeys(PARTITIONS, 0))
    is_held: bool = False

    def watch(self) -> None:
        ends = {p: self.world.logs[p.number].acknowledged for p in PARTITIONS}
        self.watermarks = Watermarks(partitions={TOPIC: COUNT}, ends=ends)

    def look(self) -> bool:
        logs = self.world.logs
        self.safe = {p: max(self.safe.get(p, 0), logs[p.number].stable) for p in PARTITIONS}
        return self.closures.look([STREAM], self.watermarks, self.safe)

    def apply(self) -> bool:
        """One batch; returns whether anything moved."""
        available = {
            p: (self.applied[p], end) for p, end in self.safe.items() if end > self.applied[p]
        }
        closure = self.closures.found.get(STREAM)
        ranges = closed_ranges(closure, available)
        if not ranges or self.is_held:
            return False
        assert closure is not None
        (reading,) = ordered_readings({STREAM: ranges}).values()
        first = reading.first(self.batch)
        assert first.keys() == ranges.keys()
        lanes, partitions = [], list(first)
        for p, (start, end) in first.items():
            assert end <= self.safe[p], "what is to be read is readable, and decided"
            # Smaller than what a plan gives, and never without a record or a marker.
            shorter = min(end, start + self.world.draw(st.integers(1, 20)))
            step = PartitionClosure(closure.ends[p], closure.bounds[p])
            lanes.append(LaneRecords(SHARD, start, shorter, step, JSON_ROWS))
        shard, moved = ShardLanes(lanes), False
        while True:
            for p, lane in zip(partitions, lanes, strict=True):
                self._read(p, lane)
            folds = shard.fold(lambda _: _fold())
            now = self._commit(partitions, folds)
            shard.take(folds)
            moved |= now
            if self.is_held or not (now or any(lane.reached < lane.end for lane in lanes)):
                return moved

    def _read(self, partition: Partition, lane: LaneRecords) -> None:
        if lane.is_ended:
            return
        to = min(lane.end, lane.reached + self.world.draw(st.integers(1, 8)))
        for offset in range(lane.reached, to):
            record = self.world.logs[partition.number].records[offset]
            if isinstance(record, tuple):
                lane.extend([offset], [record[1]])
        lane.reached = to

    def _commit(self, partitions: list[Partition], folds: list[LaneFold | None]) -> bool:
        moved = False
        for p, fold in zip(partitions, folds, strict=True):
            if fold is not None:
                assert fold.next_offset >= self.applied[p]
                moved |= fold.next_offset > self.applied[p]
                self.applied[p] = fold.next_offset
                self.is_held |= fold.is_stopped
        self.check()
        return moved

    def check(self) -> None:
        done: set[int] = set()
        left: set[int] = set()
        for p in PARTITIONS:
            for offset, record in enumerate(self.world.logs[p.number].records):
                if isinstance(record, tuple):
                    (done if offset < self.applied[p] else left).add(record[0])
        assert max(done, default=-1) <= min(left, default=self.world.emitted), (done, left)


def _fold() -> RowFold:
    stream = ShardStream(SHARD, TargetTable("m", "t"), (SEGMENT,), None, ordered=True)
    return RowFold(stream, {"id#1": Binding("id#1", "id")})


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_every_commit_is_a_prefix_of_what_was_emitted_and_all_of_it_comes(
    data: st.DataObject,
) -> None:
    world = World(data)
    sink = Sink(world, data.draw(st.integers(1, 30)))
    for _ in range(data.draw(st.integers(1, 10))):
        for step in (sink.watch, sink.look, sink.apply):
            world.go_on()
            step()
    world.commit()
    while world.unmarked:
        world.land()
    for _ in range(3):
        sink.watch()
        sink.look()
        while sink.apply():
            pass
    assert sink.is_held or sink.applied == {
        p: len(world.logs[p.number].records) for p in PARTITIONS
    }


def test_the_key_of_the_toy_is_a_collation_key() -> None:
    (column,) = SEGMENT.columns
    assert is_collation_key(column.column.type)
