"""A computed connector against a real worker, broker and server."""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from shardmerge.agents.tracking.tracked import LastStatement, Tracked
from shardmerge.agents.tracking.tracker import track
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.connect.exactly_once import check_connector, check_worker
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.debezium.envelope import schema_change_event
from shardmerge.connectors.debezium.source_config import connector_config
from shardmerge.connectors.deploy import deploy_connectors, prepare_sources
from shardmerge.connectors.reread_watch import RereadWatch
from shardmerge.connectors.watchdog import Watchdog
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.errors import ConfigError, StackError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.pipeline import topics

from .conftest import Play, other_worker

ROWS = 60


def test_ddl_and_rows_arrive_in_the_order_of_the_binlog_and_the_barrier_covers_them(
    play: Play, rest: ConnectRest
) -> None:
    """What the sink rests on: row first, then the end of the schema-change topic."""
    events: list[dict[str, Any]] = []
    barriers: list[int] = []
    with play.sql() as run, play.reader(play.topic("t")) as rows, play.reader(play.source) as ddl:
        run("CREATE TABLE t (id INT PRIMARY KEY)")
        deploy_connectors(play.pipeline, rest)
        wait_for_snapshot(play)

        def read() -> None:
            for _ in range(ROWS):
                events.append(rows.next())
                barriers.append(ddl.high_watermark())

        thread = threading.Thread(target=read)
        thread.start()
        for i in range(ROWS):
            run(f"ALTER TABLE t ADD COLUMN c{i} INT")
            run(f"INSERT INTO t (id, c{i}) VALUES ({i}, {i})")
        run("TRUNCATE TABLE t")
        thread.join()
        assert rows.next()["op"] == "t", "a TRUNCATE arrives too"
        alters: list[dict[str, Any]] = []
        while len(alters) < ROWS:
            change = ddl.next()
            alters += [change] if change["ddl"].startswith("ALTER") else []

    assert [a["ddl"] for a in alters] == [f"ALTER TABLE t ADD COLUMN c{i} INT" for i in range(ROWS)]
    assert [e["after"]["id"] for e in events] == list(range(ROWS))
    pairs = zip(alters, events, strict=True)
    places = [(x["source"]["file"], x["source"]["pos"]) for pair in pairs for x in pair]
    assert places == sorted(places)
    for event, barrier in zip(events, barriers, strict=True):
        before = (a["offset"] for a in alters if a["source"]["pos"] < event["source"]["pos"])
        assert max(before) < barrier


def test_a_connector_is_created_once_and_updated_when_it_differs(
    play: Play, rest: ConnectRest
) -> None:
    name = connector_name(play.pipeline, play.pipeline.sources[0])
    config = connector_config(play.pipeline, play.pipeline.sources[0])

    assert rest.status(name) is None
    assert deploy_connectors(play.pipeline, rest) == (name,)
    assert not rest.create_or_update(name, config)
    assert rest.create_or_update(name, config | {"max.batch.size": "1024"})
    rest.wait_running(name)
    assert rest.connectors() == (name,)
    rest.delete(name)
    assert rest.connectors() == ()
    rest.delete(name)


def test_a_connector_that_somebody_else_makes_finds_what_it_needs(
    play: Play, rest: ConnectRest
) -> None:
    """As Strimzi does with what ``shardmerge connect render`` prints."""
    source = play.pipeline.sources[0]
    name = connector_name(play.pipeline, source)
    config = connector_config(play.pipeline, source)

    prepare_sources(play.pipeline)
    assert rest.connectors() == ()
    assert rest.create_or_update(name, config)
    rest.wait_running(name)
    with play.sql() as run, play.reader(play.topic("t")) as rows:
        # A table that is made while the first snapshot begins may stay unknown to Debezium. The
        # watchdog mends that (``unknown_table``); here is none.
        wait_for_snapshot(play)
        run("CREATE TABLE t (id INT PRIMARY KEY)")
        run("INSERT INTO t VALUES (1)")
        assert rows.next()["after"] == {"id": 1}
    prepare_sources(play.pipeline)
    # The watchdog's own way finds nothing to change.
    assert deploy_connectors(play.pipeline, rest) == (name,)
    assert not rest.create_or_update(name, config)


def test_a_connector_that_cannot_log_in_is_refused_with_the_reason(
    play: Play, rest: ConnectRest
) -> None:
    source = dataclasses.replace(play.pipeline.sources[0], password="wrong")
    pipeline = dataclasses.replace(play.pipeline, sources=(source,))

    with pytest.raises(StackError, match="Access denied for user"):
        deploy_connectors(pipeline, rest)


