"""Which shards of a shared partition a round looks at, and from where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shardmerge.schemas.model.names import ShardId
from shardmerge.spark_sink.barrier.barrier import Barriers
from shardmerge.spark_sink.barrier.partitions import IdleParts, Partition
from shardmerge.spark_sink.kafka.windows.window import Window
from shardmerge.spark_sink.kafka.windows.window_looks import Found, WindowLooks

ALL = Partition("all", 0)
SHARDS = tuple(ShardId("s1", "app", name) for name in "abc")
PARTS = {ALL: [Partition(*ALL[:2], shard) for shard in SHARDS]}
A, B, C = PARTS[ALL]


class World:
    """One shared partition; windows of at most ten offsets are read."""

    def __init__(self, few: int = 3) -> None:
        self.idle, self.barriers = IdleParts(), Barriers(["s1"])
        self.names: set[tuple[str, str, str]] | None = set()
        self.asked: list[Mapping[Partition, tuple[int, int]]] = []
        self.looks = WindowLooks(self.read, self.idle, self.barriers, few)

    def read(self, asked: Mapping[Partition, tuple[int, int]]) -> dict[Partition, Window]:
        self.asked.append(asked)
        return {p: Window(end, self.names) for p, (start, end) in asked.items() if end - start < 10}

    def look(self, high: int, stable: int, *, looked: bool = True) -> Found:
        def ask(wanted: Iterable[Partition]) -> dict[Partition, int]:
            return dict.fromkeys(wanted, stable)

        return self.looks.look(PARTS, {ALL} if looked else set(), {ALL: high}, {}, ask)

    def begun(self) -> World:
        """With a base of 5, and all shards idle."""
        self.look(5, 5)
        for part in PARTS[ALL]:
            self.idle.rest(part)
        return self


def test_a_base_begins_when_all_shards_are_looked_at() -> None:
    world = World()
    assert world.look(5, 4, looked=False) == Found()
    assert world.look(5, 4).moved == {ALL}
    assert world.idle.bases == {ALL: 4}
    assert world.asked == []


def test_of_few_shards_and_without_a_reader_all_are_looked_at() -> None:
    world = World(few=4)
    assert (world.look(5, 5), world.idle.bases) == (Found(), {})
    looks = WindowLooks(None, world.idle, world.barriers, 1)
    assert looks.look(PARTS, None, {ALL: 5}, {}, lambda _: {}) == Found()


def test_a_shard_that_is_named_stands_at_the_windows_start_and_the_others_at_its_end() -> None:
    world = World().begun()
    world.names = {("s1", "app", "b")}
    assert world.look(9, 8).named == {B}
    assert world.asked == [{ALL: (5, 8)}]
    assert [world.idle.offset(part) for part in (A, B, C)] == [8, 5, 8]
    assert world.barriers.safe_ends == {B: 5}
    assert (B in world.idle, A in world.idle) == (False, True)


def test_a_shard_that_is_not_idle_stays_where_it_is() -> None:
    world = World().begun()
    world.idle.moved(B)
    world.names = {("s1", "app", "b")}
    assert world.look(8, 8).named == {B}
    assert world.idle.offset(B) == 0, "what is stored counts"
    assert world.barriers.safe_ends == {}


def test_a_large_window_or_a_record_of_any_shard_names_all() -> None:
    world = World().begun()
    assert world.look(50, 50).named == {A, B, C}
    assert {world.idle.offset(part) for part in (A, B, C)} == {5}
    world = World().begun()
    world.names = None
    assert world.look(8, 8).named == {A, B, C}


def test_records_behind_an_open_transaction_are_told() -> None:
    world = World().begun()
    assert world.look(9, 5).blocked == {ALL: 5}
    assert world.asked == []
    assert world.look(5, 5) == Found()


def test_a_base_that_ends_leaves_its_shards_where_they_stood() -> None:
    world = World().begun()
    world.looks.keep(PARTS)
    assert world.idle.bases == {ALL: 5}
    world.looks.keep({})
    assert world.idle.bases == {}
    assert (A in world.idle, world.idle.offset(A)) == (False, 5)
    assert world.barriers.safe_ends == dict.fromkeys((A, B, C), 5)
    world.idle.rest(A)
    assert A not in world.idle, "without a base nobody is idle"
