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

    @property
    def facts(self) -> ServerFacts:
        return server_facts("8.0.36", {}, {})

    def query(self, sql: str, arguments: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        if "BIT_XOR" not in sql:
            return [("utf8mb4", "")]
        assert sql.count("%s") == len(arguments)
        self.queries += 1
        return [(name, 5, value) for name, value in self.tables.items()]

    def compare(self, target: TargetTable, context: ServerContext | None = None) -> ComparedTable:
        if target.table == self.refused:
            raise TargetError("locked", retryable=True)
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


def test_tables_of_a_look_that_fails_are_compared_again() -> None:
    server, looks, tables = looks_at(3)
    server.refused = "t002"
    with pytest.raises(TargetError):
        looks.look(tables)
    server.refused = ""
    assert set(looks.look(tables).compared) == set(tables)
