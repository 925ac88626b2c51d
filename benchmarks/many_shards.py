"""What shards cost: start-up, memory, the idle line, one ADD COLUMN, a rollout over all of them.

Usage: ``python -m benchmarks.many_shards [--shards 100,1000,10000] [--topics shard|shared]
[--snapshot debezium|spark]``

For each number of shards it starts a whole line of its own: 100 databases on two sources, one
target, one row in each shard. Then it measures, one after the other:

* the start: from the moment at which the sources have their tables and nothing reads them yet,
  until the connectors read the binlog and the target has the first row of every shard;
* the idle line: processor time of each part, and how long a round of the sink's loop takes;
* traffic on 1% of the shards: the same, the time of a batch, and from commit to visible;
* ADD COLUMN on one shard, until the target has the column;
* ADD COLUMN on every shard, until every decision is made and executed.

The table has one column for each number of shards. ``growth`` is the exponent between the last two
numbers: 0 is a cost that does not depend on the shards, 1 one that grows with them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

import requests

from benchmarks.bench_measures import part_of, usage
from shardmerge.local.line import Line
from shardmerge.local.servers.sizes import Sizes
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.pipeline.first_rows import DEBEZIUM, first_rows_by
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import SNAPSHOTS
from shardmerge.spark_sink.process.settings import METRICS_PORT

ROOT = Path(__file__).resolve().parents[1]
DATABASES = 100
SOURCES = ("s1", "s2")
COLUMNS = "id BIGINT PRIMARY KEY, customer INT, status VARCHAR(20), amount DECIMAL(12,2)"
KEYS_PER_SHARD = 1_000_000
ROWS_PER_S = 100
PROBES = 20
ALTERS = 5
BOUND_S = 1_800.0
SMALL = Sizes(ready_s=BOUND_S)
LARGE = Sizes(kafka_heap="1500m", connect_heap="2500m", ready_s=BOUND_S)
LARGE_FROM = 2_000
"""From so many shards on, Kafka and Connect get the heaps of ``LARGE``."""
Shard: TypeAlias = tuple[str, str, int]
"""Source, table and number."""
Figures: TypeAlias = dict[str, float]


def shards_of(count: int) -> list[Shard]:
    """So many shards, in ``DATABASES`` databases, half of them on each source."""
    return [
        (SOURCES[(n % DATABASES) * 2 // DATABASES], f"db{n % DATABASES:02}.t{n // DATABASES}", n)
        for n in range(count)
    ]


def on_each_source(line: Line, shards: Sequence[Shard], statement: Callable[[Shard], str]) -> None:
    """Execute a statement for each shard, on both sources at once."""

    def run(source: str) -> None:
        with line.connect(source) as connection, connection.cursor() as cursor:
            for shard in shards:
                if shard[0] == source:
                    cursor.execute(statement(shard))

    threads = [threading.Thread(target=run, args=(source,)) for source in SOURCES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def insert(shard: Shard, number: int) -> str:
    """An INSERT of a shard's row with that number."""
    key = shard[2] * KEYS_PER_SHARD + number
    return (
        f"INSERT INTO {shard[1]} (id, customer, status, amount)"
        f" VALUES ({key}, {number}, 'new', 12.5)"
    )


def prepare(line: Line, shards: Sequence[Shard]) -> None:
    """Make the shards' tables, with one row in each."""
    for source in SOURCES:
        with line.connect(source) as connection, connection.cursor() as cursor:
            # A file for each table would be most of the time of CREATE TABLE.
            cursor.execute("SET GLOBAL innodb_file_per_table = OFF")
            for name in sorted({s[1].partition(".")[0] for s in shards if s[0] == source}):
                cursor.execute(f"CREATE DATABASE {name}")
    on_each_source(line, shards, lambda shard: f"CREATE TABLE {shard[1]} ({COLUMNS})")
    on_each_source(line, shards, lambda shard: insert(shard, 0))


