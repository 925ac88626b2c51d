"""What probes ask of the chart's pods is what the programs answer, and they wait long enough."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from shardmerge.agents.preview.simulated_agents import AgentsState
from shardmerge.cli.deployment.supervision import STOP_S
from shardmerge.connectors.metrics.endpoint import serve
from tests.chart.rendering import GIVEN, pods, rendered
from tests.example_pages import example
from tests.served_pages import ExamplePresent, status_web

KINDS = ("startupProbe", "readinessProbe", "livenessProbe")
ALIVE, READY = "/metrics", {"agents": "/healthz", "sink": "/ready"}


@pytest.fixture(params=GIVEN, ids=lambda path: path.stem)
def containers(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """The containers of the chart's own pods, for each file of values."""
    manifests = rendered("-f", str(request.param))
    return [container for pod in pods(manifests) for container in pod["spec"]["containers"]]


def _asked(container: dict[str, Any], kind: str) -> dict[str, Any]:
    asked: dict[str, Any] = container[kind]["httpGet"]
    return asked


def test_a_probe_asks_a_declared_port_at_which_the_program_listens(
    containers: list[dict[str, Any]],
) -> None:
    for container in containers:
        declared = {each["name"]: each["containerPort"] for each in container["ports"]}
        options = container["args"]
        [at] = [n for n, word in enumerate(options) if word in ("--metrics-port", "--web-port")]
        for kind in (each for each in KINDS if each in container):
            assert declared[_asked(container, kind)["port"]] == int(options[at + 1])
        # Else nothing but the pod itself would reach it.
        [host] = [n for n, word in enumerate(options) if word in ("--metrics-host", "--web-host")]
        assert options[host + 1] == "0.0.0.0"


def test_a_slow_program_is_not_ended_and_one_that_hangs_is(
    containers: list[dict[str, Any]],
) -> None:
    """Readiness is no reason to end a program: while Kafka is away no restart helps."""
    for container in containers:
        assert _asked(container, "startupProbe")["path"] == ALIVE
        assert _asked(container, "livenessProbe")["path"] == ALIVE
        assert container.get("readinessProbe", {}).get("httpGet", {}).get("path") == (
            READY.get(container["name"])
        )
        start, alive = container["startupProbe"], container["livenessProbe"]
        assert start["periodSeconds"] * start["failureThreshold"] >= 300
        assert alive["periodSeconds"] * alive["failureThreshold"] >= 60


def test_the_agents_answer_what_their_probes_ask() -> None:
    line = example()
    router = status_web(line.view, ExamplePresent(AgentsState())).web_app.router
    served = {resource.canonical for resource in router.resources()}
    assert {ALIVE, READY["agents"]} <= served
    assert "/ready" not in served


@pytest.fixture(params=[True, False], ids=["ready", "not ready"])
def answers(request: pytest.FixtureRequest) -> Iterator[tuple[bool, dict[str, int]]]:
    """The answers of the endpoint of sink, watchdog and validator, by path."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    stop = serve(tuple, "127.0.0.1", port, lambda: request.param)
    try:
        found = {}
        for path in (ALIVE, READY["sink"]):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request("GET", path)
            found[path] = connection.getresponse().status
            connection.close()
        yield request.param, found
    finally:
        stop()


def test_a_standby_that_is_not_ready_is_alive(answers: tuple[bool, dict[str, int]]) -> None:
    ready, found = answers
    assert found == {ALIVE: 200, READY["sink"]: 200 if ready else 503}


def test_a_pod_has_the_time_that_a_part_needs_to_end() -> None:
    """As long as ``shardmerge run`` waits for a part: the sink completes its batch."""
    for values in GIVEN:
        manifests = rendered("-f", str(values))
        graces = [pod["spec"]["terminationGracePeriodSeconds"] for pod in pods(manifests)]
        graces += [each["spec"]["driver"]["terminationGracePeriodSeconds"]
                   for each in manifests if each["kind"] == "SparkApplication"]  # fmt: skip
        assert graces
        assert min(graces) >= STOP_S
