"""On SQLite, which reads these statements as MySQL does; locks are the servers' matter."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import Any, cast

import pytest

from shardmerge.schemas.model.names import ShardId
from shardmerge.spark_sink.loading.load_state import Attempt, Load, LoadKind
from shardmerge.spark_sink.targets.mysql.control_tables import OPTIONS
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
        if "information_schema.COLUMNS" in sql:
            _, table, column = values
            known = self.database.execute(f"PRAGMA control.table_info({table})").fetchall()
            return [(1,) for each in known if each[1] == column]
        sql = sql.replace(" FOR UPDATE", "").replace("%s", "?")
        return self.database.execute(sql, tuple(values)).fetchall()

    def execute(self, sql: str, values: Sequence[object] = ()) -> int:
        sql = sql.replace(f" {OPTIONS}", "")
        return self.database.execute(sql.replace("%s", "?"), tuple(values)).rowcount


@pytest.fixture
def store() -> Iterator[LoadStore]:
    session = Session()
    yield LoadStore(cast(MySqlSession, session), "control", "p")
    session.database.close()


def finish(store: LoadStore, of: Load, number: int, base: int, attempt: int = 1) -> bool:
    given = Attempt(number, base, attempt)
    return store.finish(of, given, rows=3, size=40, read_before=at(9))


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
    assert not finish(store, one, 0, 1, 2)
    assert finish(store, one, 0, 2, 2)


def test_an_attempt_is_not_taken_for_the_next_one_at_the_same_base(store: LoadStore) -> None:
    one = load().begin(0)
    first = one.chunks[0].given
    store.keep(None, one)
    assert store.is_given_out(one, first)
    store.keep(one, again := one.give_all_back().begin(0))
    second = again.chunks[0].given
    assert store.is_given_out(again, second) and not store.is_given_out(one, first)
    assert not store.finish(one, first, rows=1, size=1, read_before=at(5))
    assert store.finish(again, second, rows=3, size=40, read_before=at(9))
    # The first one's COMMIT was lost: it must not take the second one's for its own.
    assert store.is_done(again, second) and not store.is_done(one, first)


def test_what_is_stored_says_what_may_be_written(store: LoadStore) -> None:
    one = done(load(LoadKind.CHUNKS, "3", "6"), 0).begin(1)
    store.keep(None, one)
    for number in range(4):
        for base, attempt in product((1, 2), (0, 1, 2)):
            accepted = one.accepts(Attempt(number, base, attempt))
            assert finish(store, one, number, base, attempt) is accepted


def test_tables_of_a_version_without_attempts_are_read_and_changed() -> None:
    session, columns = Session(), "pipeline, shard_source, shard_database, shard_table, version"
    store = LoadStore(cast(MySqlSession, session), "control", "p")
    one = done(load(LoadKind.CHUNKS, "3", "6"), 0).begin(1)
    store.keep(None, one)
    session.execute("ALTER TABLE control.load_chunks DROP COLUMN attempt")
    ((text,),) = session.query("SELECT state FROM control.loads")
    plain = json.loads(text)
    del plain["attempts"]
    session.execute("UPDATE control.loads SET state = %s", (json.dumps(plain),))
    (stored,) = store.loads()
    assert [chunk.state for chunk in stored.chunks] == [chunk.state for chunk in one.chunks]
    assert {chunk.attempt for chunk in stored.chunks} == {0}
    store.prepare()
    store.prepare()
    assert store.loads() == [stored]
    # A sink of the earlier version names the columns that it knows.
    session.execute(
        f"REPLACE INTO control.load_chunks ({columns}, number, key_range, state, base, rows_read,"
        f" bytes_read, read_before) SELECT {columns}, number, key_range, state, base, rows_read,"
        " bytes_read, read_before FROM control.load_chunks"
    )
    assert store.loads() == [stored]
    store.keep(stored, again := stored.give_all_back().begin(1))
    assert store.loads() == [again]
    assert not finish(store, again, 1, 1, 0), "a task of the earlier version"
    assert finish(store, again, 1, 1, 1)
    session.database.close()
