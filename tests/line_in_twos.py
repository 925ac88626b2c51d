"""A whole line with two of each of our own parts, and a writer on each of its two shards."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.local.line import Line
from shardmerge.local.servers.processes import ProcessSpec, Supervisor
from shardmerge.local.servers.stack import LocalStack, Ports
from shardmerge.schemas.pipeline.first_rows import DEBEZIUM, first_rows_by
from shardmerge.schemas.pipeline.routing import RoutingRule

from .line_writers import At, Writer, wait

ROOT = Path(__file__).resolve().parents[1]
ROUTES = (
    RoutingRule(".*", "app", "tbl", "merged", "tbl"),
    RoutingRule(".*", "app", "log", "merged", "log"),
)
_STILL_S = 60.0
"""Rows that do not come within so many seconds in which no other comes are lost."""
ENVIRONMENT = {"PYTHONSAFEPATH": "1", "PYSPARK_PYTHON": sys.executable}


class LineInTwos:
    """The line."""

    def __init__(self, directory: Path) -> None:
        self.line = Line(directory, routes=ROUTES, access=partial(first_rows_by, DEBEZIUM))
        self.line.start(prepare=self._prepare)
        self.line.hand_over()
        self.stack = LocalStack(directory)
        self.specs: dict[str, ProcessSpec] = {}
        self.ports: dict[str, int] = {}
        file = str(self.line.pipeline_path)
        for number in (1, 2):
            free = Ports.free()
            sink, agents = f"sink-{number}", f"agents-{number}"
            self.ports |= {sink: free.registry, agents: free.web}
            self._start(
                sink, "shardmerge.spark_sink.job", "--pipeline", file, "--standby",
                "--metrics-port", str(free.registry),
            )  # fmt: skip
            self._start(
                agents, "shardmerge.agents.app", "--pipeline", file,
                "--datadir", str(directory / agents), "--web-port", str(free.web),
            )  # fmt: skip
        # As deployments have it: a task of Connect's that fails stands until it is restarted.
        self._start(
            "watchdog", "shardmerge.cli.main", "run", "--pipeline", file, "--without", "agents",
            "--without", "sink", "--directory", str(directory / "watchdog"),
            "--give-up-after", "1000",  # so often may it be killed soon after its start
        )  # fmt: skip
        sources = [At(source.port) for source in self.line.pipeline.sources]
        self.target = At(self.line.pipeline.target.port)
        self.writers = [Writer(at, number) for number, at in enumerate(sources, 1)]
        self.threads = [threading.Thread(target=writer.run) for writer in self.writers]
        for thread in self.threads:
            thread.start()

    def _prepare(self) -> None:
        for source in ("s1", "s2"):
            with self.line.connect(source) as connection, connection.cursor() as cursor:
                cursor.execute("CREATE DATABASE app")
                cursor.execute("CREATE TABLE app.tbl (id INT PRIMARY KEY, v INT NOT NULL)")
                cursor.execute("CREATE TABLE app.log (v INT NOT NULL)")

    def _start(self, name: str, module: str, *options: str) -> None:
        argv = (sys.executable, "-m", module, *options)
        self.specs[name] = ProcessSpec(name, argv, env=ENVIRONMENT, cwd=self.line.directory)
        self.stack.add(self.specs[name])

    def again(self, name: str) -> None:
        """Start a part that was killed, when nothing of it is left."""
        self.stack.stop(name)
        self.stack.add(self.specs[name])

    def kill(self, name: str) -> float:
        """``kill -9`` one process alone; returns when, by a monotonic clock."""
        return self._kill(self.stack.supervisor, name)

    def kill_watchdog(self) -> float:
        """As ``kill``, for the process that ``shardmerge run`` has started."""
        return self._kill(Supervisor(self.line.directory / "watchdog"), "watchdog")

    def _kill(self, supervisor: Supervisor, name: str) -> float:
        pid = supervisor.pid(name)
        assert pid is not None, name
        os.kill(pid, signal.SIGKILL)
        killed = time.monotonic()
        # A server that is started again takes a zombie for a process that runs.
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)
        return killed

    def metric(self, name: str, text: str) -> str:
        """The value of a metric of a part, "" when it does not answer."""
        try:
            with urlopen(f"http://127.0.0.1:{self.ports[name]}/metrics", timeout=5) as answer:
                lines = answer.read().decode().splitlines()
        except OSError:
            return ""
        return next((line.rpartition(" ")[2] for line in lines if line.startswith(text)), "")

    def connectors(self) -> str:
        """The state of each connector."""
        with closing(ConnectRest.of(self.line.pipeline.connect)) as rest:
            return "\n".join(f"{name}: {rest.status(name)}" for name in rest.connectors())

    def active_sink(self) -> str:
        """The sink that writes, when the other one waits."""
        found: dict[str, str] = {}

        def both() -> bool:
            for name in ("sink-1", "sink-2"):
                found[name] = self.metric(name, "shardmerge_sink_active")
            return sorted(found.values()) == ["0.0", "1.0"]

        wait(both, "an active sink and a standby")
        return next(name for name, value in found.items() if value == "1.0")

    def deciding_worker(self) -> str:
        """The agents' worker that has the tracker, when both workers have partitions."""
        assigned: dict[str, list[str]] = {}

        def both() -> bool:
            for name in ("agents-1", "agents-2"):
                try:
                    with urlopen(f"http://127.0.0.1:{self.ports[name]}/healthz", timeout=5) as told:
                        assigned[name] = json.loads(told.read())["assigned"]
                except OSError:
                    return False
            return all(assigned.values()) and sum(commands in of for of in assigned.values()) == 1

        commands = f"{self.line.pipeline.name}.commands/0"
        wait(both, "two agents' workers")
        return next(name for name, of in assigned.items() if commands in of)

    def until_row(self, writer: Writer, after: int) -> None:
        """Wait until a row is in the target that the writer wrote behind row ``after``."""
        low = writer.first % 2

        def arrived() -> bool:
            ((last,),) = self.target.run(
                f"SELECT COALESCE(MAX(v), 0) FROM merged.log WHERE v % 2 = {low}"
            )
            return bool(last > after)

        wait(arrived, "new row", 0.05)

    def until_both_wait(self) -> None:
        """Wait until rows of both shards flow."""
        for writer in self.writers:
            self.until_row(writer, writer.last)

    def until_column(self, column: str) -> None:
        """Wait until the target has a column."""
        query = (
            "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'merged'"
            f" AND TABLE_NAME = 'tbl' AND COLUMN_NAME = '{column}'"
        )
        wait(lambda: bool(self.target.run(query)[0][0]), "new column", 0.05)

    def close(self, *, keeps_files: bool = False) -> None:
        """End everything, and remove its files unless they are to be looked at."""
        for writer in self.writers:
            writer.go_on()
            writer.stop()
        for thread in self.threads:
            thread.join()
        self.stack.down()
        self.line.stop()
        if keeps_files:
            print(f"logs: {self.line.directory}", file=sys.stderr)
        else:
            self.line.clear()


def compared(made: LineInTwos) -> tuple[int, int]:
    """How many rows the target lacks, and how many it has too often, when all have come."""
    for writer in made.writers:
        writer.rest()
    found = (0, 0)

    def is_equal() -> bool:
        nonlocal found
        lost = doubled = 0
        for query in ("SELECT id, v FROM {}.tbl", "SELECT v FROM {}.log"):
            there: Counter[Any] = Counter()
            for writer in made.writers:
                there.update(writer.at.run(query.format("app")))
            here = Counter(made.target.run(query.format("merged")))
            lost += (there - here).total()
            doubled += (here - there).total()
        found = (lost, doubled)
        return found == (0, 0)

    # As long as rows come, whatever else the machine does.
    before, deadline = found, time.monotonic() + _STILL_S
    while not is_equal() and time.monotonic() < deadline:
        if found != before:
            before, deadline = found, time.monotonic() + _STILL_S
        time.sleep(0.5)
    for writer in made.writers:
        writer.go_on()
    return found
