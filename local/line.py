"""The line: a whole pipeline on one machine, with servers, topics, connectors, agents and sink.

The demo, ``up`` and ``down``, and the end-to-end tests use it. Everything runs as processes of the
local stack's supervisor, and a keeper restarts processes that end. So the line stays when the
command that started it returns.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import requests

from shardmerge.connectors.access.mysql import Connection
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.deploy import deploy_connectors
from shardmerge.connectors.kafka.observer import Observer
from shardmerge.connectors.log_lines import event_in
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.secured import Secured
from shardmerge.local.servers.sizes import FEW_SHARDS, Sizes
from shardmerge.local.servers.stack import CONNECTOR_SERVER_IDS, LocalStack, Ports
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Source, Target
from shardmerge.schemas.pipeline.text import pipeline_text

from .keeper import AGENTS, NAME, PIPELINE_FILE, SINK, specs, start_keeper
from .line_connectors import LineConnectors
from .line_servers import by_owner, connected, sends_its_binlog

SOURCES = {"s1": "source1", "s2": "source2"}
"""Name of a source in the pipeline → name of its server in the stack."""
_LOOK_SECONDS = 1.0
_LOG_TAIL_BYTES = 1024 * 1024
_STEADY_POLLS = 3
"""So many looks in a row must find the line up: one look may see a part that is about to end."""


class Line:
    """The line of one directory.

    ``start`` and ``stop`` bracket it; ``attach`` is for a line that another process started. Every
    path, log and pid file is under ``directory``.

    Args:
        target: A server outside the line; None: the line starts a MySQL server for it.
        secured, before_connect: See ``LocalStack``; ``access`` makes the pipeline fit ``secured``.
        target_binlog, sizes: See ``LocalStack``.

    Attributes:
        pipeline: What it merges; known once started or attached.
        observer: Follows its topics; known once started or attached.
        connectors: Stops and starts its connectors; known once started or attached.
    """

    connectors: LineConnectors
    pipeline: Pipeline
    observer: Observer

    def __init__(
        self,
        directory: Path,
        routes: Sequence[RoutingRule] = (),
        name: str = "local",
        fixed_ports: bool = False,
        row_partitions: int = 2,
        *,
        row_format: str = "json",
        target: Target | None = None,
        secured: Callable[[Ports], Secured] = lambda _: Secured(),
        access: Callable[[Pipeline], Pipeline] = lambda pipeline: pipeline,
        before_connect: Callable[[], None] = lambda: None,
        target_binlog: bool = False,
        sizes: Sizes = FEW_SHARDS,
    ) -> None:
        self._secured, self._access, self._before_connect = secured, access, before_connect
        self._target_binlog, self._sizes = target_binlog, sizes
        self._row_format = row_format
        self._target = target
        self.directory = directory.absolute()
        self._row_partitions = row_partitions
        self._routes = tuple(routes)
        self._name = name
        self._ports = Ports() if fixed_ports else None
        self._known_stack: LocalStack | None = None
        self._lock = threading.Lock()
        self._started_sink: int | None = None
        self._looked = 0.0
        self._found: list[str] = []
        self._session = requests.Session()
        self._session.trust_env = False  # everything is on this machine: no proxy

    # --- start and stop

    def start(
        self,
        prepare: Callable[[], None] | None = None,
        say: Callable[[str], None] = lambda text: None,
        outlive: bool = False,
    ) -> None:
        """Start everything and wait until it works.

        Args:
            prepare: Called when the MySQL servers are up and nothing reads them yet: what it
                makes is read as first rows.
            say: Told what is being started.
            outlive: Whether the line stays when this process ends.

        Raises:
            StackError: A port is taken, or a part does not come up; the hint names its log.
        """
        ports = self._ports or Ports.free()
        self._known_stack = LocalStack(
            self.directory,
            ports,
            say=lambda text: say(f"  {text}"),
            registry=self._row_format == "avro",
            secured=self._secured(ports),
            before_connect=self._before_connect,
            target_binlog=self._target_binlog,
            sizes=self._sizes,
        )
        try:
            say("Starting the servers: 3 MySQL, Kafka, Kafka Connect")
            self._stack.up()
            self.pipeline = self._access(self._make_pipeline())
            text = pipeline_text(self.pipeline)
            self.pipeline_path.write_text(text, encoding="utf-8")
            if prepare is not None:
                prepare()
            say("Starting the agents' worker, the sink and the connectors")
            for spec in specs(self.directory, self._stack.ports.web):
                self._stack.add(spec)
            rest = ConnectRest.of(self.pipeline.connect, patience_s=self._sizes.ready_s)
            deploy_connectors(self.pipeline, rest, self._sizes.ready_s)
            rest.close()
            start_keeper(self._stack.supervisor, None if outlive else os.getpid())
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
            raise StackError(
                f"no line runs in {self.directory}", hint="start it with `make up`", code="SM-4601"
            )
        self.pipeline = parse_pipeline(self.pipeline_path.read_text(encoding="utf-8"), os.environ)
        self._observe()

    def is_running(self) -> bool:
        """Whether anything of this directory runs."""
        if not self.directory.is_dir():
            return False
        return any(pid is not None for pid in self._stack.status().values())

    def clear(self) -> None:
        """Remove what an earlier line of this directory left: data, logs, pid files."""
        if self.directory.is_dir():
            shutil.rmtree(self.directory)
        self._known_stack = None

    def leave(self) -> None:
        """Stop observing; the line stays."""
        if hasattr(self, "observer"):
            self.observer.__exit__(None, None, None)
            del self.observer

    def stop(self) -> None:
        """Stop everything; safe at any time, also when nothing runs."""
        self.leave()
        if self.directory.is_dir():
            # The keeper first: it would start again what is stopped after it.
            self._stack.stop(NAME)
            self._stack.down()

    @property
    def pipeline_path(self) -> Path:
        """The pipeline file that agents and sink read."""
        return self.directory / PIPELINE_FILE

    @property
    def web_url(self) -> str:
        """Address of the status pages."""
        return f"http://127.0.0.1:{self._stack.ports.web}"

    # --- servers

    def connect(self, source: str, **options: Any) -> Connection:
        """A connection to a source's server, committing every statement, in UTC."""
        server = self.pipeline.source(source)
        return connected(by_owner(server, self._stack.secured), **options)

    def connect_target(self, **options: Any) -> Connection:
        """A connection to the target's server, committing every statement, in UTC."""
        target = self.pipeline.target
        owned = target if self._target else by_owner(target, self._stack.secured)
        return connected(owned, **options)

    # --- parts

    def kill(self, part: str) -> None:
        """End a part with SIGKILL, and its children; the keeper starts it again."""
        with contextlib.suppress(StackError):  # already down and about to come back
            self._stack.kill(part)

    def hand_over(self) -> None:
        """Stop what keeps the line up, agents and sink; the servers stay, for others to use."""
        for part in (NAME, SINK, AGENTS):
            self._stack.stop(part)

    def kill_server(self, part: str) -> None:
        """End a server of the stack (Kafka, a source, the target) with SIGKILL, and start it again.

        Raises:
            StackError: It does not come back.
        """
        part = SOURCES.get(part, part)
        self._stack.kill(part)
        self._stack.start(part)

    def faults(self) -> list[str]:
        """What is not up at this moment; empty when everything works."""
        found = [
            f"{part} does not run: see {self.log_path(part)}"
            for part in (AGENTS, SINK, NAME)
            if self._stack.supervisor.pid(part) is None
        ]
        if not found and not self._sink_started():
            found.append("the sink is still starting")
        found += [
            f"connector {source.name} is {state}"
            for source in self.pipeline.sources
            if (state := self.connectors.state(source.name)) != "RUNNING"
        ]
        found += [
            f"the connector of source {source.name} does not read the binlog"
            for source in self.pipeline.sources
            if not self._streams(source.name)
        ]
        try:
            self._session.get(f"{self.web_url}/healthz", timeout=3).raise_for_status()
        except requests.RequestException as error:
            found.append(f"agents: {error}; see {self.log_path(AGENTS)}")
        return found

    def recovering(self) -> bool:
        """Whether a part was not up at the last look, which is at most a second ago."""
        with self._lock:
            if time.monotonic() - self._looked > _LOOK_SECONDS:
                self._found, self._looked = self.faults(), time.monotonic()
            return bool(self._found)

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

        found = self.poll(faults, self._sizes.ready_s, pause=0.3)
        if found:
            raise StackError(
                "; ".join(found), hint=f"logs are under {self.directory}", code="SM-4608"
            )

    def _streams(self, source: str) -> bool:
        with self.connect(source) as connection:
            return sends_its_binlog(connection)

    def _sink_started(self) -> bool:
        """Whether the present sink has logged that it works; its process runs long before that."""
        pid = self._stack.supervisor.pid(SINK)
        if pid is None or pid == self._started_sink:
            return pid is not None
        path = self.log_path(SINK)
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - _LOG_TAIL_BYTES))
            lines = log.read().decode("utf-8", errors="replace").splitlines()
        since = dt.datetime.fromtimestamp(_started_at(pid), dt.UTC)
        logged = (event_in(line) for line in lines)
        if any(found and found[1] == "sink_started" and found[0] >= since for found in logged):
            self._started_sink = pid
            return True
        return False

    def poll(
        self, faults: Callable[[], list[str]], seconds: float, pause: float = 0.2
    ) -> list[str]:
        """Poll until there are no faults; returns the last faults if the bound passes first."""
        deadline = time.monotonic() + seconds
        while found := faults():
            if time.monotonic() > deadline:
                return found
            time.sleep(pause)
        return []

    # --- what it says

    def log_path(self, part: str) -> Path:
        """Log file of a part."""
        return self._stack.supervisor.log_path(part)

    def in_log(self, part: str, text: str) -> list[str]:
        """Empty when the part's log holds a text; else a sentence that says so."""
        log = self.log_path(part)
        if text in log.read_text(encoding="utf-8", errors="replace"):
            return []
        return [f"{log} does not say {text!r}"]

    def status(self, target: TargetTable) -> dict[str, Any]:
        """What the status page tells of a target, as JSON; empty when it does not know it."""
        answer = self._session.get(f"{self.web_url}/api/target/{target}", timeout=10)
        if answer.status_code == requests.codes.not_found:
            return {}
        answer.raise_for_status()
        return dict(answer.json())

    # --- helpers

    @property
    def _stack(self) -> LocalStack:
        if self._known_stack is None:
            self._known_stack = LocalStack(self.directory)
        return self._known_stack

    def _make_pipeline(self) -> Pipeline:
        ports = self._stack.ports
        here = "127.0.0.1"
        return Pipeline(
            name=self._name,
            kafka=Kafka(
                self._stack.bootstrap_servers,
                row_format=self._row_format,
                record_format="avro-registry" if self._row_format == "avro" else "avro",
                schema_registry=self._stack.registry_url if self._row_format == "avro" else "",
                avro_converter="apicurio" if self._row_format == "avro" else "",
            ),
            connect=Connect(self._stack.connect_url, row_partitions=self._row_partitions),
            sources=tuple(
                Source(
                    name=name,
                    host=here,
                    port=getattr(ports, server),
                    user=USER,
                    password=PASSWORD,
                    server_id=CONNECTOR_SERVER_IDS[server],
                    version="8.0.15",
                )
                for name, server in SOURCES.items()
            ),
            routes=self._routes,
            target=self._target or Target(here, ports.target, USER, PASSWORD),
        )

    def _observe(self) -> None:
        self.connectors = LineConnectors(self.pipeline)
        self.observer = Observer(self.pipeline)
        self.observer.__enter__()


def _started_at(pid: int) -> float:
    """When a process was started, in seconds since 1970."""
    try:
        return Path(f"/proc/{pid}").stat().st_ctime
    except FileNotFoundError:
        return time.time()
