from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from shardmerge.cli.cutover import source_servers
from shardmerge.cli.cutover.source_servers import SourceServers
from shardmerge.connectors.binlog.binlog_events import Logged, RowsEvent, Statement
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Source, Target

SHARD = ShardId("s1", "shop", "t")
ROUTE = RoutingRule(".*", "shop", "t|t_new", "merged", "tbl")
PIPELINE = Pipeline(
    "p",
    Kafka("k:9092"),
    Connect("http://c:8083"),
    (Source("s1", "h", 3306, "u", "p", 6001),),
    (ROUTE,),
    Target("h", 1, "u", "p"),
)


def ddl(sql: str, database: str = "other") -> Statement:
    return Statement("b", 7, 9, "", database, sql)


def rows(table: str) -> RowsEvent:
    return RowsEvent("b", 7, 9, 4, 0, "", table)


@pytest.mark.parametrize(
    ("event", "concerns"),
    [
        (rows("shop.t"), True),
        (rows("shop.t_new"), True),
        (rows("shop.customers"), False),
        (rows(""), True),
        (ddl("ALTER TABLE shop.t ADD a INT"), True),
        (ddl("ALTER TABLE `SHOP`.`T` ADD a INT"), True),
        (ddl("DROP TABLE t, other.x"), True),
        (ddl("DROP DATABASE shop"), True),
        (ddl("CREATE TABLE anything (a INT)", "shop"), True),
        (ddl("ALTER TABLE other.customers ADD total INT"), False),
        (ddl("CREATE TABLE other.t2 (shopping INT)"), False),
    ],
)
def test_what_was_written_behind_the_end_concerns_the_targets_shards(
    event: Logged, concerns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Binlog:
        def __init__(self, source: Source) -> None: ...

        def logged(self, file: str, pos: int) -> Iterator[Logged]:
            yield event

    monkeypatch.setattr(source_servers, "SourceBinlog", Binlog)
    servers = SourceServers(PIPELINE, TargetTable("merged", "tbl"), [SHARD], {})
    (source,) = PIPELINE.sources
    found = list(servers._written(source, SourcePosition(0, "b", 4, 0)))
    assert bool(found) is concerns
    assert all("at b:7" in text for text in found)


def test_only_transactions_that_stay_open_count(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cursor:
        """Number 1 stays; others come and go."""

        def __init__(self, *stays: int) -> None:
            self.looks, self.stays = 0, stays

        def execute(self, sql: str) -> None:
            self.looks += 1

        def fetchall(self) -> list[tuple[int, str]]:
            return [(number, "then") for number in (*self.stays, 100 + self.looks)]

    monkeypatch.setattr(source_servers, "_MOMENT_S", 0.05)
    monkeypatch.setattr(source_servers, "_PAUSE_S", 0.01)
    servers = SourceServers(PIPELINE, TargetTable("merged", "tbl"), [SHARD], {})
    (source,) = PIPELINE.sources
    assert servers._writing(source, cast(Any, Cursor())) == 0
    assert servers._writing(source, cast(Any, Cursor(1))) == 1
