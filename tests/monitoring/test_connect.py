"""A real Connect worker: its JMX series, and a connector that the watchdog gives up."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.request import urlopen

import pymysql
import pytest
from prometheus_client.parser import text_string_to_metric_families
from pymysql.cursors import Cursor

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.deploy import deploy_connectors
from shardmerge.connectors.metrics import catalog
from shardmerge.connectors.metrics.endpoint import serve
from shardmerge.connectors.repair.source_repair import repairs_of
from shardmerge.connectors.watchdog import Watchdog
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Pipeline
from tests.integration import prometheus
from tests.one_source import pipeline_of

from .conftest import CACHE

STREAMING = (
    "MilliSecondsBehindSource", "MilliSecondsSinceLastEvent", "TotalNumberOfEventsSeen",
    "NumberOfErroneousEvents", "NumberOfEventsFiltered", "QueueRemainingCapacity",
    "QueueTotalCapacity", "Connected",
)  # fmt: skip
SNAPSHOT = (
    "RemainingTableCount", "TotalTableCount", "SnapshotRunning", "SnapshotCompleted",
    "SnapshotAborted", "SnapshotDurationInSeconds",
)  # fmt: skip
TASK = (
    "kafka_connect_connector_task_running_ratio",
    "kafka_connect_connector_task_offset_commit_avg_time_ms",
    "kafka_connect_source_task_source_record_poll_total",
    "kafka_connect_source_task_source_record_write_total",
    "kafka_connect_source_task_source_record_write_rate",
    "kafka_connect_source_task_source_record_active_count",
    "kafka_connect_task_error_total_record_failures_total",
)
WORKER = ("kafka_connect_worker_connector_count", "kafka_connect_worker_task_startup_failure_total")
PATIENCE_S = 120.0
Series = dict[str, list[dict[str, str]]]
_numbers = itertools.count(1)


@pytest.fixture
def source(stack: LocalStack) -> Iterator[Cursor]:
    connection = pymysql.connect(
        host="127.0.0.1", port=stack.ports.source1, user=USER, password=PASSWORD, autocommit=True
    )
    with connection, connection.cursor() as cursor:
        yield cursor


def running(stack: LocalStack, rest: ConnectRest, source: Cursor) -> Pipeline:
    """A pipeline whose connector has read a table."""
    number = next(_numbers)
    source.execute(f"CREATE DATABASE seen{number}")
    source.execute(f"CREATE TABLE seen{number}.t_1 (id INT PRIMARY KEY)")
    source.execute(f"INSERT INTO seen{number}.t_1 VALUES (1)")
    text = pipeline_of(
        stack,
        f"seen{number}",
        source=f"s{number}",
        port=stack.ports.source1,
        server_id=6000 + number,
        database=f"seen{number}",
        target_port=1,
        version="8.0.15",
        table="t_.*",
    )
    pipeline = parse_pipeline(text, {})
    deploy_connectors(pipeline, rest)
    return pipeline


def scraped(stack: LocalStack) -> Series:
    """Name → the labels of its series, as the exporter tells them."""
    with urlopen(f"http://127.0.0.1:{stack.ports.registry}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    found: Series = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample.labels)
    return found


def test_the_exporter_has_the_series_that_its_rules_name(
    stack: LocalStack, rest: ConnectRest, source: Cursor
) -> None:
    pipeline = running(stack, rest, source)
    [name], connector = [s.name for s in pipeline.sources], rest.connectors()[0]
    deadline = time.monotonic() + PATIENCE_S
    while "debezium_millisecondsbehindsource" not in scraped(stack):
        assert time.monotonic() < deadline, sorted(scraped(stack))
        time.sleep(0.5)
    found = scraped(stack)
    for context, attributes in (("streaming", STREAMING), ("snapshot", SNAPSHOT)):
        for attribute in attributes:
            labels = {"plugin": "mysql", "context": context, "source": name}
            assert labels in found.get(f"debezium_{attribute.lower()}", []), (
                attribute,
                sorted(found),
            )
    for series in TASK:
        assert {"connector": connector, "task": "0"} in found.get(series, []), (
            series,
            sorted(found),
        )
    for series in WORKER:
        assert found.get(series) == [{}], (series, sorted(found))
    ours = [f"{n}{labels}" for n, all_ in found.items() for labels in all_ if "kafka_" in n]
    assert len(ours) < 100, ours


@pytest.mark.timeout(400)
def test_a_connector_that_is_given_up_fires_until_it_runs_again(
    stack: LocalStack, rest: ConnectRest, source: Cursor, tmp_path: Path
) -> None:
    pipeline = running(stack, rest, source)
    [name] = [connector_name(pipeline, each) for each in pipeline.sources]
    repairs = repairs_of(pipeline, rest)
    watchdog = Watchdog(rest, [name], repairs=repairs)
    now_s = 0.0

    def look() -> bool:
        """Each look comes after a minute's pause. Once it is given up, no restart is due."""
        nonlocal now_s
        samples = watchdog.states.samples()
        if not any(s.value for s in samples if s.family is catalog.CONNECTOR_GIVEN_UP):
            now_s += 100.0
        watchdog.look(now_s)
        return True

    with ExitStack() as end:
        for repair in repairs.values():
            end.callback(repair.close)
        port = prometheus.free_port()
        end.callback(serve(watchdog.states.samples, "127.0.0.1", port))
        server = end.enter_context(
            prometheus.running(
                tmp_path, prometheus.free_port(), {"shardmerge-watchdog": port},
                prometheus.hurried(), CACHE,
            )
        )  # fmt: skip
        # What the connector has not read is purged: it fails at every start at the same place.
        server.until("its offset", lambda: rest.offset(name) is not None)
        rest.stop(name)
        offset = rest.offset(name)
        assert offset is not None
        source.execute(f"INSERT INTO {pipeline.name}.t_1 VALUES (2)")
        source.execute("FLUSH BINARY LOGS")
        source.execute("SHOW MASTER STATUS")
        [(file, pos, _, _, gtids)] = source.fetchall()
        source.execute("PURGE BINARY LOGS TO %s", (file,))
        rest.resume(name)
        given_up = "ShardmergeConnectorGivenUp"
        server.until(f"{given_up} fires", lambda: look() and given_up in server.firing(), 240.0)
        assert "ShardmergeConnectorFailed" in server.firing()

        # The operator lets it go on behind what was purged: it runs, and neither fires any more.
        rest.stop(name)
        there = {"file": file, "pos": pos, "gtids": gtids.replace("\n", "")}
        rest.set_offset(name, pipeline.sources[0].name, {**offset, **there})
        rest.resume(name)
        ended = {given_up, "ShardmergeConnectorFailed"}
        server.until(f"{ended} end", lambda: look() and not ended & server.firing(), 120.0)
