"""Clients of lineage servers, and which of their errors are final."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from confluent_kafka import KafkaError, KafkaException

from shardmerge.connectors.access.lineage_client import lineage_client, refusal
from shardmerge.schemas.model.errors import ConfigError, StackError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.lineage.open_lineage import OpenLineage
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.spark_sink.lineage.reports import RunState, TargetReport
from shardmerge.spark_sink.lineage.run_events import RunEvents
from tests.lineage_schema import faults
from tests.lineage_server import LineageServer
from tests.unit.spark_sink.lineage.lined import RUN, pipeline

NOWHERE = Kafka("127.0.0.1:1")


@pytest.fixture
def event() -> Any:
    report = TargetReport(TargetTable("merged", "t"), RUN, RunState.START, 1000, 0)
    [made] = RunEvents(pipeline(), "1.2.3").of(report)
    return made


@pytest.fixture
def server() -> Iterator[LineageServer]:
    with LineageServer() as made:
        yield made


def test_a_server_gets_events_with_the_key_that_counts_now(
    server: LineageServer, event: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINEAGE_KEY", "one")
    client = lineage_client(OpenLineage("http", server.url, api_key="env:LINEAGE_KEY"), NOWHERE)
    client.emit(event)
    monkeypatch.setenv("LINEAGE_KEY", "two")
    client.emit(event)
    assert (server.faults, server.keys) == ([], {"Bearer one", "Bearer two"})


def test_a_path_of_the_address_stays(server: LineageServer, event: Any) -> None:
    asked = OpenLineage("http", f"{server.url}/gate", endpoint="/v1/events")
    lineage_client(asked, NOWHERE).emit(event)
    assert server.faults == ["an event came to /gate/v1/events"]


def test_a_missing_secret_is_an_error_that_names_it(server: LineageServer, event: Any) -> None:
    client = lineage_client(OpenLineage("http", server.url, api_key="env:NO_SUCH_KEY"), NOWHERE)
    with pytest.raises(ConfigError, match="NO_SUCH_KEY"):
        client.emit(event)


def test_a_file_gets_a_line_for_each_event(tmp_path: Path, event: Any) -> None:
    path = tmp_path / "events.jsonl"
    client = lineage_client(OpenLineage("file", path=str(path)), NOWHERE)
    client.emit(event)
    client.emit(event)
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert [faults(each) for each in found] == [[], []]


def test_a_broker_that_is_away_is_an_error(event: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "shardmerge.connectors.access.lineage_client"
    monkeypatch.setattr(f"{module}._TIMEOUT_S", 0.3)
    monkeypatch.setattr("shardmerge.connectors.access.kafka._PROBE_S", 0.3)
    client = lineage_client(OpenLineage("kafka", topic="events"), NOWHERE)
    with pytest.raises(StackError, match=r"127\.0\.0\.1:1"):
        client.emit(event)


@pytest.mark.parametrize(
    ("status", "is_final"), [(400, True), (422, True), (401, False), (503, False)]
)
def test_only_an_answer_about_the_event_is_final(status: int, is_final: bool) -> None:
    answer = requests.Response()
    answer.status_code, answer._content = status, b"no such facet"
    found = refusal(requests.HTTPError("bad", response=answer))
    assert bool(found) == is_final
    assert ("no such facet" in found) == is_final


def test_a_record_that_is_too_large_is_final() -> None:
    codes = {KafkaError.MSG_SIZE_TOO_LARGE: True, KafkaError._TRANSPORT: False}
    for code, is_final in codes.items():
        assert bool(refusal(KafkaException(KafkaError(code)))) == is_final
    assert refusal(OSError("disk is full")) == ""
