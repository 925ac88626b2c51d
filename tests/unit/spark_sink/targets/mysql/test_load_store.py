"""On SQLite, which reads these statements as MySQL does; locks are the servers' matter."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, cast

import pytest

from shardmerge.schemas.model.names import ShardId
from shardmerge.spark_sink.loading.load_state import Load, LoadKind
from shardmerge.spark_sink.targets.mysql.load_store import LOAD_TABLES, LoadStore
from shardmerge.spark_sink.targets.mysql.session import MySqlSession
from tests.unit.spark_sink.loading.loads import at, done, load


class Session:
    def __init__(self) -> None:
        self.database = sqlite3.connect(":memory:")
        self.database.execute("ATTACH ':memory:' AS control")
        for name, definition in LOAD_TABLES.items():
            self.database.execute(f"CREATE TABLE control.{name} {definition}")

    def query(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return self.database.execute(sql.replace("%s", "?"), tuple(values)).fetchall()

    def execute(self, sql: str, values: Sequence[object] = ()) -> int:
        return self.database.execute(sql.replace("%s", "?"), tuple(values)).rowcount


@pytest.fixture
def store() -> Iterator[LoadStore]:
    session = Session()
    yield LoadStore(cast(MySqlSession, session), "control", "p")
    session.database.close()


def finish(store: LoadStore, of: Load, number: int, base: int) -> bool:
    return store.finish(of, number, base, rows=3, size=40, read_before=at(9))


def test_a_load_is_stored_step_by_step(store: LoadStore) -> None:
    steps = [load(LoadKind.CHUNKS, "ä'", "b")]
    for step in (
        lambda one: one.begin(0),
        lambda one: one.finish(0, 3, 40, at(9)),
        lambda one: one.pause(),
        lambda one: one.begin(1).split(2, ("x",)),
        lambda one: one.move(2, at(99)),
        lambda one: one.move(3, at(99), new_key=True),
        lambda one: one.plan(),
        lambda one: one.end_void(4, at(100)),
    ):
        steps.append(step(steps[-1]))
    store.keep(None, steps[0])
    assert store.loads() == [steps[0]]
    for before, after in pairwise(steps):
        store.keep(before, after)
        assert store.loads() == [after]


def test_loads_of_other_shards_versions_and_pipelines_are_apart(store: LoadStore) -> None:
    one = load(LoadKind.CHUNKS, "5")
    other = load(LoadKind.SNAPSHOT, shard=ShardId("s2", "app", "t"))
    store.keep(None, one)
    store.keep(None, other)
    LoadStore(store._session, "control", "q").keep(None, other)
    assert store.loads() == [one, other]


def test_a_chunk_is_finished_once(store: LoadStore) -> None:
    one = load(LoadKind.CHUNKS, "5").begin(0)
    store.keep(None, one)
    assert not finish(store, one, 1, 1)
    assert finish(store, one, 0, 1)
    assert not finish(store, one, 0, 1)
    assert store.loads() == [one.finish(0, 3, 40, at(9))]


def test_a_chunk_that_was_planned_again_is_refused(store: LoadStore) -> None:
    one = load().begin(0)
    store.keep(None, one)
    store.keep(one, one.give_all_back())
    assert not finish(store, one, 0, 1)


def test_a_chunk_of_an_earlier_base_is_refused(store: LoadStore) -> None:
    one = load().begin(0)
    moved = one.move(2, at(50))
    store.keep(None, one)
    store.keep(one, moved)
    store.keep(moved, moved.begin(0))
    assert not finish(store, one, 0, 1)
    assert finish(store, one, 0, 2)


def test_what_is_stored_says_what_may_be_written(store: LoadStore) -> None:
    one = done(load(LoadKind.CHUNKS, "3", "6"), 0).begin(1)
    store.keep(None, one)
    for number in range(4):
        for base in (1, 2):
            assert finish(store, one, number, base) is one.accepts(number, base)
