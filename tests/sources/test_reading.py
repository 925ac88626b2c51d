"""Snapshot, DDL, restarts and a replica that takes over, on each kind of server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.deploy import deploy_connectors
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.stack import LocalStack
from shardmerge.spark_sink.kafka.range_reader import OffsetRange, RowReader
from shardmerge.spark_sink.kafka.range_records import chunks
from shardmerge.spark_sink.rows.decoding.row_envelope import MovedRow, decode_row
from tests.integration.connect.conftest import Play, Reader, make_play
from tests.moved_source import moved

from .conftest import NUMBERS
from .play import TrackedSource, watched
from .servers import Kind, kinds, start

KINDS = kinds("mariadb118")
pytestmark = pytest.mark.timeout(600)
TIMEOUT_S = 180
LATER = 60
"""Rows that are written while the server and the connector are restarted."""


@pytest.fixture
def play(stack: LocalStack, kind: Kind) -> Play:
    """A pipeline with one source, whose database is empty."""
    server = kind.server
    return make_play(stack, server.port, server.flavour, server.version)


def wait(is_so: Callable[[], bool], told: Callable[[], object]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so():
        assert time.monotonic() < deadline, told()
        time.sleep(0.2)


def test_each_row_comes_once_whatever_restarts(
    stack: LocalStack, kind: Kind, play: Play, rest: ConnectRest
) -> None:
    """The connector's task, a kill of the server, and a DDL right before each."""
    name = connector_name(play.pipeline, play.pipeline.sources[0])
    with play.sql() as run:
        run("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9))")
        run("INSERT INTO t VALUES (-2, 'x'), (-1, NULL)")
    with play.reader(play.topic("t")) as rows, watched(play.pipeline, rest):
        deploy_connectors(play.pipeline, rest)
        first = [rows.next(), rows.next()]
        assert [(row["op"], row["after"]) for row in first] == [
            ("r", {"id": -2, "a": "x"}),
            ("r", {"id": -1, "a": None}),
        ]
        for number in range(LATER):
            with play.sql() as run:
                if number % 20 == 5:
                    run(f"ALTER TABLE t ADD c{number} INT DEFAULT {number}")
                run(f"INSERT INTO t (id) VALUES ({number})")
            if number == 25:
                rest.restart(name)
            if number == 45:
                stack.kill(kind.process)
                stack.start(kind.process)
        found = [rows.next() for _ in range(LATER)]
        with play.sql() as run:
            run("UPDATE t SET id = 1000 WHERE id = 0")
        moved = [rows.next(), rows.next()]
    assert [row["op"] for row in moved] == ["d", "c"]
    assert_marked(stack, play.topic("t"), [row["offset"] for row in moved])
    assert [row["after"]["id"] for row in found] == list(range(LATER))
    last = found[-1]["after"]
    assert last == {"id": LATER - 1, "a": None, "c5": 5, "c25": 25, "c45": 45}
    with play.reader(play.source) as changes:
        tracked = TrackedSource(play.pipeline)
        while "ADD c45" not in (record := changes.next())["ddl"]:
            assert not tracked.take(record)
        assert not tracked.take(record)
    names = [column.name for column in tracked.table(play.database, "t").columns]
    assert names == list(last)


def assert_marked(stack: LocalStack, topic: str, offsets: list[int]) -> None:
    """The sink can tell that these two records are one update of a key."""
    reader = RowReader(stack.kafka)
    wanted = OffsetRange(topic, 0, offsets[0], offsets[-1] + 1, tells_moves=True)
    found = [value for records, _ in chunks(reader.open([wanted])) for value in records.values]
    reader.close()
    assert [type(value) for value in found] == [MovedRow] * len(offsets)


