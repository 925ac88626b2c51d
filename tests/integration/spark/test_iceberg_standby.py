"""Two sinks of an Iceberg target: the one that stands by goes on when the other one is killed."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from shardmerge.local.servers.stack import LocalStack
from shardmerge.spark_sink.process.settings import JARS
from tests.breadth import further
from tests.running import wait_for, with_tests
from tests.strategies import table

from .contract import IcebergKind
from .iceberg_line import IcebergLine

# py4j leaves sockets to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Standby:
    """A sink with ``--standby`` in a process of its own."""

    def __init__(self, line: IcebergLine, log: Path, cleanup: ExitStack) -> None:
        self._log = log
        pickled = log.with_suffix(".pipeline")
        pickled.write_bytes(pickle.dumps(line.pipeline))
        module = "tests.integration.spark.played_sink"
        command = [sys.executable, "-m", module, str(pickled), "--spark", "--standby"]
        env = {**with_tests(), JARS: line.kind.jar}
        out = cleanup.enter_context(log.open("wb"))
        self.process = subprocess.Popen(command, env=env, stdout=out, stderr=out)
        cleanup.callback(self.process.wait)
        cleanup.callback(self.process.kill)

    def says(self, event: str) -> bool:
        text = self._log.read_text()
        assert self.process.poll() is None, text[-3_000:]
        return event in text


@pytest.fixture
def standby(tmp_path: Path) -> Iterator[Callable[[IcebergLine], Standby]]:
    """Starts one, and kills it at the end."""
    with ExitStack() as cleanup:
        numbers = iter(range(9))
        yield lambda line: Standby(line, tmp_path / f"{next(numbers)}.log", cleanup)


@further
@pytest.mark.timeout(600)  # with three starts of Spark, on a busy machine
def test_a_sink_that_stands_by_goes_on_when_the_writer_is_killed(
    stack: LocalStack, kind: IcebergKind, standby: Callable[[IcebergLine], Standby]
) -> None:
    line = IcebergLine(stack, kind)
    shard = line.shard("a")
    line.begin()
    line.send(shard, table("create table t (id int primary key, x int)"))
    line.rows(shard, {"id": 1, "x": 1})
    line.commit()

    def has(*ids: int) -> bool:
        exists = kind.session.catalog.tableExists(f"lake.{line.target}")
        return exists and [row["id"] for row in line.found()] == [*ids]

    one = standby(line)
    wait_for(lambda: one.says("sink_started"), "writer")
    two = standby(line)
    wait_for(lambda: two.says("sink_waits"), "standby")
    wait_for(lambda: has(1), "row through the writer")
    assert not two.says("sink_started")

    one.process.kill()
    line.begin()
    line.rows(shard, {"id": 2, "x": 2})
    line.commit()
    wait_for(lambda: has(1, 2), "row through the standby")
    assert two.says("sink_started")
    line.session.close()
