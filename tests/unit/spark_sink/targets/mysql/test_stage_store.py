"""On SQLite, as ``test_load_store``; ``FOR UPDATE`` is the servers' matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from shardmerge.schemas.model.names import ShardId
from shardmerge.spark_sink.loading.load_state import LoadKind
from shardmerge.spark_sink.targets.mysql.session import MySqlSession
from shardmerge.spark_sink.targets.mysql.stage_store import STAGE_TABLES, StageStore
from tests.unit.spark_sink.loading.loads import SHARD, load
from tests.unit.spark_sink.targets.mysql.test_load_store import Session

LOAD = load(LoadKind.SNAPSHOT)


class Staging(Session):
    """Knows which tables there are, as information_schema does."""

    def __init__(self) -> None:
        super().__init__()
        for name, definition in STAGE_TABLES.items():
            self.database.execute(f"CREATE TABLE control.{name} {definition}")
        self.tables: list[str] = []
        self.said: list[str] = []

    def query(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        if "information_schema.TABLES" in sql:
            prefix = str(values[2])
            return [(name,) for name in self.tables if name.startswith(prefix)]
        return super().query(sql, values)

    def execute(self, sql: str, values: Sequence[object] = ()) -> int:
        self.said.append(sql)
        if sql.startswith("DROP TABLE"):
            gone = sql.rpartition("`.`")[2].removesuffix("`")
            self.tables = [name for name in self.tables if name != gone]
            return 0
        if sql.startswith("CREATE TABLE"):
            self.tables.append(sql.partition(" (")[0].rpartition("`.`")[2].removesuffix("`"))
            return 0
        return super().execute(sql, values)


@pytest.fixture
def session() -> Staging:
    return Staging()


def store_of(session: Staging, pipeline: str = "p") -> StageStore:
    return StageStore(cast(MySqlSession, session), "control", pipeline)


def test_the_latest_attempt_counts_and_begins_anew(session: Staging) -> None:
    store = store_of(session)
    assert store.current(LOAD) is None
    store.register(LOAD, "one")
    store.advance(LOAD, 40)
    assert store.current(LOAD) == ("one", 40)
    store.register(LOAD, "two")
    assert store.current(LOAD) == ("two", 0)
    assert store_of(session, "q").current(LOAD) is None
    assert store.shards() == [SHARD]


def test_only_tables_of_the_same_shard_are_dropped(session: Staging) -> None:
    store, other = store_of(session), ShardId("s2", "app", "t")
    mine, mine_too = store.new_name(SHARD), store.new_name(SHARD)
    others = [store.new_name(other), store_of(session, "q").new_name(SHARD)]
    assert len({mine, mine_too, *others}) == 4
    assert max(map(len, (mine, *others))) <= 64
    session.tables = [mine, *others, mine_too]
    assert store.tables() == []
    store.register(LOAD, mine_too)
    assert store.tables() == [mine, mine_too]
    store.drop(store.others(SHARD, mine_too))
    assert session.tables == [*others, mine_too]


def test_a_load_that_is_complete_is_forgotten_and_a_later_one_is_not(session: Staging) -> None:
    store, later = store_of(session), replace(LOAD, version=5)
    session.tables = [store.new_name(SHARD), store.new_name(SHARD)]
    store.register(LOAD, session.tables[0])
    store.register(later, session.tables[1])
    store.forget(LOAD)
    assert session.tables == [store.current(later)[0]]  # type: ignore[index]
    assert store.current(LOAD) is None
    store.forget(LOAD)
    store.forget(later)
    assert session.tables == []
    assert store.shards() == []


def test_the_columns_of_an_attempts_table_take_nulls(session: Staging) -> None:
    store_of(session).make("staged_1", [("c0", "int unsigned"), ("c2", "text")])
    assert (
        "`control`.`staged_1` (shardmerge_row BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,"
        " `c0` int unsigned NULL, `c2` text NULL)"
    ) in session.said[-1]
