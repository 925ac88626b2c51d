"""Executes DDL on Iceberg tables: the schema and the journal's entry are one commit.

So no statement runs twice and none is forgotten, without an intent: before the commit neither
the schema nor the entry is there, after it both are. The effect of a statement is computed
(``ddl``) and committed, then the table is read back and compared; what somebody else did to the
table before is seen when the statement does not apply to it, and refused with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping

from shardmerge.schemas.errors import SourceError, TargetError
from shardmerge.schemas.events import TargetStatement
from shardmerge.schemas.names import TargetTable
from shardmerge.spark_sink.targets.interface import JournalEntry, StatementPlace

from .ddl import AlterTable, CreateTable, parse_statement
from .layout import Layout, difference, misfit
from .store import IcebergStore, repeated
from .stored import StoredState, statement_key, taken_over
from .tables import IcebergTable

DONE = JournalEntry("done")


class IcebergJournal:
    """The DDL executor of one pipeline; ``epoch``: an older writer executes nothing."""

    def __init__(self, store: IcebergStore, epoch: int) -> None:
        self._store = store
        self._epoch = epoch

    def load(self) -> Mapping[StatementPlace, JournalEntry]:
        """Every statement that was executed or refused."""
        found: dict[StatementPlace, JournalEntry] = {}
        for table, state in self._store.states().items():
            found |= {_place(table, key): DONE for key in state.done}
            found |= {
                _place(table, key): JournalEntry("refused", error)
                for key, error in state.refused.items()
            }
        return found

    def execute(
        self, target: TargetTable, version: int, ordinal: int, statement: TargetStatement
    ) -> JournalEntry:
        """Execute a statement; see ``StatementJournal``."""
        if (current := self._store.epoch()) != self._epoch:
            raise taken_over(current, self._epoch)
        key = statement_key(version, ordinal)
        return repeated(lambda: self._try(target, key, statement.sql))

    def _try(self, target: TargetTable, key: str, sql: str) -> JournalEntry:
        table = self._store.catalog.find(target)
        state = self._store.state_of(table) if table is not None else StoredState()
        state = state.fenced(self._epoch)
        if key in state.done:
            return DONE
        try:
            parsed = parse_statement(sql)
            if isinstance(parsed, CreateTable):
                return self._create(target, table, parsed, state, key)
            if table is None:
                return JournalEntry("refused", f"{target} is missing: somebody dropped it")
            return self._alter(table, parsed, state, key)
        except SourceError as error:
            return self._refuse(table, state, key, f"not executed: {error}")
        except TargetError as error:
            if error.retryable or not error.statement:
                raise
            return self._refuse(table, state, key, error.message)

    def _create(
        self,
        target: TargetTable,
        table: IcebergTable | None,
        wanted: CreateTable,
        state: StoredState,
        key: str,
    ) -> JournalEntry:
        done = self._store.properties(state.journalled(key, DONE))
        if table is not None:
            if reason := misfit(wanted.layout, table.layout):
                text = f"{target} is there already and does not fit ({reason}); change or drop it"
                return self._refuse(table, state, key, text)
            self._store.register(target, self._epoch)
            table.commit(done)
            return DONE
        self._store.register(target, self._epoch)
        comment = {"comment": wanted.comment} if wanted.comment else {}
        self._store.catalog.create(target, wanted.layout, {**comment, **done})
        return self._verified(target, wanted.layout)

    def _alter(
        self, table: IcebergTable, statement: AlterTable, state: StoredState, key: str
    ) -> JournalEntry:
        layout = statement.change(table.layout)
        table.commit(self._store.properties(state.journalled(key, DONE)), layout=layout)
        return self._verified(table.name, layout)

    def _verified(self, target: TargetTable, expected: Layout) -> JournalEntry:
        reason = difference(expected, self._store.catalog.load(target).layout)
        if reason:
            text = f"executed, but the table is not as expected: {reason}"
            return JournalEntry("refused", text)
        return DONE

    def _refuse(
        self, table: IcebergTable | None, state: StoredState, key: str, reason: str
    ) -> JournalEntry:
        entry = JournalEntry("refused", reason)
        if table is not None and state.refused.get(key) != reason:
            table.commit(self._store.properties(state.journalled(key, entry)))
        return entry


def _place(table: TargetTable, key: str) -> StatementPlace:
    version, ordinal = key.split(".")
    return table, int(version), int(ordinal)
