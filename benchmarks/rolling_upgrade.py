"""How long rows stand while each part is replaced by another version, and whether one is lost.

Usage: ``python -m benchmarks.rolling_upgrade --old REVISION [--connect-workers 2]
[--most SECONDS]``

The line of ``tests/line_in_twos.py``: two shards, writers that insert, change and delete all the
time, two sinks with ``--standby``, two agents' workers; with ``--connect-workers 2`` Connect has
two, too. Sinks, workers and watchdog run from an environment with the wheel of the old revision,
which ``git archive`` gives, and Connect's workers have the jar that this environment compiles. The
old revision must know every key of the pipeline file that this tree's local line writes. The
configurations of the connectors and the packages of ``requirements.lock`` are this tree's. Then, in
the order of docs/how-to/upgrade.md, each part is told to end and started again from this tree: the
sink that waits, the sink that writes, the worker that does not decide, the one that does, Connect's
workers, with this tree's jar, and the watchdog.

For each part it prints the longest time in which no new row of a shard came into the target. At the
end a column is added, and the tables are compared. The exit code is 1 if a row was lost or doubled,
or if no row came for longer than ``--most`` seconds.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pymysql

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.local.install.artifacts import resolve
from shardmerge.local.servers.connect import connect_spec
from shardmerge.local.servers.processes import ProcessSpec
from shardmerge.local.servers.stack import Ports
from shardmerge.local.sigterm import end_on_sigterm
from tests.levels import link_packages
from tests.line_in_twos import ENVIRONMENT, ROOT, LineInTwos, compared
from tests.line_writers import Writer

_PLUGINS = """
import sys
from pathlib import Path
from shardmerge.local.install.artifacts import resolve
from shardmerge.local.install.exact_values import with_exact_values
cache = Path(sys.argv[1])
artifacts = resolve(cache)
print(with_exact_values(artifacts.plugin_path, cache, artifacts.java))
"""
"""Prints the folder of Debezium's plugins with the jar of the version that runs it."""
_FIRST = "connect"
"""The stack's own worker of Connect."""
_MOVED_S = 5.0
"""Connectors that have run for so long move to no other worker any more."""
_SETTLED_S = 5.0
"""Rows are watched for so long after a part is back."""


class MixedLine(LineInTwos):
    """Its parts start from the environment of ``python``, and go on from this tree's.

    Attributes:
        connect: With the addresses of all its workers.
        has_other_jar: Whether the jar of that environment differs from this tree's.
    """

    def __init__(self, directory: Path, python: Path, connect_workers: int) -> None:
        self.python = str(python)
        super().__init__(directory)
        self.connect_workers = [_FIRST]
        self.connect = self.line.pipeline.connect
        self._plugins = _plugin_path(self._worker_file(_FIRST))
        old = subprocess.run(
            [self.python, "-c", _PLUGINS, str(ROOT / ".local" / "cache")],
            check=True, text=True, stdout=subprocess.PIPE,
        ).stdout.strip()  # fmt: skip
        self.has_other_jar = old != self._plugins
        self._restart_connect(_FIRST, old)
        for number in range(2, connect_workers + 1):
            self._add_connect(f"{_FIRST}-{number}", old)
        self._tell_watchdog()
        self.until_connectors_run()

    def until_connectors_run(self) -> None:
        """Wait until every connector and its tasks run, and none moves to another worker any more.

        A worker that joins its group takes some of them from the others, each within moments.
        """
        with closing(ConnectRest.of(self.connect)) as rest:
            since = time.monotonic()
            while time.monotonic() - since < _MOVED_S:
                if not all(
                    found and found.is_running for found in map(rest.status, rest.connectors())
                ):
                    since = time.monotonic()
                time.sleep(0.2)

    def _worker_file(self, worker: str) -> Path:
        return self.stack.directory / worker / "worker.properties"

    def _tell_watchdog(self) -> None:
        """Write all workers' addresses into the pipeline file, and start the watchdog again."""
        place, first = self.line.pipeline_path, self.line.pipeline.connect.url
        text = place.read_text(encoding="utf-8")
        place.write_text(text.replace(first, self.connect.url), encoding="utf-8")
        self.stack.stop("watchdog")
        self.stack.add(self.specs["watchdog"])

    def _add_connect(self, name: str, plugins: str) -> None:
        """Start a further worker of the same group."""
        port = Ports.free().connect
        self.connect = replace(self.connect, url=f"{self.connect.url},http://127.0.0.1:{port}")
        spec = connect_spec(
            resolve(ROOT / ".local" / "cache"),
            self.stack.directory / name,
            port,
            self.stack.bootstrap_servers,
            plugins=[Path(plugins)],
        )
        self.stack.add(replace(spec, name=name))
        self.connect_workers.append(name)

    def _start(self, name: str, module: str, *options: str) -> None:
        env = {**ENVIRONMENT, "PYSPARK_PYTHON": self.python}
        argv = (self.python, "-m", module, *options)
        self.specs[name] = ProcessSpec(name, argv, env=env, cwd=self.line.directory)
        self.stack.add(self.specs[name])

    def upgrade(self, name: str) -> None:
        """Tell a part to end, and start it from this tree."""
        self.stack.stop(name)
        spec = self.specs[name]
        self.specs[name] = replace(spec, argv=(sys.executable, *spec.argv[1:]), env=ENVIRONMENT)
        self.stack.add(self.specs[name])

    def upgrade_connect(self, worker: str) -> None:
        """Tell a worker of Connect to end, and start it with this tree's jar."""
        self._restart_connect(worker, self._plugins)

    def _restart_connect(self, worker: str, plugins: str) -> None:
        place = self._worker_file(worker)
        text = place.read_text(encoding="utf-8")
        before, after = f"plugin.path={_plugin_path(place)}", f"plugin.path={plugins}"
        self.stack.stop(worker)
        place.write_text(text.replace(before, after), encoding="utf-8")
        self.stack.start(worker)