def replicate(replica: Kind, port: int) -> None:
    """Let a server follow the one at a port, by GTID."""
    at = f"HOST = '127.0.0.1', {{0}}_PORT = {port}, {{0}}_USER = '{USER}'"
    at += f", {{0}}_PASSWORD = '{PASSWORD}'"
    if replica.is_mariadb:
        # What its own start wrote into its binlog has no predecessor on the other server.
        place = f"CHANGE MASTER TO MASTER_{at}, MASTER_USE_GTID = slave_pos".format("MASTER")
        replica.run("RESET MASTER", "SET GLOBAL gtid_slave_pos = ''", place, "START SLAVE")
    elif replica.name == "mysql97":
        place = f"CHANGE REPLICATION SOURCE TO SOURCE_{at}".format("SOURCE")
        more = ", SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1"
        replica.run("RESET BINARY LOGS AND GTIDS", place + more, "START REPLICA")
    else:
        place = f"CHANGE MASTER TO MASTER_{at}, MASTER_AUTO_POSITION = 1".format("MASTER")
        replica.run("RESET MASTER", place, "START SLAVE")


def has_caught_up(old: Kind, new: Kind) -> bool:
    """Whether a replica has executed everything."""
    variable = "@@GLOBAL.gtid_current_pos" if old.is_mariadb else "@@GLOBAL.gtid_executed"
    ((there,),) = old.run(f"SELECT {variable}")
    if old.is_mariadb:
        ((here,),) = new.run(f"SELECT {variable}")
        return here == there
    ((missing,),) = new.run(f"SELECT GTID_SUBTRACT('{there}', {variable})")
    return missing == ""


def start_with_gtids(stack: LocalStack, kind: Kind, number: int) -> Kind:
    """Start a server whose transactions a replica, or a connector, can follow by GTID.

    Of MariaDB's GTIDs Debezium 3.5.0 compares the last one of each domain and server. A server
    that takes over and has the domain of its predecessor shows only its own, and the connector says
    that its offset "is no longer available on the server" (measured, 10.11).
    """
    domain = (f"--gtid-domain-id={number}",) if kind.is_mariadb else ()
    return start(stack, kind.name, number, "--log-slave-updates", *domain)


def test_a_replica_that_takes_over_is_read_on_behind_its_predecessor(
    stack: LocalStack, kind: Kind, rest: ConnectRest, tmp_path: Path
) -> None:
    old, new = (start_with_gtids(stack, kind, next(NUMBERS)) for _ in range(2))
    replicate(new, old.server.port)
    for _ in range(3):  # its binlog is longer than the replica's will be
        old.run("FLUSH BINARY LOGS")
    play = make_play(stack, old.server.port, old.server.flavour, old.server.version)
    source = play.pipeline.sources[0]
    rows = Reader(stack.bootstrap_servers, play.topic("t"))
    ddl = Reader(stack.bootstrap_servers, source.name)
    table = f"{play.database}.t"
    tracked = TrackedSource(play.pipeline)
    with rows, ddl:
        old.run(f"CREATE TABLE {table} (id INT PRIMARY KEY)", f"INSERT INTO {table} VALUES (0)")
        deploy_connectors(play.pipeline, rest)
        assert rows.next()["op"] == "r"
        old.run(f"ALTER TABLE {table} ADD a INT", f"INSERT INTO {table} VALUES (1, 1)")
        events = [rows.next()]
        wait(lambda: has_caught_up(old, new), lambda: new.run("SHOW WARNINGS"))
        new.run("STOP REPLICA" if new.name == "mysql97" else "STOP SLAVE")
        stack.kill(old.process)

        new.run(f"INSERT INTO {table} VALUES (2, 2)")
        assert moved(tmp_path, play.pipeline, new.server.port).outcome == "moved"
        new.run(f"ALTER TABLE {table} ADD b INT", f"INSERT INTO {table} VALUES (3, 3, 3)")
        events += [rows.next(), rows.next()]
        while "ADD b" not in (record := ddl.next())["ddl"]:
            assert not tracked.take(record)
        assert not tracked.take(record)
    stack.stop(new.process)

    assert [event["after"]["id"] for event in events] == [1, 2, 3]
    assert events[0]["source"]["file"] > events[-1]["source"]["file"], "the test shows nothing"
    places = [decode_row(json.dumps(event).encode()).position for event in events]
    assert places == sorted(places)
    assert [place.epoch for place in places] == [0, 1, 1]
    assert [c.name for c in tracked.table(play.database, "t").columns] == ["id", "a", "b"]
