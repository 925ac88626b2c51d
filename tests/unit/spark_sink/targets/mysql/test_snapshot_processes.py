"""With processes that do not read any table."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest

from shardmerge.schemas.pipeline.settings import Kafka, Source
from shardmerge.spark_sink.planning.chunk_orders import ChunkEnd, ChunkFailure, ChunkResult
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress
from shardmerge.spark_sink.targets.mysql.snapshot_processes import SnapshotProcesses
from shardmerge.spark_sink.targets.mysql.tasks.connection import ApplyConfig
from tests.unit.spark_sink.targets.mysql.tasks.test_snapshot_task import snapshot_order

SOURCE = Source("s1", "h", 1, "u", "secret", 1)
CONFIG = ApplyConfig(Kafka("k"), MySqlAddress("h", 1, "u", "p"), "control", "p")
ANSWERS = (
    "import pickle, sys; order, source, config = pickle.loads(sys.stdin.buffer.read());"
    "from shardmerge.spark_sink.planning.chunk_orders import ChunkEnd, ChunkResult;"
    "assert (source.password, config.pipeline) == ('secret', 'p');"
    "sys.stdout.buffer.write(pickle.dumps("
    "ChunkResult(order.load.shard, 0, ChunkEnd.REFUSED, order.most_rows)))"
)


def processes(code: str) -> SnapshotProcesses:
    return SnapshotProcesses(CONFIG, (sys.executable, "-c", code))


def test_a_process_gets_its_task_and_gives_its_result() -> None:
    order = snapshot_order()
    found = processes(ANSWERS).run(order, SOURCE)
    assert found == ChunkResult(order.load.shard, 0, ChunkEnd.REFUSED, order.most_rows)


@pytest.mark.parametrize(
    ("code", "says"), [("raise SystemExit(3)", "3"), ("import os; os.kill(os.getpid(), 9)", "-9")]
)
def test_a_process_that_dies_is_a_failure(code: str, says: str) -> None:
    found = processes(code).run(snapshot_order(), SOURCE)
    assert isinstance(found, ChunkFailure)
    assert (found.code, found.final) == ("SM-1620", False)
    assert found.message.endswith(says)


def test_processes_end_with_the_sink(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    running = processes(
        f"import pathlib, time; pathlib.Path({str(begun)!r}).touch(); time.sleep(600)"
    )
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(running.run(snapshot_order(), SOURCE)))
    thread.start()
    while not begun.exists():
        time.sleep(0.01)
    running.stop()
    thread.join(30)
    assert isinstance(found[0], ChunkFailure)
    # None begins any more.
    assert isinstance(running.run(snapshot_order(), SOURCE), ChunkFailure)


def test_the_real_process_tells_what_it_cannot_reach() -> None:
    found = SnapshotProcesses(CONFIG).run(snapshot_order(), SOURCE)
    assert isinstance(found, ChunkFailure)
    assert found.code == "SM-3111"