def _plugin_path(worker_file: Path) -> str:
    lines = worker_file.read_text(encoding="utf-8").splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith("plugin.path="))


class Watch:
    """Looks which row of a writer came last, and for how long none came."""

    def __init__(self, made: LineInTwos, writer: Writer) -> None:
        self._made, self._low = made, writer.first % 2
        self._ends = threading.Event()
        self.longest_s = 0.0
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        last, since = 0, time.monotonic()
        query = f"SELECT COALESCE(MAX(v), 0) FROM merged.log WHERE v % 2 = {self._low}"
        while not self._ends.wait(0.02):
            try:
                ((found,),) = self._made.target.run(query)
            except pymysql.MySQLError:
                continue
            if found != last:
                last, since = found, time.monotonic()
            self.longest_s = max(self.longest_s, time.monotonic() - since)


def old_environment(revision: str, place: Path) -> Path:
    """An environment with the wheel of a revision; returns its Python."""
    tree = place / "tree"
    tree.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", revision], cwd=ROOT, check=True, stdout=-1)
    subprocess.run(["tar", "-x"], cwd=tree, check=True, input=archive.stdout)
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(place), str(tree)]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place / "venv")], check=True)
    link_packages(place / "venv")
    python, [wheel] = place / "venv" / "bin" / "python", place.glob("*.whl")
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", str(wheel)]
    # Not from here: pip would take what was built in this folder for what is installed.
    subprocess.run(install, check=True, cwd=place)
    where = [str(python), "-c", "import shardmerge.spark_sink as s; print(s.__file__)"]
    found = subprocess.run(where, check=True, cwd=place, text=True, stdout=-1).stdout
    if not found.startswith(str(place)):
        raise SystemExit(f"the old version would run from {found.strip()}")
    return python


def replaced(made: MixedLine, name: str, act: Callable[[], Any]) -> float:
    """Replace a part; print and return for how many seconds rows stood meanwhile."""
    watches = [Watch(made, writer) for writer in made.writers]
    with watches[0], watches[1]:
        act()
        made.active_sink()
        made.deciding_worker()
        made.until_connectors_run()
        made.until_both_wait()
        time.sleep(_SETTLED_S)
    longest_s = max(watch.longest_s for watch in watches)
    print(f"| {name} | {longest_s:.1f} |", flush=True)
    return longest_s


def main() -> int:
    """Print the table; returns the exit code."""
    end_on_sigterm()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", required=True, help="a revision of git")
    parser.add_argument("--connect-workers", type=int, default=1)
    parser.add_argument("--most", type=float, default=0.0, help="longest gap in seconds")
    options = parser.parse_args()
    (ROOT / ".local").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="upgrade-", dir=ROOT / ".local") as place:
        python = old_environment(options.old, Path(place) / "old")
        made = MixedLine(Path(place) / "line", python, options.connect_workers)
        try:
            return upgraded(made, options.most)
        finally:
            made.close()


def upgraded(made: MixedLine, most_s: float) -> int:
    """Replace each part of a line; returns the exit code. ``most_s``: 0 for any gap."""
    made.until_both_wait()
    active, decides = made.active_sink(), made.deciding_worker()
    waits = next(name for name in ("sink-1", "sink-2") if name != active)
    other = next(name for name in ("agents-1", "agents-2") if name != decides)
    print("| replaced | longest s without a new row |\n|---|---|", flush=True)
    jar = "another" if made.has_other_jar else "the same"
    acts: dict[str, Callable[[], Any]] = {
        "nothing": lambda: None,
        "the sink that waits": partial(made.upgrade, waits),
        "the sink that writes": partial(made.upgrade, active),
        "the worker that does not decide": partial(made.upgrade, other),
        "the worker that decides": partial(made.upgrade, decides),
        **{
            f"Connect's worker {worker!r}, with {jar} jar": partial(made.upgrade_connect, worker)
            for worker in reversed(made.connect_workers)
        },
        "the watchdog": partial(made.upgrade, "watchdog"),
    }
    longest_s = max(replaced(made, name, act) for name, act in acts.items())
    made.writers[1].at.run("ALTER TABLE app.tbl ADD upgraded INT")
    made.until_column("upgraded")
    lost, doubled = compared(made)
    rows = sum(len(writer.at.run("SELECT v FROM app.log")) for writer in made.writers)
    print(f"lost {lost}, doubled {doubled}, rows written {rows:,}")
    return 1 if lost + doubled or longest_s > most_s > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
