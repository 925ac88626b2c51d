"""What is remembered between two comparisons of a table; the server is a script."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.target import table_state
from shardmerge.spark_sink.targets.mysql.ddl import compared_tables
from shardmerge.spark_sink.targets.mysql.ddl.compared_tables import TableComparer
from shardmerge.spark_sink.targets.mysql.server_notes import Statement
from shardmerge.spark_sink.targets.mysql.session import MySqlSession

TARGET = TargetTable("m", "t")
SERVER = ServerContext()
CREATE = "CREATE TABLE `m`.`t` (`id` int NOT NULL{}, PRIMARY KEY (`id`))"
ADD = "ALTER TABLE `m`.`t` ADD COLUMN `{}` int"


class Server:
    """Its journal has these statements as executed."""

    def __init__(self, *statements: str) -> None:
        self.statements = list(statements)
        self.messages = 0

    def queries(self, *asked: Statement) -> list[list[tuple[Any, ...]]]:
        assert all(sql.count("%s") == len(arguments) for sql, arguments in asked)
        self.messages += 1
        at = datetime(2026, 11, 27, tzinfo=UTC)
        return [[(sql, None, at) for sql in self.statements], [("BASE TABLE",)], []]

    def query(self, sql: str, arguments: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return []


@pytest.fixture
def folded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many statements were folded by each comparison."""
    found: list[int] = []

    def counted(executed: Sequence[Any], *rest: Any) -> table_state.TableState:
        found.append(len(executed))
        return table_state.executed_state(executed, *rest)

    monkeypatch.setattr(compared_tables, "executed_state", counted)
    return found


def test_statements_that_were_known_are_not_folded_again(folded: list[int]) -> None:
    server = Server(CREATE.format(""), ADD.format("a"))
    comparer = TableComparer(cast(MySqlSession, server), "journal", "p")
    assert not comparer.compare(TARGET, SERVER, CREATE.format(", `a` int")).differences

    server.statements.append(ADD.format("b"))
    compared = comparer.compare(TARGET, SERVER, CREATE.format(", `a` int"))
    assert [each.subject for each in compared.differences] == ["column:b"]
    assert not comparer.compare(TARGET, SERVER, CREATE.format(", `a` int, `b` int")).differences
    assert (folded, server.messages) == ([2, 1, 0], 3)


def test_another_journal_or_context_is_folded_from_the_beginning(folded: list[int]) -> None:
    server = Server(CREATE.format(""), ADD.format("a"))
    comparer = TableComparer(cast(MySqlSession, server), "journal", "p")
    comparer.compare(TARGET, SERVER, CREATE.format(""))
    server.statements[1] = ADD.format("other")
    compared = comparer.compare(TARGET, SERVER, CREATE.format(", `other` int"))
    assert not compared.differences
    comparer.compare(TARGET, ServerContext(version=(5, 7)), CREATE.format(", `other` int"))
    server.statements.pop()
    assert not comparer.compare(TARGET, SERVER, CREATE.format("")).differences
    assert folded == [2, 2, 2, 1]