class Parts:
    """Processor time and memory of the line's parts."""

    def __init__(self, line: Line) -> None:
        self._stack = LocalStack(line.directory)

    def seconds(self) -> Mapping[str, float]:
        """Processor seconds so far, by part."""
        found = defaultdict[str, float](float)
        for pid, (name, use) in usage(self._stack).items():
            found[part_of(pid, name)] += use.cpu_s
        return found

    def megabytes(self) -> Mapping[str, float]:
        """Resident memory now, by part."""
        found = defaultdict[str, float](float)
        for pid, (name, _) in usage(self._stack).items():
            with suppress(OSError):  # it may end meanwhile
                text = Path(f"/proc/{pid}/status").read_text()
                if resident := re.search(r"VmRSS:\s+(\d+)", text):
                    found[part_of(pid, name)] += int(resident[1]) / 1024
        return found

    @contextmanager
    def used(self, figures: Figures, what: str) -> Iterator[None]:
        """Note the processor seconds per second of what is done inside, by part."""
        before, begun = self.seconds(), time.perf_counter()
        yield
        seconds = time.perf_counter() - begun
        for name, used in self.since(before).items():
            figures[f"{what}: CPU of {name}, s per s"] = used / seconds

    def since(self, before: Mapping[str, float]) -> Mapping[str, float]:
        """Processor seconds since an earlier reading of ``seconds``, by part that used some."""
        used = {name: now - before.get(name, 0.0) for name, now in self.seconds().items()}
        return {name: seconds for name, seconds in used.items() if seconds > 0}


class Metrics:
    """What sink and agents tell Prometheus."""

    def __init__(self, line: Line, sink_port: int) -> None:
        self._urls = {
            "sink": f"http://127.0.0.1:{sink_port}/metrics",
            "agents": f"{line.web_url}/metrics",
        }
        self._session = requests.Session()
        self._session.trust_env = False

    def read(self, part: str) -> dict[str, float]:
        """Name of a sample, without labels → the sum of its values; nothing while it is away."""
        try:
            text = self._session.get(self._urls[part], timeout=60).text
        except requests.RequestException:
            return {}
        found = defaultdict[str, float](float)
        for line in text.splitlines():
            if not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                found[name.partition("{")[0]] += float(value)
        return found

    def decided(self) -> tuple[float, float]:
        """Number of the last decision, and up to which all are executed."""
        decided = self.read("agents").get("shardmerge_agents_decided_version", 0.0)
        return decided, self.read("sink").get("shardmerge_sink_executed_version", 0.0)

    @contextmanager
    def rounds(self, figures: Figures, what: str) -> Iterator[None]:
        """Note how long rounds and batches took on average, in milliseconds."""
        before = self.read("sink")
        yield
        after = self.read("sink")
        for name in ("round", "batch"):
            full = f"shardmerge_sink_{name}_seconds"
            count = after[f"{full}_count"] - before[f"{full}_count"]
            if count:
                mean = (after[f"{full}_sum"] - before[f"{full}_sum"]) / count
                figures[f"{what}: {name}, ms"] = mean * 1000
                figures[f"{what}: {name}s per s"] = count


def wait(is_reached: Callable[[], bool], what: str, pause_s: float = 0.2) -> None:
    """Poll until something is reached.

    Raises:
        TimeoutError: It is not, after ``BOUND_S``.
    """
    until = time.monotonic() + BOUND_S
    while not is_reached():
        if time.monotonic() > until:
            raise TimeoutError(f"{what}: not after {BOUND_S:.0f} s")
        time.sleep(pause_s)


def scalar(line: Line, sql: str) -> int:
    """What a query of the target's server answers; 0 while its table does not exist."""
    with line.connect_target() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM information_schema.tables WHERE table_schema = 'merged'")
        if cursor.fetchone() is None:
            return 0
        cursor.execute(sql)
        [found] = cursor.fetchone() or [0]
        return int(found)


