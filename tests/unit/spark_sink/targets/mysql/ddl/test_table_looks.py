"""Which tables a look compares: those that may have changed, at most so many, and some in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.server_facts import ServerFacts, server_facts
from shardmerge.schemas.records.drift import Difference, DriftKind
from shardmerge.schemas.target.table_state import TableState
from shardmerge.spark_sink.targets.mysql.ddl.compared_tables import ComparedTable, TableComparer
from shardmerge.spark_sink.targets.mysql.ddl.table_looks import ANEW, MOST_TOGETHER, MySqlLooks
from shardmerge.spark_sink.targets.mysql.session import MySqlSession

FOUND = (Difference("index:i", DriftKind.HARMLESS, "", "INDEX"),)


class Server:
    """Answers with a number for each table; every comparison finds ``FOUND``."""

    def __init__(self, count: int) -> None:
        self.tables = {f"t{number:03}": 1 for number in range(count)}
        self.compared: list[str] = []
        self.queries = 0
        self.refused = ""
        """Comparisons of tables whose names begin so fail, if it is not empty."""
        self.error: Exception = TargetError("locked", retryable=True)
        self.is_away = False

    @property
    def facts(self) -> ServerFacts:
        return server_facts("8.0.36", {}, {})

    def query(self, sql: str, arguments: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        if sql == "SELECT 1" and self.is_away:
            raise TargetError("away", retryable=True)
        if "BIT_XOR" not in sql:
            return [("utf8mb4", "")]
        assert sql.count("%s") == len(arguments)
        self.queries += 1
        return [(name, 5, value) for name, value in self.tables.items()]

    def compare(self, target: TargetTable, context: ServerContext | None = None) -> ComparedTable:
        if self.refused and target.table.startswith(self.refused):
            raise self.error
        self.compared.append(target.table)
        state = TableState(None)
        return ComparedTable(state, state, FOUND)


def looks_at(count: int) -> tuple[Server, MySqlLooks, dict[TargetTable, int]]:
    server = Server(count)
    looks = MySqlLooks(cast(MySqlSession, server), cast(TableComparer, server))
    return server, looks, {TargetTable("m", name): 0 for name in server.tables}


def test_only_tables_that_may_have_changed_are_compared() -> None:
    server, looks, tables = looks_at(3)
    assert set(looks.look(tables).compared) == set(tables)
    server.tables["t001"] = 2
    found = looks.look(tables).compared
    assert TargetTable("m", "t001") in found
    assert found[TargetTable("m", "t001")] == FOUND
    del server.tables["t002"]
    assert TargetTable("m", "t002") in looks.look(tables).compared
    assert TargetTable("m", "t000") in looks.look({**tables, TargetTable("m", "t000"): 1}).compared
    assert server.queries == 4


def test_many_tables_are_compared_in_several_looks() -> None:
    server, looks, tables = looks_at(MOST_TOGETHER + 7)
    first = looks.look(tables)
    assert (len(first.compared), first.left) == (MOST_TOGETHER, 7)
    second = looks.look(tables)
    assert (set(second.compared) >= set(tables) - set(first.compared), second.left) == (True, 0)
    assert sorted(set(server.compared)) == sorted(server.tables)


def test_each_table_is_compared_anew_in_its_turn() -> None:
    server, looks, tables = looks_at(ANEW + 5)
    while looks.look(tables).left:
        pass
    server.compared.clear()
    for _ in range(ANEW):
        looks.look(tables)
    assert sorted(server.compared) == sorted(server.tables)


@pytest.mark.parametrize("error", [TargetError("locked", retryable=True), ValueError("a defect")])
def test_a_table_that_cannot_be_compared_stops_no_other_one(error: Exception) -> None:
    server, looks, tables = looks_at(3)
    refused = TargetTable("m", "t000")
    server.refused, server.error = "t000", error
    for _ in range(2):
        look = looks.look(tables)
        assert look.failed == {refused: error}
        assert refused not in look.compared
        assert refused not in look.unchanged
    assert server.compared[:2] == ["t001", "t002"]
    server.refused = ""
    look = looks.look(tables)
    assert (look.compared[refused], look.failed) == (FOUND, {})


def test_tables_that_cannot_be_compared_keep_no_other_one_waiting() -> None:
    server, looks, tables = looks_at(MOST_TOGETHER + 7)
    server.refused = "t"
    assert len(looks.look(tables).failed) == MOST_TOGETHER
    server.refused = "t00"
    looks.look(tables)
    looks.look(tables)
    assert set(server.compared) == {name for name in server.tables if not name.startswith("t00")}


def test_a_look_tells_which_tables_have_their_old_fingerprint() -> None:
    server, looks, tables = looks_at(3)
    assert looks.look(tables).unchanged == frozenset()
    server.tables["t001"] = 2
    assert {t.table for t in looks.look(tables).unchanged} == {"t000", "t002"}


def test_a_server_that_is_away_fails_the_whole_look() -> None:
    server, looks, tables = looks_at(3)
    server.refused, server.is_away = "t002", True
    with pytest.raises(TargetError, match="locked"):
        looks.look(tables)
    server.refused, server.is_away = "", False
    assert set(looks.look(tables).compared) == set(tables)
