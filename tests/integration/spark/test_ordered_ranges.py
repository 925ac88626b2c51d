"""Ordered partitions, with a real broker and a real target: one place of the binlog a commit."""

from __future__ import annotations

import itertools
import json
import random
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.offsets import OffsetReader
from shardmerge.spark_sink.planning.ordered_partitions import PartitionClosure
from shardmerge.spark_sink.planning.ranges import RangeResult, RangeTask, Segment, ShardStream
from shardmerge.spark_sink.targets.mysql.tasks.connection import TaskConnection
from shardmerge.spark_sink.targets.mysql.tasks.ordered_ranges import apply_ordered

from .rig import FILE, Rig

COUNT = 3
LOOSE = "id VARCHAR(20) COLLATE utf8mb4_0900_ai_ci PRIMARY KEY, u INT NULL UNIQUE, v INT"
KEYLESS = "a VARCHAR(5), v INT"
PLACE = "_p VARCHAR(400) COLLATE utf8mb4_bin NOT NULL PRIMARY KEY"


class Shard:
    """The rig's shard with a row topic of several partitions."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.topic = f"{rig.topic}_ordered"
        self.places = itertools.count(1_000, 10)
        servers = rig.stack.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers})
        for done in admin.create_topics([NewTopic(self.topic, COUNT, 1)]).values():
            done.result()
        # As a connector's, it does not change the order when it sends a batch again.
        self.producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
        self.offsets = OffsetReader(Kafka(servers))

    def place(self) -> SourcePosition:
        """Behind every event so far."""
        return SourcePosition(0, FILE, next(self.places), 0)

    def send(
        self,
        op: str,
        image: dict[str, Any],
        place: SourcePosition | None = None,
        before: dict[str, Any] | None = None,
    ) -> None:
        """An event, in the partition of its key's bytes, or in any without one."""
        place = place or self.place()
        event = json.loads(self.rig.event(op, image, place))
        if before is not None:
            event["before"] = before
        number = zlib.crc32(str(image["id"]).encode()) if "id" in image else place.pos // 10
        self.producer.produce(self.topic, json.dumps(event).encode(), b"k", number % COUNT)
        self.producer.poll(0)

    def ends(self) -> list[int]:
        """Offsets behind everything."""
        assert self.producer.flush(60) == 0
        partitions = [Partition(self.topic, number) for number in range(COUNT)]
        ends = self.offsets.high_watermarks(partitions)
        return [ends[p] for p in partitions]

    def tasks(
        self, segments: Sequence[Segment], ends: Sequence[int], most: int | None = None
    ) -> list[RangeTask]:
        """From the stored offsets; ``most`` offsets of each partition."""
        applied = self.rig.control.offsets()
        bindings = {c.id: Binding(c.id, c.column.name) for s in segments for c in s.columns}
        stream = ShardStream(
            self.rig.shard, self.rig.target, tuple(segments), None, COUNT, ordered=True
        )
        found = []
        for number, end in enumerate(ends):
            start = applied.get(Partition(self.topic, number), 0)
            if start < end:
                upto = end if most is None else min(end, start + most)
                step, epoch = PartitionClosure(end, end), self.rig.epoch
                found.append(
                    RangeTask(self.topic, number, start, upto, stream, bindings, epoch, -1, step)
                )
        return found

    def apply(
        self, *segments: Segment, most: int | None = None, connection: TaskConnection | None = None
    ) -> list[RangeResult]:
        """Apply everything, batch by batch; the results of the last one."""
        ends, results = self.ends(), []
        while tasks := self.tasks(segments, ends, most):
            results = apply_ordered(tasks, connection or self.rig.connection)
            if any(r.hold for r in results):
                break
            assert any(r.next_offset > r.start_offset for r in results)
        return results


@pytest.fixture
def shard(rig: Rig) -> Shard:
    return Shard(rig)


class Loose:
    """What a shard with the table ``LOOSE`` does: keys differ in case alone, unique values move."""

    def __init__(self, shard: Shard, seed: int) -> None:
        self.shard, self.random = shard, random.Random(seed)
        self.rows: dict[str, dict[str, Any]] = {}

    def go_on(self, events: int, keys: int) -> None:
        for number in range(events):
            text = f"k{self.random.randrange(keys)}"
            text = text.upper() if self.random.random() < 0.5 else text
            self.change({"id": text, "u": self.free_value(), "v": number})

    def free_value(self) -> int | None:
        """One of few that nobody has: it may have been another row's a moment ago."""
        taken = {row["u"] for row in self.rows.values()}
        free = [n for n in range(len(taken) + 2) if n not in taken]
        return self.random.choice([*free, None])

    def change(self, image: dict[str, Any]) -> None:
        before = self.rows.get(image["id"].lower())
        if before is None:
            self.shard.send("c", image)
        elif self.random.random() < 0.3:
            self.shard.send("d", before)
            del self.rows[image["id"].lower()]
            return
        elif before["id"] == image["id"]:
            self.shard.send("u", image, before=before)
        else:
            place = self.shard.place()
            self.shard.send("d", before, place)
            self.shard.send("c", image, place)
        self.rows[image["id"].lower()] = image

    @property
    def expected(self) -> list[tuple[Any, ...]]:
        return sorted((row["id"], row["u"], row["v"]) for row in self.rows.values())


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("most", [None, 7])
def test_rows_are_the_shards_where_keys_differ_for_messages_alone(
    rig: Rig, shard: Shard, most: int | None
) -> None:
    segment = rig.segment(rig.create(LOOSE))
    world = Loose(shard, seed=1)
    for _ in range(3):
        world.go_on(100, keys=12)
        shard.apply(segment, most=most)
        assert sorted(rig.rows()) == world.expected