def visible_after(line: Line, source: str, statement: str, seen: str) -> float:
    """Seconds from the end of a statement until a query of the target finds a row."""
    with line.connect(source) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
    begun = time.perf_counter()
    with line.connect_target() as target, target.cursor() as reader:
        while not reader.execute(seen):
            if time.perf_counter() - begun > BOUND_S:
                raise TimeoutError(f"{statement}: not visible after {BOUND_S:.0f} s")
            time.sleep(0.005)
    return time.perf_counter() - begun


class Measuring:
    """One line with so many shards, and its figures."""

    def __init__(self, line: Line, shards: Sequence[Shard], metrics_port: int) -> None:
        self._line, self._shards, self._port = line, shards, metrics_port
        self.figures: Figures = {}
        self._parts = Parts(line)
        self._begun = 0.0

    def _say(self, text: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {len(self._shards)} shards: {text}", file=sys.stderr)

    def start(self) -> None:
        """Start the line, and wait until it has every first row."""

        def make() -> None:
            prepare(self._line, self._shards)
            self._say("the tables are made")
            self._begun = time.perf_counter()

        self._line.start(prepare=make, say=self._say)
        self._line.leave()
        self.figures["start: connectors read the binlog, s"] = time.perf_counter() - self._begun
        self._say("the connectors read the binlog")
        self._metrics = Metrics(self._line, self._port)
        count = len(self._shards)
        wait(lambda: scalar(self._line, "SELECT COUNT(*) FROM merged.tbl") >= count, "first rows")
        self.figures["start: every first row in the target, s"] = time.perf_counter() - self._begun
        self._say("every first row is in the target")
        for name, used in self._parts.seconds().items():
            self.figures[f"start: CPU of {name}, s"] = used

    def idle(self, seconds: float) -> None:
        """Nothing happens for so long, after a while in which everything comes to rest."""
        time.sleep(10)
        figures: Figures = {}
        with self._metrics.rounds(figures, "idle"), self._parts.used(figures, "idle"):
            time.sleep(seconds)
        self._take(figures, seconds)
        for name, megabytes in self._parts.megabytes().items():
            self.figures[f"memory of {name}, MB"] = megabytes
        self._say("idle is measured")

    def traffic(self, seconds: float) -> None:
        """Rows into 1% of the shards, and probes of how soon they are visible."""
        busy = self._shards[:: max(1, min(100, len(self._shards)))]
        ends = threading.Event()

        def write(source: str) -> None:
            mine, number = [s for s in busy if s[0] == source] or list(busy[:1]), 1
            with self._line.connect(mine[0][0]) as connection, connection.cursor() as cursor:
                while not ends.wait(len(SOURCES) / ROWS_PER_S):
                    shard = mine[number % len(mine)]
                    # Both threads may write to one shard if there are few.
                    cursor.execute(insert(shard, number * 2 + SOURCES.index(source)))
                    number += 1

        threads = [threading.Thread(target=write, args=(source,)) for source in SOURCES]
        figures: Figures = {}
        for thread in threads:
            thread.start()
        try:
            time.sleep(3)
            with self._metrics.rounds(figures, "traffic"), self._parts.used(figures, "traffic"):
                until = time.monotonic() + seconds
                latencies = []
                for number in range(PROBES):
                    shard, probe = busy[number % len(busy)], 900_000 + number
                    key = shard[2] * KEYS_PER_SHARD + probe
                    seen = f"SELECT 1 FROM merged.tbl WHERE id = {key}"
                    latencies.append(
                        visible_after(self._line, shard[0], insert(shard, probe), seen)
                    )
                time.sleep(max(0.0, until - time.monotonic()))
        finally:
            ends.set()
            for thread in threads:
                thread.join()
        self._take(figures, seconds)
        self.figures["traffic: commit to visible, median, ms"] = statistics.median(latencies) * 1000
        self._say("traffic is measured")

    def add_column(self) -> None:
        """One ADD COLUMN on one shard, some times."""
        found = []
        for number in range(ALTERS):
            shard = self._shards[number * 7 % len(self._shards)]
            found.append(
                visible_after(
                    self._line,
                    shard[0],
                    f"ALTER TABLE {shard[1]} ADD COLUMN c{number} INT",
                    "SELECT 1 FROM information_schema.columns WHERE table_schema = 'merged'"
                    f" AND table_name = 'tbl' AND column_name = 'c{number}'",
                )
            )
            time.sleep(0.5)
        self.figures["ADD COLUMN to target, median, ms"] = statistics.median(found) * 1000
        self._say("ADD COLUMN is measured")

    def rollout(self) -> None:
        """ADD COLUMN on every shard."""
        before, _ = self._metrics.decided()
        used = self._parts.seconds()
        begun = time.perf_counter()
        on_each_source(
            self._line, self._shards, lambda shard: f"ALTER TABLE {shard[1]} ADD COLUMN r INT"
        )
        altered = time.perf_counter() - begun
        last = before + len(self._shards)
        wait(lambda: min(self._metrics.decided()) >= last, "decisions of the rollout", 0.5)
        seconds = time.perf_counter() - begun
        self.figures["rollout: the servers alone, s"] = altered
        self.figures["rollout: all decided and executed, s"] = seconds
        self.figures["rollout: statements per s"] = len(self._shards) / seconds
        for name, cpu_s in self._parts.since(used).items():
            self.figures[f"rollout: CPU of {name}, s"] = cpu_s
        self._say("the rollout is measured")

    def _take(self, figures: Mapping[str, float], seconds: float) -> None:
        for name, value in figures.items():
            self.figures[name] = value / seconds if name.endswith("s per s") and (
                "CPU" not in name
            ) else value  # fmt: skip


def measure(count: int, topics: str, snapshot: str, seconds: float) -> Figures:
    """The figures of one number of shards.

    Raises:
        ShardMergeError, TimeoutError: The line does not come up, or something never ends.
    """
    (ROOT / ".local").mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="shards-", dir=ROOT / ".local"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    os.environ[METRICS_PORT] = str(port)
    shared = "merged.rows" if topics == "shared" else ""
    line = Line(
        directory,
        routes=(RoutingRule(".*", r"db\d+", r"t\d+", "merged", "tbl", row_topic=shared),),
        row_partitions=1,
        access=partial(first_rows_by, snapshot),
        sizes=LARGE if count >= LARGE_FROM else SMALL,
    )
    measuring = Measuring(line, shards_of(count), port)
    try:
        measuring.start()
        measuring.idle(seconds)
        measuring.traffic(seconds)
        measuring.add_column()
        measuring.rollout()
    except BaseException:
        print(f"logs in {directory}; so far: {json.dumps(measuring.figures)}", file=sys.stderr)
        raise
    finally:
        line.stop()
    line.clear()
    return measuring.figures


def print_table(found: Mapping[int, Figures]) -> None:
    """One row for each figure, one column for each number of shards, and the growth."""
    counts = sorted(found)
    names = list(dict.fromkeys(name for figures in found.values() for name in figures))
    print(f"{'':<48}" + "".join(f"{count:>10,}" for count in counts) + f"{'growth':>9}")
    for name in names:
        cells = [found[count].get(name) for count in counts]
        told = "".join(f"{cell:>10,.3g}" if cell is not None else f"{'':>10}" for cell in cells)
        growth = ""
        if len(counts) > 1 and cells[-1] and cells[-2]:
            growth = f"{math.log(cells[-1] / cells[-2]) / math.log(counts[-1] / counts[-2]):.2f}"
        print(f"{name:<48}{told}{growth:>9}")


def main() -> int:
    """Measure each number of shards, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--shards", default="100,1000,10000", help="numbers, with commas")
    parser.add_argument("--topics", choices=("shard", "shared"), default="shard")
    parser.add_argument("--snapshot", choices=SNAPSHOTS, default=DEBEZIUM, help="of first rows")
    parser.add_argument("--seconds", type=float, default=30.0, help="of idling, and of traffic")
    options = parser.parse_args()
    found: dict[int, Figures] = {}
    try:
        for count in map(int, options.shards.split(",")):
            found[count] = measure(count, options.topics, options.snapshot, options.seconds)
            print_table(found)
    except (ShardMergeError, TimeoutError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
