from __future__ import annotations

import pytest

from shardmerge.cli.loads.replica_findings import replica_findings
from shardmerge.spark_sink.sources import table_reader
from tests.unit.spark_sink.sources.test_replica_reader import SHARD, SOURCE, Servers


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Servers:
    found = Servers()
    monkeypatch.setattr(table_reader, "connect", found.connect)
    return found


def seen() -> list[tuple[str, str, bool]]:
    return [(f.where, f.code, f.fault) for f in replica_findings(SOURCE, [SHARD])]


@pytest.mark.usefixtures("servers")
def test_nothing_is_found_about_a_replica_that_can_be_read() -> None:
    assert seen() == []


def test_what_the_load_would_say_is_a_fault(servers: Servers) -> None:
    servers.answers["replica"]["SHOW REPLICA STATUS"] = (("c-3", ""),)
    assert seen() == [("source s1", "SM-1650", True)]
    [finding] = replica_findings(SOURCE, [SHARD])
    assert "name a server in load_host" in finding.text


def test_tables_without_transactions_are_faults(servers: Servers) -> None:
    servers.answers["replica"]["SELECT ENGINE"] = (("MyISAM",),)
    found = replica_findings(SOURCE, [SHARD, SHARD])
    assert [finding.code for finding in found] == ["SM-1651", "SM-1651"]


def test_a_replica_that_is_behind_is_waited_for_by_loads(servers: Servers) -> None:
    servers.answers["replica"]["SELECT WAIT_FOR"] = (("1",),)
    assert seen() == [("source s1", "SM-1652", False)]
    assert any("', 3)" in sql for host, sql in servers.said if host == "replica")
