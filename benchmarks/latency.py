"""Latency of the whole line: commit in MySQL to visible in the target.

Usage: ``python benchmarks/latency.py [--ordered]``

200 single INSERTs, and 50 ADD COLUMN each followed by the first row that has the column. One at a
time, with a pause in between, on an otherwise quiet line of its own. Visible means: a polling
reader on the target sees the row. ``--ordered``: with a text key, for which the partitions of a row
topic are ordered.

Of the INSERTs it also tells where the time goes: until Debezium has made the event, until a
consumer of committed records has it, and until the row is visible: that last one is the sink's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

from confluent_kafka import TopicPartition

from shardmerge.connectors.access.kafka import consumer
from shardmerge.local.line import Line
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.first_rows import DEBEZIUM, first_rows_by
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.topics import row_topic

ROOT = Path(__file__).resolve().parents[1]
ROUTES = (RoutingRule(".*", "app", r"tbl\d+", "merged", "tbl"),)
INSERTS = 200
COLUMNS = 50
WARM_UP = 20
BOUND_SECONDS = 120.0


def prepare(line: Line, key: str) -> None:
    """Two shards on two sources; ``key``: the primary key's type."""
    for source, table in (("s1", "tbl00"), ("s2", "tbl01")):
        with line.connect(source) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE app")
            cursor.execute(f"CREATE TABLE app.{table} (ID {key} PRIMARY KEY, v INT)")


class Committed:
    """A consumer of committed records, in a thread of its own.

    Attributes:
        seen: Key of a row → when Debezium made its event, and when the consumer had it, in seconds
            since 1970.
    """

    def __init__(self, line: Line, partitions: int) -> None:
        self.seen: dict[str, tuple[float, float]] = {}
        self._consumer = consumer(
            line.pipeline.kafka, {"group.id": "latency", "isolation.level": "read_committed"}
        )
        topic = row_topic(ShardId("s1", "app", "tbl00"))
        self._consumer.assign([TopicPartition(topic, n, 0) for n in range(partitions)])
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._ends.is_set():
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None and message.value():
                now, event = time.time(), json.loads(message.value())
                event = event.get("payload", event)
                self.seen[str(event["after"]["ID"])] = (event["ts_ns"] / 1e9, now)

    def close(self) -> None:
        """End the thread."""
        self._ends.set()
        self._thread.join()
        self._consumer.close()


def measure(line: Line, statements: tuple[str, ...], number: int) -> float:
    """Seconds from the commit of the last statement until its row is visible."""
    with (
        line.connect("s1") as source,
        source.cursor() as writer,
        line.connect_target() as target,
        target.cursor() as reader,
    ):
        for statement in statements:
            writer.execute(statement)
        begin = time.perf_counter()
        while time.perf_counter() - begin < BOUND_SECONDS:
            if reader.execute("SELECT 1 FROM merged.tbl WHERE ID = %s", (str(number),)):
                return time.perf_counter() - begin
            time.sleep(0.001)
    raise TimeoutError(f"row {number} is not visible after {BOUND_SECONDS:.0f} s")


def tell(what: str, seconds: list[float]) -> None:
    """One line of figures."""
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    print(
        f"{what:<32} n={len(ordered):<4} p50 {statistics.median(ordered) * 1000:7.0f} ms   "
        f"p99 {p99 * 1000:7.0f} ms   max {ordered[-1] * 1000:7.0f} ms",
        flush=True,
    )


def main() -> int:
    """Start a line, measure, stop it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--ordered", action="store_true")
    key = "VARCHAR(20)" if parser.parse_args().ordered else "INT"
    (ROOT / ".local").mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="latency-", dir=ROOT / ".local"))
    line = Line(directory, routes=ROUTES, access=partial(first_rows_by, DEBEZIUM))
    try:
        line.start(prepare=lambda: prepare(line, key))
        number = 0
        rows, columns, visible = [], [], dict[str, tuple[float, float]]()
        committed = Committed(line, partitions=2)
        for repeat in range(WARM_UP + INSERTS):
            number += 1
            insert = f"INSERT INTO app.tbl00 (ID, v) VALUES ('{number}', {repeat})"
            seconds = measure(line, (insert,), number)
            if repeat >= WARM_UP:
                now = time.time()
                rows.append(seconds)
                visible[str(number)] = (now - seconds, now)
            time.sleep(0.02)
        committed.close()
        for repeat in range(COLUMNS):
            number += 1
            add = f"ALTER TABLE app.tbl00 ADD COLUMN c{repeat} INT"
            insert = f"INSERT INTO app.tbl00 (ID, c{repeat}) VALUES ('{number}', {repeat})"
            columns.append(measure(line, (add, insert), number))
            time.sleep(0.02)
        tell("INSERT to visible", rows)
        stages = [
            (made - begin, read - made, end - read)
            for key, (begin, end) in visible.items()
            for made, read in [committed.seen[key]]
        ]
        until = ("  until Debezium's event", "  until a consumer has it", "  until visible")
        for name, seconds_of in zip(until, zip(*stages, strict=True), strict=True):
            tell(name, list(seconds_of))
        tell("ADD COLUMN + first row to visible", columns)
    except (ShardMergeError, TimeoutError) as error:
        print(f"{error}; logs in {directory}", file=sys.stderr)
        return 1
    finally:
        line.stop()
    line.clear()
    return 0


if __name__ == "__main__":
    sys.exit(main())
