"""Events are sent beside the loop: what a lineage server does never reaches the sink."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from shardmerge.connectors.metrics.family import Sample
from shardmerge.schemas.model.names import TargetTable
from shardmerge.spark_sink.driver.lineage.outbox import EventRefused, Outbox
from shardmerge.spark_sink.lineage.reports import Report, RunState, TargetReport

TARGETS = [TargetTable("m", f"t{number}") for number in range(6)]


def report(number: int) -> TargetReport:
    return TargetReport(TARGETS[number], f"run {number}", RunState.RUNNING, 0, 0)


class Server:
    """A lineage server that may be away, stuck, or against an event."""

    def __init__(self) -> None:
        self.got: list[str] = []
        self.tries = 0
        self.is_away = False
        self.refuses = ""
        self.answers = threading.Event()
        self.answers.set()

    def take(self, event: str) -> None:
        self.tries += 1
        assert self.answers.wait(30)
        if self.is_away:
            raise ConnectionError("no route")
        if event == self.refuses:
            raise EventRefused("no such facet")
        self.got.append(event)


def names(report: Report) -> Iterator[str]:
    yield f"{report.run_id}.0"
    yield f"{report.run_id}.1"


def outbox(
    server: Server, size: int = 3, events: Callable[[Report], Iterator[str]] = names
) -> Outbox:
    return Outbox(events, server.take, size=size, shortest_s=0.01)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.005)


def counts(box: Outbox) -> dict[str, int]:
    found = {}
    for sample in box.samples():
        assert isinstance(sample, Sample)
        assert isinstance(sample.value, int)
        found[sample.labels[0]] = sample.value
    return found


def test_events_arrive_in_their_order() -> None:
    server = Server()
    box = outbox(server)
    assert not box.has_begun("run 0")
    box.start()
    box.put(report(0))
    box.put(report(1))
    until(lambda: box.has_begun("run 1"))
    box.stop(10)
    assert server.got == ["run 0.0", "run 0.1", "run 1.0", "run 1.1"]
    assert counts(box) == {"sent": 4, "refused": 0, "dropped": 0}


def test_an_event_waits_for_a_server_that_is_away(caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    server.is_away = True
    box = outbox(server)
    box.start()
    box.put(report(0))
    until(lambda: server.tries > 3)
    server.is_away = False
    until(lambda: len(server.got) == 2)
    box.stop(10)
    assert [r.getMessage().split()[0] for r in caplog.records if r.levelname == "WARNING"] == [
        "lineage_delayed"
    ]
    assert counts(box)["dropped"] == 0


def test_a_full_queue_drops_counts_and_tells_whom(caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    server.answers.clear()
    box = outbox(server, size=2)
    box.start()
    box.put(report(0))
    until(lambda: server.tries == 1)
    for number in range(1, 6):
        box.put(report(number))  # two fit
    assert counts(box)["dropped"] == 3
    assert box.take_lost() == set(TARGETS[3:])
    assert box.take_lost() == set()
    assert "lineage_dropped" in caplog.text
    server.answers.set()
    until(lambda: len(server.got) == 6)
    box.stop(10)


def test_an_event_that_is_refused_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    server.refuses = "run 0.0"
    box = outbox(server)
    box.start()
    box.put(report(0))
    until(lambda: server.got == ["run 0.1"])
    box.stop(10)
    assert counts(box) == {"sent": 1, "refused": 1, "dropped": 0}
    assert "SM-7112" in caplog.text


def test_the_end_does_not_wait_for_a_server_that_is_away(caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    server.is_away = True
    box = outbox(server)
    box.start()
    box.put(report(0))
    until(lambda: server.tries > 1)
    box.put(report(1))
    box.stop(30)
    assert counts(box) == {"sent": 0, "refused": 0, "dropped": 2}
    assert 'reports=2 reason="the sink ends"' in caplog.text


def test_the_end_sends_what_waits() -> None:
    server = Server()
    box = outbox(server)
    for number in range(3):
        box.put(report(number))
    box.start()
    box.stop(30)
    assert len(server.got) == 6


def test_a_report_of_which_no_event_can_be_made_ends_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def made(given: Report) -> Iterator[str]:
        if given.run_id == "run 0":
            raise ValueError("no such column")
        yield from names(given)

    server = Server()
    box = outbox(server, events=made)
    box.start()
    box.put(report(0))
    box.put(report(1))
    until(lambda: len(server.got) == 2)
    box.stop(10)
    assert "lineage_failed" in caplog.text
    assert counts(box)["dropped"] == 1
    assert box.take_lost() == {TARGETS[0]}
