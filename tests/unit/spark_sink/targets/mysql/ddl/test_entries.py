"""What the journal keeps of a statement, also in the entries of earlier versions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

from shardmerge.schemas.model.actions import Action, Adoption, ColumnRemoval, NullPermission
from shardmerge.schemas.model.names import TargetTable
from shardmerge.spark_sink.targets.interface import JournalEntry
from shardmerge.spark_sink.targets.mysql.ddl.entries import (
    Begun,
    Entries,
    JournalStatement,
    in_order,
)
from shardmerge.spark_sink.targets.mysql.session import MySqlSession

TARGET = TargetTable("m", "t")
PLACE = ("p", "m", "t", 3, 0)
DROP = "ALTER TABLE `m`.`t` DROP COLUMN `c`"


class _Session:
    """Keeps what is written; answers every query with ``rows``."""

    def __init__(self, *rows: tuple[Any, ...]) -> None:
        self.rows = rows
        self.written: list[Sequence[object]] = []

    def query(self, sql: str, arguments: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return list(self.rows)

    def execute(self, sql: str, arguments: Sequence[object] = ()) -> int:
        assert sql.count("%s") == len(arguments)
        self.written.append(arguments)
        return 1


def entries(session: _Session) -> Entries:
    return Entries(cast(MySqlSession, session), "`control`.`ddl_journal`")


def test_the_actions_of_an_entry_are_those_that_were_stored_not_those_of_its_text() -> None:
    session = _Session()
    told = JournalStatement(DROP, (NullPermission("a"), ColumnRemoval("b")))
    entries(session).store(PLACE, told, JournalEntry("intent"), "CREATE TABLE")
    *_, state, sql, actions, before, error, code = session.written[0]
    assert (state, sql, before, error, code) == ("intent", DROP, "CREATE TABLE", "", "")

    session.rows = ((3, 0, state, sql, actions, before, error, code),)
    assert list(entries(session).begun("p", TARGET)) == [
        Begun(PLACE, told, JournalEntry("intent"), "CREATE TABLE")
    ]


def test_an_entry_of_an_earlier_version_has_the_actions_of_its_text() -> None:
    session = _Session((3, 0, "refused", DROP, None, "CREATE TABLE", "why", "SM-6806"))
    [found] = entries(session).begun("p", TARGET)
    assert found.statement == JournalStatement(DROP, (ColumnRemoval("c"),))
    assert found.entry == JournalEntry("refused", "why", "SM-6806")


def test_an_entry_is_asked_for_by_its_whole_place() -> None:
    sql, arguments = entries(_Session()).find_query(PLACE)
    assert arguments == PLACE and sql.count("%s") == len(PLACE)


def test_an_adoption_stands_behind_what_was_executed_before_it() -> None:
    def at(minute: int) -> datetime:
        return datetime(2026, 11, 25, 20, minute, tzinfo=UTC)

    adoption, other = Adoption("column:c", "`c` int"), Adoption("index:i", "")
    first, debt, later = ColumnRemoval("a"), ColumnRemoval("b"), NullPermission("c")
    executed: list[tuple[tuple[Action, ...], datetime]] = [
        ((first,), at(1)),
        ((debt,), at(9)),
        ((other,), at(7)),
        ((later,), at(5)),
        ((adoption,), at(3)),
    ]
    assert in_order(executed) == [(first,), (adoption,), (debt,), (later,), (other,)]


def test_healings_are_noted_one_after_another_where_no_decision_is() -> None:
    session = _Session((-2,))
    entries(session).note_healing("p", TARGET, "DROP INDEX (healed by ann)")
    assert session.written[0][:7] == ("p", "m", "t", 0, -3, "done", "DROP INDEX (healed by ann)")
