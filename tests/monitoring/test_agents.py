"""A real worker of the agents, read by a real Prometheus: its alerts, its part of the dashboard."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer

from shardmerge.connectors.metrics import catalog
from shardmerge.connectors.metrics.endpoint import serve
from shardmerge.connectors.metrics.family import Sample
from shardmerge.local.servers.stack import LocalStack
from tests.integration import prometheus
from tests.integration.agents.line import PATIENCE_S, Line
from tests.integration.prometheus import Prometheus

from .conftest import CACHE, ROOT

DASHBOARD = json.loads((ROOT / "docker" / "grafana" / "shardmerge.json").read_text())
QUERIES = [
    target["expr"]
    for panel in DASHBOARD["panels"]
    for target in panel["targets"]
    if "shardmerge_agents" in target["expr"]
]
DAWDLING = ROOT / "tests" / "integration" / "agents" / "slow_seek_worker.py"


@pytest.fixture
def line(stack: LocalStack) -> Iterator[Line]:
    made = Line(stack, 901)
    try:
        yield made
    finally:
        made.close()


def fires(server: Prometheus, name: str) -> None:
    server.until(f"{name} fires", lambda: f"Shardmerge{name}" in server.firing(), PATIENCE_S)


def stops(server: Prometheus, name: str) -> None:
    server.until(f"{name} ends", lambda: f"Shardmerge{name}" not in server.firing(), PATIENCE_S)


@pytest.mark.timeout(500)
def test_the_agents_alerts_fire_while_their_cause_lasts(line: Line, tmp_path: Path) -> None:
    one, two = line.sources
    create = "CREATE TABLE {} (ID INT PRIMARY KEY)"
    line.execute(one, create.format("tbl00"), snapshot=True)
    line.execute(two, create.format("tbl01"), snapshot=True)
    # A worker whose recovery takes its time.
    line.start(script=DAWDLING, wait=False)
    # A sink is not there; the dashboard compares what it has executed with what is decided.
    executed = Sample(catalog.SINK_VERSION, ("merged.tbl",), 1)
    jobs = {"shardmerge-agents": line.web_port, "shardmerge-sink": prometheus.free_port()}
    rules = prometheus.hurried()
    with ExitStack() as end:
        end.callback(serve(lambda: [executed], "127.0.0.1", jobs["shardmerge-sink"]))
        server = end.enter_context(
            prometheus.running(tmp_path, prometheus.free_port(), jobs, rules, CACHE)
        )
        fires(server, "AgentsNotReady")
        stops(server, "AgentsNotReady")
        line.wait_decided(line.events())

        # A connector that was killed in its transaction, until it is there again.
        killed = Producer({"bootstrap.servers": line.servers, "transactional.id": f"{one}-2"})
        killed.init_transactions(PATIENCE_S)
        killed.begin_transaction()
        killed.produce(one, value=b"{}")
        killed.flush()
        fires(server, "AgentsBehind")
        killed.abort_transaction(PATIENCE_S)
        stops(server, "AgentsBehind")

        # One column, two types that no type joins.
        line.execute(two, "ALTER TABLE tbl01 ADD COLUMN c DATE")
        line.execute(one, "ALTER TABLE tbl00 ADD COLUMN c INT")
        fires(server, "ConflictOld")
        [held] = server.query('shardmerge_agents_held_shards{code!=""}')
        assert held["metric"]["kind"] == "conflict"
        assert held["metric"]["code"].startswith("SM-12")
        assert [q for q in QUERIES if not server.query(q)] == []
        line.execute(one, "ALTER TABLE tbl00 DROP COLUMN c")
        stops(server, "ConflictOld")
