"""Changes by hand on a real target: noticed, met by a statement, healed and adopted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.schemas.model.actions import Adoption
from shardmerge.schemas.model.errors import ContractError, TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.decisions import StatementKind, TargetStatement
from shardmerge.schemas.records.drift import MET_CODE, Difference, DriftKind, with_times
from shardmerge.schemas.target.dialects.dialects import dialect_of
from shardmerge.schemas.target.drift import adoption_of
from shardmerge.schemas.target.drift_healing import Healing, healing
from shardmerge.spark_sink.targets.interface import JournalEntry
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.ddl.compared_tables import ComparedTable, TableComparer
from shardmerge.spark_sink.targets.mysql.ddl.drift_store import MySqlDriftStore
from shardmerge.spark_sink.targets.mysql.ddl.healing_runs import heal
from shardmerge.spark_sink.targets.mysql.ddl.journal import Journal
from shardmerge.spark_sink.targets.mysql.ddl.table_looks import MySqlLooks
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from tests.target_statements import written

from .conftest import GIVEN_PORT

T, OTHER = TargetTable("drifted", "t"), TargetTable("drifted", "other")
DONE = JournalEntry("done")
CREATE = (
    "(id BIGINT NOT NULL PRIMARY KEY, a INT, b VARCHAR(40) DEFAULT 'x', c DATETIME(3),"
    " d DECIMAL(9,2) NOT NULL DEFAULT 0, e ENUM('p','q'), KEY by_a (a), UNIQUE KEY one (c))"
)
BY_HAND = {
    "ADD COLUMN note VARCHAR(20)": ("column:note", DriftKind.HARMLESS),
    "ADD COLUMN must INT NOT NULL": ("column:must", DriftKind.REFUSES),
    "MODIFY COLUMN a BIGINT": ("column:a", DriftKind.HARMLESS),
    "MODIFY COLUMN b VARCHAR(4) DEFAULT 'x'": ("column:b", DriftKind.REFUSES),
    "ALTER COLUMN b SET DEFAULT 'y'": ("column:b", DriftKind.VALUES),
    "MODIFY COLUMN d DOUBLE NOT NULL DEFAULT 0": ("column:d", DriftKind.VALUES),
    "MODIFY COLUMN e ENUM('p') NOT NULL": ("column:e", DriftKind.REFUSES),
    "DROP COLUMN e": ("column:e", DriftKind.MISSING),
    "ADD INDEX more (b, a)": ("index:more", DriftKind.HARMLESS),
    "ADD UNIQUE INDEX two (b)": ("index:two", DriftKind.VALUES),
    "DROP INDEX by_a": ("index:by_a", DriftKind.MISSING),
    "DROP INDEX one": ("index:one", DriftKind.MISSING),
    "DEFAULT CHARACTER SET latin1": ("charset", DriftKind.HARMLESS),
    "ADD CONSTRAINT up FOREIGN KEY (id) REFERENCES drifted.other (id)": (
        "foreign key:up",
        DriftKind.REFUSES,
    ),
    "MODIFY COLUMN b VARCHAR(40) CHARACTER SET latin1 DEFAULT 'x'": ("column:b", DriftKind.REFUSES),
}
"""A change by hand → what differs then, and what that can do to rows."""


@dataclass
class Line:
    """A target with two tables that a journal made."""

    session: MySqlSession
    control: ControlStore
    journal: Journal
    comparer: TableComparer
    looks: MySqlLooks
    epoch: int
    changes: Mapping[str, tuple[str, DriftKind]]
    """Those of ``BY_HAND`` that the server makes like MySQL."""

    def run(self, target: TargetTable, version: int, text: str) -> JournalEntry:
        """Execute a decided statement."""
        verb = "CREATE TABLE" if version == 1 else "ALTER TABLE"
        made = written(f"{verb} {target.sql} {text}", StatementKind.EXPANDING)
        return self.journal.execute(target, version, 0, made)

    def by_hand(self, text: str, table: TargetTable = T) -> None:
        """Change a table as an operator does."""
        self.session.execute(f"ALTER TABLE {table.sql} {text}")

    def found(self) -> dict[str, DriftKind]:
        """What a comparison finds."""
        return {each.subject: each.kind for each in self.comparer.compare(T).differences}

    def plan(self, compared: ComparedTable) -> tuple[Healing, ...]:
        """What heals everything."""
        facts = self.session.facts
        dialect = dialect_of(facts.kind, ".".join(map(str, facts.version)))
        return healing(compared.differences, compared.expected, compared.found, T, dialect)

    def heal(self) -> ComparedTable:
        """Heal everything."""
        planned = self.plan(self.comparer.compare(T))
        return heal(self.comparer, T, self.plan, planned, "ann")


@contextmanager
def drifting(address: MySqlAddress, unlike: tuple[str, ...] = ()) -> Iterator[Line]:
    """The two tables on a server, while the context lasts.

    Args:
        address: Of the server.
        unlike: Words of the changes by hand that the server makes in another way, or not at all.
    """
    session = MySqlSession(address, lock_wait_timeout_s=5)
    for database in ("drifted", "drifted_control"):
        session.execute(f"DROP DATABASE IF EXISTS {database}")
    session.execute("CREATE DATABASE drifted CHARACTER SET utf8mb4")
    control = ControlStore(session, "drifted_control", "p")
    control.prepare()
    epoch = control.take_epoch()
    journal = Journal(session, control, "p", epoch, 5)
    comparer = TableComparer(session, control.table("ddl_journal"), "p")
    changes = {t: of for t, of in BY_HAND.items() if not any(word in t for word in unlike)}
    looks = MySqlLooks(session, comparer)
    made = Line(session, control, journal, comparer, looks, epoch, changes)
    assert made.run(T, 1, CREATE) == DONE
    assert made.run(OTHER, 1, "(id BIGINT NOT NULL PRIMARY KEY)") == DONE
    yield made
    for database in ("drifted", "drifted_control"):
        session.execute(f"DROP DATABASE IF EXISTS {database}")
    session.close()


@pytest.fixture
def line(server: str, server_port: Callable[[str], int]) -> Iterator[Line]:
    port = int(GIVEN_PORT) if server == "given" else server_port(server)
    with drifting(MySqlAddress("127.0.0.1", port, USER, PASSWORD)) as made:
        yield made


def test_each_change_by_hand_is_found_with_what_it_can_do_and_is_healed(line: Line) -> None:
    tables = {T: 0, OTHER: 0}
    first = line.looks.look(tables)
    assert (dict(first.compared), first.left) == ({T: (), OTHER: ()}, 0)
    for change, (subject, kind) in line.changes.items():
        line.by_hand(change)
        look = line.looks.look(tables)
        told = {each.subject: each.kind for each in look.compared[T]}
        assert told == {subject: kind}, change
        healed = line.heal()
        assert healed.differences == (), change
    assert line.looks.look(tables).compared[T] == ()


def test_many_changes_at_once_are_found_and_healed_together(line: Line) -> None:
    together = [
        "ADD COLUMN note VARCHAR(20)", "MODIFY COLUMN a BIGINT", "DROP COLUMN e",
        "ADD INDEX more (note, a)", "DROP INDEX one", "ALTER COLUMN b SET DEFAULT 'y'",
    ]  # fmt: skip
    for change in together:
        line.by_hand(change)
    more = ("index:more", DriftKind.HARMLESS)
    assert line.found() == dict(BY_HAND.get(each, more) for each in together)
    assert line.heal().differences == ()
    notes = line.session.query(
        "SELECT statement FROM drifted_control.ddl_journal WHERE ordinal < 0 ORDER BY ordinal DESC"
    )
    assert len(notes) >= len(together)
    assert all(str(text).endswith("(healed by ann)") for (text,) in notes)
    assert all(entry.state == "done" for entry in line.journal.load().values())


def test_a_trigger_is_told(line: Line) -> None:
    line.session.execute(
        "CREATE TRIGGER drifted.audit BEFORE INSERT ON drifted.t FOR EACH ROW SET NEW.a = 1"
    )
    assert line.found() == {"trigger:audit": DriftKind.VALUES}
    assert line.heal().differences == ()


def test_a_view_and_a_missing_table_are_told(line: Line) -> None:
    line.session.execute("RENAME TABLE drifted.t TO drifted.old")
    assert line.found() == {"table": DriftKind.MISSING}
    line.session.execute("CREATE VIEW drifted.t AS SELECT * FROM drifted.old")
    assert line.found() == {"table": DriftKind.UNREAD}
    line.session.execute("DROP VIEW drifted.t")
    assert line.heal().differences == ()


def test_partitions_that_refuse_rows_are_told_and_removed(line: Line) -> None:
    line.by_hand("DROP INDEX one")
    line.by_hand("PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10))")
    assert line.found() == {"index:one": DriftKind.MISSING, "partitioning": DriftKind.REFUSES}
    assert line.heal().differences == ()


def test_a_statement_that_would_overwrite_a_change_by_hand_is_refused(line: Line) -> None:
    line.by_hand("MODIFY COLUMN b VARCHAR(99) NOT NULL DEFAULT 'x'")
    narrow = "MODIFY COLUMN b VARCHAR(60) DEFAULT 'x'"
    refused = line.run(T, 2, narrow)
    assert (refused.state, refused.code) == ("refused", MET_CODE)
    assert "varchar(40)" in refused.error
    assert "varchar(99)" in refused.error
    assert line.journal.load()[T, 2, 0].code == MET_CODE
    assert line.run(OTHER, 2, "ADD COLUMN free INT") == DONE

    assert line.heal().differences == ()
    assert line.run(T, 2, narrow) == DONE
    assert line.found() == {}


def test_an_index_made_by_hand_is_used_if_it_is_the_decided_one(line: Line) -> None:
    line.by_hand("ADD INDEX later (b)")
    assert line.run(T, 2, "ADD INDEX later (b)") == DONE
    line.by_hand("ADD INDEX other (b)")
    refused = line.run(T, 3, "ADD INDEX other (a, b)")
    assert (refused.state, refused.code) == ("refused", MET_CODE)
    assert line.heal().differences == ()
    assert line.run(T, 3, "ADD INDEX other (a, b)") == DONE
    assert line.found() == {}


def test_a_column_made_by_hand_that_does_not_fit_holds_this_target_only(line: Line) -> None:
    line.by_hand("ADD COLUMN f DATE")
    refused = line.run(T, 2, "ADD COLUMN f INT")
    assert (refused.state, refused.code) == ("refused", MET_CODE)
    assert "drift heal drifted.t" in refused.error
    assert line.heal().differences == ()
    assert line.run(T, 2, "ADD COLUMN f INT") == DONE


def test_what_is_adopted_is_told_no_more_until_it_changes_again(line: Line) -> None:
    for change in ("ADD INDEX more (b, a)", "ADD COLUMN note VARCHAR(20)", "DROP INDEX by_a"):
        line.by_hand(change)
    compared = line.comparer.compare(T)
    for ordinal, each in enumerate(compared.differences):
        adoption = adoption_of(each, compared.found)
        assert isinstance(adoption, Adoption)
        statement = TargetStatement(
            f"adopt {each.subject}", StatementKind.EXPANDING, "", (f"adoption:{each.subject}",),
            actions=(adoption,),
        )  # fmt: skip
        assert line.journal.execute(T, 2, ordinal, statement) == DONE
    assert line.found() == {}
    assert line.run(T, 3, "ADD COLUMN g INT") == DONE
    line.by_hand("DROP INDEX more")
    line.by_hand("MODIFY COLUMN note VARCHAR(10)")
    assert line.found() == {"column:note": DriftKind.REFUSES, "index:more": DriftKind.MISSING}
    assert line.heal().differences == ()


def test_nothing_is_healed_when_the_table_changed_since_the_plan(line: Line) -> None:
    line.by_hand("ADD INDEX more (b, a)")
    planned = line.plan(line.comparer.compare(T))
    line.by_hand("ADD INDEX most (c, a)")
    with pytest.raises(TargetError, match="has changed since") as raised:
        heal(line.comparer, T, line.plan, planned, "ann")
    assert raised.value.code == "SM-6809"
    assert set(line.found()) == {"index:more", "index:most"}


def test_a_statement_whose_end_is_not_known_is_no_drift_when_the_table_shows_it(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = MySqlSession.execute

    def lose(self: MySqlSession, text: str, arguments: object = ()) -> int:
        done = execute(self, text, arguments)  # type: ignore[arg-type]
        if text.startswith("ALTER"):
            raise TargetError("lost", number=2013, retryable=True, code="SM-3111")
        return done

    with monkeypatch.context() as patch:
        patch.setattr(MySqlSession, "execute", lose)
        with pytest.raises(TargetError, match="lost"):
            line.run(T, 2, "ADD COLUMN h INT")
    assert line.found() == {}
    assert line.run(T, 2, "ADD COLUMN h INT") == DONE
    assert line.found() == {}


def test_differences_are_kept_with_their_times(line: Line) -> None:
    store = MySqlDriftStore(line.session, line.control, "p")
    line.by_hand("ADD COLUMN must INT NOT NULL")
    found = with_times(line.comparer.compare(T).differences, (), now_ms=20, clear_ms=10)
    store.keep(line.epoch, T, found)
    assert store.load() == {T: found}
    [each] = found
    assert each == Difference("column:must", DriftKind.REFUSES, "", "`must` int NOT NULL", 20, 10)
    store.keep(line.epoch, T, ())
    assert store.load() == {}


def test_a_table_that_cannot_be_compared_stops_no_other_one(line: Line) -> None:
    where = f"{line.control.table('ddl_journal')} SET actions = '{{' WHERE target_table = 'other'"
    line.session.execute(f"UPDATE {where}")
    line.by_hand("ADD INDEX more (b, a)")
    look = line.looks.look({OTHER: 0, T: 0})
    assert {each.subject for each in look.compared[T]} == {"index:more"}
    assert isinstance(look.failed[OTHER], ContractError)


def test_a_view_in_place_of_a_table_says_why_it_is_not_healed(line: Line) -> None:
    line.session.execute(f"DROP TABLE {T.sql}")
    line.session.execute(f"CREATE VIEW {T.sql} AS SELECT 1 AS id")
    [step] = line.plan(line.comparer.compare(T))
    assert (step.sql, step.reason) == ("", "it is not a table but a view; remove that by hand")
    line.session.execute(f"DROP VIEW {T.sql}")


def test_a_column_that_is_wider_already_is_used_and_what_follows_is_as_without_it(
    line: Line, caplog: pytest.LogCaptureFixture
) -> None:
    line.by_hand("MODIFY COLUMN b VARCHAR(255) DEFAULT 'x'")
    assert line.run(T, 2, "MODIFY COLUMN b VARCHAR(80) DEFAULT 'x'") == DONE
    rest = "NOT NULL DEFAULT 0"
    line.by_hand(f"MODIFY COLUMN d DECIMAL(30,2) {rest}")
    assert line.run(T, 3, f"MODIFY COLUMN d DECIMAL(12,2) {rest}") == DONE
    assert line.found() == {"column:b": DriftKind.HARMLESS, "column:d": DriftKind.HARMLESS}
    line.session.execute(f"INSERT INTO {T.sql} (id, b, d) VALUES (1, REPEAT('y', 80), 9999999999)")
    narrowed = line.run(T, 4, f"MODIFY COLUMN d DECIMAL(8,2) {rest}")
    assert (narrowed.state, narrowed.code) == ("refused", MET_CODE)
    assert line.run(T, 5, f"MODIFY COLUMN d DECIMAL(40,2) {rest}") == DONE
    assert line.found() == {"column:b": DriftKind.HARMLESS}
    assert line.session.query(f"SELECT LENGTH(b), d = 9999999999 FROM {T.sql}") == [(80, 1)]
    assert line.run(T, 6, "DROP COLUMN b") == DONE
    assert line.found() == {}
    told = [record.__dict__["event"] for record in caplog.records]
    assert told == ["wider_columns_kept"] * 2 + ["wider_columns_replaced"] * 2
