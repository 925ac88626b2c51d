"""A TiDB that ends, changes its DDL owner, or is told to take little at once."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.errors import TargetError
from shardmerge.spark_sink.targets.interface import JournalEntry
from shardmerge.spark_sink.targets.mysql.ddl.introspection import unfinished_job
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from shardmerge.spark_sink.targets.mysql.tasks.apply_ranges import apply_together
from shardmerge.spark_sink.targets.mysql.tasks.connection import TaskConnection
from tests.integration.spark.rig import Rig

from .running import SERVER, free_port, running_tidb
from .test_target import DONE, Place

ROWS = 60_000
OF_OUR_OWN = pytest.mark.skipif(not SERVER.exists(), reason="needs the server of make tidb")


def fill(place: Place, rows: int = ROWS) -> None:
    """Rows enough that an index takes a while."""
    create = f"CREATE TABLE {place.table.sql} (id INT PRIMARY KEY, v INT, w VARCHAR(80))"
    assert place.execute(place.journal(), 1, create) == DONE
    for start in range(0, rows, 5_000):
        values = ", ".join(f"({n}, {n % 997}, 'row {n}')" for n in range(start, start + 5_000))
        place.session.execute(f"INSERT INTO {place.table.sql} VALUES {values}")


def begun(place: Place, statement: str) -> tuple[threading.Thread, list[object]]:
    """The statement on its way, when the server has it in its queue."""
    found: list[object] = []

    def execute() -> None:
        try:
            found.append(place.execute(place.journal(), 2, statement))
        except TargetError as error:
            found.append(error)

    work = threading.Thread(target=execute)
    work.start()
    session = place.new_session()
    while not unfinished_job(session, place.table):
        assert not found, found
    session.close()
    return work, found


def finished(place: Place, statement: str) -> JournalEntry:
    """What becomes of the statement for a sink that starts: it comes back until it is told."""
    while True:
        try:
            return place.execute(place.journal(), 2, statement)
        except TargetError as error:
            if not error.retryable:
                raise


def indexes(place: Place) -> list[tuple[object, ...]]:
    return place.session.query(
        "SELECT DISTINCT INDEX_NAME FROM information_schema.STATISTICS"
        f" WHERE TABLE_SCHEMA = '{place.name}' AND TABLE_NAME = 't' ORDER BY 1"
    )


def check(place: Place) -> None:
    """The index is there once, and agrees with the rows."""
    assert indexes(place) == [("PRIMARY",), ("kv",)]
    place.session.execute(f"ADMIN CHECK TABLE {place.table.sql}")
    assert place.session.query(f"SELECT COUNT(*) FROM {place.table.sql}") == [(ROWS,)]


ADD = "ALTER TABLE {} ADD INDEX kv (v)"


@OF_OUR_OWN
@pytest.mark.timeout(600)
def test_a_statement_whose_server_was_killed_in_the_middle_is_executed_once(tmp_path: Path) -> None:
    with running_tidb(tmp_path) as address:
        place = Place(address)
        fill(place)
        statement = ADD.format(place.table.sql)
        work, found = begun(place, statement)
    work.join(120)
    assert [isinstance(one, TargetError) and one.retryable for one in found] == [True]
    with running_tidb(tmp_path) as address:
        again = Place.again(address, place)
        assert finished(again, statement) == DONE
        check(again)


@pytest.mark.timeout(600)
def test_a_statement_whose_session_was_killed_is_executed_once(tidb: MySqlAddress) -> None:
    place = Place(tidb)
    fill(place)
    statement = ADD.format(place.table.sql)
    work, found = begun(place, statement)
    for number, *_, text in place.session.query("SHOW FULL PROCESSLIST"):
        if text == statement:
            place.session.execute(f"KILL TIDB {number}")
    work.join(120)
    assert len(found) == 1  # told as lost, as interrupted, or as done just before
    assert finished(place, statement) == DONE
    check(place)
    place.session.execute(f"DROP DATABASE {place.name}")


@OF_OUR_OWN
@pytest.mark.timeout(600)
def test_the_owner_of_ddl_resigns_during_a_statement(tmp_path: Path) -> None:
    status = free_port()
    with running_tidb(tmp_path, status=status) as address:
        place = Place(address)
        fill(place)
        work, found = begun(place, ADD.format(place.table.sql))
        request = urllib.request.Request(
            f"http://127.0.0.1:{status}/ddl/owner/resign", method="POST"
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 200
        work.join(300)
        assert found == [DONE]
        check(place)


# --- how much a transaction may hold


@pytest.fixture
def given(stack: LocalStack, tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    """A rig on a TiDB with this configuration and these global settings."""
    with ExitStack() as running:

        def give(more: str = "", **variables: object) -> Rig:
            address = running.enter_context(running_tidb(tmp_path, more))
            session = MySqlSession(address)
            for name, value in variables.items():
                session.execute(f"SET GLOBAL {name} = {value}")
            session.close()
            rig = Rig.make(stack, address)
            running.callback(rig.close)
            return rig

        yield give


LIMIT = "[performance]\ntxn-total-size-limit = 1048576"
WIDE = "id INT NOT NULL PRIMARY KEY, v VARCHAR(3000)"


@OF_OUR_OWN
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("more", "variables"),
    [(LIMIT, {}), ("", {"tidb_mem_quota_query": 6 << 20})],
    ids=["txn-total-size-limit", "tidb_mem_quota_query"],
)
def test_rows_that_are_too_many_for_a_transaction_are_written_in_smaller_ones(
    given: Callable[..., Rig], more: str, variables: dict[str, object]
) -> None:
    rig = given(more, **variables)
    segment = rig.segment(rig.create(WIDE))
    rig.produce(rig.event("c", {"id": n, "v": f"{n}" * 400}) for n in range(8_000))
    connection = TaskConnection(rig.config)

    [result] = apply_together([rig.task(segment)], connection)

    assert (result.written, result.hold) == (8_000, None)
    assert 1 < connection.round_records < 8_000
    assert rig.session.query(f"SELECT COUNT(*), SUM(id) FROM {rig.target.sql}") == [
        (8_000, 8_000 * 7_999 // 2)
    ]
    assert rig.control.rows() == {rig.target: 8_000}
    connection.close()


@OF_OUR_OWN
@pytest.mark.timeout(300)
def test_a_row_that_is_too_large_for_any_transaction_holds_its_shard(
    given: Callable[..., Rig],
) -> None:
    rig = given("[performance]\ntxn-total-size-limit = 400000")
    segment = rig.segment(rig.create("id INT NOT NULL PRIMARY KEY, v LONGTEXT"))
    sizes = [10] * 20 + [600_000] + [10] * 20
    rig.produce(rig.event("c", {"id": n, "v": "x" * size}) for n, size in enumerate(sizes))

    result = rig.apply(segment)

    assert result.hold is not None
    assert (result.hold.offset, result.written) == (20, 20)
    assert "txn-total-size-limit" in result.hold.hint