@pytest.mark.parametrize(
    ("changes", "told", "hint"),
    [
        (
            {"flavour": "mariadb", "version": "10.11"},
            "it is mysql 8.0.15, the pipeline file says mariadb",
            'set flavour = "mysql" and version = "8.0.15"',
        ),
        (
            {"version": "9.7", "sql_mode": "ANSI_QUOTES"},
            "it is mysql 8.0.15, the pipeline file says 9.7: DDL differs; sql_mode ANSI_QUOTES is "
            "off on the server, the pipeline file says on: statements would be read wrongly",
            'set version = "8.0.15"; set sql_mode = ""',
        ),
    ],
)
def test_a_server_that_is_not_as_described_gets_no_connector(
    play: Play, rest: ConnectRest, changes: dict[str, str], told: str, hint: str
) -> None:
    source = dataclasses.replace(play.pipeline.sources[0], **changes)  # type: ignore[arg-type]
    pipeline = dataclasses.replace(play.pipeline, sources=(source,))

    with pytest.raises(ConfigError) as refused:
        deploy_connectors(pipeline, rest)

    where = f"source {source.name} is not the server that the pipeline file describes: "
    assert refused.value.message == where + told
    assert refused.value.hint == hint
    assert rest.connectors() == ()


def test_a_connector_that_does_not_require_exactly_once_is_found(
    play: Play, rest: ConnectRest
) -> None:
    name = connector_name(play.pipeline, play.pipeline.sources[0])
    config = connector_config(play.pipeline, play.pipeline.sources[0])
    with pytest.raises(StackError, match="no connector"):
        check_connector(rest, name)
    rest.create_or_update(name, config | {"exactly.once.support": "requested"})

    with pytest.raises(StackError, match=r"exactly\.once\.support=requested"):
        check_connector(rest, name)


def test_a_worker_without_exactly_once_is_found(
    play: Play, stack: LocalStack, tmp_path: Path
) -> None:
    with (
        other_worker(stack, tmp_path, "other", exactly_once="disabled") as rest,
        pytest.raises(StackError, match="does not have exactly-once source support enabled"),
    ):
        check_worker(rest, connector_config(play.pipeline, play.pipeline.sources[0]))


def test_a_restarted_server_is_read_on_without_loss(
    play: Play, rest: ConnectRest, stack: LocalStack
) -> None:
    """The task fails or its client reconnects, by a matter of moments: both must lose nothing."""
    with play.reader(play.topic("t")) as topic:
        with play.sql() as run:
            run("CREATE TABLE t (id INT PRIMARY KEY)")
            run("INSERT INTO t VALUES (1)")
            (name,) = deploy_connectors(play.pipeline, rest)
            values = topic.ids(1)
            run("INSERT INTO t VALUES (2), (3)")
            values += topic.ids(2)
        stack.kill("source1")
        stack.start("source1")
        with play.sql() as run:
            run("INSERT INTO t VALUES (4), (5)")
        with watched(Watchdog(rest, [name, "never-made"], interval_s=0.5)):
            values += topic.ids(2)

    assert values == [1, 2, 3, 4, 5]


def test_a_failed_task_is_brought_back_by_the_watchdog(
    play: Play, rest: ConnectRest, stack: LocalStack
) -> None:
    with play.reader(play.topic("t")) as topic:
        with play.sql() as run:
            run("CREATE TABLE t (id INT PRIMARY KEY)")
            run("INSERT INTO t VALUES (1)")
        (name,) = deploy_connectors(play.pipeline, rest)
        assert topic.ids(1) == [1]
        stack.kill("source1")
        # A task that starts while its server is down fails at once.
        rest.restart(name)
        wait_for(lambda: any(s is not None and s.is_failed for s in [rest.status(name)]))
        with pytest.raises(StackError, match=f"connector {name} failed: "):
            rest.wait_running(name)
        stack.start("source1")
        with play.sql() as run:
            run("INSERT INTO t VALUES (2)")

        watchdog = Watchdog(rest, [name])
        assert watchdog.look(0.0) == (name,)

        def is_back() -> bool:
            # Right after the restart the status still tells of the failure, and the first
            # connection to a server that has just come up can fail once more.
            status = rest.status(name)
            if status is not None and status.is_running:
                return True
            watchdog.look(time.monotonic())
            return False

        wait_for(is_back)
        assert topic.ids(1) == [2]


