"""The journal's entries in the control tables of a MySQL target.

An entry keeps the actions of its statement (``actions``) and the text, which is for people. Entries
of earlier versions have only the text; their actions are read from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeAlias

from shardmerge.schemas.model.actions import Action, Adoption
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records import plain
from shardmerge.schemas.records.earlier_statements import actions_of
from shardmerge.spark_sink.targets.interface import JournalEntry, StatementPlace
from shardmerge.spark_sink.targets.mysql.server_notes import Statement
from shardmerge.spark_sink.targets.mysql.session import MySqlSession

Place: TypeAlias = tuple[str, str, str, int, int]
"""Pipeline, database and name of the target, version, ordinal: the journal's key."""


@dataclass(frozen=True, slots=True)
class JournalStatement:
    """What an entry keeps of its statement.

    Attributes:
        sql: Its text, or the text of a note.
        actions: Its actions; empty for a note.
    """

    sql: str
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True)
class Begun:
    """An entry that is not done.

    Attributes:
        schema_before: The table's CREATE statement before the statement; "" without a table.
    """

    place: Place
    statement: JournalStatement
    entry: JournalEntry
    schema_before: str


@dataclass(frozen=True, slots=True)
class _Kept:
    """The form in which actions are stored, as JSON."""

    actions: tuple[Action, ...]


class Entries:
    """Reads and writes entries; ``table`` is the quoted name of the journal's table."""

    def __init__(self, session: MySqlSession, table: str) -> None:
        self._session, self._table = session, table

    def load(self, pipeline: str) -> dict[StatementPlace, JournalEntry]:
        """Every entry of a pipeline."""
        return {
            (TargetTable(database, table), int(version), int(ordinal)): JournalEntry(
                state, error, code
            )
            for database, table, version, ordinal, state, error, code in self._session.query(
                "SELECT target_database, target_table, version, ordinal, state, error, code"
                f" FROM {self._table} WHERE pipeline = %s",
                (pipeline,),
            )
        }

    def find_query(self, place: Place) -> Statement:
        """Asks for state and ``schema_before`` of an entry.

        ``schema_before`` is NULL when it is not needed, because the next call begins anew.
        """
        return Statement(
            f"SELECT state, schema_before FROM {self._table} WHERE pipeline = %s"
            " AND target_database = %s AND target_table = %s AND version = %s"
            " AND ordinal = %s",
            place,
        )

    def begun(self, pipeline: str, target: TargetTable) -> Iterator[Begun]:
        """The entries of a target that are not done and have a ``schema_before``."""
        rows = self._session.query(
            "SELECT version, ordinal, state, statement, actions, schema_before, error, code"
            f" FROM {self._table} WHERE pipeline = %s AND target_database = %s"
            " AND target_table = %s AND state <> 'done' AND schema_before IS NOT NULL",
            (pipeline, target.database, target.table),
        )
        for version, ordinal, state, sql, actions, before, error, code in rows:
            place = (pipeline, target.database, target.table, int(version), int(ordinal))
            statement = JournalStatement(sql, _actions(sql, actions))
            yield Begun(place, statement, JournalEntry(state, error, code), before)

    def executed_query(self, pipeline: str, target: TargetTable) -> Statement:
        """Asks for each executed statement of a target; see ``executed_actions``."""
        return Statement(
            f"SELECT statement, actions, changed_at FROM {self._table} WHERE pipeline = %s"
            " AND target_database = %s AND target_table = %s AND state = 'done' AND ordinal >= 0"
            " ORDER BY version, ordinal",
            (pipeline, target.database, target.table),
        )

    def targets(self, pipeline: str) -> list[TargetTable]:
        """The targets with an executed statement, sorted."""
        rows = self._session.query(
            f"SELECT DISTINCT target_database, target_table FROM {self._table}"
            " WHERE pipeline = %s AND state = 'done' AND ordinal >= 0",
            (pipeline,),
        )
        return sorted(TargetTable(database, table) for database, table in rows)

    def note_healing(self, pipeline: str, target: TargetTable, what: str) -> None:
        """Note for people that a statement healed a table.

        Its place is version 0, which no decision has, and the next negative number.
        """
        place = (pipeline, target.database, target.table)
        ((last,),) = self._session.query(
            f"SELECT COALESCE(MIN(ordinal), 0) FROM {self._table} WHERE pipeline = %s"
            " AND target_database = %s AND target_table = %s AND version = 0",
            place,
        )
        note = JournalStatement(what)
        self.store((*place, 0, int(last) - 1), note, JournalEntry("done"), None)

    def store(
        self,
        place: Place,
        statement: JournalStatement,
        entry: JournalEntry,
        schema_before: str | None,
    ) -> None:
        """Write an entry; it replaces an earlier one in the same place."""
        actions = plain.dump(_Kept(statement.actions)).decode()
        self._session.execute(
            f"REPLACE INTO {self._table} (pipeline, target_database, target_table, version,"
            " ordinal, state, statement, actions, schema_before, error, code)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (*place, entry.state, statement.sql, actions, schema_before, entry.error, entry.code),
        )


def executed_actions(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Action, ...]]:
    """The actions of each executed statement, for ``table_state.executed_state``.

    Args:
        rows: The answer to ``Entries.executed_query``.

    Raises:
        UnsupportedDDL, UnparsableDDL: The text of an entry of an earlier version cannot be read.
    """
    return in_order((_actions(sql, actions), at) for sql, actions, at in rows)


def in_order(
    executed: Iterable[tuple[tuple[Action, ...], datetime]],
) -> list[tuple[Action, ...]]:
    """The actions of statements in an order in which they make the table.

    Statements about the same thing are executed in version order. An adoption is about the table as
    it was at that time, so it goes behind all statements that were executed earlier.

    Args:
        executed: In the order of version and ordinal: a statement's actions, and when it was done.
    """
    placed: list[tuple[tuple[Action, ...], datetime]] = []
    adopted: list[tuple[tuple[Action, ...], datetime]] = []
    for actions, at in executed:
        is_adoption = any(isinstance(action, Adoption) for action in actions)
        (adopted if is_adoption else placed).append((actions, at))
    for actions, at in sorted(adopted, key=lambda one: one[1]):
        end = max((i for i, (_, done) in enumerate(placed, 1) if done <= at), default=0)
        placed.insert(end, (actions, at))
    return [actions for actions, _ in placed]


@lru_cache(maxsize=8_192)
def _actions(sql: str, stored: str | None) -> tuple[Action, ...]:
    return actions_of(sql) if stored is None else plain.load(_Kept, stored.encode()).actions
