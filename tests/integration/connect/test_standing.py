"""A broker, or a worker, that stands for longer than a transaction may be open."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium import source_config
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.deploy import deploy_connectors
from shardmerge.connectors.repair.source_repair import repairs_of
from shardmerge.connectors.watchdog import Watchdog
from shardmerge.local.servers.stack import LocalStack
from tests.breadth import with_further

from .conftest import Play
from .test_connectors import wait_for, wait_for_snapshot

SHORT = {"producer.override.transaction.timeout.ms": "2000"}
NARROW = {"max.batch.size": "1", "max.queue.size": "2"}
"""A row is a transaction of Kafka's. So one event of the binlog takes longer than 5 s, and the
reader of the binlog takes its connection for lost: it goes on at the transaction it was in."""
MANY = 2_000
"""Rows of an INSERT, of which an event of the binlog has 1,600."""
STANDS_S = 15.0
"""Longer than that, and than the broker's pause between two looks for such transactions."""


@contextmanager
def watched(play: Play, rest: ConnectRest) -> Iterator[None]:
    """With a watchdog beside, as in a pipeline: it restarts a task that fails."""
    done = threading.Event()
    repairs = repairs_of(play.pipeline, rest)
    name = connector_name(play.pipeline, play.pipeline.sources[0])
    watchdog = Watchdog(rest, [name], 1.0, repairs=repairs)
    beside = threading.Thread(target=watchdog.run, args=(done,))
    beside.start()
    try:
        yield
    finally:
        done.set()
        beside.join()
        for repair in repairs.values():
            repair.close()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", with_further("kafka", "connect"))
def test_rows_come_once_and_in_order_although_a_transaction_expires(
    play: Play, rest: ConnectRest, stack: LocalStack, part: str
) -> None:
    with play.sql() as run:
        run("CREATE TABLE t (id INT PRIMARY KEY)")
        run("INSERT INTO t VALUES (0)")
    deploy_connectors(play.pipeline, rest)
    wait_for_snapshot(play)
    name = connector_name(play.pipeline, play.pipeline.sources[0])
    config = rest.config(name)
    assert config is not None
    rest.create_or_update(name, {**config, **SHORT})
    rest.wait_running(name)
    written, enough = [0], threading.Event()

    def write() -> None:
        with play.sql() as run:
            while not enough.is_set():
                run(f"INSERT INTO t VALUES ({written[0] + 1})")
                written[0] += 1
                time.sleep(0.002)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_for(lambda: written[0] > 500)
        pid = stack.status()[part]
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        time.sleep(STANDS_S)
        os.kill(pid, signal.SIGCONT)
        time.sleep(1)
    finally:
        enough.set()
        writer.join()
    with watched(play, rest), play.reader(play.topic("t")) as rows:
        assert rows.ids(written[0] + 1) == list(range(written[0] + 1))


@pytest.mark.timeout(600)
def test_rows_of_a_transaction_that_is_read_again_come_once(
    play: Play, rest: ConnectRest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_config, "_LATENCY", {**source_config._LATENCY, **NARROW})
    with play.sql() as run, play.reader(play.topic("t")) as rows:
        run("CREATE TABLE t (n INT)")
        run("CREATE TABLE k (id INT PRIMARY KEY)")
        run("INSERT INTO t VALUES (0)")
        deploy_connectors(play.pipeline, rest)
        wait_for_snapshot(play)
        run(f"INSERT INTO t VALUES {', '.join(f'({n})' for n in range(1, MANY))}")
        run("INSERT INTO k VALUES (1)")
        run("UPDATE k SET id = 2")
        run(f"INSERT INTO t VALUES ({MANY})")
        with watched(play, rest):
            found = [rows.next()["after"]["n"] for _ in range(MANY + 1)]
        assert found == list(range(MANY + 1))
        with play.reader(play.topic("k")) as keyed:
            assert [keyed.next()["op"] for _ in range(3)] == ["c", "d", "c"]


@pytest.mark.timeout(600)
def test_a_snapshot_that_was_interrupted_before_it_had_a_place_is_taken_anew(
    play: Play, rest: ConnectRest
) -> None:
    with play.sql() as run:
        run("CREATE TABLE t (id INT PRIMARY KEY)")
        run("INSERT INTO t VALUES (1), (2)")
    deploy_connectors(play.pipeline, rest)
    name = connector_name(play.pipeline, play.pipeline.sources[0])
    with play.reader(play.topic("t")) as rows:
        assert rows.ids(2) == [1, 2]
        path = f"/connectors/{name}"
        rest._call("PUT", f"{path}/stop")
        wait_for(lambda: (status := rest.status(name)) is not None and status.state == "STOPPED")
        # As Debezium stores it with its word that the snapshot begins.
        place = {"partition": {"server": play.source}, "offset": {"snapshot": "INITIAL"}}
        rest._call("PATCH", f"{path}/offsets", {"offsets": [place]})
        rest._call("PUT", f"{path}/resume")
        wait_for(
            lambda: (
                "'file' parameter is missing" in (s.reason() if (s := rest.status(name)) else "")
            )
        )
        repairs = repairs_of(play.pipeline, rest)
        Watchdog(rest, [name], repairs=repairs).look(0.0)
        rest.wait_running(name)
        with play.sql() as run:
            run("INSERT INTO t VALUES (3)")
        assert rows.ids(3) == [1, 2, 3]
    for repair in repairs.values():
        repair.close()
