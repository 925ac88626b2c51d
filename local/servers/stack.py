"""The embedded stack: two MySQL sources, a MySQL target, Kafka and Kafka Connect, no Docker.

On request it has a schema registry, too: see ``registry``.

::

    python -m shardmerge.local.servers.stack up --directory .local/play [--free-ports]
    python -m shardmerge.local.servers.stack status|down|clean --directory .local/play

``up`` writes the ports to ``DIRECTORY/ports.json``; a later ``up`` of the same directory uses
them and its data again. ``down`` keeps the data, ``clean`` removes it.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from shardmerge.local.install.artifacts import DEFAULT_CACHE, Artifacts, resolve
from shardmerge.local.install.authentication import authentication_jars
from shardmerge.local.install.exact_values import with_exact_values
from shardmerge.local.install.files import exclusive_lock
from shardmerge.schemas.model.errors import ShardMergeError, StackError
from shardmerge.schemas.pipeline.settings import Kafka

from .connect import connect_spec
from .kafka import kafka_spec
from .mysql import PASSWORD, USER, mysql_spec, prepare_data
from .processes import LOOPBACK, ProcessSpec, Supervisor, require_free_port
from .registry import CCOMPAT, registry_artifacts, registry_spec
from .secured import Secured, saved_secured
from .sizes import FEW_SHARDS, Sizes

Say = Callable[[str], None]
_MYSQL_SERVER_IDS = {"source1": 101, "source2": 102, "target": 103}
_REGISTRY = "registry"
CONNECTOR_SERVER_IDS = {"source1": 201, "source2": 202}
"""Replication server ids of the connectors: unique among all servers and replicas."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Every port of a stack, all on 127.0.0.1. ``web`` is for the agents' status pages.

    Nothing listens on ``registry`` in a stack without one.
    """

    source1: int = 23306
    source2: int = 23307
    target: int = 23308
    kafka: int = 29092
    controller: int = 29093
    connect: int = 28083
    web: int = 26066
    registry: int = 28081

    @classmethod
    def free(cls) -> Ports:
        """Ports that nothing uses now, below the range of ports for outgoing connections."""
        names = list(cls.__dataclass_fields__)
        chosen: list[int] = []
        for port in random.sample(range(20000, 32000), 500):
            try:
                require_free_port(port, "a stack")
            except StackError:
                continue
            chosen.append(port)
            if len(chosen) == len(names):
                return cls(**dict(zip(names, chosen, strict=True)))
        raise StackError("no free ports between 20000 and 32000", code="SM-4613")


class LocalStack:
    """Starts and stops the stack of one directory.

    Args:
        directory: Holds data, logs, pid files and ``ports.json``.
        ports: None: those of an earlier run of the directory, else the defaults.
        cache: Where the artifacts are kept, shared by all stacks.
        say: Called with a line of progress.
        registry: Whether it has a schema registry. If an earlier run of the directory had one, this
            one has it in any case.
        secured: Settings of secure connections; None: those of an earlier run of the directory.
        before_connect: Called when every server but Connect is up.
        host: An address of this machine at which others reach the broker, the MySQL servers and
            Connect. They listen beyond the loopback then, so it is for closed networks only.
        target_binlog: Whether the target's server writes a binlog, too.
        sizes: Of the Java servers.
    """

    def __init__(
        self,
        directory: Path,
        ports: Ports | None = None,
        *,
        cache: Path = DEFAULT_CACHE,
        say: Say = lambda _: None,
        registry: bool = False,
        secured: Secured | None = None,
        before_connect: Callable[[], None] = lambda: None,
        host: str = LOOPBACK,
        target_binlog: bool = False,
        sizes: Sizes = FEW_SHARDS,
    ) -> None:
        self._target_binlog = target_binlog
        self._sizes = sizes
        self._before_connect = before_connect
        self._host = host
        self.directory = directory.absolute()
        self._has_registry = registry or (self.directory / _REGISTRY).is_dir()
        self.ports = ports or saved_ports(self.directory) or Ports()
        self.secured = saved_secured(self.directory) if secured is None else secured
        self.supervisor = Supervisor(self.directory)
        self._cache = cache
        self._say = say
        self._specs: dict[str, ProcessSpec] = {}

    @property
    def bootstrap_servers(self) -> str:
        """Of Kafka."""
        return f"{self._host}:{self.ports.kafka}"

    @property
    def kafka(self) -> Kafka:
        """How the stack itself connects to its broker."""
        return self.secured.kafka_access(self.bootstrap_servers)

    @property
    def connect_url(self) -> str:
        """Of Kafka Connect's REST interface."""
        kind = "https" if self.secured.is_on else "http"
        return f"{kind}://{self._host}:{self.ports.connect}"

    @property
    def registry_url(self) -> str:
        """Of the schema registry's Confluent interface."""
        return f"http://127.0.0.1:{self.ports.registry}{CCOMPAT}"

    def up(self) -> None:
        """Start everything and wait for its health; processes of an earlier run are stopped first.

        Raises:
            StackError: A port is occupied (then nothing was started), or a part did not start
                (then everything is stopped again).
        """
        artifacts = resolve(self._cache, self._say)
        with exclusive_lock(self.directory / "stack.lock"):
            self._stop_all()
            for name, port in asdict(self.ports).items():
                require_free_port(port, name)
            (self.directory / "ports.json").write_text(
                json.dumps(asdict(self.ports), indent=2) + "\n"
            )
            self.secured.save(self.directory)
            try:
                self._start_all(artifacts)
            except BaseException:
                self._stop_all()
                raise

    def down(self) -> None:
        """Stop every process of the directory, the added ones first; data and logs stay."""
        with exclusive_lock(self.directory / "stack.lock"):
            self._stop_all()

    def clean(self) -> None:
        """Stop everything and remove the directory."""
        self.down()
        shutil.rmtree(self.directory)

    def add(self, spec: ProcessSpec) -> None:
        """Start a further process, such as the agents or the sink, and wait for its health."""
        self._specs[spec.name] = spec
        self.start(spec.name)

    def start(self, name: str) -> None:
        """Start a process of this stack (again) and wait for its health.

        Raises:
            StackError: It did not become healthy; it is stopped then.
        """
        spec = self._specs.get(name)
        if spec is None:
            spec = self._specs[name] = self._make_spec(resolve(self._cache, self._say), name)
        self.supervisor.spawn(spec)
        try:
            self.supervisor.wait_healthy(spec)
        except StackError:
            self.supervisor.stop(name, spec.stop_timeout_s)
            raise

    def stop(self, name: str) -> None:
        """End one process gently."""
        spec = self._specs.get(name)
        self.supervisor.stop(name, spec.stop_timeout_s if spec else 15.0)

    def kill(self, name: str) -> None:
        """``kill -9`` one process and its children."""
        self.supervisor.kill(name)

    def status(self) -> Mapping[str, int | None]:
        """Pid of every process that was started in the directory; None: it does not run."""
        return {name: self.supervisor.pid(name) for name in self.supervisor.names()}

    def pipeline_text(
        self, name: str, routes: str, *, extra: str = "", snapshot: str = "debezium", **kafka: str
    ) -> str:
        """A pipeline file for this stack.

        Args:
            name: The pipeline's name.
            routes: ``[[routes]]`` tables, as text.
            extra: Further tables, such as ``[sink]``, as text.
            snapshot: Who reads the sources' first rows. Where there is no sink, only connectors do.
            kafka: Further keys of ``[kafka]``, such as ``row_format``.
        """
        sources = "".join(
            _table(
                "[sources]",
                name=source,
                host=self._host,
                port=getattr(self.ports, source),
                user=USER,
                password=PASSWORD,
                server_id=server_id,
                version="8.0.15",
                snapshot=snapshot,
            )
            for source, server_id in CONNECTOR_SERVER_IDS.items()
        )
        return (
            _table("pipeline", name=name)
            + _table("kafka", bootstrap_servers=self.bootstrap_servers, **kafka)
            + _table("connect", url=self.connect_url)
            + _table(
                "target", host=self._host, port=self.ports.target, user=USER, password=PASSWORD
            )
            + sources
            + extra.strip()
            + "\n\n"
            + routes.strip()
            + "\n"
        )

    def _start_all(self, artifacts: Artifacts) -> None:
        started = time.monotonic()
        names = (*_MYSQL_SERVER_IDS, "kafka", *((_REGISTRY,) if self._has_registry else ()))
        with ThreadPoolExecutor(max_workers=len(names)) as pool:
            list(pool.map(lambda name: self._start_one(artifacts, name, started), names))
        self._before_connect()
        self._start_one(artifacts, "connect", started)

    def _start_one(self, artifacts: Artifacts, name: str, started: float) -> None:
        self._specs[name] = self._make_spec(artifacts, name)
        self.start(name)
        self._say(
            f"{name} is up on port {getattr(self.ports, name)} ({time.monotonic() - started:.1f} s)"
        )

    def _make_spec(self, artifacts: Artifacts, name: str) -> ProcessSpec:
        if name in _MYSQL_SERVER_IDS:
            data = self.directory / name
            prepare_data(artifacts, data)
            return mysql_spec(
                artifacts,
                name,
                data,
                getattr(self.ports, name),
                _MYSQL_SERVER_IDS[name],
                binlog=name != "target" or self._target_binlog,
                gtids=name != "target",
                buffer_pool="256M" if name == "target" else "128M",
                further=self.secured.mysql,
                host=self._host,
            )
        if name == "kafka":
            return kafka_spec(
                artifacts,
                self.directory / name,
                self.ports.kafka,
                self.ports.controller,
                self._sizes.kafka_heap,
                secured=self.secured,
                host=self._host,
            )
        if name == "connect":
            plugins = [
                with_exact_values(artifacts.plugin_path, self._cache, artifacts.java, self._say)
            ]
            if self._has_registry:
                plugins.append(registry_artifacts(self._cache, self._say).plugin_path)
            # On the class path: as a plugin's, Java's login would not find the extension's classes.
            jars = [authentication_jars(self._cache, self._say)] if self.secured.is_on else []
            return connect_spec(
                artifacts,
                self.directory / name,
                self.ports.connect,
                self.bootstrap_servers,
                plugins=plugins,
                heap=self._sizes.connect_heap,
                secured=self.secured,
                jars=jars,
                host=self._host,
            )
        if name == _REGISTRY:
            return registry_spec(
                registry_artifacts(self._cache, self._say),
                self.directory / name,
                self.ports.registry,
            )
        raise StackError(
            f"{name!r} is not part of this stack", hint="add() it first", code="SM-4610"
        )

    def _stop_all(self) -> None:
        """Stop added processes first, then Connect, then the rest, so that each can end cleanly."""
        running = set(self.supervisor.names())
        servers = {"kafka", _REGISTRY, *_MYSQL_SERVER_IDS}
        order = [running - {"connect", *servers}, running & {"connect"}, running & servers]
        for group in order:
            if group:
                with ThreadPoolExecutor(max_workers=len(group)) as pool:
                    list(pool.map(self.stop, sorted(group)))


