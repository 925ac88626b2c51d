"""A MariaDB server as a source: its rows, its DDL, and restarts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shardmerge.cli.servers import server_findings
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.deploy import deploy_connectors
from shardmerge.local.servers.source_servers import source_spec
from shardmerge.local.servers.stack import LocalStack, Ports
from shardmerge.schemas.model.errors import StackError

from .conftest import Play, Reader, make_play
from .test_connectors import wait_for_snapshot
from .whole_line import WholeLine, look_until, watch_of

CACHE = Path(__file__).resolve().parents[3] / ".local" / "cache"
TIMEOUT_S = 180
UUIDS = (
    "00000000-0000-0000-0000-000000000000",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
    *(
        f"0a2b3c4d-5e6f-{version}718-{variant}92a-3b4c5d6e{end}"
        for version in (1, 4, 7)
        for variant in (1, 9, "d")
        for end in ("7f81", "0000")
    ),
)
"""Of versions that MariaDB stores in another order than it shows them, and of others."""


@pytest.fixture(scope="module")
def port(stack: LocalStack) -> Iterator[int]:
    """Of a MariaDB server."""
    port = Ports.free().source1
    spec = source_spec(
        "mariadb1011", "mariadb", stack.directory / "mariadb", port, 110, cache=CACHE
    )
    stack.add(spec)
    yield port
    stack.stop("mariadb")


@pytest.fixture
def maria(stack: LocalStack, port: int) -> Play:
    """A pipeline with one MariaDB source, whose database is empty."""
    return make_play(stack, port, "mariadb", "10.11.0")


def test_a_quiet_mariadb_source_that_is_restarted_behind_a_ddl_loses_no_row(
    maria: Play, rest: ConnectRest
) -> None:
    """For Debezium a DDL is a transaction that never ends, whose events it goes on counting.

    Measured, 10.11: the offset behind it has ``event`` 1, and 8 when all was quiet for 30 s.
    """
    name = connector_name(maria.pipeline, maria.pipeline.sources[0])
    with maria.sql() as run, maria.reader(maria.topic("t")) as rows:
        run("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9))")
        run("INSERT INTO t VALUES (1, 'x')")
        deploy_connectors(maria.pipeline, rest)
        assert rows.next()["op"] == "r"
        run("INSERT INTO t VALUES (2, 'y')")
        assert rows.ids(1) == [2]
        run("ALTER TABLE t RENAME COLUMN a TO b")
        with maria.reader(maria.source) as changes:
            told = _next_of(changes, "ALTER")
        assert told["source"]["gtid"].count("-") == 2

        offset = _wait_for(lambda: rest.offset(name), lambda found: found.get("event") == 1)
        rest.stop(name)
        rest.set_offset(name, maria.source, {**offset, "event": 8})
        for number in range(3, 9):
            run(f"INSERT INTO t VALUES ({number}, 'z')")
        rest.resume(name)
        rest.wait_running(name, TIMEOUT_S)
        found = [rows.next()["after"] for _ in range(6)]
        assert found == [{"id": number, "b": "z"} for number in range(3, 9)]


def test_text_that_debezium_takes_for_chinese_is_marked_as_unread(
    maria: Play, rest: ConnectRest
) -> None:
    """Two katakana of cp932 are one character of GB2312, by which Debezium reads them."""
    with maria.sql() as run, maria.reader(maria.topic("t")) as rows:
        run("CREATE TABLE t (id INT PRIMARY KEY, k VARCHAR(9) CHARACTER SET cp932)")
        for first, read in ((1, "r"), (4, "c")):
            run(f"INSERT INTO t VALUES ({first}, 'ab'), ({first + 1}, 'ｱﾂ'), ({first + 2}, NULL)")
            if first == 1:
                deploy_connectors(maria.pipeline, rest)
            found = [rows.next() for _ in range(3)]
            assert {record["op"] for record in found} == {read}
            plain, japanese, null = (record["after"]["k"] for record in found)
            assert (plain, japanese[-1], null) == ("ab", "\ufffd", None)


def test_uuids_arrive_as_the_server_shows_them(maria: Play, rest: ConnectRest) -> None:
    assert_uuids_arrive(maria, rest)


def assert_uuids_arrive(maria: Play, rest: ConnectRest) -> None:
    """By a snapshot and by the binlog, where bytes of zero at the end are left out."""
    values = ", ".join(f"({n}, '{text}')" for n, text in enumerate(UUIDS))
    with maria.sql() as run, maria.reader(maria.topic("t")) as rows:
        run("CREATE TABLE t (id INT PRIMARY KEY, u UUID)")
        run(f"INSERT INTO t VALUES {values}, (100, NULL)")
        deploy_connectors(maria.pipeline, rest)
        found = {row["id"]: row["u"] for row in (rows.next()["after"] for _ in range(21))}
        assert found == dict(enumerate(UUIDS)) | {100: None}
        run("DELETE FROM t")
        gone = [rows.next()["before"] for _ in range(21)]
        assert {row["id"]: row["u"] for row in gone} == found
        run(f"INSERT INTO t VALUES {values}, (100, NULL)")
        come = [rows.next()["after"] for _ in range(21)]
        assert {row["id"]: row["u"] for row in come} == found


def test_a_connector_that_could_not_go_on_is_refused(maria: Play, rest: ConnectRest) -> None:
    with maria.sql() as run:
        run("CREATE TABLE t (id INT PRIMARY KEY, a INET6)")
        with pytest.raises(StackError, match=rf"{maria.database}\.t\.a \(INET6\)") as refused:
            deploy_connectors(maria.pipeline, rest)
        assert refused.value.code == "SM-4407"
        [finding] = (f for f in server_findings(maria.pipeline) if "INET6" in f.text)
        assert finding.fault
        run("ALTER TABLE t MODIFY a VARCHAR(39)")
        run("CREATE TABLE v (id INT PRIMARY KEY) WITH SYSTEM VERSIONING")
        with pytest.raises(StackError, match=rf"{maria.database}\.v is system-versioned"):
            deploy_connectors(maria.pipeline, rest)
        run("ALTER TABLE v DROP SYSTEM VERSIONING")
        run("CREATE TABLE c (id INT PRIMARY KEY, v VARCHAR(100) COMPRESSED, t TEXT COMPRESSED)")
        run("CREATE TABLE e (id INT PRIMARY KEY, v ENUM('/* COMPRESSED*/ '))")
        names = rf"{maria.database}\.c\.v, {maria.database}\.c\.t ends the connector"
        with pytest.raises(StackError, match=names) as refused:
            deploy_connectors(maria.pipeline, rest)
        assert refused.value.code == "SM-4407"
        [finding] = (f for f in server_findings(maria.pipeline) if "it is COMPRESSED" in f.text)
        assert finding.fault
        run("ALTER TABLE c MODIFY v VARCHAR(100), MODIFY t TEXT")
        run("SET GLOBAL log_bin_compress = ON")
        try:
            with pytest.raises(StackError, match="log_bin_compress is ON") as refused:
                deploy_connectors(maria.pipeline, rest)
            assert refused.value.code == "SM-6114"
            [finding] = (f for f in server_findings(maria.pipeline) if f.code == "SM-6114")
            assert finding.fault
        finally:
            run("SET GLOBAL log_bin_compress = OFF")
    deploy_connectors(maria.pipeline, rest)


def test_a_table_without_a_key_is_read_as_a_whole(maria: Play, rest: ConnectRest) -> None:
    with maria.sql() as run, watch_of(maria, rest) as watch:
        run("CREATE TABLE t (a INT, b VARCHAR(9))")
        run("INSERT INTO t VALUES (1, 'x'), (1, 'x')")
        deploy_connectors(maria.pipeline, rest)
        wait_for_snapshot(maria)
        line = WholeLine(maria)
        line.decide()
        line.ask("t")
        run("INSERT INTO t VALUES (1, 'x'), (NULL, 'before')")
        look_until(watch, lambda: bool(line.commands()))
        run("DELETE FROM t WHERE a = 1 LIMIT 1")
        run("INSERT INTO t VALUES (2, 'last')")
        line.await_row("t", (2, "last"))
    ((_, (reload,)),) = line.commands()
    assert line.rows(reload) == line.table("t")
    assert line.table("t")[1, "x"] == 2


def _next_of(changes: Reader, begin: str) -> dict[str, Any]:
    """The next schema change whose text begins so."""
    while not (change := changes.next())["ddl"].startswith(begin):
        pass
    return change


def _wait_for(look: Callable[[], Any], is_there: Callable[[Any], bool]) -> dict[str, Any]:
    """Look until it is there."""
    deadline = time.monotonic() + TIMEOUT_S
    while not is_there(found := look() or {}):
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
    return dict(found)
