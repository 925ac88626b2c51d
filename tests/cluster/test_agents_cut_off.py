"""An agents' worker that is cut off from the network for longer than its session."""

from __future__ import annotations

import errno
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.records.decisions import Decision
from shardmerge.schemas.records.record_format import RecordFormat
from tests.integration.agents.line import Line, broker_alone, wait_for, written
from tests.integration.agents.test_worker import describe, feed, statements

from .agents_workers import OWN, AgentsWorker
from .conftest import ClusterLine
from .machines import HERE, Network
from .sinks import with_spark_of_its_own
from .traffic import Traffic, until, until_equal


@pytest.fixture(scope="module")
def broker(machines: Network) -> Iterator[LocalStack]:
    """Kafka, for the machines of the network, too."""
    assert machines
    with broker_alone("cut-off-", HERE) as stack:
        yield stack


@pytest.mark.parametrize(
    ("number", "place"),
    [
        *enumerate(
            ("coordinator.after-settle:9", "tracker.after-send:5", "coordinator.before-put:8")
        )
    ],
)
def test_a_worker_that_was_cut_off_writes_nothing_when_it_is_back(
    machines: Network, broker: LocalStack, number: int, place: str
) -> None:
    machine = machines.machine(f"agents-{number}")
    # Long, so that a worker of a busy machine is woken before it counts as one that stood still.
    line = Line(broker, number, session_timeout_s=10)
    try:
        describe(line)
        history = statements(12, 40)
        line.start("a", failpoint=f"{place}:stop", wait=False, within=machine.command())
        fed = 0
        while not line.stands_still("a"):
            if line.decided() >= line.events() and fed < 20:
                feed(line, history[fed : fed + 1])
                fed += 1
        # What it writes now goes into a network that delivers nothing.
        machine.cut_off()
        line.wake("a")
        line.start("b", wait=False)
        feed(line, history[fed:30])
        line.wait_decided(line.events())  # by b, once the session of a is over

        joined = line.log("a").count("partitions_assigned")
        machine.connect()

        wait_for(
            lambda: not line.runs("a") or line.log("a").count("partitions_assigned") > joined,
            "return or end of a",
        )
        assert not line.runs("a")
        assert "membership_lost" in line.log("a")
        # With its disk, on which rows can be of a record that b has done.
        line.start("a", wait=False, within=machine.command())
        wait_for(lambda: line.log("a").count("partitions_assigned") > joined, "return of a")
        # What a worker without a disk goes on with is what the topics hold.
        line.kill("b", lose_data=True)
        line.start("b")
        feed(line, history[30:])
        line.wait_decided(line.events())
        line.check_outputs()
    finally:
        line.close()


@pytest.mark.timeout(600)
def test_the_other_worker_decides_while_one_is_cut_off_and_each_change_is_decided_once(
    line: ClusterLine, machines: Network
) -> None:
    if line.stack.status().get("sink"):
        line.cluster.kill_driver()
    sink = with_spark_of_its_own(line, machines.machine("sink-behind-agents"))
    workers = [AgentsWorker(line, machines.machine(f"agents-{name}")) for name in ("one", "two")]
    took: list[float] = []
    line.stack.stop(OWN)
    try:
        for worker in workers:
            worker.start()
        sink.start()
        with Traffic(line.pipeline) as traffic:
            traffic.passes()
            for _ in range(2):
                until(lambda: all(w.partitions() for w in workers), "two workers")
                (decides,) = (worker for worker in workers if worker.decides())
                traffic.alter()
                decides.machine.cut_off()
                traffic.alter()
                took.append(traffic.passes())  # of rows that are behind the change
                decides.machine.connect()
                until(lambda w=decides: w.has_ended, "end of the worker before")  # type: ignore[misc]
                assert "membership_lost" in decides.log
                traffic.alter()
                decides.start()
                traffic.passes()
        print("seconds until a row behind a change was there:", [round(s, 1) for s in took])
        until_equal(line.pipeline)
        check_decisions(line)
    finally:
        sink.kill()
        for worker in workers:
            worker.machine.connect()
            worker.kill()
        line.stack.start(OWN)


def check_decisions(line: ClusterLine) -> None:
    """Each change has one decision, and no version of a target is missing or there twice."""
    kafka = line.pipeline.kafka
    format_ = RecordFormat(kafka.record_format)
    decided: dict[bytes, set[bytes]] = {}
    for record in written(kafka.bootstrap_servers, topics.ddl(line.pipeline).name):
        decided.setdefault(record.key, set()).add(record.value)
    assert all(len(values) == 1 for values in decided.values())
    versions: dict[str, list[int]] = {}
    for (value,) in decided.values():
        decision = format_.read(value)
        assert isinstance(decision, Decision)
        if decision.target is not None:
            versions.setdefault(str(decision.target), []).append(decision.version)
    assert versions.keys() == {"merged.orders", "merged.events"}
    for found in versions.values():
        assert sorted(found) == list(range(1, len(found) + 1))


LATE = """
import select, socket, sys
from shardmerge.agents.runtime.membership import drop_late

place = sys.argv[1], int(sys.argv[2])
with socket.create_connection(place) as dropped:
    drop_late(dropped, 1.0)
    print("connected", flush=True)
    sys.stdin.readline()
    dropped.sendall(b"late")
    select.select([dropped], [], [])
    print(dropped.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), flush=True)
sys.stdin.readline()
with socket.create_connection(place) as other:
    other.sendall(b"later")
"""


def test_what_does_not_arrive_in_time_does_not_arrive_when_the_network_is_back(
    machines: Network,
) -> None:
    machine = machines.machine("late")
    with socket.create_server((HERE, 0)) as server:
        words = (sys.executable, "-c", LATE, HERE, str(server.getsockname()[1]))
        sender = subprocess.Popen(
            machine.command(*words), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert sender.stdin is not None and sender.stdout is not None
        with sender, server.accept()[0] as dropped:
            assert sender.stdout.readline() == b"connected\n"
            machine.cut_off()
            sender.stdin.write(b"\n")
            sender.stdin.flush()
            assert int(sender.stdout.readline()) == errno.ETIMEDOUT
            # A packet can wait for its next hop's address, three seconds at most (arp(7)).
            wait_for(lambda: "FAILED" in machine.neighbours(), "end of the search for an address")
            machine.connect()
            sender.stdin.close()
            with server.accept()[0] as other:
                assert other.recv(9) == b"later"
            dropped.setblocking(False)
            with pytest.raises(BlockingIOError):
                dropped.recv(9)
