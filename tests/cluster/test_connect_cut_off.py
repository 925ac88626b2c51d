"""A worker of Kafka Connect that is cut off from the network for longer than its transactions."""

from __future__ import annotations

import pytest

from .conftest import ClusterLine
from .connect_workers import OWN, OtherWorker
from .machines import Network
from .sinks import with_spark_of_its_own
from .traffic import Traffic, until, until_equal

SHORT_MS = "5000"
"""Shorter than the worker's session: when that is over, so are the transactions."""


@pytest.mark.timeout(900)
def test_rows_come_once_when_a_worker_of_connect_was_cut_off(
    line: ClusterLine, machines: Network
) -> None:
    if line.stack.status().get("sink"):
        line.cluster.kill_driver()
    sink = with_spark_of_its_own(line, machines.machine("sink-behind-connect"))
    worker = OtherWorker(line, machines.machine("connect1"))
    took: dict[str, float] = {}
    try:
        sink.start()
        worker.start()
        line.stack.stop(OWN)
        worker.change_connectors(producer_override_transaction_timeout_ms=SHORT_MS)
        worker.until_they_run()
        with Traffic(line.pipeline) as traffic:
            traffic.passes()
            assert worker.members() == 1
            worker.machine.cut_off()
            until(lambda: worker.members() == 0, "end of the worker's session")
            worker.machine.connect()
            took["the only worker is back"] = traffic.passes()

            # Now with another one, which takes over. The first one goes on when it is back.
            line.stack.start(OWN)
            worker.until_they_run()
            traffic.passes()
            worker.machine.cut_off()
            took["one of two workers is cut off"] = traffic.passes()
            traffic.alter()
            worker.machine.connect()
            took["it is back"] = traffic.passes()
        print("seconds:", {name: round(seconds, 1) for name, seconds in took.items()})
        until_equal(line.pipeline)
    finally:
        worker.machine.connect()
        if not line.stack.status().get(OWN):
            line.stack.start(OWN)
        worker.end()
        sink.kill()
