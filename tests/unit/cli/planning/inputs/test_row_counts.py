"""Rows as the servers' statistics tell them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pymysql
import pytest

from shardmerge.cli.planning.inputs import row_counts as module
from shardmerge.cli.planning.inputs.row_counts import row_counts
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId
from tests.unit.cli.planning.pipelines import pipeline

SHARD = ShardId("s1", "app", "t_1")


def test_the_estimates_of_the_shards_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    @contextmanager
    def cursor(server: Any) -> Iterator[Any]:
        asked.append(server.name)
        rows = [("app", "t_1", 12), ("app", "other", 5)]
        yield SimpleNamespace(execute=lambda _: None, fetchall=lambda: rows)

    monkeypatch.setattr(module, "mysql_cursor", cursor)
    assert row_counts(pipeline(), [SHARD]) == {SHARD: 12}
    assert asked == ["s1"]


def test_a_server_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def cursor(server: Any) -> Any:
        raise pymysql.OperationalError(2003, "no route")

    monkeypatch.setattr(module, "mysql_cursor", cursor)
    with pytest.raises(StackError, match="source s1 at s1:3306: no route"):
        row_counts(pipeline(), [SHARD])
