"""What `shardmerge check` asks real servers."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from shardmerge.cli.servers import server_findings
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.policies import Keyless, RoutePolicies
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Source, Target
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from shardmerge.spark_sink.targets.mysql.target import MySqlTarget

DATABASE = "check_me"


@pytest.fixture
def pipeline(stack: LocalStack) -> Iterator[Pipeline]:
    ports = stack.ports
    sessions = [
        MySqlSession(MySqlAddress("127.0.0.1", port, USER, PASSWORD))
        for port in (ports.source1, ports.target)
    ]
    for session in sessions:
        session.execute(f"CREATE DATABASE {DATABASE}")
        session.execute(f"CREATE TABLE {DATABASE}.t_1 (id INT PRIMARY KEY)")
    yield Pipeline(
        "check",
        Kafka(stack.bootstrap_servers),
        Connect(stack.connect_url, row_partitions=2),
        (Source("s1", "127.0.0.1", ports.source1, USER, PASSWORD, 54101, databases=DATABASE),),
        (RoutingRule(".*", DATABASE, "t_.*", DATABASE, "t_1"),),
        Target("127.0.0.1", ports.target, USER, PASSWORD),
    )
    for session in sessions:
        session.execute(f"DROP DATABASE {DATABASE}")
        session.close()


def test_the_local_stack_s_own_servers_are_as_they_must_be(pipeline: Pipeline) -> None:
    assert [str(f) for f in server_findings(pipeline) if f.fault] == []


def test_a_sink_compares_the_target_with_the_pipeline_file(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    def opened(**changes: str) -> None:
        target = replace(pipeline.target, **changes)  # type: ignore[arg-type]
        sink = MySqlTarget(SinkSettings(Path()), replace(pipeline, target=target))
        try:
            sink.check_server()
        finally:
            sink.close()

    opened()
    assert not caplog.records
    opened(version="8.0.14")
    assert [record.getMessage().split()[0] for record in caplog.records] == ["target_differs"]
    with pytest.raises(ConfigError, match="the pipeline file says 9") as refused:
        opened(version="9.7")
    assert refused.value.hint == 'set version = "8.0.15"'
    with pytest.raises(ConfigError, match="the pipeline file says mariadb") as refused:
        opened(kind="mariadb", version="10.11")
    assert refused.value.hint == 'set kind = "mysql" and version = "8.0.15"'


def test_shards_and_targets_are_looked_at(pipeline: Pipeline) -> None:
    source, target = pipeline.sources[0], pipeline.target
    on_source = MySqlSession(MySqlAddress(source.host, source.port, USER, PASSWORD))
    on_source.execute(f"CREATE TABLE {DATABASE}.t_2 (id INT)")
    on_target = MySqlSession(MySqlAddress(target.host, target.port, USER, PASSWORD))
    reference = f"CONSTRAINT f FOREIGN KEY (i) REFERENCES {DATABASE}.t_1 (id)"
    on_target.execute(f"CREATE TABLE {DATABASE}.o (i INT, {reference})")
    moment = f"BEFORE INSERT ON {DATABASE}.t_1 FOR EACH ROW"
    on_target.execute(f"CREATE TRIGGER {DATABASE}.tr {moment} SET @a = 1")
    assert [f.where for f in server_findings(pipeline) if f.fault] == [f"target {DATABASE}.t_1"]
    routes = (replace(pipeline.routes[0], policies=RoutePolicies(keyless=Keyless.REFUSE)),)
    found = server_findings(replace(pipeline, routes=routes))
    faults = [f.where for f in found if f.fault]
    warned = [f.text for f in found if not f.fault]
    assert faults == [f"shard s1/{DATABASE}.t_2", f"target {DATABASE}.t_1"]
    assert "trigger tr runs for every row that is merged" in warned
    assert [f.where for f in found if f.code == "SM-6305"] == [f"target {DATABASE}.t_1"]
    on_source.close()
    on_target.close()


def test_what_becomes_of_shards_that_differ_is_foretold(pipeline: Pipeline) -> None:
    source = pipeline.sources[0]
    on_source = MySqlSession(MySqlAddress(source.host, source.port, USER, PASSWORD))
    on_source.execute(f"DROP TABLE {DATABASE}.t_1")
    for number, kinds in enumerate((("int unsigned", "date"), ("int", "time")), 1):
        columns = f"id int PRIMARY KEY, n {kinds[0]}, z {kinds[1]}"
        on_source.execute(f"CREATE TABLE {DATABASE}.t_{number} ({columns})")
    found = [str(f) for f in server_findings(pipeline) if "be held" in f.text]
    (held,) = found
    where = f"shard s1/{DATABASE}.t_2"
    assert held.startswith(f"{where}: it would be held: column z, type: date and time: ")
    on_source.execute(f"ALTER TABLE {DATABASE}.t_2 MODIFY z date")
    found = [str(f) for f in server_findings(pipeline) if "will be" in f.text]
    assert found == [
        f"target {DATABASE}.t_1: column n will be bigint: it is int on 1 shard "
        f"(s1/{DATABASE}.t_2), int unsigned on 1 (s1/{DATABASE}.t_1)"
    ]
    on_source.close()


def test_a_server_that_does_not_answer_is_a_fault(pipeline: Pipeline) -> None:
    (source,) = pipeline.sources
    away = replace(pipeline, sources=(replace(source, port=1),))
    found = [f for f in server_findings(away) if f.where == "source s1"]
    assert len(found) == 1
    assert found[0].fault


def test_a_target_s_connection_asks_whether_its_server_is_still_there(pipeline: Pipeline) -> None:
    session = MySqlSession(MySqlAddress("127.0.0.1", pipeline.target.port, USER, PASSWORD))
    session.query("SELECT 1")
    assert session._connection is not None
    sock = session._connection._sock  # type: ignore[attr-defined]
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30
    session.close()
