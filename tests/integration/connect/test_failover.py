"""A source whose replica takes over: the same connector reads on, in the source's next epoch."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pymysql
import pytest

from shardmerge.agents.tracking.tracked import LastStatement, Tracked
from shardmerge.agents.tracking.tracker import track
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.envelope import schema_change_event
from shardmerge.connectors.deploy import deploy_connectors
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.stack import LocalStack, Ports
from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.rows.decoding.row_envelope import decode_row
from tests.moved_source import moved
from tests.running import wait_for

from .conftest import Reader
from .watchdog_process import start_watchdog

ROOT = Path(__file__).resolve().parents[3]
ROUTE = '[[routes]]\ndatabase = "app"\ntable = "t"\ntarget = "merged.t"'


@pytest.fixture
def own_stack() -> Iterator[LocalStack]:
    """Servers of which nobody else's transactions are known."""
    directory = Path(tempfile.mkdtemp(prefix="failover-", dir=ROOT / ".local"))
    stack = LocalStack(directory, Ports.free(), cache=ROOT / ".local" / "cache")
    for name in ("kafka", "connect", "source1", "source2"):
        stack.start(name)
    yield stack
    stack.clean()


@contextmanager
def server(port: int) -> Iterator[Callable[[str], Any]]:
    """Runs statements, each committed by itself; gives the first value of the last row."""
    connection = pymysql.connect(
        host="127.0.0.1", port=port, user=USER, password=PASSWORD, autocommit=True
    )
    with connection, connection.cursor() as cursor:

        def run(sql: str) -> Any:
            cursor.execute(sql)
            rows = cursor.fetchall()
            return rows[-1][0] if rows else None

        yield run


def of_source1(stack: LocalStack) -> Pipeline:
    """The pipeline with the first of its sources alone."""
    parsed = parse_pipeline(stack.pipeline_text("failover", ROUTE), {})
    return replace(parsed, sources=(replace(parsed.sources[0], databases="app"),))


def test_a_replica_that_takes_over_is_read_on_behind_its_predecessor(
    own_stack: LocalStack, tmp_path: Path
) -> None:
    ports, pipeline = own_stack.ports, of_source1(own_stack)
    source = pipeline.sources[0]
    rest = ConnectRest(own_stack.connect_url)
    rows = Reader(own_stack.bootstrap_servers, f"{source.name}.app.t")
    ddl = Reader(own_stack.bootstrap_servers, source.name)
    with server(ports.source1) as old, server(ports.source2) as new, rows, ddl:
        new(
            f"CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {ports.source1},"
            f" MASTER_USER = '{USER}', MASTER_PASSWORD = '{PASSWORD}', MASTER_AUTO_POSITION = 1"
        )
        new("START SLAVE")
        for _ in range(3):  # its binlog is longer than the replica's will be
            old("FLUSH BINARY LOGS")
        old("CREATE DATABASE app")
        old("CREATE TABLE app.t (id INT PRIMARY KEY)")
        deploy_connectors(pipeline, rest)
        records = [ddl.next()]
        while not records[-1]["ddl"].startswith("CREATE TABLE `t`"):
            records.append(ddl.next())
        old("ALTER TABLE app.t ADD a INT")
        old("INSERT INTO app.t VALUES (1, 1)")
        events = [rows.next()]
        new("STOP SLAVE SQL_THREAD")
        # A transaction of its own, which its binlog has before those that are not read yet, and
        # before the last one that is: Debezium would leave out its rows instead.
        new("INSERT INTO app.t VALUES (50, 50)")
        old("INSERT INTO app.t VALUES (2, 2)")
        events.append(rows.next())
        missing = old("SELECT @@GLOBAL.gtid_executed").rpartition("-")[2]
        refused = moved(tmp_path, pipeline, ports.source2)
        codes = [each.code for each in refused.findings]
        assert codes == ["SM-6601", "SM-6603", "SM-6613"]
        assert all(each.text.endswith(f":{missing}") for each in refused.findings if each.fault)
        watchdog = watched(own_stack, tmp_path / "moved.toml")
        old("INSERT INTO app.t VALUES (3, 3), (33, 33)")
        events += [rows.next(), rows.next()]  # the connector runs on as before

        new("START SLAVE SQL_THREAD")
        executed = old("SELECT @@GLOBAL.gtid_executed")
        assert new(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', 60)") == 0
        new("STOP SLAVE")
        own_stack.kill("source1")

        new("INSERT INTO app.t VALUES (4, 4)")
        assert moved(tmp_path, pipeline, ports.source2).outcome == "moved"
        assert moved(tmp_path, pipeline, ports.source2).outcome == "there already"
        watchdog.until_begun_anew()
        new("ALTER TABLE app.t ADD b INT")
        new("INSERT INTO app.t VALUES (5, 5, 5)")
        events += [rows.next(), rows.next(), rows.next()]
        while records[-1]["ddl"] != "ALTER TABLE app.t ADD b INT":
            records.append(ddl.next())
    rest.close()

    assert [event["after"]["id"] for event in events] == [1, 2, 3, 33, 50, 4, 5]
    assert events[0]["source"]["file"] > events[-1]["source"]["file"], "the test shows nothing"
    places = [decode_row(json.dumps(event).encode()).position for event in events]
    assert places == sorted(places)
    assert [place.epoch for place in places] == [0, 0, 0, 0, 1, 1, 1]
    known, changed = folded(source.name, records)
    table = known[ShardId(source.name, "app", "t")]
    assert isinstance(table, TableSchema), table
    assert [column.name for column in table.columns] == ["id", "a", "b"]
    assert places[-2] < changed[-1] < places[-1]


@dataclass(frozen=True, slots=True)
class RunningWatchdog:
    """The watchdog of a pipeline file, as a process of a stack."""

    stack: LocalStack
    pid: int
    metrics: str

    @property
    def log(self) -> str:
        """What it has told."""
        return self.stack.supervisor.log_path("watchdog").read_text(encoding="utf-8")

    def until_begun_anew(self) -> None:
        """Wait until it has taken up the file in which a source was moved, in the same process."""
        wait_for(lambda: self.log.count("watchdog_started") == 2, "watch of the moved source")
        assert "sources_moved sources=" in self.log
        assert self.stack.status()["watchdog"] == self.pid
        with urlopen(self.metrics, timeout=5) as answer:
            assert "shardmerge_connector_" in answer.read().decode()


def watched(stack: LocalStack, file: Path) -> RunningWatchdog:
    """Start the watchdog of a pipeline file."""
    port = Ports.free().kafka
    start_watchdog(stack, file, "--interval", "1", "--metrics-port", str(port))
    return RunningWatchdog(
        stack, stack.status()["watchdog"] or 0, f"http://127.0.0.1:{port}/metrics"
    )


def folded(
    source: str, records: list[dict[str, Any]]
) -> tuple[dict[ShardId, Tracked], list[SourcePosition]]:
    """What the tracker makes of schema-change records: tables, and where statements stand."""
    schemas: dict[ShardId, Tracked] = {}
    last: LastStatement | None = None
    places = []
    for record in records:
        event = schema_change_event(source, record["offset"], None, json.dumps(record).encode())
        result = track(schemas, event, (), ServerContext(), last)
        last = result.last
        schemas = {s: v for s, v in {**schemas, **result.puts}.items() if v is not None}
        places.append(event.position)
    return schemas, places
