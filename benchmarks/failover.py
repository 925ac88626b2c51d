"""How long rows or DDL stand when a part is killed, and whether a row is lost or comes twice.

Usage: ``python -m benchmarks.failover [--parts sink,agents,source:5,connect,watchdog]
[--rounds 20]``

A line of its own: two shards on two servers, two sinks with ``--standby``, two agents' workers, the
watchdog, and writers that insert, change and delete all the time. Each round kills one process with
SIGKILL (not its children), waits until the pipeline has recovered, and starts the killed one again,
which waits then:

* ``sink``: the one that writes. Recovered: a row that was written after the kill is in the target.
* ``agents``: the worker that decides. Recovered: a column that was added after the kill is there.
* ``source``: the first source's server, when its replica has everything. Then the replica is
  promoted, and ``shardmerge source move`` called. Recovered: as for the sink, with a row that was
  written to the replica.
* ``connect``: the only Connect worker, which is started again at once. Recovered: as for the sink.
* ``watchdog``: the process that runs with ``--create``, while a source is away and the task of its
  connector has failed. Whatever started it starts it again. Then the source comes back. Recovered:
  as for the sink, with a row of that source: the new watchdog has started its task.

At the end the tables are compared, one with a primary key and one without: there a row that came
twice would be there twice.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pymysql

from shardmerge.connectors.access.mysql import connect
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.local.line import Line
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.processes import ProcessSpec, Supervisor
from shardmerge.local.servers.source_servers import source_spec
from shardmerge.local.servers.stack import LocalStack, Ports
from shardmerge.local.sigterm import end_on_sigterm
from shardmerge.schemas.pipeline.first_rows import DEBEZIUM, first_rows_by
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Source

ROOT = Path(__file__).resolve().parents[1]
ROUTES = (
    RoutingRule(".*", "app", "tbl", "merged", "tbl"),
    RoutingRule(".*", "app", "log", "merged", "log"),
)
PARTS = ("sink", "agents", "source", "connect", "watchdog")
BOUND_S = 180.0
_STILL_S = 60.0
"""Rows that do not come within so many seconds in which no other comes are lost."""
REPLICA_ID = 77
ENVIRONMENT = {"PYTHONSAFEPATH": "1", "PYSPARK_PYTHON": sys.executable}


@dataclass(frozen=True, slots=True)
class At:
    """A server of this machine."""

    port: int
    host: str = "127.0.0.1"

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Execute statements; the rows of the last one."""
        source = Source("any", self.host, self.port, USER, PASSWORD, 1)
        rows: list[tuple[Any, ...]] = []
        with (
            connect(source, autocommit=True, connect_timeout=5) as connection,
            connection.cursor() as cursor,
        ):
            for statement in statements:
                cursor.execute(statement)
                rows = list(cursor.fetchall())
        return rows


