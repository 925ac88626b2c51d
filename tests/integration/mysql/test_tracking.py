"""The tracker against real servers: after each accepted statement the schemas are equal.

``SHARDMERGE_FUZZ_STATEMENTS`` and ``SHARDMERGE_FUZZ_SEED`` make the random part longer or other;
``SHARDMERGE_FUZZ_PORT`` takes a server that runs already (any MySQL or MariaDB with the local
stack's user) instead of starting servers.
"""

from __future__ import annotations

import os
import re

from tests.ddl_files import Written, cases, corpus, read

from .fuzz import Tally, fuzz
from .known_differences import CORPUS, RANDOM
from .shrink import outcome
from .twin import Twin

STATEMENTS = {"mysql80": 500}
_OTHER_STATEMENTS = 300
SEED = int(os.environ.get("SHARDMERGE_FUZZ_SEED", "1"))
CORPUS_FLOOR = {
    "mysql80": 400, "mysql97": 400, "mariadb1011": 350, "mariadb118": 350, "mysql57": 250,
}  # fmt: skip
"""Statements of the shared files that the server must take, or the test proves little."""


def test_random_statements_leave_tracker_and_server_equal(twin: Twin, server: str) -> None:
    wanted = os.environ.get("SHARDMERGE_FUZZ_STATEMENTS")
    count = int(wanted) if wanted else STATEMENTS.get(server, _OTHER_STATEMENTS)
    tally = Tally()
    fuzz(twin, SEED, count, tally)
    print(f"{twin.context.flavour} {twin.context.version}: {tally}")
    assert not tally.found, "\n".join(tally.found)
    assert tally.accepted == count
    assert tally.accepted > tally.refused, "most statements are refused: they prove little"


def test_every_statement_of_the_corpus_that_the_server_takes_is_tracked(
    twin: Twin, server: str
) -> None:
    folder = cases()
    fixture = _accepted_fixture(twin)
    twin.reset(fixture)
    begin, start = twin.shown(), dict(twin.tracked)
    accepted = 0
    wrong: list[str] = []
    agreeing: list[str] = []
    for written in _statements(twin):
        taken, found = outcome(twin, written.sql, written.context(twin.context))
        found = [line for line in found if not _is_from_a_query(line)]
        accepted += taken
        reason = CORPUS.get((server, " ".join(written.sql.split())))
        if found and reason is None:
            wrong.append("\n    ".join([written.sql.strip(), *found]))
        elif taken and not found and reason is not None:
            agreeing.append(written.sql.strip())
        if taken and not twin.restore(begin, start):
            twin.reset(fixture)
    print(f"{twin.context.flavour} {twin.context.version}: {accepted} accepted")
    assert not wrong, "\n".join(wrong)
    assert not agreeing, f"no longer different, strike them off the list: {agreeing}"
    assert accepted >= (CORPUS_FLOOR.get(server, 1) if folder else 1)


def test_each_known_difference_is_still_one(twin: Twin) -> None:
    known = [known for known in RANDOM if known.is_on(twin.context)]
    agreeing = []
    for one in known:
        twin.reset([])
        for sql in one.setup:
            twin.query(sql)
        twin.adopt()
        *before, last = one.statement.split(";")
        assert all(twin.execute(sql) for sql in before)
        taken, wrong = outcome(twin, last)
        if not taken or not any(re.search(one.difference, line) for line in wrong):
            agreeing.append(one.statement)
    assert not agreeing, f"no longer different, strike them off the list: {agreeing}"


def _statements(twin: Twin) -> list[Written]:
    found = []
    for path in corpus():
        for written in () if path.name == "ddl_fixture.sql" else read(path):
            if written.flags & {"ignore", "noexec"} or _leaves_traces(written.sql):
                continue
            if written.context(twin.context).flavour == twin.context.flavour:
                found.append(written)
    return found


def _accepted_fixture(twin: Twin) -> list[str]:
    """The shared fixture's statements that this server takes."""
    folder = cases()
    written = [w.sql for w in read(folder / "ddl_fixture.sql")] if folder else []
    twin.reset([])
    return [sql for sql in written if twin.is_taken(sql)]


def _is_from_a_query(line: str) -> bool:
    # CREATE TABLE … SELECT: the text does not tell the schema, and the tracker says so.
    return "from a query" in line


def _leaves_traces(sql: str) -> bool:
    """Statements whose objects outlive a reset or hide tables, and prove nothing here."""
    return "TEMPORARY" in sql or "ENGINE=MERGE" in sql
