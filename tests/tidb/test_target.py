"""What the sink and the renderer count on in a TiDB, each on a real one."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import pytest

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.spark_sink.targets.interface import JournalEntry
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.ddl.journal import Journal
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from tests.golden.test_diff import Rollout
from tests.integration.mysql.test_target_ddl import Target
from tests.target_moves import TARGET
from tests.target_statements import written

_names = itertools.count()
DONE = JournalEntry("done")


class Place:
    """A database and a control database of one test, and sessions with them."""

    def __init__(self, address: MySqlAddress) -> None:
        self.address = address
        self.name = f"tidb_test_{next(_names)}"
        self.table = TargetTable(self.name, "t")
        self.session = self.new_session()
        self.session.execute(f"DROP DATABASE IF EXISTS {self.name}")
        self.session.execute(f"CREATE DATABASE {self.name}")
        self.control = ControlStore(self.session, f"{self.name}_control", "p")
        self.control.prepare()
        self.epoch = self.control.take_epoch()

    @classmethod
    def again(cls, address: MySqlAddress, place: Place) -> Place:
        """What a server that was started again has of it, for the next writer."""
        found = cls.__new__(cls)
        found.address, found.name, found.table = address, place.name, place.table
        found.session = found.new_session()
        found.control = ControlStore(found.session, f"{place.name}_control", "p")
        found.epoch = found.control.take_epoch()
        return found

    def new_session(self, wait_s: int = 5) -> MySqlSession:
        return MySqlSession(self.address, lock_wait_timeout_s=wait_s)

    def journal(self) -> Journal:
        session = self.new_session()
        control = ControlStore(session, f"{self.name}_control", "p")
        return Journal(session, control, "p", self.epoch, 5)

    def execute(self, journal: Journal, version: int, sql: str) -> JournalEntry:
        statement = written(sql)
        return journal.execute(self.table, version, 0, statement)

    def rows(self) -> list[tuple[object, ...]]:
        return self.session.query(f"SELECT * FROM {self.table.sql} ORDER BY 1")


@pytest.fixture
def place(tidb: MySqlAddress) -> Iterator[Place]:
    place = Place(tidb)
    yield place
    for name in (place.name, f"{place.name}_control"):
        place.session.execute(f"DROP DATABASE IF EXISTS {name}")
    place.session.close()


# --- facts


def test_a_tidb_says_what_it_is(place: Place) -> None:
    facts = place.session.facts
    assert facts.kind == "tidb" and facts.version >= (6,)
    assert dict(facts.default_collations)["utf8mb4"] == "utf8mb4_bin"
    assert facts.variable("tidb_txn_mode") == "PESSIMISTIC"


def test_sessions_lock_rows_and_know_collations_whatever_the_cluster_s_defaults_are(
    place: Place,
) -> None:
    globals_ = (("tidb_txn_mode", "optimistic", "pessimistic"),
                ("default_collation_for_utf8mb4", "utf8mb4_general_ci", "utf8mb4_bin"))  # fmt: skip
    for name, value, _ in globals_:
        place.session.execute(f"SET GLOBAL {name} = '{value}'")
    try:
        session = place.new_session()
        journal = place.journal()
        for name, _, value in globals_:
            assert session.query(f"SELECT @@{name}") == [(value,)]
        create = f"CREATE TABLE {place.table.sql} (id INT PRIMARY KEY, v VARCHAR(9) NOT NULL)"
        assert place.execute(journal, 1, create) == DONE
    finally:
        for name, _, value in globals_:
            place.session.execute(f"SET GLOBAL {name} = '{value}'")
    with session.transaction():
        session.execute(f"INSERT INTO {place.table.sql} VALUES (1, 'a')")
        other = place.new_session(wait_s=1)
        with pytest.raises(TargetError) as raised, other.transaction():
            other.execute(f"INSERT INTO {place.table.sql} VALUES (1, 'b')")
    assert raised.value.retryable and raised.value.number == 1205
    assert place.rows() == [(1, "a")]


# --- every row of the transition table

BASE = "create table t (id int primary key, a int not null, b varchar(9) not null, key kb (b))"
TRANSITIONS = (
    ("absent → partial", 2, ((0, "add c int not null, add unique key uc (c)"),)),
    ("partial → partial, grown", 3, ((0, "add c int not null"), (1, "add c int not null"),
                                     (0, "modify c bigint not null"))),
    ("partial → everywhere", 2, ((0, "add c int not null, add unique key uc (c)"),
                                 (1, "add c int not null, add unique key uc (c)"))),
    ("everywhere → partial", 2, ((0, "drop column b"),)),
    ("partial → partial, dropped", 3, ((0, "drop column b"), (1, "drop column b"))),
    ("partial → absent", 2, ((0, "drop column b"), (1, "drop column b"))),
    ("renamed", 2, ((0, "rename column b to c"), (1, "rename column b to c"))),
    ("NULL and back", 2, ((0, "modify a int null"), (1, "modify a int null"),
                          (0, "modify a int not null"), (1, "modify a int not null"))),
)  # fmt: skip


@pytest.mark.parametrize(("name", "shards", "steps"), TRANSITIONS, ids=[t[0] for t in TRANSITIONS])
def test_every_row_of_the_transition_table_is_executed(
    tidb: MySqlAddress, name: str, shards: int, steps: tuple[tuple[int, str], ...]
) -> None:
    target = Target(tidb)
    rollout = Rollout(BASE, shards, target.kind)
    assert rollout.schema is not None
    executed = [*target.run(rollout.last, rollout.schema)]
    target.insert(rollout.schema)
    for shard, sql in steps:
        answer = rollout.alter(shard, sql)
        assert not any(text.startswith(("cannot", "conflict")) for text in answer), answer
        executed += target.run(rollout.last, rollout.schema)
    assert len(executed) > 1
    ((count,),) = target.session.query(f"SELECT COUNT(*) FROM {TARGET.sql}")
    assert count == 1


@pytest.mark.parametrize(
    ("create", "sql", "statements"),
    [
        # Of an indexed column TiDB changes no collation: the index goes and comes again.
        ("create table t (id int primary key, b varchar(9), unique key ub (b))",
         "modify b varchar(9) collate utf8mb4_general_ci", 3),
        # Nor the definition of one that a computed column names.
        ("create table t (id int primary key, a int, g int as (a + 1), key kg (g))",
         "modify a bigint", 5),
        ("create table t (id int primary key, a int, g int as (a + 1) stored)",
         "modify g int as (a + 2) stored", 2),
        ("create table t (id int not null, a int)", "add primary key (id)", 1),
        ("create table t (id int primary key, a varchar(9) charset latin1)",
         "modify a varchar(9) charset utf8mb4", 1),
        ("create table t (id int primary key)", "add c text not null default ('x')", 1),
        ("create table t (id int primary key)", "add c int not null default (1 + 1)", 2),
    ],
)  # fmt: skip
def test_what_takes_a_way_of_its_own_is_executed_over_rows(
    tidb: MySqlAddress, create: str, sql: str, statements: int
) -> None:
    target = Target(tidb)
    rollout = Rollout(create, 1, target.kind)
    assert rollout.schema is not None
    target.run(rollout.last, rollout.schema)
    target.insert(rollout.schema)
    answer = rollout.alter(0, sql)
    if answer and answer[0].startswith("conflict"):
        pytest.fail(answer[0])
    # The last one of a text that has no default waits until its rows are read again.
    done = target.run(rollout.last, rollout.schema, rows=True)
    assert len(done) >= statements, answer


# --- long statements, conflicts


def test_a_statement_that_waits_for_a_transaction_is_seen_and_ends(place: Place) -> None:
    create = f"CREATE TABLE {place.table.sql} (id INT PRIMARY KEY, v INT)"
    journal = place.journal()
    assert place.execute(journal, 1, create) == DONE
    holder = place.new_session()
    found: list[JournalEntry] = []
    add = f"ALTER TABLE {place.table.sql} ADD COLUMN w INT"
    work = threading.Thread(target=lambda: found.append(place.execute(journal, 2, add)))
    with holder.transaction():
        holder.execute(f"INSERT INTO {place.table.sql} (id) VALUES (1)")
        work.start()
        looking = place.journal()
        stage = ""
        for _ in range(2_000):
            stage = looking.stage(place.table)
            if stage or found:
                break
    work.join(120)
    assert found == [DONE] and stage
    assert place.rows() == [(1, None, None)]


def test_rows_are_written_while_an_index_is_made(place: Place) -> None:
    journal = place.journal()
    create = f"CREATE TABLE {place.table.sql} (id INT PRIMARY KEY, v INT)"
    assert place.execute(journal, 1, create) == DONE
    for start in range(0, 20_000, 1_000):
        values = ", ".join(f"({n}, {n % 97})" for n in range(start, start + 1_000))
        place.session.execute(f"INSERT INTO {place.table.sql} VALUES {values}")
    add = f"ALTER TABLE {place.table.sql} ADD INDEX kv (v)"
    found: list[JournalEntry] = []
    work = threading.Thread(target=lambda: found.append(place.execute(journal, 2, add)))
    work.start()
    written = 0
    while work.is_alive() or not written:
        with place.session.transaction():
            place.session.execute(
                f"REPLACE INTO {place.table.sql} VALUES ({written}, -1), ({written + 50_000}, -1)"
            )
        written += 1
    work.join()
    assert found == [DONE]
    ((count,),) = place.session.query(
        f"SELECT COUNT(*) FROM {place.table.sql} USE INDEX (kv) WHERE v = -1"
    )
    assert count == 2 * written


def test_a_deadlock_and_a_writer_that_was_replaced_are_told_apart(place: Place) -> None:
    create = f"CREATE TABLE {place.table.sql} (id INT PRIMARY KEY, v INT)"
    assert place.execute(place.journal(), 1, create) == DONE
    place.session.execute(f"INSERT INTO {place.table.sql} VALUES (1, 0), (2, 0)")
    one, other = place.new_session(), place.new_session()
    errors: list[TargetError] = []
    barrier = threading.Barrier(2)

    def both(session: MySqlSession, first: int, second: int) -> None:
        try:
            with session.transaction():
                session.execute(f"UPDATE {place.table.sql} SET v = v + 1 WHERE id = {first}")
                barrier.wait(30)
                session.execute(f"UPDATE {place.table.sql} SET v = v + 1 WHERE id = {second}")
        except TargetError as error:
            errors.append(error)

    threads = [
        threading.Thread(target=both, args=(one, 1, 2)),
        threading.Thread(target=both, args=(other, 2, 1)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [error.retryable for error in errors] == [True]
    place.control.take_epoch()
    with pytest.raises(TargetError, match="took over"):
        place.execute(place.journal(), 2, f"ALTER TABLE {place.table.sql} ADD COLUMN w INT")