@dataclass(slots=True)
class Writer:
    """Writes to one shard all the time, each change a transaction.

    Attributes:
        at: Its server; another one after a move.
        last: The number of its latest insert.
    """

    at: At
    first: int
    last: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _go_on: threading.Event = field(default_factory=threading.Event)
    _at_rest: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Write until ``stop``."""
        chance = random.Random(self.first)
        live: list[int] = []
        self._go_on.set()
        numbers = itertools.count(self.first, 2)
        number = next(numbers)
        while not self._stop.is_set():
            try:
                with (
                    connect(
                        Source("any", self.at.host, self.at.port, USER, PASSWORD, 1),
                        autocommit=True,
                        connect_timeout=5,
                    ) as connection,
                    connection.cursor() as cursor,
                ):
                    while not self._stop.is_set():
                        if not self._go_on.is_set():
                            break
                        cursor.execute(
                            "INSERT IGNORE INTO app.tbl (id, v) VALUES (%s, 0)", (number,)
                        )
                        # Repeated if the answer was lost: it is a duplicate at the source, too.
                        cursor.execute("INSERT INTO app.log (v) VALUES (%s)", (number,))
                        live.append(number)
                        self.last, number = number, next(numbers)
                        cursor.execute(
                            "UPDATE app.tbl SET v = v + 1 WHERE id = %s", (chance.choice(live),)
                        )
                        if len(live) > 500:
                            gone = live.pop(chance.randrange(400))
                            cursor.execute("DELETE FROM app.tbl WHERE id = %s", (gone,))
                        time.sleep(0.02)
            except pymysql.MySQLError:
                time.sleep(0.05)
            if not self._go_on.is_set():
                self._at_rest.set()
                self._go_on.wait(1)

    def rest(self) -> None:
        """Write nothing until ``go_on``."""
        self._at_rest.clear()
        self._go_on.clear()
        self._at_rest.wait(BOUND_S)

    def go_on(self) -> None:
        """Write again."""
        self._go_on.set()

    def stop(self) -> None:
        """End."""
        self._stop.set()


class Pipeline:
    """The line, with two of each of our own parts."""

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

    def close(self, *, keeps_files: bool = False) -> None:
        """End everything, and remove its files unless they are to be looked at."""
        for writer in self.writers:
            writer.go_on()
            writer.stop()
        for thread in self.threads:
            thread.join()
        self.line.stop()
        if keeps_files:
            print(f"logs: {self.line.directory}", file=sys.stderr)
        else:
            self.line.clear()


def wait(is_so: Callable[[], bool], what: str, pause_s: float = 0.2) -> None:
    """Wait until something is so, at most ``BOUND_S``."""
    deadline = time.monotonic() + BOUND_S
    while True:
        try:
            if is_so():
                return
        except pymysql.MySQLError:
            pass  # a server that was killed comes back
        if time.monotonic() > deadline:
            raise SystemExit(f"no {what} after {BOUND_S:.0f} s")
        time.sleep(pause_s)


def sink_rounds(made: Pipeline, rounds: int) -> Iterator[float]:
    """Kill the sink that writes."""
    for _ in range(rounds):
        active = made.active_sink()
        time.sleep(random.uniform(0.5, 2.5))
        killed = made.kill(active)
        for writer in made.writers:
            made.until_row(writer, writer.last)
        yield time.monotonic() - killed
        made.again(active)


def agents_rounds(made: Pipeline, rounds: int) -> Iterator[float]:
    """Kill the agents' worker that has the tracker, then add a column to a shard."""
    for number in range(rounds):
        worker = made.deciding_worker()
        time.sleep(random.uniform(0.5, 2.5))
        killed = made.kill(worker)
        column = f"k{time.time_ns() % 10**9}_{number}"
        made.writers[1].at.run(f"ALTER TABLE app.tbl ADD {column} INT")
        query = (
            "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'merged'"
            f" AND TABLE_NAME = 'tbl' AND COLUMN_NAME = '{column}'"
        )
        wait(lambda query=query: bool(made.target.run(query)[0][0]), "new column", 0.05)  # type: ignore[misc]
        yield time.monotonic() - killed
        made.until_both_wait()
        made.again(worker)


