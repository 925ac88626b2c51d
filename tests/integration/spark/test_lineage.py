"""A real sink tells a lineage server what it does, and does it as well without the server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from shardmerge.connectors.access.kafka import assigned_consumer
from shardmerge.connectors.access.lineage_client import lineage_client
from shardmerge.connectors.kafka.topics_admin import create_topics
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.lineage.open_lineage import OpenLineage
from shardmerge.schemas.pipeline.topics import TopicSpec
from shardmerge.spark_sink.job import Stopped, run
from shardmerge.spark_sink.lineage.reports import RunState, TargetReport
from shardmerge.spark_sink.lineage.run_events import RunEvents
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.targets.mysql.tasks.batches import BatchRunner
from tests.background import Background
from tests.integration.spark.played_line import PATIENCE_S, Line
from tests.lineage_schema import faults
from tests.lineage_server import LineageServer, rows
from tests.unit.spark_sink.lineage.lined import RUN, pipeline


@pytest.fixture
def server() -> Iterator[LineageServer]:
    with LineageServer() as made:
        yield made


@pytest.fixture
def line(
    stack: LocalStack, server: LineageServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Line]:
    monkeypatch.setattr(BatchRunner, "start", lambda self: None)  # few rows need no Spark
    made = Line(stack)
    (tmp_path / "key").write_text("sesame\n")
    asked = OpenLineage("http", server.url, api_key=f"file:{tmp_path}/key", interval_s=1)
    made.pipeline = replace(made.pipeline, lineage=asked)
    yield made
    made.close()


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.05)


def test_a_sink_tells_what_it_does_and_needs_no_server_for_it(
    line: Line, server: LineageServer
) -> None:
    stopped = Stopped()

    def sink() -> None:
        run(SinkSettings(Path()), line.pipeline, stopped)

    one, other = line.make("a", "b")
    line.begin()
    line.rows(one, {"id": 1, "a": 10})
    line.rows(other, {"id": 2, "a": 20})
    line.commit()
    job = f"{line.pipeline.name}.{line.target}"
    with Background(sink) as running:
        until(lambda: any(rows(event) == 2 for event in server.of(job, "RUNNING")))
        [create] = server.of(f"{job}.ddl", "COMPLETE")
        change = create["outputs"][0]["facets"]["lifecycleStateChange"]
        assert change["lifecycleStateChange"] == "CREATE"

        server.stop()
        told = len(server.events)
        line.begin()
        offset, place = line.change(), line.here()
        line.rows(one, {"id": 3, "a": 30, "c": 300})
        line.commit()
        add = line.statement("ALTER TABLE TARGET ADD COLUMN `c` int", c="c")
        line.decide(one, offset, place, "id a c", add)
        until(lambda: line.content() == [(1, 10, None), (2, 20, None), (3, 30, 300)])
        assert len(server.events) == told

        server.start()
        until(lambda: any(rows(event) == 3 for event in server.of(job, "RUNNING")))
        until(lambda: len(server.of(f"{job}.ddl", "COMPLETE")) == 2)
        stopped.requested = True
        running.ends.set()

    assert server.faults == []
    assert server.keys == {"Bearer sesame"}
    [start], [end] = server.of(job, "START"), server.of(job, "COMPLETE")
    assert rows(end) == 3
    assert {i["name"] for i in start["inputs"]} <= {"app.a", "app.b"}
    _, added = server.of(f"{job}.ddl", "COMPLETE")
    assert added["job"]["facets"]["sql"]["query"].endswith("ADD COLUMN `c` int")
    assert added["run"]["facets"]["parent"]["run"]["runId"] == end["run"]["runId"]
    of_added = added["outputs"][0]["facets"]["columnLineage"]["fields"]
    assert [i["name"] for i in of_added["c"]["inputFields"]] == ["app.a"]
    last = [e for e in server.of(job, "RUNNING") if "columnLineage" in e["outputs"][0]["facets"]][
        -1
    ]
    fields = last["outputs"][0]["facets"]["columnLineage"]["fields"]
    assert [i["name"] for i in fields["c"]["inputFields"]] == ["app.a"]


def test_events_go_to_a_topic(stack: LocalStack) -> None:
    create_topics(stack.kafka, [TopicSpec("lineage", 1, 1)])
    client = lineage_client(OpenLineage("kafka", topic="lineage"), stack.kafka)
    report = TargetReport(TargetTable("merged", "t"), RUN, RunState.START, 1000, 0)
    [event] = RunEvents(pipeline(), "1.2.3").of(report)
    client.emit(event)
    consumer = assigned_consumer(stack.kafka, "lineage", {})
    consumer.assign([TopicPartition("lineage", 0, 0)])
    record = consumer.poll(30)
    consumer.close()
    assert record is not None
    assert record.key() == b"run:shardmerge/shop.merged.t"
    assert faults(json.loads(record.value())) == []