def test_a_killed_worker_loses_and_repeats_nothing(
    play: Play, rest: ConnectRest, stack: LocalStack
) -> None:
    with play.reader(play.topic("t")) as topic:
        with play.sql() as run:
            run("CREATE TABLE t (id INT PRIMARY KEY)")
            (name,) = deploy_connectors(play.pipeline, rest)
            # A snapshot that is interrupted starts anew and reads its rows again: wait it out.
            first = -1
            while True:
                run(f"INSERT INTO t VALUES ({first})")
                if topic.next()["op"] == "c":
                    break
                first -= 1
            for i in range(2 * ROWS):
                run(f"INSERT INTO t VALUES ({i})")
                if i == ROWS:
                    assert topic.ids(1) == [0]
                    stack.kill("connect")
        stack.start("connect")
        rest.wait_running(name)

        assert topic.ids(2 * ROWS - 1) == list(range(1, 2 * ROWS))


def test_a_transaction_that_a_killed_worker_left_open_holds_nobody_up(
    play: Play, rest: ConnectRest, stack: LocalStack
) -> None:
    """A worker reads its offsets to their end before it starts anything."""
    with play.sql() as run, play.reader(play.topic("t")) as topic:
        run("CREATE TABLE t (id INT PRIMARY KEY)")
        run("INSERT INTO t VALUES (1)")
        (name,) = deploy_connectors(play.pipeline, rest)
        assert topic.ids(1) == [1]
        wait_for_snapshot(play)
        offsets = (rest.config(name) or {}).get("offsets.storage.topic", "connect-offsets")
        stack.kill("connect")
        killed = Producer(
            {
                "bootstrap.servers": stack.bootstrap_servers,
                "transactional.id": f"shardmerge-connect-{name}-0",
                "transaction.timeout.ms": 600_000,
            }
        )
        killed.init_transactions(60)
        killed.begin_transaction()
        killed.produce(offsets, b"{}", b'["nobody",{"server":"nobody"}]')
        killed.flush(60)

        stack.start("connect")
        rest.wait_running(name)
        run("INSERT INTO t VALUES (2)")

        assert topic.ids(1) == [2]


def test_a_statement_that_a_restarted_connector_repeats_is_executed_once(
    play: Play, rest: ConnectRest
) -> None:
    """Debezium reads the last transaction anew if the server has GTIDs."""
    statements = ["ALTER TABLE t ADD COLUMN a INT", "RENAME TABLE t TO v", "ALTER TABLE v DROP a"]
    given: list[dict[str, Any]] = []
    with play.sql() as run, play.reader(play.source) as ddl:
        run("CREATE TABLE t (id INT PRIMARY KEY)")
        (name,) = deploy_connectors(play.pipeline, rest)
        for statement in statements:
            if given:
                # Asked for, and carried out later: what it repeats tells that it was.
                rest.restart(name)
                count = len(given)
                while len(given) == count or given[-1]["ddl"] != given[count - 1]["ddl"]:
                    given.append(ddl.next())
            else:
                wait_for_snapshot(play)
            run(statement)
            while not given or given[-1]["ddl"] != statement:
                given.append(ddl.next())

    texts = [record["ddl"] for record in given]
    assert len(texts) > len(set(texts)), f"nothing was repeated: {texts}"
    schemas: dict[ShardId, Tracked] = {}
    last: LastStatement | None = None
    for record in given:
        value = json.dumps(record).encode()
        event = schema_change_event(play.source, record["offset"], None, value)
        result = track(schemas, event, (), ServerContext(), last)
        last = result.last
        schemas = {s: v for s, v in {**schemas, **result.puts}.items() if v is not None}
    tables = {s.table: v for s, v in schemas.items() if s.database == play.database and s.table}
    table = tables.pop("v")
    assert not tables
    assert isinstance(table, TableSchema), table
    assert [column.name for column in table.columns] == ["id"]


@contextmanager
def watched(watcher: Watchdog | RereadWatch) -> Iterator[None]:
    """Let a watchdog, or a watch over requests, run beside what the test does."""
    stop = threading.Event()
    thread = threading.Thread(target=watcher.run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def wait_for_snapshot(play: Play) -> None:
    """A running connector may still read its tables, which a DDL then ends: wait for its word."""
    with play.reader(topics.notifications(play.pipeline).name) as said:
        while (record := said.next())["aggregate_type"] != "Initial Snapshot" or (
            record["type"] != "COMPLETED"
        ):
            continue


def wait_for(condition: Callable[[], bool]) -> None:
    """Poll a condition, within a bound."""
    deadline = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < deadline, "not met within 90 s"
        time.sleep(0.2)