def source_rounds(made: Pipeline, rounds: int) -> Iterator[float]:
    """Kill a source's server and let its replica take over."""
    writer, stack = made.writers[0], made.stack
    replica = At(Ports.free().source1)
    spec = source_spec(
        "mysql80", "replica", stack.directory / "replica", replica.port, REPLICA_ID,
        cache=ROOT / ".local" / "cache",
    )  # fmt: skip
    stack.add(spec)
    names = {writer.at.port: "source1", replica.port: "replica"}
    old, new = writer.at, replica
    for _ in range(rounds):
        follow(new, old)
        writer.rest()
        ((there,),) = old.run("SELECT @@GLOBAL.gtid_executed")
        new.run(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{there}', {BOUND_S:.0f})")
        writer.go_on()
        time.sleep(1)
        writer.rest()
        ((there,),) = old.run("SELECT @@GLOBAL.gtid_executed")
        new.run(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{there}', {BOUND_S:.0f})")
        killed = made.kill(names[old.port])
        new.run("STOP SLAVE", "RESET SLAVE ALL")
        writer.at = new
        writer.go_on()
        last = writer.last
        subprocess.run(
            [sys.executable, "-m", "shardmerge.cli.main", "source", "move", "s1", "--pipeline",
             str(made.line.pipeline_path), "--host", new.host, "--port", str(new.port)],
            check=True, stdout=subprocess.DEVNULL, env={**os.environ, **ENVIRONMENT},
        )  # fmt: skip
        made.until_row(writer, last)
        yield time.monotonic() - killed
        stack.start(names[old.port])
        old, new = new, old


def follow(replica: At, primary: At) -> None:
    """Make a server the replica of another one."""
    replica.run(
        f"CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {primary.port},"
        f" MASTER_USER = '{USER}', MASTER_PASSWORD = '{PASSWORD}', MASTER_AUTO_POSITION = 1",
        "START SLAVE",
    )


def connect_rounds(made: Pipeline, rounds: int) -> Iterator[float]:
    """Kill the Connect worker, and start it again."""
    for _ in range(rounds):
        time.sleep(random.uniform(0.5, 2.5))
        killed = made.kill("connect")
        last = [writer.last for writer in made.writers]
        made.stack.start("connect")
        for writer, after in zip(made.writers, last, strict=True):
            made.until_row(writer, after)
        yield time.monotonic() - killed


def watchdog_rounds(made: Pipeline, rounds: int) -> Iterator[float]:
    """Kill the watchdog while the second source is away and its connector's task has failed."""
    writer, pipeline = made.writers[1], made.line.pipeline
    name = connector_name(pipeline, pipeline.sources[1])
    for _ in range(rounds):
        time.sleep(random.uniform(0.5, 2.5))
        writer.rest()
        made.kill("source2")
        with closing(ConnectRest.of(pipeline.connect)) as rest:
            rest.restart(name)  # a task that starts while its server is down fails at once
            wait(partial(_has_failed, rest, name), "failed task")
        killed, last = made.kill_watchdog(), writer.last
        made.stack.start("source2")
        writer.go_on()
        made.until_row(writer, last)
        yield time.monotonic() - killed


def _has_failed(rest: ConnectRest, name: str) -> bool:
    status = rest.status(name)
    return status is not None and status.is_failed


ROUNDS = {
    "sink": sink_rounds,
    "agents": agents_rounds,
    "source": source_rounds,
    "connect": connect_rounds,
    "watchdog": watchdog_rounds,
}


def compared(made: Pipeline) -> tuple[int, int]:
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


def main() -> int:
    """Run the rounds and print the table; the exit code tells whether rows were lost or doubled."""
    end_on_sigterm()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", default=",".join(PARTS), help="PART or PART:ROUNDS, by commas")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", action="store_true", help="the seconds of each round, too")
    options = parser.parse_args()
    (ROOT / ".local").mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="failover-", dir=ROOT / ".local"))
    made = Pipeline(directory)
    bad, ended = 0, False
    try:
        made.until_both_wait()
        print("| part | kills | s p50 | s max | lost | doubled | rows written |")
        print("|---|---|---|---|---|---|---|", flush=True)
        for words in options.parts.split(","):
            part, _, rounds = words.partition(":")
            seconds = []
            for each in ROUNDS[part](made, int(rounds or options.rounds)):
                seconds.append(each)
                print(f"{part} {len(seconds)}: {each:.1f} s", file=sys.stderr, flush=True)
            lost, doubled = compared(made)
            bad += lost + doubled
            if bad:
                print(made.connectors(), file=sys.stderr, flush=True)
            rows = sum(len(writer.at.run("SELECT v FROM app.log")) for writer in made.writers)
            p50, most = statistics.median(seconds), max(seconds)
            print(
                f"| {part} | {len(seconds)} | {p50:.1f} | {most:.1f} | {lost} | {doubled} |"
                f" {rows:,} |",
                flush=True,
            )
            if options.json:
                print(json.dumps({part: [round(each, 2) for each in seconds]}), flush=True)
        ended = True
    finally:
        made.close(keeps_files=bool(bad) or not ended)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
