"""Seconds until a target has the first rows of several shards, on the whole local line.

Three ways, each with the same tables on new servers: Debezium's snapshot through Connect and Kafka;
the sink's own load (``snapshot = "spark"``); and the limit, by hand: side by side as many SELECTs
in the key's order as there are connections, each straight into a LOAD DATA, with nothing between
them. The first two are counted from the moment when the target's table is made, so that the start
of the line's processes is not part of them. Ratios are of speeds. Beside them: the processor
seconds and the peak memory of each part meanwhile, and the longest transaction on a source, in the
last round.

    python -m benchmarks.first_load [--rows 250000] [--shards 4] [--connections 2] [--rounds 1]
                                    [--ways debezium,spark]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymysql

from benchmarks.bench_events import COLUMNS
from benchmarks.bench_measures import Use, between, part_of, usage
from shardmerge.connectors.access.mysql import connect
from shardmerge.local.line import Line
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession

ROOT = Path(__file__).resolve().parents[1]
FILL = """
    INSERT INTO app.t_{number} WITH RECURSIVE i(n) AS
      (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < {rows})
    SELECT n + {number} * 100000000, n % 99991, ELT(1 + n % 4, 'new', 'paid', 'sent', 'back'),
      n / 7, n % 1000, CONCAT('customer', n, '@example.com'),
      IF(n % 5, REPEAT('a note of some length ', 3), NULL),
      '2024-01-01 00:00:00.125' + INTERVAL n SECOND,
      '2024-01-01 00:00:00.000125' + INTERVAL n SECOND,
      '2024-01-01' + INTERVAL n % 999 DAY, n / 3, n % 2 FROM i
"""
CHUNK = 50_000
_LOOK_S = 0.1


class _Line(Line):
    """A line that is not waited for: while Debezium's snapshot goes on, it is not ready."""

    def wait_ready(self) -> None:
        """What is measured is awaited by the bench."""


