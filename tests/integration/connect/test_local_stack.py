"""The embedded stack itself: restart, leftovers, added processes, data that stays."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pymysql
import pytest

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.local.servers.mysql import PASSWORD, SOCKET_LOCK, USER
from shardmerge.local.servers.processes import ProcessSpec, is_listening
from shardmerge.local.servers.stack import LocalStack, Ports
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.file import parse_pipeline

from .watchdog_process import start_watchdog

ROOT = Path(__file__).resolve().parents[3]
ROUTE = '[[routes]]\ndatabase = "none"\ntable = "none"\ntarget = "none.none"'


@pytest.fixture
def own_stack() -> Iterator[LocalStack]:
    """A stack that the test starts and stops by itself."""
    directory = Path(tempfile.mkdtemp(prefix="integration-", dir=ROOT / ".local"))
    stack = LocalStack(directory, Ports.free(), cache=ROOT / ".local" / "cache")
    yield stack
    stack.clean()


def query(port: int, *statements: str) -> list[object]:
    connection = pymysql.connect(
        host="127.0.0.1", port=port, user=USER, password=PASSWORD, autocommit=True
    )
    with connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return [row[0] for row in cursor.fetchall()]


def test_a_stopped_stack_leaves_no_process_and_keeps_its_data(own_stack: LocalStack) -> None:
    own_stack.up()
    query(own_stack.ports.source1, "CREATE DATABASE kept")
    pids = list(own_stack.status().values())
    assert len(pids) == 5
    assert None not in pids

    # As another process would: it knows the directory only.
    LocalStack(own_stack.directory).down()

    assert own_stack.status() == {}
    assert not [p for p in asdict(own_stack.ports).values() if is_listening(p)]
    again = LocalStack(own_stack.directory, cache=ROOT / ".local" / "cache")
    assert again.ports == own_stack.ports
    # The parts whose data is kept; what each does with it does not depend on the others.
    for name in ("source1", "kafka"):
        again.start(name)
    assert query(again.ports.source1, "SHOW DATABASES LIKE 'kept'") == ["kept"]
    again.down()


def test_the_servers_are_what_the_line_needs(stack: LocalStack) -> None:
    text = "SELECT CONCAT_WS('/', @@log_bin, @@binlog_format, @@binlog_row_image, @@gtid_mode)"

    assert query(stack.ports.source1, text) == ["1/ROW/FULL/ON"]
    assert query(stack.ports.target, "SELECT @@log_bin") == [0]
    for port in (stack.ports.source1, stack.ports.source2, stack.ports.target):
        assert query(port, "SELECT LOCATE('STRICT_TRANS_TABLES', @@sql_mode) > 0") == [1]
        assert query(port, "SELECT @@local_infile") == [1]
    ids = {query(p, "SELECT @@server_uuid")[0] for p in (stack.ports.source1, stack.ports.source2)}
    assert len(ids) == 2, "each copy of the template has an identity of its own"


def test_a_killed_server_comes_back_with_what_was_committed(stack: LocalStack) -> None:
    query(stack.ports.source2, "CREATE DATABASE crash", "CREATE TABLE crash.t (id INT)")
    query(stack.ports.source2, "INSERT INTO crash.t VALUES (7)")

    stack.kill("source2")
    assert stack.status()["source2"] is None
    lock = stack.directory / "source2" / SOCKET_LOCK
    lock.write_text(f"{stack.status()['kafka']}\n")  # another process has its pid by now
    stack.start("source2")

    assert query(stack.ports.source2, "SELECT id FROM crash.t") == [7]


def test_a_part_that_does_not_start_is_told_with_its_log(stack: LocalStack) -> None:
    argv = (sys.executable, "-S", "-c", "print('cannot open the store'); raise SystemExit(4)")

    with pytest.raises(
        StackError, match=r"(?s)exit code 4 .*broken\.log:\n  cannot open the store"
    ):
        stack.add(ProcessSpec("broken", argv, health=lambda: "not yet"))


def test_the_watchdog_makes_the_connectors_and_ends_when_told(stack: LocalStack) -> None:
    path = stack.directory / "watched.toml"
    path.write_text(stack.pipeline_text("watched", ROUTE))
    pipeline = parse_pipeline(path.read_text(), {})
    names = {connector_name(pipeline, source) for source in pipeline.sources}
    rest = ConnectRest(stack.connect_url)

    log = start_watchdog(stack, path, "--create")

    deadline = time.monotonic() + 120
    while not names <= set(rest.connectors()):
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)
    stack.stop("watchdog")
    assert "watchdog" not in stack.status()
    for name in names:
        assert rest.wait_running(name).is_running
        rest.delete(name)
    rest.close()


def test_looking_at_a_stack_from_elsewhere_sees_what_runs(stack: LocalStack) -> None:
    deadline = time.monotonic() + 60
    while None in LocalStack(stack.directory).status().values():
        assert time.monotonic() < deadline
        time.sleep(0.1)

    assert LocalStack(stack.directory).status() == stack.status()
