"""Debezium's first snapshots, interrupted at random moments: the target ends as the shards are.

So it does if the pipeline file says meanwhile that the sink reads first rows, as a file does that
is read by a newer version and does not name it.
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pymysql
import pytest

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium import source_config
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.deploy import deploy_connectors
from shardmerge.local.line import Line
from shardmerge.local.servers.stack import LocalStack
from shardmerge.local.union import compare, read_table
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.first_rows import DEBEZIUM, SPARK, first_rows_by
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.text import pipeline_text
from tests.breadth import further

from .conftest import ROOT
from .counted import count

DATABASE = "first_app"
KEYED, KEYLESS = 4_000, 1_000
"""Rows of each table."""
TABLES = {
    "s1": {"keyed_1": KEYED, "bag_1": KEYLESS, "alone": KEYLESS},
    "s2": {"keyed_2": KEYED, "bag_2": KEYLESS},
}
ROUTES = (
    RoutingRule(".*", DATABASE, r"keyed_\d", "first", "keyed"),
    RoutingRule(".*", DATABASE, r"bag_\d", "first", "bag"),
    RoutingRule(".*", DATABASE, "alone", "first", "alone"),
)
SLOW = {"max.batch.size": "5", "max.queue.size": "64"}
"""A poll is a transaction of Kafka's: so few rows of it take as long as two thousand. On 2 quiet
processors a source's snapshot takes 15 seconds."""
PATIENCE_S = 900.0


def deploy(line: Line) -> None:
    rest = ConnectRest.of(line.pipeline.connect, patience_s=120)
    deploy_connectors(line.pipeline, rest)
    rest.close()


def upgrade(line: Line) -> None:
    """From now on the pipeline file means that the sink reads first rows."""
    line.pipeline = first_rows_by(SPARK, line.pipeline)
    line.pipeline_path.write_text(pipeline_text(line.pipeline), encoding="utf-8")
    line.kill("sink")
    deploy(line)


def modes(line: Line) -> list[str]:
    """The snapshot modes of the connectors."""
    rest = ConnectRest.of(line.pipeline.connect)
    names = [connector_name(line.pipeline, source) for source in line.pipeline.sources]
    found = [(rest.config(name) or {})["snapshot.mode"] for name in names]
    rest.close()
    return found


