"""Compares one table of a MySQL target with the statements that its journal notes as executed.

The sink's looks, ``shardmerge drift`` and the journal all use this comparison.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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
from shardmerge.spark_sink.targets.mysql.session import MySqlSession

from .entries import Begun, Entries
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

    def compare(self, target: TargetTable, context: ServerContext | None = None) -> ComparedTable:
        """Compare one table.

        Args:
            target: The table.
            context: The context of the table's database. If it is None, the server is asked.

        Raises:
            TargetError: The target does not answer (``retryable``).
        """
        context = context or server_context(self.session, target.database)
        try:
            expected = executed_state(self.entries.executed(self.pipeline, target), target, context)
        except SourceError as error:
            return unread_table(f"the executed statements do not make a table: {error.message}")
        if kind := self._other_kind(target):
            return unread_table(f"it is not a table but a {kind}")
        try:
            found = server_state(self.session, target, context)
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

    def _other_kind(self, target: TargetTable) -> str:
        rows = self.session.query(
            "SELECT TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s"
            " AND TABLE_NAME = %s",
            (target.database, target.table),
        )
        kind = str(rows[0][0]).lower() if rows else ""
        return kind if "view" in kind or kind == "sequence" else ""


def server_state(session: MySqlSession, target: TargetTable, context: ServerContext) -> TableState:
    """Read a table from the server.

    The server shows triggers only to a user with the privilege TRIGGER.

    Raises:
        UnparsableDDL, UnsupportedDDL: The grammar does not know something in its definition.
        TargetError: The target does not answer (``retryable``).
    """
    schema = schema_of(show_create(session, target), context)
    triggers = session.query(
        "SELECT TRIGGER_NAME, ACTION_TIMING, EVENT_MANIPULATION, ACTION_STATEMENT"
        " FROM information_schema.TRIGGERS"
        " WHERE EVENT_OBJECT_SCHEMA = %s AND EVENT_OBJECT_TABLE = %s",
        (target.database, target.table),
    )
    apart = {
        f"trigger:{name}": f"{timing} {event} {' '.join(str(text).split())}"
        for name, timing, event, text in triggers
    }
    return TableState(schema, apart).in_context(context)


def unread_table(reason: str) -> ComparedTable:
    """A table that was not compared, for this reason."""
    state = TableState(None)
    return ComparedTable(state, state, (unread_difference(reason),))