def saved_ports(directory: Path) -> Ports | None:
    """The ports of an earlier ``up`` of a directory, or None."""
    try:
        return Ports(**json.loads((directory / "ports.json").read_text()))
    except FileNotFoundError:
        return None


def _table(heading: str, **values: str | int) -> str:
    # JSON's strings and numbers are TOML's.
    return (
        f"[{heading}]\n"
        + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
        + "\n"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run one command on a stack; 1 when it failed."""
    parser = argparse.ArgumentParser(description="Start and stop the embedded local stack.")
    parser.add_argument("command", choices=("up", "down", "status", "clean"))
    parser.add_argument("--directory", type=Path, default=Path(".local/stack"))
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE)
    parser.add_argument("--free-ports", action="store_true", help="choose ports that are free now")
    options = parser.parse_args(arguments)
    stack = LocalStack(
        options.directory,
        Ports.free() if options.free_ports and options.command == "up" else None,
        cache=options.cache,
        say=print,
    )
    started = time.monotonic()
    try:
        if options.command == "up":
            stack.up()
        elif options.command == "down":
            stack.down()
        elif options.command == "clean":
            stack.clean()
        else:
            for name, pid in stack.status().items():
                print(f"{name}: {'down' if pid is None else f'pid {pid}'}")
    except ShardMergeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if options.command == "up":
        print(json.dumps(asdict(stack.ports)))
    print(f"{options.command}: {time.monotonic() - started:.1f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
