"""Latency of the whole line: commit in MySQL to visible in the target.

Usage: ``python -m benchmarks.latency [--ordered]``

200 single INSERTs, 50 ADD COLUMN, and 50 ADD COLUMN each followed by the first row that has the
column. One at a time, with a pause in between, on an otherwise quiet line of its own. Visible
means: a polling reader on the target sees the row, or the column. ``--ordered``: with a text key,
for which the partitions of a row topic are ordered.

It also tells where the time goes. Of an INSERT: until Debezium has made the event, until a consumer
of committed records has it, and until the row is visible: that last one is the sink's. Of an ADD
COLUMN: until a consumer has the schema change, until it has the decision (the agents' part), and
until the target has the column (the sink's).

In the end, what the idle line costs: milliseconds of a processor for each second, by part.

Reference, on the same target in the same run: what its server alone takes for a transaction with
one row and one offset, and for an ADD COLUMN.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import tempfile
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from confluent_kafka import TopicPartition
from pymysql.err import OperationalError

from benchmarks.bench_measures import between, usage
from shardmerge.connectors.access.kafka import consumer
from shardmerge.local.line import Line
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.first_rows import DEBEZIUM, first_rows_by
from shardmerge.schemas.pipeline.routing import RoutingRule

ROOT = Path(__file__).resolve().parents[1]
ROUTES = (RoutingRule(".*", "app", r"tbl\d+", "merged", "tbl"),)
INSERTS = 200
COLUMNS = 50
IDLE_S = 20.0
WARM_UP = 20
ADD = "ALTER TABLE app.tbl00 ADD COLUMN {} INT"
ROW = "SELECT 1 FROM merged.tbl WHERE ID = '{}'"
COLUMN = "SELECT COUNT({}) FROM merged.tbl WHERE ID = '0'"
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
        rows: Key of a row → when Debezium made its event, and when the consumer had it, in seconds
            since 1970.
        others: Topic of schema changes or decisions → when the consumer had its records.
    """

    def __init__(self, line: Line, partitions: int) -> None:
        self.rows: dict[str, tuple[float, float]] = {}
        self.changes = "s1"
        self.decisions = topics.ddl(line.pipeline).name
        self.others: dict[str, list[float]] = {self.changes: [], self.decisions: []}
        self._consumer = consumer(
            line.pipeline.kafka, {"group.id": "latency", "isolation.level": "read_committed"}
        )
        topic = topics.row_topic(ShardId("s1", "app", "tbl00"))
        places = [(topic, n) for n in range(partitions)] + [(name, 0) for name in self.others]
        self._consumer.assign([TopicPartition(name, n, 0) for name, n in places])
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._ends.is_set():
            message = self._consumer.poll(0.1)
            if message is None or message.error() is not None or not message.value():
                continue
            now = time.time()
            if (others := self.others.get(message.topic() or "")) is not None:
                others.append(now)
                continue
            event = json.loads(message.value())
            event = event.get("payload", event)
            self.rows[str(event["after"]["ID"])] = (event["ts_ns"] / 1e9, now)

    def first(self, topic: str, begin: float) -> float:
        """When the consumer had a topic's first record after a moment."""
        return next(at for at in self.others[topic] if at > begin)

    def close(self) -> None:
        """End the thread."""
        self._ends.set()
        self._thread.join()
        self._consumer.close()


def measure(line: Line, statements: tuple[str, ...], seen: str) -> tuple[float, float]:
    """Execute statements of a shard, and wait until a query on the target has a row.

    Returns:
        When the last statement was committed, and when its effect was visible, in seconds since
        1970.
    """
    with (
        line.connect("s1") as source,
        source.cursor() as writer,
        line.connect_target() as target,
        target.cursor() as reader,
    ):
        for statement in statements:
            writer.execute(statement)
        begin = time.time()
        while time.time() - begin < BOUND_SECONDS:
            with suppress(OperationalError):  # no such column yet
                if reader.execute(seen):
                    return begin, time.time()
            time.sleep(0.001)
    raise TimeoutError(f"{seen}: nothing after {BOUND_SECONDS:.0f} s")


def tell(what: str, seconds: list[float]) -> None:
    """One line of figures."""
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    print(
        f"{what:<32} n={len(ordered):<4} p50 {statistics.median(ordered) * 1000:7.1f} ms   "
        f"p99 {p99 * 1000:7.1f} ms   max {ordered[-1] * 1000:7.1f} ms",
        flush=True,
    )


