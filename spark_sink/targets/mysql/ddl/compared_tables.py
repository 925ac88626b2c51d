"""Compares one table of a MySQL target with the statements that its journal notes as executed.

The sink's looks, ``shardmerge drift`` and the journal all use this comparison.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from shardmerge.schemas.model.actions import Action
from shardmerge.schemas.model.errors import SourceError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.records.drift import Difference, DriftKind, unread_difference
from shardmerge.schemas.target.drift import differences
from shardmerge.schemas.target.table_state import (
    TableState,
    executed_state,
    state_after,
)
from shardmerge.spark_sink.targets.drift_interface import TableComparison
from shardmerge.spark_sink.targets.mysql.server_notes import Statement
from shardmerge.spark_sink.targets.mysql.session import MySqlSession

from .entries import Begun, Entries, executed_actions
from .introspection import schema_of, server_context, show_create


@dataclass(frozen=True, slots=True)
class ComparedTable(TableComparison):
    """A table as it was decided, and as the server has it.

    Attributes:
        executed: A begun statement whose end the journal does not know, if the table shows that it
            was executed; else None. ``expected`` then contains it.
    """

    executed: Begun | None = None


class TableComparer:
    """Compares tables of one pipeline with their decisions.

    Args:
        session: No transaction may be open on it.
        journal: The quoted name of the journal's table.
        pipeline: The pipeline's name.
        ignored: A regular expression. A harmless difference is left out when it matches the whole
            subject; "" leaves out none.

    Attributes:
        session: The argument.
        pipeline: The argument.
        entries: The journal's entries.
    """

    def __init__(
        self, session: MySqlSession, journal: str, pipeline: str, ignored: str = ""
    ) -> None:
        self.session = session
        self.entries = Entries(session, journal)
        self.pipeline = pipeline
        self._ignored = re.compile(ignored)
        self._made: dict[TargetTable, _Made] = {}

    def compare(
        self,
        target: TargetTable,
        context: ServerContext | None = None,
        create: str | None = None,
    ) -> ComparedTable:
        """Compare one table.

        Args:
            target: The table.
            context: The context of the table's database. If it is None, the server is asked.
            create: The table's CREATE statement, as ``show_create`` gives it; likewise.

        Raises:
            TargetError: The target does not answer (``retryable``).
        """
        context = context or server_context(self.session, target.database)
        executed, kinds, triggers = self.session.queries(
            self.entries.executed_query(self.pipeline, target),
            _kind_query(target),
            _triggers_query(target),
        )
        try:
            expected = self._executed_state(executed_actions(executed), target, context)
        except SourceError as error:
            return unread_table(f"the executed statements do not make a table: {error.message}")
        if kind := _other_kind(kinds):
            return unread_table(f"it is not a table but a {kind}")
        if create is None:
            create = show_create(self.session, target)
        try:
            found = _found_state(create, triggers, context)
        except SourceError as error:
            return unread_table(
                f"shardmerge does not understand SHOW CREATE TABLE: {error.message}"
            )
        compared = ComparedTable(expected, found, self._reported_differences(expected, found))
        for begun in self.entries.begun(self.pipeline, target) if compared.differences else ():
            try:
                after = state_after(expected, begun.statement.actions, target, context)
            except SourceError:
                continue  # The statement does not fit the decided table, so it was not executed.
            told = self._reported_differences(after.in_context(context), found)
            if len(told) < len(compared.differences):
                compared = ComparedTable(after.in_context(context), found, told, begun)
        return compared

    def _reported_differences(
        self, expected: TableState, found: TableState
    ) -> tuple[Difference, ...]:
        return tuple(
            each
            for each in differences(expected, found)
            if each.kind is not DriftKind.HARMLESS or not self._ignored.fullmatch(each.subject)
        )

    def _executed_state(
        self, executed: list[tuple[Action, ...]], target: TargetTable, context: ServerContext
    ) -> TableState:
        """What the executed statements make; those that were known the last time are not repeated.

        Raises:
            SourceError: They do not make a table.
        """
        made = self._made.get(target)
        count = len(made.executed) if made is not None else 0
        if made is None or made.context != context or made.executed != executed[:count]:
            count, made = 0, _Made([], context, TableState(None))
        state = executed_state(executed[count:], target, context, made.state)
        self._made[target] = _Made(executed, context, state)
        return state.in_context(context)


class _Made(NamedTuple):
    """What statements made of a table in a context; the state is not ``in_context``."""

    executed: list[tuple[Action, ...]]
    context: ServerContext
    state: TableState


def _kind_query(target: TargetTable) -> Statement:
    return Statement(
        "SELECT TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s"
        " AND TABLE_NAME = %s",
        (target.database, target.table),
    )


def _other_kind(rows: Sequence[tuple[Any, ...]]) -> str:
    kind = str(rows[0][0]).lower() if rows else ""
    return kind if "view" in kind or kind == "sequence" else ""


def _triggers_query(target: TargetTable) -> Statement:
    """The server shows triggers only to a user with the privilege TRIGGER."""
    return Statement(
        "SELECT TRIGGER_NAME, ACTION_TIMING, EVENT_MANIPULATION, ACTION_STATEMENT"
        " FROM information_schema.TRIGGERS"
        " WHERE EVENT_OBJECT_SCHEMA = %s AND EVENT_OBJECT_TABLE = %s",
        (target.database, target.table),
    )


def _found_state(
    create: str, triggers: Sequence[tuple[Any, ...]], context: ServerContext
) -> TableState:
    """A table as the server has it.

    Raises:
        UnparsableDDL, UnsupportedDDL: The grammar does not know something in its definition.
    """
    apart = {
        f"trigger:{name}": f"{timing} {event} {' '.join(str(text).split())}"
        for name, timing, event, text in triggers
    }
    return TableState(schema_of(create, context), apart).in_context(context)


def unread_table(reason: str) -> ComparedTable:
    """A table that was not compared, for this reason."""
    state = TableState(None)
    return ComparedTable(state, state, (unread_difference(reason),))
