"""The whole line on one machine: servers, topics, connectors, agents' worker, sink.

Used by the demo, by ``up`` and ``down``, and by the end-to-end tests. The servers are the local
stack's; the agents' worker, the sink and the watchdog run under a supervisor of their own, so that
the line stays when the command that started it returns.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pymysql
import requests
from confluent_kafka.admin import AdminClient, NewTopic
from pymysql.cursors import Cursor

from shardmerge.schemas import topics
from shardmerge.schemas.errors import StackError
from shardmerge.schemas.names import TargetTable
from shardmerge.schemas.pipeline import Pipeline, parse_pipeline
from shardmerge.schemas.routing import RoutingRule

from . import supervisor
from .observer import Observer
from .pipeline_text import pipeline_text
from .servers import Servers
from .supervisor import Program

Connection: TypeAlias = "pymysql.Connection[Cursor]"

PIPELINE_FILE = "pipeline.toml"
AGENTS, SINK, CONNECT, WATCHDOG = "agents", "sink", "connect", "watchdog"
READY_SECONDS = 180.0
_STEADY_POLLS = 3
"""A part that answered this often in a row is up: one answer may come from a part about to end."""


class Line:
    """The line of one directory.

    ``start`` and ``stop`` bracket it; ``attach`` is for one that another process started. Every
    path, log and pid file is under ``directory``.

    Attributes:
        pipeline: What it merges; known once started or attached.
        observer: Follows its topics; known once started or attached.
    """

    pipeline: Pipeline
    observer: Observer

    def __init__(
        self,
        directory: Path,
        routes: Sequence[RoutingRule] = (),
        name: str = "local",
        fixed_ports: bool = False,
    ) -> None:
        self.directory = directory
        self._routes = tuple(routes)
        self._name = name
        self._servers = Servers(directory, fixed_ports)
        self._session = requests.Session()
        self._session.trust_env = False  # everything is on this machine: no proxy

    # --- start and stop

    def start(
        self,
        prepare: Callable[[], None] | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Start everything and wait until it works.

        Args:
            prepare: Called when the MySQL servers are up and nothing reads them yet: what it
                makes is read by the connectors' snapshot.
            say: Told what is being started.

        Raises:
            StackError: A port is taken, or a part does not come up; the hint names its log.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        try:
            say("servers: 3 MySQL, Kafka, Kafka Connect")
            self._servers.start()
            self.pipeline = self._servers.pipeline(self._name, self._routes)
            self.pipeline_path.write_text(pipeline_text(self.pipeline), encoding="utf-8")
            parse_pipeline(self.pipeline_path.read_text(encoding="utf-8"), {})
            self._make_topics()
            if prepare is not None:
                prepare()
            say("agents' worker, sink, watchdog")
            supervisor.write_programs(self.directory, self._programs())
            supervisor.start_supervisor(self.directory)
            say(f"connectors: {', '.join(s.name for s in self.pipeline.sources)}")
            self._servers.start_connectors(self.pipeline)
            self._observe()
            self.wait_ready()
        except BaseException:
            self.stop()
            raise

    def attach(self) -> None:
        """Connect to a line that another process started.

        Raises:
            StackError: There is none in this directory.
        """
        if not self.is_running():
            raise StackError(f"no line runs in {self.directory}", hint="start it with `make up`")
        self._servers.attach()
        self.pipeline = parse_pipeline(self.pipeline_path.read_text(encoding="utf-8"), {})
        self._observe()

    def is_running(self) -> bool:
        """Whether this directory's supervisor runs."""
        return supervisor.read_pid(self.directory, supervisor.PID) is not None

    def leave(self) -> None:
        """Stop observing; the line stays."""
        if hasattr(self, "observer"):
            self.observer.__exit__(None, None, None)
            del self.observer

    def stop(self) -> None:
        """Stop everything; safe at any time, also when nothing runs."""
        self.leave()
        with contextlib.suppress(FileNotFoundError):
            supervisor.stop_supervisor(self.directory)
        self._servers.stop()

    @property
    def pipeline_path(self) -> Path:
        """The pipeline file that agents and sink read."""
        return self.directory / PIPELINE_FILE

    @property
    def web_url(self) -> str:
        """Address of the status pages."""
        return f"http://127.0.0.1:{self._servers.web_port}"

    # --- servers

    def connect(self, source: str, **options: Any) -> Connection:
        """A connection to a source's server, committing every statement, in UTC."""
        found = self.pipeline.source(source)
        return _connect(found.host, found.port, found.user, found.password, **options)

    def connect_target(self, **options: Any) -> Connection:
        """A connection to the target's server, committing every statement, in UTC."""
        target = self.pipeline.target
        return _connect(target.host, target.port, target.user, target.password, **options)

    # --- parts

    def kill(self, part: str) -> None:
        """End a part with SIGKILL; its keeper starts it again. Returns when it is gone."""
        pid = self._servers.connect_pid() if part == CONNECT else self._pid(part)
        if pid is None:
            return  # already down and about to come back
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 10
        while supervisor.is_alive(pid) and time.monotonic() < deadline:
            time.sleep(0.02)

    def _pid(self, part: str) -> int | None:
        return supervisor.read_pid(self.directory, part)

    def restart_connector(self, source: str) -> None:
        """Restart a source's connector with its task, through Connect."""
        self._connect_rest(
            "POST", f"/connectors/{source}/restart?includeTasks=true&onlyFailed=false"
        )

    def pause_connectors(self) -> None:
        """Stop reading every source."""
        for source in self.pipeline.sources:
            self._connect_rest("PUT", f"/connectors/{source.name}/pause")

    def resume_connectors(self) -> None:
        """Read every source again."""
        for source in self.pipeline.sources:
            self._connect_rest("PUT", f"/connectors/{source.name}/resume")

    def faults(self) -> list[str]:
        """What is not up at this moment; empty when everything works."""
        found = [
            f"{part} does not run: see {self.log_path(part)}"
            for part in (AGENTS, SINK, WATCHDOG)
            if self._pid(part) is None
        ]
        found += [
            f"connector {source.name} is {state}"
            for source in self.pipeline.sources
            if (state := self.connector_state(source.name)) != "RUNNING"
        ]
        try:
            self._session.get(f"{self.web_url}/api/targets", timeout=3).raise_for_status()
        except requests.RequestException as error:
            found.append(f"status page: {error}; see {self.log_path(AGENTS)}")
        return found

    def recovering(self) -> bool:
        """Whether a part is not up at this moment."""
        return bool(self.faults())

    def wait_ready(self) -> None:
        """Wait until every part works.

        Raises:
            StackError: One does not.
        """
        steady = 0

        def faults() -> list[str]:
            nonlocal steady
            found = self.faults()
            steady = 0 if found else steady + 1
            return found or ([] if steady >= _STEADY_POLLS else ["not steady yet"])

        found = self.poll(faults, READY_SECONDS, pause=0.3)
        if found:
            raise StackError("; ".join(found), hint=f"logs are under {self.directory}")

    def connector_state(self, source: str) -> str:
        """State of a connector's task, ``RUNNING`` when it works; else the worse of the two."""
        try:
            status = self._connect_rest("GET", f"/connectors/{source}/status")
        except StackError as error:
            return str(error)
        states = [status["connector"]["state"], *(task["state"] for task in status["tasks"])]
        if not status["tasks"]:
            return "without a task"
        return next((str(state) for state in states if state != "RUNNING"), "RUNNING")

    def poll(
        self, faults: Callable[[], list[str]], seconds: float, pause: float = 0.2
    ) -> list[str]:
        """Poll until there are no faults; those of the last look when the bound passed first."""
        deadline = time.monotonic() + seconds
        while found := faults():
            if time.monotonic() > deadline:
                return found
            time.sleep(pause)
        return []

    # --- what it says

    def log_path(self, part: str) -> Path:
        """Log file of a supervised part."""
        return self.directory / "log" / f"{part}.log"

    def in_log(self, part: str, text: str) -> list[str]:
        """Empty when the part's log holds a text; else a sentence that says so."""
        log = self.log_path(part)
        if text in log.read_text(encoding="utf-8", errors="replace"):
            return []
        return [f"{log} does not say {text!r}"]

    def status(self, target: TargetTable) -> dict[str, Any]:
        """What the status page tells of a target, as JSON; empty when it does not know it."""
        answer = self._session.get(f"{self.web_url}/api/targets", timeout=10)
        answer.raise_for_status()
        for entry in answer.json()["targets"]:
            if entry["target"] == str(target):
                return dict(entry)
        return {}

    # --- helpers

    def _make_topics(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.pipeline.kafka.bootstrap_servers})
        known = set(admin.list_topics(timeout=30).topics)
        wanted = [
            NewTopic(spec.name, spec.partitions, spec.replication, config=dict(spec.config))
            for spec in topics.own_topics(self.pipeline)
            if spec.name not in known
        ]
        for future in admin.create_topics(wanted).values() if wanted else ():
            future.result(timeout=30)

    def _programs(self) -> list[Program]:
        python, pipeline = sys.executable, str(self.pipeline_path)
        return [
            Program(
                AGENTS,
                (
                    python, "-m", "shardmerge.agents.app", "--pipeline", pipeline,
                    "--datadir", str(self.directory / "agents"),
                    "--web-port", str(self._servers.web_port),
                ),
            ),
            Program(SINK, (python, "-m", "shardmerge.spark_sink.job", "--pipeline", pipeline)),
            Program(
                WATCHDOG,
                (python, "-m", "shardmerge.cli.watchdog", "--directory", str(self.directory)),
            ),
        ]  # fmt: skip

    def _observe(self) -> None:
        self.observer = Observer(self.pipeline)
        self.observer.__enter__()

    def _connect_rest(self, method: str, path: str) -> Any:
        try:
            answer = self._session.request(method, self.pipeline.connect.url + path, timeout=10)
        except requests.RequestException as error:
            raise StackError(f"Kafka Connect does not answer: {error}") from None
        if not answer.ok:
            raise StackError(f"Kafka Connect: {method} {path}: {answer.status_code} {answer.text}")
        return answer.json() if answer.content else None


def _connect(host: str, port: int, user: str, password: str, **options: Any) -> Connection:
    init = options.pop("init_command", "SET time_zone = '+00:00'")
    return pymysql.connect(
        host=host,
        port=port,
        user=user,
        password=password,
        charset="utf8mb4",
        autocommit=True,
        connect_timeout=10,
        init_command=init,
        **options,
    )