class Bench:
    """One line with filled shards.

    Args:
        shards: How many, dealt to the line's two sources.
        rows: Of each shard.
        connections: Most chunks at once from each source.
        snapshot: Who reads the first rows.
    """

    def __init__(self, shards: int, rows: int, connections: int, snapshot: str) -> None:
        self.rows, self.connections = rows, connections
        self.shards = [(f"s{1 + n % 2}", n + 1) for n in range(shards)]
        self._snapshot = snapshot
        directory = Path(tempfile.mkdtemp(prefix="first-load-", dir=ROOT / ".local"))
        route = RoutingRule(".*", "app", r"t_\d+", "merged", "t")
        self.line = _Line(directory, routes=(route,), name="load", access=self._access)
        self._made: list[float] = []
        self._done: list[float] = []
        self.used: dict[str, Use] = {}
        self.longest_s = 0.0

    def _access(self, pipeline: Pipeline) -> Pipeline:
        sources = (
            replace(s, snapshot=self._snapshot, load_connections=self.connections)
            for s in pipeline.sources
        )
        return replace(pipeline, sources=tuple(sources))

    def seconds(self) -> tuple[float, Callable[[], float]]:
        """Start the line; the seconds of its load, and what measures the limit on its servers."""
        watch = threading.Thread(target=self._watch)
        looks = threading.Thread(target=self._look_at_transactions)

        def prepare() -> None:
            for source, number in self.shards:
                with self.line.connect(source) as connection, connection.cursor() as cursor:
                    cursor.execute("CREATE DATABASE IF NOT EXISTS app")
                    cursor.execute(f"CREATE TABLE app.t_{number} ({COLUMNS})")
                    cursor.execute("SET SESSION cte_max_recursion_depth = 100000000, sql_mode = ''")
                    cursor.execute(FILL.format(number=number, rows=self.rows))
                    # As of a table that is not new, the server knows how large its rows are.
                    cursor.execute(f"ANALYZE TABLE app.t_{number}")
            watch.start()
            looks.start()

        self.line.start(prepare)
        watch.join()
        looks.join()
        return self._done[0] - self._made[0], self.by_hand

    def _look_at_transactions(self) -> None:
        """Note how long the longest transaction on a source lasts.

        The server tells the second in which one began, and gives the number of one that only reads
        to the next: a shorter time than a second is not told apart.
        """
        begun: dict[tuple[str, Any], float] = {}
        sources = {source: self.line.connect(source) for source, _ in self.shards}
        while not self._done:
            for source, connection in sources.items():
                with connection.cursor() as cursor:
                    cursor.execute("SELECT trx_id, trx_started FROM information_schema.INNODB_TRX")
                    now = time.monotonic()
                    for found in cursor.fetchall():
                        since = begun.setdefault((source, found), now)
                        self.longest_s = max(self.longest_s, now - since + _LOOK_S)
            time.sleep(_LOOK_S)
        for connection in sources.values():
            connection.close()

    def _usage(self) -> dict[int, tuple[str, Use]]:
        found = usage(LocalStack(self.line.directory)).items()
        return {pid: (part_of(pid, name), use) for pid, (name, use) in found}

    def _watch(self) -> None:
        """Note when the target's table is made, and when it has all rows.

        Rows are only counted when each shard's last one is there: a count of them all takes as
        much of the machine as the load of many rows, and what is done by hand is not counted.
        """
        last = ", ".join(str(number * 100_000_000 + self.rows) for _, number in self.shards)
        while not self._done:
            try:
                with self.line.connect_target() as connection, connection.cursor() as cursor:
                    cursor.execute(f"SELECT COUNT(*) FROM merged.t WHERE id IN ({last})")
                    ((there,),) = cursor.fetchall()
                    if not self._made:
                        before = self._usage()
                        self._made.append(time.monotonic())
                    if there == len(self.shards):
                        cursor.execute("SELECT COUNT(*) FROM merged.t")
                        if cursor.fetchall() == ((self.rows * len(self.shards),),):
                            self._done.append(time.monotonic())
                            self.used = between(before, self._usage())
            except pymysql.MySQLError:
                pass
            time.sleep(0.1)

    def by_hand(self) -> float:
        """Seconds of the same rows into a table of their own, by SELECT and LOAD DATA."""
        self.line.hand_over()
        target = self.line.pipeline.target
        address = MySqlAddress.of(target)
        with self.line.connect_target() as connection, connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS merged.by_hand")
            cursor.execute(f"CREATE TABLE merged.by_hand ({COLUMNS})")
        chunks = [
            (source, number, low)
            for low in range(0, self.rows, CHUNK)
            for source, number in self.shards
        ]

        def copy(chunk: tuple[str, int, int]) -> None:
            source, number, low = chunk
            first = number * 100_000_000 + low
            server = self.line.pipeline.source(source)
            options: dict[str, Any] = {"conv": {}, "use_unicode": False, "autocommit": None}
            with connect(server, **options) as connection, connection.cursor() as cursor:
                cursor.execute("SET time_zone = '+00:00'")
                cursor.execute(
                    f"SELECT * FROM app.t_{number} WHERE id > {first} AND id <= {first + CHUNK}"
                    " ORDER BY id"
                )
                lines = [b"\t".join(v or rb"\N" for v in row) for row in cursor.fetchall()]
            session = MySqlSession(address)
            session.load(
                "LOAD DATA LOCAL INFILE '{path}' INTO TABLE merged.by_hand CHARACTER SET utf8mb4",
                b"\n".join(lines) + b"\n",
            )
            session.close()

        started = time.monotonic()
        with ThreadPoolExecutor(2 * self.connections) as pool:
            list(pool.map(copy, chunks))
        return time.monotonic() - started


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=250_000)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--connections", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--ways", default="debezium,spark", help="reference: by hand, always")
    options = parser.parse_args()
    ways = options.ways.split(",")
    (ROOT / ".local").mkdir(exist_ok=True)
    found: dict[str, list[float]] = {**{way: [] for way in ways}, "by hand": []}
    used: dict[str, dict[str, Use]] = {}
    longest: dict[str, float] = {}
    for _ in range(options.rounds):
        for way in ways:
            bench = Bench(options.shards, options.rows, options.connections, way)
            try:
                seconds, by_hand = bench.seconds()
                found[way].append(seconds)
                used[way], longest[way] = bench.used, bench.longest_s
                found["by hand"].append(by_hand())
            finally:
                bench.line.stop()
                bench.line.clear()
    total = options.rows * options.shards
    limit = statistics.median(found["by hand"])
    slow = statistics.median(found.get("debezium", [float("nan")]))
    print(
        f"{total:,} rows of {options.shards} shards, {options.connections} connections a source\n"
    )
    print(f"| way | s | rows/s | of the limit | of Debezium's | rounds |\n|{'---|' * 6}")
    for way, times in found.items():
        took = statistics.median(times)
        speed = f"{took:.1f} | {total / took:,.0f} | {limit / took:.2f} | {slow / took:.2f}"
        print(f"| {way} | {speed} | {' '.join(f'{each:.1f}' for each in times)} |")
    for way, parts in used.items():
        told = sorted(parts.items(), key=lambda part: -part[1].cpu_s)
        print(f"\n{way}: processor s (peak MB) of each part")
        print(", ".join(f"{name} {use.cpu_s:.1f} ({use.peak_mb:.0f})" for name, use in told))
        print(f"longest transaction on a source: {longest[way]:.1f} s")


if __name__ == "__main__":
    main()