def prepare(line: Line) -> None:
    for source, tables in TABLES.items():
        with line.connect(source) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {DATABASE}")
            for table, count in tables.items():
                key = " PRIMARY KEY" if table.startswith("keyed") else ""
                cursor.execute(f"CREATE TABLE {DATABASE}.{table} (id INT{key}, v INT)")
                first = 0 if source == "s1" else 5_000_000
                rows = ((first + (n if key else n // 2), n % 7) for n in range(count))
                cursor.executemany(f"INSERT INTO {DATABASE}.{table} VALUES (%s, %s)", list(rows))


def change(line: Line, chance: random.Random) -> None:
    """Rows that go, get another key, and change."""
    for source, tables in TABLES.items():
        with line.connect(source) as connection, connection.cursor() as cursor:
            for table, count in tables.items():
                first = chance.randrange(count // 2) + (0 if source == "s1" else 5_000_000)
                name = f"{DATABASE}.{table}"
                cursor.execute(f"DELETE FROM {name} WHERE id BETWEEN {first} AND {first + 99}")
                moved = chance.randrange(10_000_000, 1_000_000_000)
                cursor.execute(
                    f"UPDATE {name} SET id = id + {moved}"
                    f" WHERE id BETWEEN {first + 100} AND {first + 199}"
                )
                cursor.execute(
                    f"UPDATE {name} SET v = v + 10 WHERE id BETWEEN {first + 200} AND {first + 299}"
                )
                cursor.execute(f"INSERT INTO {name} VALUES ({moved + 5_500_000}, 1)")


def difference(line: Line, of: Mapping[str, Mapping[str, int]] = TABLES) -> list[str]:
    found: list[str] = []
    for rule in ROUTES:
        with line.connect_target() as connection:
            merged = read_table(connection, rule.target_database, rule.target_table)
        if merged is None:
            return [f"no target {rule.target_table}"]
        shards = []
        for source, tables in of.items():
            with line.connect(source) as connection:
                for table in tables:
                    if table.startswith(rule.target_table):
                        shard = read_table(connection, DATABASE, table)
                        assert shard is not None
                        shards.append((f"{source}.{table}", shard))
        found += compare(merged, shards).differences
    return [text[:500] for text in found]


def few(line: Line, wanted: int) -> list[str]:
    """Empty when the target has more rows than wanted: random moments, told by rows."""
    enough = count(line, TargetTable("first", "keyed")) > wanted
    return [] if enough else ["the target has few rows"]


def not_running(line: Line) -> list[str]:
    """Which connectors do not run: nothing is left to be interrupted."""
    states = {source: line.connectors.state(source) for source in TABLES}
    return [f"{source} is {state}" for source, state in states.items() if state != "RUNNING"]


def is_reading(line: Line, source: str) -> bool:
    """Whether a source's snapshot is not over."""
    try:
        return not line._streams(source)
    except pymysql.Error:
        return True


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    """A line whose connectors are slow: its first snapshots have just begun."""
    monkeypatch.setattr(source_config, "_LATENCY", {**source_config._LATENCY, **SLOW})
    monkeypatch.setattr(Line, "wait_ready", lambda self: None)
    directory = Path(tempfile.mkdtemp(prefix="e2e-first-", dir=ROOT / ".local"))
    line = Line(directory, routes=ROUTES, access=partial(first_rows_by, DEBEZIUM))
    try:
        line.start(lambda: prepare(line))
        # A snapshot may be over before a sink has started: no row of it would be seen.
        with standing(line._stack, "connect"):
            assert line.poll(lambda: [] if line._sink_started() else ["no sink"], PATIENCE_S) == []
        yield line
    finally:
        line.stop()


def again(stack: LocalStack, name: str) -> None:
    stack.kill(name)
    stack.start(name)


@contextmanager
def standing(stack: LocalStack, name: str) -> Iterator[None]:
    """A process stands."""
    pid = stack.status()[name]
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def stand(stack: LocalStack, name: str) -> None:
    """A process stands for so long that its group loses it."""
    with standing(stack, name):
        time.sleep(20)


@further
@pytest.mark.timeout(2400)
def test_rows_of_interrupted_first_snapshots_go(line: Line) -> None:
    chance = random.Random(24)
    interruptions: tuple[Callable[[], None], ...] = (
        lambda: line.kill("connect"),
        lambda: again(line._stack, "source1"),
        lambda: stand(line._stack, "kafka"),
        lambda: upgrade(line),
    )
    interrupted = 0
    for interrupt in interruptions:
        assert line.poll(lambda: not_running(line), PATIENCE_S) == []
        wanted = chance.randrange(1, 2_000)
        line.poll(lambda wanted=wanted: few(line, wanted), 60)  # type: ignore[misc]
        time.sleep(chance.random() * 3)
        interrupted += is_reading(line, "s1")
        interrupt()
        change(line, chance)
    assert interrupted >= 2, "so many times at least a snapshot was interrupted"
    reading = lambda: [source for source in TABLES if is_reading(line, source)]  # noqa: E731
    assert line.poll(reading, PATIENCE_S) == []
    change(line, chance)

    assert line.poll(lambda: difference(line), seconds=600, pause=2.0) == []
    assert line.in_log("sink", "snapshot_restarted") == []
    time.sleep(5)
    assert difference(line) == []


@further
@pytest.mark.timeout(1200)
def test_first_rows_that_debezium_brings_are_not_loaded_after_an_upgrade(line: Line) -> None:
    assert line.poll(lambda: few(line, 300), PATIENCE_S) == []
    upgrade(line)
    assert is_reading(line, "s1"), "too late: nothing is proven"
    assert modes(line) == ["initial", "initial"]
    change(line, random.Random(25))
    reading = lambda: [source for source in TABLES if is_reading(line, source)]  # noqa: E731
    assert line.poll(reading, PATIENCE_S) == []
    deploy(line)
    assert modes(line) == ["no_data", "no_data"]
    line.kill("sink")
    with line.connect("s1") as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {DATABASE}.keyed_3 (id INT PRIMARY KEY, v INT)")
        cursor.execute(f"INSERT INTO {DATABASE}.keyed_3 VALUES (9000001, 1), (9000002, 2)")
    change(line, random.Random(26))
    more = {**TABLES, "s1": {**TABLES["s1"], "keyed_3": 2}}
    assert line.poll(lambda: difference(line, more), seconds=600, pause=2.0) == []
    log = line.log_path("sink").read_text(encoding="utf-8")
    begun = [text for text in log.splitlines() if "load_begun" in text]
    assert [text for text in begun if "keyed_3" not in text] == []
    assert begun, "what comes later is loaded"
    assert "snapshot_restarted" not in log