def test_a_backlog_is_applied_in_rounds_of_bounded_size(rig: Rig, shard: Shard) -> None:
    segment = rig.segment(rig.create(LOOSE))
    world = Loose(shard, seed=2)
    world.go_on(5_000, keys=700)
    small = TaskConnection(replace(rig.config, round_records=900, round_bytes=100_000))

    results = shard.apply(segment, connection=small)

    small.close()
    assert sum(r.rows for r in results) >= 5_000, "all of it was one batch"
    assert sorted(rig.rows()) == world.expected


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("placed", [False, True], ids=["no key", "the place is the key"])
def test_equal_rows_without_a_key_are_counted_over_all_partitions(
    rig: Rig, shard: Shard, placed: bool
) -> None:
    segment = rig.segment(rig.create(f"{KEYLESS}, {PLACE}" if placed else KEYLESS))
    if placed:
        columns = (*segment.columns[:-1], replace(segment.columns[-1], id="@position"))
        segment = replace(segment, columns=columns)
    known: dict[str, list[Any]] = {}
    rows: Counter[tuple[str, int]] = Counter()
    chance = random.Random(3)
    for _ in range(3):
        for _ in range(80):
            left = sorted(rows.elements())
            before = chance.choice(left) if left and chance.random() < 0.6 else None
            after = (chance.choice("xyz"), chance.randrange(2)) if chance.random() < 0.7 else None
            if before is not None:
                rows[before] -= 1
            if after is not None:
                rows[after] += 1
            images = [dict(zip("av", row, strict=True)) if row else None for row in (before, after)]
            if images[1] is None and images[0] is not None:
                shard.send("d", images[0])
            elif images[1] is not None:
                shard.send("u" if images[0] else "c", images[1], before=images[0])
        shard.apply(segment, most=9)
        assert Counter(rig.rows("a, v")) == +rows
        if placed:
            of_place = {place: row for place, *row in rig.rows("_p, a, v")}
            assert all(place.startswith(f"{rig.shard.source}/{FILE}:") for place in of_place)
            assert all(known.get(place, row) == row for place, row in of_place.items())
            known |= of_place


def test_a_unique_value_goes_round_the_rows_of_all_partitions(rig: Rig, shard: Shard) -> None:
    segment = rig.segment(rig.create(LOOSE))
    keys = [f"k{n}" for n in range(6)]
    for n, key in enumerate(keys):
        shard.send("c", {"id": key, "u": n, "v": 0})
    shard.apply(segment)
    for _ in range(5):
        shard.send("u", {"id": keys[0], "u": None, "v": 1}, before={"id": keys[0]})
        for one, two in itertools.pairwise(keys):
            shard.send("u", {"id": two, "u": None, "v": 1}, before={"id": two})
            shard.send("u", {"id": one, "u": keys.index(two), "v": 1}, before={"id": one})
        shard.send("u", {"id": keys[-1], "u": 0, "v": 1}, before={"id": keys[-1]})

    results = shard.apply(segment)

    assert not any(r.hold for r in results)
    assert dict(rig.rows("id, u")) == {key: (n + 1) % 6 for n, key in enumerate(keys)}


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("bad", [0, 37, 99])
def test_a_row_that_is_refused_holds_all_partitions_at_its_place(
    rig: Rig, shard: Shard, bad: int
) -> None:
    segment = rig.segment(rig.create("id VARCHAR(20) PRIMARY KEY, v VARCHAR(3)"))
    for n in range(100):
        shard.send("c", {"id": f"k{n}", "v": "x" * (4 if n >= bad else 3)})

    results = shard.apply(segment)

    (held,) = [r.hold for r in results if r.hold is not None]
    assert "Data too long" in held.reason
    assert not held.collides
    assert held.position.pos == 1_000 + 10 * bad
    assert {row[0] for row in rig.rows()} == {f"k{n}" for n in range(bad)}
    rig.session.execute(f"ALTER TABLE {rig.target.sql} MODIFY v VARCHAR(4)")
    shard.apply(segment)
    assert len(rig.rows()) == 100


def test_a_value_that_does_not_fit_holds_all_partitions_at_its_place(
    rig: Rig, shard: Shard
) -> None:
    segment = rig.segment(rig.create("id VARCHAR(20) PRIMARY KEY, v INT"))
    for n in range(50):
        shard.send("c", {"id": f"k{n}", "v": "nonsense" if n == 20 else n})

    results = shard.apply(segment)

    (held,) = [r.hold for r in results if r.hold is not None]
    assert held.position.pos == 1_200
    assert len(rig.rows()) == 20


def test_a_true_collision_is_told_as_one(rig: Rig, shard: Shard) -> None:
    segment = rig.segment(rig.create(LOOSE))
    rig.session.execute(f"INSERT INTO {rig.target.sql} VALUES ('others', 5, 0)")
    for n in range(9):
        shard.send("c", {"id": f"k{n}", "u": n, "v": 0})

    results = shard.apply(segment)

    (held,) = [r.hold for r in results if r.hold is not None]
    assert held.collides
    assert "Duplicate entry" in held.reason
    assert {row[0] for row in rig.rows()} == {"others", *(f"k{n}" for n in range(5))}


def test_partitions_wait_for_what_is_not_read_of_another_one(rig: Rig, shard: Shard) -> None:
    segment = rig.segment(rig.create(LOOSE))
    for n in range(200):
        shard.send("c", {"id": f"k{n}", "u": n, "v": n})
    tasks = shard.tasks([segment], shard.ends())
    short = [t if t.partition else replace(t, end_offset=10) for t in tasks]

    results = apply_ordered(short, rig.connection)

    values = sorted(row[2] for row in rig.rows())
    assert values == list(range(len(values))), "no row is missing before another one"
    assert 0 < len(values) < 200
    assert results[0].next_offset == 10
