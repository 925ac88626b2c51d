"""The line with all records in a registry's Avro, and the registry away for a while.

MySQL → Debezium with the registry's converter → agents and sink as processes → target.
Names are such that Avro does not allow them. The registry wants a user, and lets nobody in for a
while.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep

import pytest

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.deploy import deploy_connectors
from shardmerge.connectors.formats.avro_wire import JsonOfAvro
from shardmerge.connectors.kafka.registry import RegistryAddress, SchemaRegistry
from shardmerge.connectors.kafka.topic_reader import TopicReader
from shardmerge.connectors.watchdog import Watchdog
from shardmerge.local.keeper import specs
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from tests.breadth import with_further
from tests.integration import registry_proxy
from tests.integration.registry_proxy import RegistryProxy

NAME = f"av-{os.getpid()}"
SHARDS = (("source1", "line-shop", "t-1"), ("source2", "line-shop", "t-2"))
ROUTE = '[[routes]]\ndatabase = "line-shop"\ntable = "t-\\\\d+"\ntarget = "line_merged.t"\n'
SHARED = 'row_topic = "line.t"\n'
BOUND_S = 180
REGISTRY_PASSWORD = "pa:ss word"


def session(stack: LocalStack, server: str) -> MySqlSession:
    return MySqlSession(MySqlAddress("127.0.0.1", getattr(stack.ports, server), USER, PASSWORD))


@pytest.fixture
def registry(stack: LocalStack) -> Iterator[RegistryProxy]:
    with registry_proxy.registry_proxy(stack.registry_url, REGISTRY_PASSWORD) as proxy:
        yield proxy


@pytest.fixture(params=with_further("", SHARED), ids=["own topics", "one topic"])
def pipeline(
    stack: LocalStack, tmp_path: Path, registry: RegistryProxy, request: pytest.FixtureRequest
) -> Iterator[Pipeline]:
    name = f"{NAME}-one" if request.param else NAME
    text = stack.pipeline_text(
        name, ROUTE + request.param, row_format="avro", record_format="avro-registry",
        schema_registry=registry.url, schema_registry_user=registry_proxy.USER,
        schema_registry_password=REGISTRY_PASSWORD,
    )  # fmt: skip
    parsed = parse_pipeline(text, {})
    sources = tuple(
        replace(s, name=f"{name}-{n}", databases="line-shop", server_id=6101 + n)
        for n, s in enumerate(parsed.sources)
    )
    target = replace(parsed.target, control_database="line_control")
    pipeline = replace(parsed, sources=sources, target=target)
    (tmp_path / "pipeline.toml").write_text(pipeline_text(pipeline))
    parts = specs(tmp_path, stack.ports.web)
    rest, watched = ConnectRest(stack.connect_url), ConnectRest(stack.connect_url)
    watchdog, stop = None, Event()
    try:
        for n, (server, database, table) in enumerate(SHARDS):
            source = session(stack, server)
            source.execute(f"CREATE DATABASE `{database}`")
            source.execute(
                f"CREATE TABLE `{database}`.`{table}` (id BIGINT UNSIGNED PRIMARY KEY, "
                "`1st` INT, `a-b` VARCHAR(20) NOT NULL DEFAULT 'x', a_b VARBINARY(9) NOT NULL)"
            )
            source.execute(f"INSERT INTO `{database}`.`{table}` VALUES ({n}, 1, 'old', 0x00ff)")
            source.close()
        for part in parts:
            stack.add(part)
        deployed = deploy_connectors(pipeline, rest)
        # As in every deployment: a task that cannot register a new schema fails, and is restarted.
        watchdog = Thread(target=Watchdog(watched, deployed, 1.0).run, args=(stop,))
        watchdog.start()
        yield pipeline
    finally:
        stop.set()
        if watchdog is not None:
            watchdog.join()
        watched.close()
        for part in parts:
            stack.stop(part.name)
            sys.stdout.write(stack.supervisor.log_path(part.name).read_text()[-20_000:])
        for read in pipeline.sources:
            rest.delete(connector_name(pipeline, read))
        for server in ("source1", "source2"):
            source_session = session(stack, server)
            source_session.execute("DROP DATABASE IF EXISTS `line-shop`")
            source_session.close()
        target_session = session(stack, "target")
        for database in ("line_merged", "line_control"):
            target_session.execute(f"DROP DATABASE IF EXISTS `{database}`")
        target_session.close()
        rest.close()


def wait(condition: Callable[[], bool], what: str) -> None:
    deadline = monotonic() + BOUND_S
    while not condition():
        assert monotonic() < deadline, what
        sleep(0.1)


@pytest.mark.timeout(900)  # with the start of the stack, on a busy machine
def test_the_target_equals_the_union_over_a_schema_change_and_a_registry_that_goes(
    stack: LocalStack,
    pipeline: Pipeline,
    registry: RegistryProxy,
    caplog: pytest.LogCaptureFixture,
) -> None:
    one, two = (session(stack, server) for server, _, _ in SHARDS)
    target = session(stack, "target")
    tables = [f"`{database}`.`{table}`" for _, database, table in SHARDS]

    def merged(columns: str) -> list[tuple[object, ...]]:
        if not target.query("SHOW TABLES FROM line_merged") or (
            "new-1" in columns and not target.query("SHOW COLUMNS FROM line_merged.t LIKE 'new-1'")
        ):
            return []
        return target.query(f"SELECT {columns} FROM line_merged.t ORDER BY id")

    def is_union(columns: str = "*") -> bool:
        union = [
            row
            for shard, table in zip((one, two), tables, strict=True)
            for row in shard.query(f"SELECT {columns} FROM {table}")
        ]
        return merged(columns) == sorted(union)

    wait(lambda: bool(target.query("SHOW DATABASES LIKE 'line_merged'")), "no target database")
    wait(is_union, "the snapshot did not arrive")

    # Who knows the schema needs no registry; who does not waits for it, and says so.
    stack.stop("registry")
    one.execute(f"INSERT INTO {tables[0]} VALUES (18446744073709551615, -1, '€', '')")
    wait(is_union, "a row of a known schema did not arrive without the registry")
    stack.kill("sink")
    two.execute(f"UPDATE {tables[1]} SET `1st` = 7, a_b = 0x00010203")
    stack.start("sink")
    log = stack.supervisor.log_path("sink")
    wait(lambda: "does not give schemas" in log.read_text(), "the hold is not told")
    assert not is_union()
    # It comes back, and lets nobody in: told as that, and waited for as long.
    registry.password = "another"
    stack.start("registry")
    wait(lambda: "answers 401 to the user" in log.read_text(), "the refused user is not told")
    assert "schema_registry_password of the pipeline file" in log.read_text()
    assert not is_union()
    registry.password = REGISTRY_PASSWORD
    wait(is_union, "the row did not arrive after the registry came back")

    # Only who has a new schema stands while its user is refused.
    registry.password = "another"
    one.execute(f"ALTER TABLE {tables[0]} ADD COLUMN `new-1` DECIMAL(20,5), DROP COLUMN `1st`")
    one.execute(f"INSERT INTO {tables[0]} (id, `a-b`, a_b, `new-1`) VALUES (10, 'n', 'n', 1.5)")
    two.execute(f"INSERT INTO {tables[1]} VALUES (11, 5, 'before', 'b')")
    failed = f"connector={connector_name(pipeline, pipeline.sources[0])} "
    wait(
        lambda: any(
            failed in record.getMessage() and "NotAuthorizedException" in record.getMessage()
            for record in caplog.get_records("call")
        ),
        "the connector does not need the user",
    )
    arrived = "SELECT id FROM line_merged.t WHERE id IN (10, 11)"
    wait(lambda: target.query(arrived) == [(11,)], "a row of a known schema did not arrive")
    registry.password = REGISTRY_PASSWORD
    two.execute(f"ALTER TABLE {tables[1]} ADD COLUMN `new-1` DECIMAL(20,5), DROP COLUMN `1st`")
    two.execute(f"INSERT INTO {tables[1]} VALUES (12, 'after', 'a', -2.25)")
    wait(lambda: is_union("id, `a-b`, a_b, `new-1`"), "the change or its rows did not arrive")
    wait(
        lambda: (
            [row[0] for row in target.query("SHOW COLUMNS FROM line_merged.t")]
            == ["id", "a-b", "a_b", "new-1"]
        ),
        "the target kept the dropped column",
    )
    for connection in (one, two, target):
        connection.close()
    # Whoever knows the registry reads our own records too.
    address = RegistryAddress.of_own(pipeline.kafka)
    assert address is not None
    read = JsonOfAvro(SchemaRegistry(address).schema_text)
    with TopicReader(stack.kafka) as reader:
        (extent,) = reader.extents([topics.ddl(pipeline).name])
        told = [json.loads(read(record.value) or b"") for record in reader.records(extent)]
    assert [d["target"] for d in told if d["version"] == 1] == [
        {"database": "line_merged", "table": "t"}
    ]
