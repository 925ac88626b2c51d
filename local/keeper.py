"""Keeps the line up: restarts processes that ended, and has Connect restart tasks that failed.

The keeper is a process of its own, so ``shardmerge up`` can return while the line stays. It ends on
SIGTERM. Whoever stops the line stops the keeper first, and then the processes that it keeps.

Usage: ``python -m shardmerge.local.keeper --directory DIRECTORY``
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import click

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.event_log import form_of, logger, set_up
from shardmerge.connectors.growing_pause import GrowingPause
from shardmerge.connectors.repair.source_repair import repairs_of
from shardmerge.connectors.reread_watch import RereadWatch
from shardmerge.connectors.watchdog import Watchdog
from shardmerge.connectors.whole.reading_watch import ReadingWatch
from shardmerge.local.servers.processes import ProcessSpec, Supervisor
from shardmerge.local.servers.secured import environment_of
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Pipeline

log = logger(__name__)

NAME = "keeper"
AGENTS, SINK, CONNECT = "agents", "sink", "connect"
KEPT = (CONNECT, AGENTS, SINK)
PIPELINE_FILE = "pipeline.toml"
_LOOK_SECONDS = 0.5
_PAUSE_SECONDS = (0.5, 10.0)
"""Shortest and longest pause before a process that ended is started again."""
_STEADY_SECONDS = 30.0
"""A process that ran this long did not fail at its start, so its next pause is the shortest."""


def specs(directory: Path, web_port: int) -> tuple[ProcessSpec, ...]:
    """Our own long-running parts: what is started, and started again."""
    pipeline = str(directory / PIPELINE_FILE)
    # PYTHONPATH is passed on as it is; the project's folder must never be on the path by itself.
    environment = {"PYTHONSAFEPATH": "1", "PYSPARK_PYTHON": sys.executable}
    of_agents, of_sink = (environment_of(directory, part) for part in (AGENTS, SINK))
    agents = (
        sys.executable, "-m", "shardmerge.agents.app", "--pipeline", pipeline,
        "--datadir", str(directory / AGENTS), "--web-port", str(web_port),
    )  # fmt: skip
    sink = (sys.executable, "-m", "shardmerge.spark_sink.job", "--pipeline", pipeline)
    return (
        ProcessSpec(AGENTS, agents, env=environment | of_agents, cwd=directory),
        ProcessSpec(SINK, sink, env=environment | of_sink, cwd=directory),
    )


@dataclass(slots=True)
class Backoff:
    """When a process may be started again: each early end doubles the pause.

    ``now`` is always monotonic seconds.
    """

    pause: GrowingPause = field(default_factory=lambda: GrowingPause(*_PAUSE_SECONDS))
    started: float | None = None
    waits: bool = False

    def ended(self, now: float) -> bool:
        """Note that the process does not run; returns whether to start it now."""
        if not self.waits:
            if self.started is not None and now - self.started > _STEADY_SECONDS:
                self.pause.reset()
            self.pause.begin(now)
            self.waits = True
        return self.pause.is_over(now)

    def start(self, now: float) -> None:
        """Note that the process is started now."""
        self.started, self.waits = now, False


@dataclass(slots=True)
class Keeper:
    """Looks after the processes that must run."""

    stack: LocalStack
    pipeline: Pipeline
    backoffs: dict[str, Backoff] = field(default_factory=lambda: {n: Backoff() for n in KEPT})

    def look(self, now: float) -> None:
        """Start again what ended."""
        for name in KEPT:
            if self.stack.supervisor.pid(name) is not None:
                continue
            if self.backoffs[name].ended(now):
                log.warning("process_restarted", part=name)
                self.backoffs[name].start(now)
                try:
                    self._start(name)
                except ShardMergeError as error:
                    log.warning("process_failed", part=name, error=error)

    def stop_line(self) -> None:
        """Stop everything but this process."""
        for name in (SINK, AGENTS, CONNECT):
            self.stack.stop(name)
        for name in sorted(set(self.stack.supervisor.names()) - {NAME}):
            self.stack.stop(name)

    def _start(self, name: str) -> None:
        if name == CONNECT:
            self.stack.start(name)
            return
        ours = {spec.name: spec for spec in specs(self.stack.directory, self.stack.ports.web)}
        self.stack.add(ours[name])


def start_keeper(supervisor: Supervisor, owner: int | None) -> None:
    """Start a keeper for a directory.

    Args:
        supervisor: Of that directory.
        owner: Pid of a process; the line ends when that ends, in whatever way. None: it stays.
    """
    command = [sys.executable, "-m", "shardmerge.local.keeper"]
    command += ["--directory", str(supervisor.directory)]
    if owner is not None:
        command += ["--owner", str(owner)]
    supervisor.spawn(ProcessSpec(NAME, tuple(command), env={"PYTHONSAFEPATH": "1"}))


@click.command()
@click.option("--directory", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--owner", type=int, help="Pid of the process with which the line ends.")
def main(directory: Path, owner: int | None) -> None:
    """Keep the line of a directory up until told to stop, or until its owner is gone."""
    set_up("keeper", form=form_of(None, os.environ))
    text = (directory / PIPELINE_FILE).read_text(encoding="utf-8")
    keeper = Keeper(LocalStack(directory), parse_pipeline(text, os.environ))
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    names = [connector_name(keeper.pipeline, source) for source in keeper.pipeline.sources]
    connect = keeper.pipeline.connect
    # Connect needs longer to stop or start a connector than to answer.
    repairs = repairs_of(keeper.pipeline, ConnectRest.of(connect, patience_s=20.0))
    for watch in (
        Watchdog(ConnectRest.of(connect, patience_s=2.0), names, repairs=repairs),
        RereadWatch(keeper.pipeline, ConnectRest.of(connect, patience_s=2.0), repairs),
        ReadingWatch(keeper.pipeline, ConnectRest.of(connect, patience_s=20.0), repairs),
    ):
        threading.Thread(target=watch.run, args=(stopping,), daemon=True).start()
    while not stopping.wait(_LOOK_SECONDS):
        if owner is not None and not _is_alive(owner):
            log.warning("owner_ended", pid=owner)
            keeper.stop_line()
            return
        keeper.look(time.monotonic())


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    main()
