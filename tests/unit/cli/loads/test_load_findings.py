"""What keeps the sink from loading first rows, as ``shardmerge check`` tells it."""

from __future__ import annotations

from dataclasses import replace

import pymysql
import pytest

from shardmerge.cli.checks.findings import Finding, SourceTable
from shardmerge.cli.loads.load_findings import debezium_findings, load_findings
from shardmerge.schemas.model.policies import RowOperation
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Source
from shardmerge.spark_sink.sources import table_reader
from tests.unit.schemas.pipeline.test_file import ENV, GOOD, ICEBERG
from tests.unit.spark_sink.sources.test_replica_reader import SOURCE as OF_REPLICA
from tests.unit.spark_sink.sources.test_replica_reader import Servers

SOURCE = replace(OF_REPLICA, load_host="", load_user="")
KEYED = SourceTable("app", "t", has_key=True)
ROUTE = RoutingRule(".*", "app", "t", "merged", "t")
ENGINES = "SELECT table_schema"


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Servers:
    found = Servers()
    monkeypatch.setattr(table_reader, "connect", found.connect)
    return found


def seen(table: SourceTable = KEYED, route: RoutingRule = ROUTE) -> list[Finding]:
    return load_findings(SOURCE, [table], [route])


@pytest.mark.usefixtures("servers")
def test_nothing_is_found_about_a_source_that_can_be_read() -> None:
    assert seen() == []


def test_a_user_that_may_not_see_the_binlogs_end_is_told_what_it_needs(servers: Servers) -> None:
    del servers.answers["source"]["SHOW BINARY"]
    assert [(f.where, f.code, f.fault) for f in seen()] == [("source s1", "SM-4402", True)]


def test_a_source_that_this_machine_does_not_reach_is_a_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def connect(source: Source, **_: object) -> object:
        raise pymysql.err.OperationalError(2003, "Can't connect to MySQL server on 'source'")

    monkeypatch.setattr(table_reader, "connect", connect)
    (finding,) = seen()
    assert (finding.code, finding.fault) == ("SM-4409", True)


@pytest.mark.parametrize(
    ("has_key", "ignore", "unique", "told"),
    [
        (True, (), (), ""),
        (False, (), (), "it has no primary key"),
        (True, (RowOperation.DELETE,), (), "its route ignores operations"),
        (True, (), (("1",),), "it has a unique key besides the primary key"),
    ],
)
def test_a_table_of_one_moment_needs_an_engine_with_snapshots(
    servers: Servers,
    has_key: bool,
    ignore: tuple[RowOperation, ...],
    unique: tuple[tuple[str, ...], ...],
    told: str,
) -> None:
    servers.answers["source"] |= {
        ENGINES: (("app", "t", "MyISAM"), ("app", "away", "MyISAM"), ("other", "t", "MyISAM")),
        "SELECT 1 FROM information_schema.statistics": unique,
    }
    found = seen(replace(KEYED, has_key=has_key), replace(ROUTE, ignore=ignore))
    assert [(f.where, f.code) for f in found] == [("shard s1/app.t", "SM-6112")] * bool(told)
    assert all(told in f.text for f in found)
    servers.answers["source"][ENGINES] = (("app", "t", "ROCKSDB"),)
    assert seen(replace(KEYED, has_key=has_key), replace(ROUTE, ignore=ignore)) == []


def test_who_reads_first_rows_that_the_sink_cannot_load_is_said() -> None:
    assert debezium_findings(parse_pipeline(GOOD, ENV)) == []
    (finding,) = debezium_findings(parse_pipeline(ICEBERG + 'ignore = ["delete"]\n', ENV))
    assert (finding.where, finding.code, finding.fault) == ("source s1", "SM-6111", False)
    assert "the route to merged.t, an Iceberg target" in finding.text
