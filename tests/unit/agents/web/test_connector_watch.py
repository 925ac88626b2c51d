"""The looks at Connect: against a scripted worker, and with answers that nobody expects."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest

from shardmerge.agents.status.connector_log import ConnectorLog
from shardmerge.agents.web.connector_watch import Ask, ConnectorWatch, connect_of
from shardmerge.connectors.formats.connector_status import ConnectorState
from shardmerge.schemas.pipeline.settings import Connect, Pipeline
from tests.example_pages import pipeline
from tests.unit.connectors.worker import Worker, running_worker

STATUSES = "/connectors?expand=status"
TRACE = "org.apache.kafka.connect.errors.ConnectException: it was stopped.\n\tat io.debezium.X\n"


def of(connect: Connect) -> Pipeline:
    return replace(pipeline(), connect=connect)


def looked(ask: Ask, log: ConnectorLog, now_ms: int = 5) -> ConnectorLog:
    asyncio.run(ConnectorWatch(ask, log, now_ms=lambda: now_ms).look())
    return log


def status(name: str, state: str, task: str, trace: str = "") -> dict[str, object]:
    return {
        "status": {
            "name": name,
            "connector": {"state": state},
            "tasks": [{"id": 0, "state": task, "trace": trace}],
        }
    }


def test_one_request_tells_the_connectors_of_all_sources() -> None:
    answer = {
        "shop.s1": status("shop.s1", "RUNNING", "FAILED", TRACE),
        "other.s2": status("other.s2", "RUNNING", "RUNNING"),
        "deleted": {},
    }
    with running_worker() as worker:
        worker.on("GET", STATUSES, (200, answer))
        log = looked(connect_of(of(Connect(worker.url))), ConnectorLog())
    assert [each.state for each in log.view.connectors] == [
        ConnectorState(
            "s1",
            "shop.s1",
            "FAILED",
            "org.apache.kafka.connect.errors.ConnectException: it was stopped.",
        ),
        ConnectorState("s2", "shop.s2", "missing"),
    ]
    assert worker.asked("GET") == [STATUSES]


@pytest.mark.parametrize("answer", [(200, ["shop.s1"]), (200, {"shop.s1": {"status": 1}})])
def test_an_answer_that_is_none_of_connects_ends_nothing(answer: tuple[int, object]) -> None:
    with running_worker() as worker:
        worker.on("GET", STATUSES, answer)
        log = looked(connect_of(of(Connect(worker.url))), ConnectorLog())
    assert log.view.fault.startswith("Kafka Connect's answer cannot be read")
    assert log.view.code == "SM-4304"


def test_a_worker_without_rights_tells_that_it_cannot_ask() -> None:
    with running_worker() as worker:
        worker.on("GET", STATUSES, (401, {"message": "who are you?"}))
        log = looked(connect_of(of(Connect(worker.url))), ConnectorLog(), 7)
    assert (log.view.code, log.view.since_ms) == ("SM-4311", 7)
    assert "[connect]" in log.view.hint


def test_a_worker_without_the_password_tells_that_it_cannot_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_SUCH_PASSWORD", raising=False)
    connect = Connect("http://127.0.0.1:1", user="u", password="env:NO_SUCH_PASSWORD")
    log = looked(connect_of(of(connect)), ConnectorLog())
    assert "NO_SUCH_PASSWORD" in log.view.fault


def test_connect_is_asked_beside_the_agents_event_loop() -> None:
    asked: list[int] = []

    def ask() -> tuple[ConnectorState, ...]:
        asked.append(threading.get_ident())
        return ()

    looked(ask, ConnectorLog())
    assert len(asked) == 1
    assert threading.get_ident() not in asked


def test_it_looks_again_and_again_until_it_is_stopped() -> None:
    states = [ConnectorState("s1", "shop.s1", state) for state in ("PAUSED", "RUNNING")]
    log = ConnectorLog()

    async def play() -> None:
        watch = ConnectorWatch(
            lambda: (states.pop(0) if len(states) > 1 else states[0],), log, pause_s=0.01
        )
        async with watch:
            for _ in range(1000):
                if log.view.connectors and log.view.connectors[0].state.is_running:
                    return
                await asyncio.sleep(0.01)
        raise AssertionError("it did not look again")

    asyncio.run(play())
    assert log.revision == 2


def test_a_connect_that_does_not_answer_is_told_once_and_then_its_end(
    worker_that_ends: Worker,
) -> None:
    log = ConnectorLog()
    ask = connect_of(of(Connect(worker_that_ends.url)))
    looked(ask, log, 10)
    assert (log.view.code, log.view.since_ms) == ("SM-4304", 10)
    looked(lambda: (ConnectorState("s1", "shop.s1", "RUNNING"),), log, 20)
    assert log.view.fault == ""


@pytest.fixture
def worker_that_ends(monkeypatch: pytest.MonkeyPatch) -> Worker:
    """A worker that does not listen any more."""
    monkeypatch.setattr("shardmerge.agents.web.connector_watch._PATIENCE_S", 0.0)
    with running_worker() as worker:
        return worker
