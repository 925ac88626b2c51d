"""The tracker against a real server: after each accepted statement the schemas are equal.

``SHARDMERGE_FUZZ_STATEMENTS`` and ``SHARDMERGE_FUZZ_SEED`` make the random part longer or other;
``SHARDMERGE_FUZZ_PORT`` takes a server that runs already (any MySQL or MariaDB with the local
stack's user) instead of starting the stack's own.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from shardmerge.schemas.describe import column_text
from shardmerge.schemas.errors import UnsupportedDDL
from shardmerge.schemas.model import TableSchema
from tests.ddl_files import cases, corpus, read
from tests.integration.mysql.random_ddl import Known, statement
from tests.integration.mysql.twin import Twin, running_server

STATEMENTS = int(os.environ.get("SHARDMERGE_FUZZ_STATEMENTS", "400"))
SEED = int(os.environ.get("SHARDMERGE_FUZZ_SEED", "1"))
ACCEPTED_FLOOR = 0.3
"""Share of random statements that the server must take, or the test proves little."""


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    given = os.environ.get("SHARDMERGE_FUZZ_PORT")
    if given:
        yield int(given)
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = int(probe.getsockname()[1])
    with running_server(Path(tmp_path_factory.mktemp("tracking")), free) as started:
        yield started


@pytest.fixture
def twin(port: int) -> Iterator[Twin]:
    made = Twin(port)
    made.reset([])
    yield made
    made.reset([])
    made.close()


def test_random_statements_leave_tracker_and_server_equal(twin: Twin) -> None:
    chance = Random(SEED)
    history: list[str] = []
    accepted = 0
    for number in range(STATEMENTS):
        known = {
            name: Known(tuple(c.name for c in s.columns), tuple(i.name for i in s.indexes))
            for (_, name), s in twin.tracked.items()
        }
        sql = statement(chance, known)
        before = dict(twin.tracked)
        try:
            taken = twin.execute(sql)
            wrong = twin.differences() if taken else []
        except Exception as error:  # every failure is told with what led to it
            taken, wrong = True, [repr(error)]
        accepted += taken
        if taken:
            history.append(sql)
        assert not wrong, "\n".join(
            [
                f"seed {SEED}, statement {number}: {sql}",
                *wrong,
                "before:",
                *(line for key, s in before.items() for line in (str(key), *lines(s))),
            ]
        )
    print(f"{accepted} of {STATEMENTS} accepted by {twin.context.flavour} {twin.context.version}")
    assert accepted / STATEMENTS >= ACCEPTED_FLOOR


def test_every_statement_of_the_corpus_that_the_server_takes_is_tracked(twin: Twin) -> None:
    folder = cases()
    fixture = [w.sql for w in read(folder / "ddl_fixture.sql")] if folder else []
    twin.reset(fixture)
    begin, start = twin.shown(), dict(twin.tracked)
    accepted = 0
    wrong: list[str] = []
    for path in corpus():
        if path.name == "ddl_fixture.sql":
            continue
        for written in read(path):
            if written.flags & {"ignore", "noexec"} or _leaves_traces(written.sql):
                continue
            context = written.context(twin.context)
            if context.flavour != twin.context.flavour:
                continue
            try:
                taken = twin.execute(written.sql, context)
                found = twin.differences() if taken else []
            except UnsupportedDDL as error:
                taken, found = True, [] if "from a query" in error.message else [repr(error)]
            accepted += taken
            wrong += [f"{written.sql}\n    {item}" for item in found]
            if taken and not twin.restore(begin, start):
                twin.reset(fixture)
    print(f"{accepted} accepted by {twin.context.flavour} {twin.context.version}")
    assert accepted > 0
    assert not wrong, "\n".join(wrong)


def lines(schema: TableSchema) -> list[str]:
    """A schema for people."""
    indexes = [f"{i.kind} {i.name} {i.parts}" for i in schema.indexes]
    return [*map(column_text, schema.columns), *indexes, schema.charset + schema.collation]


def _leaves_traces(sql: str) -> bool:
    """Statements whose objects outlive a reset or hide tables, and prove nothing here."""
    return "TEMPORARY" in sql or "ENGINE=MERGE" in sql
