"""Executes DDL on Iceberg tables: the new schema and the journal's entry are one commit.

So no statement runs twice and none is lost, and no intent is needed: before the commit the table
has neither the schema nor the entry, after it the table has both. The effect of a statement is
computed (``layout_changes``) and committed; then the table is read back and compared. If somebody
has changed the table so that the statement does not apply to it, the statement is refused with the
reason. If the table or column that the statement makes was made by somebody before, it is used,
provided that it accepts the rows. A statement that would overwrite a change by hand is refused. A
table that a sink has made is not made again: if it is missing, somebody dropped it.

The state keeps the table that the executed statements make (``texts.decided``). It changes in the
same commit.

A statement that changes rows becomes a MERGE (``row_changes``). Its staged snapshot and the
journal's entry are one commit, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.actions import Action, Adoption
from shardmerge.schemas.model.errors import SourceError, TargetError, TargetLost
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.records.decisions import StatementKind, TargetStatement
from shardmerge.schemas.records.drift import MET_CODE
from shardmerge.schemas.target.drift_meetings import met_text
from shardmerge.spark_sink.process.failpoints import reach
from shardmerge.spark_sink.targets.iceberg.staging import new_id, publishable, stage
from shardmerge.spark_sink.targets.iceberg.store import IcebergStore, repeated
from shardmerge.spark_sink.targets.iceberg.tables import IcebergTable
from shardmerge.spark_sink.targets.iceberg.texts.compared_layouts import meeting
from shardmerge.spark_sink.targets.iceberg.texts.decided import Decided, decided_after
from shardmerge.spark_sink.targets.iceberg.texts.history import History
from shardmerge.spark_sink.targets.iceberg.texts.layout import Layout, difference, misfit
from shardmerge.spark_sink.targets.iceberg.texts.layout_changes import (
    created,
    layout_after,
    new_layout,
    there_already,
    with_ids,
)
from shardmerge.spark_sink.targets.iceberg.texts.row_changes import merge_sql
from shardmerge.spark_sink.targets.iceberg.texts.stored import StoredState, statement_key
from shardmerge.spark_sink.targets.interface import JournalEntry, StatementPlace, taken_over

log = logger(__name__)
DONE = JournalEntry("done")
_EXECUTED = "executed"
"""How the reason of a refusal begins when the statement was executed nevertheless."""


class IcebergJournal:
    """The DDL executor of one pipeline; ``epoch``: an older writer executes nothing."""

    def __init__(self, store: IcebergStore, epoch: int) -> None:
        self._store = store
        self._epoch = epoch
        self._session: Any = None

    def load(self) -> Mapping[StatementPlace, JournalEntry]:
        """Every statement that was executed or refused."""
        found: dict[StatementPlace, JournalEntry] = {}
        for table, state in self._store.states().items():
            found |= {_place(table, key): DONE for key in state.done}
            found |= {
                _place(table, key): JournalEntry("refused", error, state.codes.get(key, ""))
                for key, error in state.refused.items()
            }
        return found

    def execute(
        self, target: TargetTable, version: int, ordinal: int, statement: TargetStatement
    ) -> JournalEntry:
        """Execute a statement; see ``StatementJournal``."""
        self._fence()
        key = statement_key(version, ordinal)
        return repeated(lambda: self._try(target, key, statement))

    def note(self, target: TargetTable, version: int, ordinal: int, what: str) -> None:
        """Store a mark that is no statement; see ``StatementJournal``. The text is not kept."""
        self._fence()
        key = statement_key(version, ordinal)

        def store() -> None:
            table = self._store.catalog.load(target)
            state = self._store.writable(table, self._epoch).journalled(key, DONE)
            table.commit(self._store.properties(state))

        repeated(store)

    def stage(self, target: TargetTable) -> str:
        """Always "": a change is one commit of the table's metadata."""
        return ""

    def change_rows(self, target: TargetTable, statement: TargetStatement) -> None:
        """Execute a statement that changes rows; see ``StatementJournal``."""
        self._fence()
        if self._store.catalog.find(target) is None:
            raise TargetError(
                f"{target} is missing: somebody dropped it",
                statement=statement.sql,
                hint="restore the table, with its properties: they hold the sink's offsets",
                code="SM-3106",
            )
        try:
            repeated(lambda: self._change(target, statement, lambda state: state))
        except SourceError as error:
            hint = "change the rows by hand, then let the shard's route keep truncated rows"
            text = f"not executed: {error}"
            raise TargetError(text, statement=statement.sql, hint=hint, code="SM-3109") from error

    def _fence(self) -> None:
        if (current := self._store.epoch()) != self._epoch:
            raise taken_over(current, self._epoch)

    def _try(self, target: TargetTable, key: str, statement: TargetStatement) -> JournalEntry:
        table = self._store.catalog.find(target)
        state = StoredState(self._epoch)
        if table is not None:
            state = self._store.writable(table, self._epoch)
        if key in state.done:
            return DONE
        try:
            if statement.kind is StatementKind.ROWS:
                if table is None:
                    return _missing(target)
                self._change(target, statement, lambda state: state.journalled(key, DONE))
                return DONE
            if (wanted := created(statement.actions)) is not None:
                return self._create(target, table, wanted, state, key)
            if table is None:
                return _missing(target)
            return self._alter(table, statement, state, key)
        except SourceError as error:
            return self._refuse(table, state, key, f"not executed: {error}")
        except TargetError as error:
            if error.retryable or isinstance(error, TargetLost):
                raise
            return self._refuse(table, state, key, error.message)

    def _create(
        self,
        target: TargetTable,
        table: IcebergTable | None,
        wanted: TableSchema,
        state: StoredState,
        key: str,
    ) -> JournalEntry:
        if state.decided is None and target in self._store.made():
            what = "is not the table that the sink made" if table is not None else "is missing"
            text = (
                f"{target} {what}: somebody dropped it; restore it, or see "
                f"`shardmerge drift heal {target} --pipeline FILE`"
            )
            return self._refuse(table, state, key, text, "SM-3106")
        layout = new_layout(wanted)
        if table is not None:
            if reason := misfit(layout, table.layout):
                text = f"{target} is there already and does not fit ({reason}); change or drop it"
                return self._refuse(table, state, key, text)
            self._store.register(target, self._epoch)
            # A shadow's sink begins with the columns that the rebuild has made.
            decided = state.decided or Decided(with_ids(layout, table.layout), table.sequence)
            table.commit(self._done(state, key, decided))
            self._store.note_made([target], self._epoch)
            return DONE
        self._store.register(target, self._epoch)
        comment = {"comment": wanted.comment} if wanted.comment else {}
        done = self._done(state, key, Decided(layout))
        reach("statement-begun")
        self._store.catalog.create(target, layout, {**comment, **done})
        self._store.note_made([target], self._epoch)
        reach("statement-executed")
        return self._verified(target, layout, key)

    def _alter(
        self, table: IcebergTable, statement: TargetStatement, state: StoredState, key: str
    ) -> JournalEntry:
        actions, real = statement.actions, table.layout
        executed = state.refused.get(key, "").startswith(_EXECUTED)
        reason = there_already(real, actions, executed=executed)
        if reason:
            return self._refuse(table, state, key, reason)
        if reason is not None:
            table.commit(self._done(state, key, _decided(state, actions, table, real)))
            return DONE
        meets = meeting(state.decided, real, actions)
        if meets.is_held:
            columns = [f"{each.subject}: {each.found}" for each in meets.hit]
            log.warning("wider_columns_kept", target=table.name, columns=columns)
            table.commit(self._done(state, key, _decided(state, actions, table, real)))
            return DONE
        if meets.hit:
            return self._refuse(table, state, key, met_text(table.name, meets.hit), MET_CODE)
        if meets.replaced:
            columns = [f"{each.subject}: {each.found}" for each in meets.replaced]
            log.warning("wider_columns_replaced", target=table.name, columns=columns)
        layout = layout_after(real, actions)
        done = self._done(state, key, _decided(state, actions, table, layout))
        reach("statement-begun")
        table.commit(done, layout=layout)
        reach("statement-executed")
        return self._verified(table.name, layout, key)

    def _done(self, state: StoredState, key: str, decided: Decided | None) -> dict[str, str]:
        """The properties after a statement that was executed."""
        return self._store.properties(replace(state.journalled(key, DONE), decided=decided))

    def _change(
        self,
        target: TargetTable,
        statement: TargetStatement,
        note: Callable[[StoredState], StoredState],
    ) -> None:
        """Change rows, and commit them with the state that ``note`` makes of the present one."""
        catalog = self._store.catalog
        sql = merge_sql(catalog.sql_name(target), statement.actions)
        self._store.writable(catalog.load(target), self._epoch)
        # A session of its own: the driver's thread may stage a batch in the other one now.
        self._session = self._session or catalog.new_session()
        staged_as = new_id()
        stage(self._session, staged_as, sql, f"changing rows of {target}")
        table = catalog.load(target)
        state = note(self._store.writable(table, self._epoch))
        table.commit(self._store.properties(state), publish=publishable(table, staged_as))
        reach("rows-changed")

    def _verified(self, target: TargetTable, expected: Layout, key: str) -> JournalEntry:
        """The outcome after the commit; a refusal replaces the entry that the commit stored."""
        reason = difference(expected, self._store.catalog.load(target).layout)
        if not reason:
            return DONE
        entry = JournalEntry("refused", f"{_EXECUTED}, but the table is not as expected: {reason}")

        def store() -> None:
            table = self._store.catalog.load(target)
            state = self._store.writable(table, self._epoch).journalled(key, entry)
            table.commit(self._store.properties(state))

        repeated(store)
        return entry

    def _refuse(
        self,
        table: IcebergTable | None,
        state: StoredState,
        key: str,
        reason: str,
        code: str = "",
    ) -> JournalEntry:
        entry = JournalEntry("refused", reason, code)
        if table is not None and state.refused.get(key) != reason:
            table.commit(self._store.properties(state.journalled(key, entry)))
        return entry


def _decided(
    state: StoredState, actions: Sequence[Action], table: IcebergTable, layout: Layout
) -> Decided | None:
    """The decided table after a statement, whose table then has the layout."""
    if state.decided is None:
        return None
    # Only an adoption is about the table's commits, which are costly to read.
    adopts = any(isinstance(action, Adoption) for action in actions)
    return decided_after(state.decided, actions, layout, table.history if adopts else History())


def _missing(target: TargetTable) -> JournalEntry:
    return JournalEntry("refused", f"{target} is missing: somebody dropped it")


def _place(table: TargetTable, key: str) -> StatementPlace:
    version, ordinal = key.split(".")
    return table, int(version), int(ordinal)