def tell_stages(names: tuple[str, ...], moments: list[tuple[float, ...]]) -> None:
    """One line for each stage between moments that follow one another."""
    stages = [[b - a for a, b in itertools.pairwise(of_one)] for of_one in moments]
    for name, seconds in zip(names, zip(*stages, strict=True), strict=True):
        tell(f"  {name}", list(seconds))


def tell_inserts(line: Line, committed: Committed) -> None:
    """Measure INSERTs."""
    timed: dict[str, tuple[float, float]] = {}
    for number in range(WARM_UP + INSERTS):
        insert = f"INSERT INTO app.tbl00 (ID, v) VALUES ('{number}', {number})"
        timed[str(number)] = measure(line, (insert,), ROW.format(number))
        time.sleep(0.02)
    timed = {key: times for key, times in timed.items() if int(key) >= WARM_UP}
    tell("INSERT to visible", [end - begin for begin, end in timed.values()])
    tell_stages(
        ("until Debezium's event", "until a consumer has it", "until visible"),
        [(begin, *committed.rows[key], end) for key, (begin, end) in timed.items()],
    )


def tell_columns(line: Line, committed: Committed) -> None:
    """Measure ADD COLUMNs, alone and with a first row."""
    alone, with_row = [], []
    for number in range(COLUMNS):
        name = f"c{number}"
        alone.append(measure(line, (ADD.format(name),), COLUMN.format(name)))
        time.sleep(0.02)
    for number in range(COLUMNS):
        name, key = f"d{number}", 10_000 + number
        insert = f"INSERT INTO app.tbl00 (ID, {name}) VALUES ('{key}', {number})"
        begin, end = measure(line, (ADD.format(name), insert), ROW.format(key))
        with_row.append(end - begin)
        time.sleep(0.02)
    tell("ADD COLUMN to target altered", [end - begin for begin, end in alone])
    topics_ = committed.changes, committed.decisions
    tell_stages(
        ("until a consumer has the change", "until it has the decision", "until altered"),
        [(begin, *(committed.first(t, begin) for t in topics_), end) for begin, end in alone],
    )
    tell("ADD COLUMN + first row to visible", with_row)


def tell_server(line: Line) -> None:
    """Measure the reference: the target's server by hand."""
    transactions, statements = list[float](), list[float]()
    with line.connect_target() as connection, connection.cursor() as cursor:
        connection.autocommit(False)
        cursor.execute("CREATE TABLE merged.rows_by_hand (ID INT PRIMARY KEY, v INT)")
        cursor.execute("CREATE TABLE merged.offsets_by_hand (n INT PRIMARY KEY, end INT)")
        cursor.execute("INSERT INTO merged.offsets_by_hand VALUES (0, 0)")
        connection.commit()
        for number in range(INSERTS):
            time.sleep(0.02)
            begin = time.time()
            cursor.execute(f"INSERT INTO merged.rows_by_hand VALUES ({number}, {number})")
            cursor.execute(f"UPDATE merged.offsets_by_hand SET end = {number + 1}")
            connection.commit()
            transactions.append(time.time() - begin)
        for number in range(COLUMNS):
            time.sleep(0.02)
            begin = time.time()
            cursor.execute(f"ALTER TABLE merged.rows_by_hand ADD COLUMN c{number} INT")
            statements.append(time.time() - begin)
    tell("the target alone: transaction", transactions)
    tell("the target alone: ADD COLUMN", statements)


def tell_idle(line: Line) -> None:
    """Measure what the line costs while nothing happens."""
    time.sleep(5.0)  # the last rows' progress records, and whoever waits for more of them
    stack = LocalStack(line.directory)
    before = usage(stack)
    time.sleep(IDLE_S)
    used = between(before, usage(stack))
    each = {name: 1000 * use.cpu_s / IDLE_S for name, use in used.items()}
    parts = ", ".join(f"{name} {ms:.0f}" for name, ms in sorted(each.items()))
    print(f"the idle line: {sum(each.values()):.0f} ms of a processor a second ({parts})")


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
        committed = Committed(line, partitions=2)
        tell_inserts(line, committed)
        tell_columns(line, committed)
        committed.close()
        tell_server(line)
        tell_idle(line)
    except (ShardMergeError, TimeoutError) as error:
        print(f"{error}; logs in {directory}", file=sys.stderr)
        return 1
    finally:
        line.stop()
    line.clear()
    return 0


if __name__ == "__main__":
    sys.exit(main())
