"""The DDL corpus through the binlog of each server: Debezium, its repairs, the tracker.

Behind each statement that the server takes stands a table that names it. When the tracker meets
that table, its tables must be the server's own.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pymysql
import pytest

from shardmerge.agents.tracking.tracked import Unknown
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.debezium.signals import signal_database
from shardmerge.connectors.deploy import deploy_connectors
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.tables import TableSchema
from tests.ddl_files import Written, cases, corpus, read
from tests.integration.connect.conftest import make_play
from tests.integration.mysql.known_differences import CORPUS
from tests.integration.mysql.shrink import outcome
from tests.integration.mysql.twin import DATABASES, HOME, Twin, compare
from tests.whole import IS_WHOLE

from .play import TrackedSource, watched
from .servers import Kind, kinds

KINDS = kinds("mariadb118")
pytestmark = pytest.mark.timeout(3600)
MARK = "mark"
BEFORE, LAST = -2, -1
"""Numbers of the marks before the first statement and behind the last one."""
SNAPSHOT_S = 240
UNTOLD = "ALTER TABLE t RENAME TO other.tt"
"""Debezium's record has the database of the new name alone, so nobody knows whose `t` it was."""
EVERY = 1 if IS_WHOLE else 12
"""``make test`` takes every twelfth statement."""
LEAST = {"mysql57": 200, "mysql80": 350, "mysql97": 350, "mariadb1011": 300, "mariadb118": 300}


@pytest.fixture
def twin(kind: Kind) -> Iterator[Twin]:
    """The server's tables, and what the tracker makes of the same statements without Debezium."""
    twin = Twin(kind.server.port)
    yield twin
    twin.close()


def test_the_corpus_reaches_the_tracker_as_the_server_has_it(
    stack: LocalStack, kind: Kind, twin: Twin, rest: ConnectRest
) -> None:
    folder = cases()
    fixture = [w.sql for w in read(folder / "ddl_fixture.sql")] if folder else []
    twin.reset([])
    fixture = [sql for sql in fixture if twin.is_taken(sql)]
    twin.reset(fixture)
    begin, start = twin.shown(), dict(twin.tracked)
    play = make_play(stack, kind.server.port, kind.server.flavour, kind.server.version)
    source = replace(play.pipeline.sources[0], databases=f"{HOME}|{DATABASES[1]}")
    pipeline = replace(play.pipeline, sources=(source,))
    expected: dict[int, tuple[str, Mapping[tuple[str, str], TableSchema]]] = {}
    wrong: list[str] = []
    came_through: set[int] = set()
    with play.reader(source.name) as changes, watched(pipeline, rest):
        deploy_connectors(pipeline, rest)
        read_the_binlog(twin, rest, connector_name(pipeline, source))
        tracked = TrackedSource(pipeline)
        for number, written in enumerate(list(statements(twin))[::EVERY]):
            taken, found = outcome(twin, written.sql, written.context(twin.context))
            if taken and not found and not is_known(kind, written.sql):
                expected[number] = written.sql, dict(twin.tracked)
                mark(twin, number)
            if taken and not twin.restore(begin, start):
                twin.reset(fixture)
        mark(twin, LAST)
        began = time.monotonic()
        while (met := marked(record := changes.next())) != LAST:
            tracked.take(record)
            if met is not None and met in expected:
                sql, tables = expected[met]
                came_through.add(met)
                found = differences(tables, came(tracked, signal_database(pipeline, source)))
                wrong += [f"{sql.strip()}\n    {line}" for line in found]
        print(f"{kind.name}: {len(expected)} statements, {time.monotonic() - began:.0f} s behind")
    assert not wrong, "\n".join(wrong)
    assert came_through == expected.keys()
    least = LEAST[kind.name] if folder else 1
    assert len(expected) >= least // EVERY


def statements(twin: Twin) -> Iterator[Written]:
    """The corpus's statements for this flavour."""
    for path in corpus():
        for written in () if path.name == "ddl_fixture.sql" else read(path):
            sql = written.sql
            # A session's own sql_mode is in no record: a source has the one of its pipeline file.
            skipped = bool(written.flags & {"ignore", "noexec", "ansi"})
            skipped = skipped or "TEMPORARY" in sql or "MERGE" in sql or sql.strip() == UNTOLD
            if not skipped and written.context(twin.context).flavour == twin.context.flavour:
                yield written


def is_known(kind: Kind, sql: str) -> bool:
    """Whether tracker and server are known to differ even without Debezium."""
    return (kind.name, " ".join(sql.split())) in CORPUS


def read_the_binlog(twin: Twin, rest: ConnectRest, name: str) -> None:
    """Wait until the connector's snapshot is over: what it reads does not come as statements."""
    deadline = time.monotonic() + SNAPSHOT_S
    while (offset := rest.offset(name)) is None or "snapshot" in offset:
        assert time.monotonic() < deadline, offset
        mark(twin, BEFORE)
        time.sleep(0.5)


def mark(twin: Twin, number: int) -> None:
    """Put a table into the binlog, and out again, that says how far it is."""
    try:
        twin.query(f"CREATE TABLE {HOME}.{MARK} (id INT PRIMARY KEY) COMMENT 'mark {number}'")
        twin.query(f"DROP TABLE {HOME}.{MARK}")
    except pymysql.MySQLError as error:
        raise AssertionError(f"mark {number}: {error}") from error


def marked(record: Mapping[str, object]) -> int | None:
    """The number of the mark that a schema-change record is; None when it is none."""
    found = re.search(r"COMMENT 'mark (-?\d+)'", str(record["ddl"]))
    return int(found[1]) if found is not None else None


def came(tracked: TrackedSource, signals: str) -> Mapping[tuple[str, str], TableSchema | Unknown]:
    """The tables that came through the binlog, but for the marks and the database of signals."""
    return {
        key: known
        for key, known in tracked.tables().items()
        if key != (HOME, MARK) and key[0] != signals and isinstance(known, TableSchema | Unknown)
    }


def differences(
    tables: Mapping[tuple[str, str], TableSchema], came: Mapping[tuple[str, str], object]
) -> list[str]:
    """How the tables that came through the binlog differ from the server's."""
    found = [f"{key}: {known}" for key, known in came.items() if isinstance(known, Unknown)]
    found += [f"{key} is missing" for key in sorted(tables.keys() - came.keys())]
    found += [f"{key} is too many" for key in sorted(came.keys() - tables.keys())]
    for key, table in sorted(tables.items()):
        other = came.get(key)
        if isinstance(other, TableSchema):
            found += compare(key, other, table)
    return found
