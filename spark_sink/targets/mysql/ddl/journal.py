"""Executes DDL on the target so that no statement runs twice, even after a crash at any point.

DDL is not transactional in MySQL. Theory of operation of ``execute``:

1. Take the target's DDL lock (a named lock of the server). A statement whose connection was lost
   keeps the lock until the server is done with it, so no one sees a half-way state. A TiDB goes on
   with a statement after its session, or its server, is gone: there the cluster's DDL queue is
   checked.
2. Look the statement up in the journal. If it is ``done``, nothing is left to do. If there is no
   entry, or the target refused it before, journal ``intent`` with the table's present CREATE
   statement.
3. Decide by the table's real schema. If it is as at the intent, execute the statement. If it is as
   the statement makes it, a crash came between execution and journal: the statement is done. In any
   other case somebody changed the target: the statement is refused until the table is in one of
   these two states again. If the table or column that the statement makes was made by somebody
   before, it is used, provided that it accepts the rows. If somebody changed what the statement
   changes, so that it would overwrite the change, the statement is refused, too (``drift.met``);
   except that a column which is wider already stays as it is (``drift.holds_already``).
   The intents of the table's other statements are settled first, in the same way: once this
   statement is executed, the table would be in neither of their two states.
4. After the execution, read the table back and compare it with what the statement should make of
   it; then journal ``done``.

A statement that changes rows (``StatementKind.ROWS``) is repeated instead, for a part of the rows
in each transaction, until it finds no more. After a crash it goes on with the rows that are left.

An error of the target is journalled as ``refused`` and returned; the next call begins anew. An
error from the server's state (lock wait timeout, deadlock, lost connection) leaves the intent, and
is raised.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from shardmerge.connectors.event_log import logger
from shardmerge.schemas.ddl.apply.actions import schema_after
from shardmerge.schemas.model.actions import Action, Adoption, TableCreation
from shardmerge.schemas.model.errors import SourceError, TargetError, TargetLost
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.records.decisions import StatementKind, TargetStatement
from shardmerge.schemas.records.drift import MET_CODE
from shardmerge.schemas.target.drift_meetings import holds_already, met, met_text, replaced
from shardmerge.schemas.target.table_comparison import difference, is_same, misfit
from shardmerge.schemas.target.table_state import state_after
from shardmerge.spark_sink.process.failpoints import reach
from shardmerge.spark_sink.targets.interface import JournalEntry
from shardmerge.spark_sink.targets.mysql.control import ControlStore, check_fence
from shardmerge.spark_sink.targets.mysql.server_errors import LOCK_WAIT_TIMEOUT
from shardmerge.spark_sink.targets.mysql.session import MySqlSession

from .compared_tables import TableComparer
from .ddl_lock import check_no_job, ddl_lock
from .entries import JournalStatement, Place
from .introspection import (
    made_database,
    schema_of,
    show_create,
    there_already,
)
from .rows_in_the_way import rows_in_the_way

log = logger(__name__)

_NOT_THAT_WAY = (1800, 1845, 1846)
"""ER_UNKNOWN_ALTER_ALGORITHM, ER_ALTER_OPERATION_NOT_SUPPORTED, …_REASON."""
_VERBS = ("CREATE TABLE", "ALTER TABLE", "UPDATE", "DELETE FROM")
ROWS_AT_A_TIME = 10_000
"""Most rows that a statement changes in one transaction: bounds what is locked, and rolled back."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """An entry, and whether the next call begins anew because nothing was executed."""

    entry: JournalEntry
    anew: bool = False


class Journal:
    """The DDL executor of one pipeline.

    Args:
        session: No transaction may be open on it.
        control: On the same session.
        epoch: The writer epoch: an older writer executes nothing.
        lock_wait_timeout_s: Most seconds to wait for another statement on the same target.
        online: Whether an ALTER TABLE that would lock out readers or writers is refused.
        shard_columns: Names of columns that tell a row's shard; messages to people show them.
    """

    def __init__(
        self,
        session: MySqlSession,
        control: ControlStore,
        pipeline: str,
        epoch: int,
        lock_wait_timeout_s: int = 30,
        *,
        online: bool = False,
        shard_columns: Collection[str] = (),
    ) -> None:
        self._session = session
        self._shard_columns = shard_columns
        self._control = control
        self._pipeline = pipeline
        self._epoch = epoch
        self._wait_s = lock_wait_timeout_s
        self._online = online
        self._comparer = TableComparer(session, control.table("ddl_journal"), pipeline)
        self._entries = self._comparer.entries

    def load(self) -> dict[tuple[TargetTable, int, int], JournalEntry]:
        """(target, version, ordinal) → entry, of every statement that was ever begun."""
        return self._entries.load(self._pipeline)

    def execute(
        self, target: TargetTable, version: int, ordinal: int, statement: TargetStatement
    ) -> JournalEntry:
        """Execute a statement, or find out that it was executed; see the module's text.

        Returns:
            ``done``, or ``refused`` with the reason.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target cannot execute it now (``retryable``).
        """
        place = (self._pipeline, target.database, target.table, version, ordinal)
        with ddl_lock(self._session, self._pipeline, target, self._wait_s):
            asked = [self._control.fence_query(target), self._entries.find_query(place)]
            with self._session.transaction(asked) as (fenced, found):
                check_fence(fenced.rows, self._epoch, target)
            told = JournalStatement(statement.sql, statement.actions)
            state, before = found.rows[0] if found.rows else ("", None)
            if state == "done":
                return JournalEntry("done")
            if any(isinstance(action, Adoption) for action in statement.actions):
                entry = JournalEntry("done")
                self._entries.store(place, told, entry, None)
                return entry
            if statement.kind is StatementKind.ROWS:
                entry = self._change_rows(target, statement)
                self._entries.store(place, told, entry, None)
                return entry
            context = made_database(self._session, target.database)
            check_no_job(self._session, target)
            real = show_create(self._session, target)
            self._settle_others(target, place, real, context)
            if before is None:
                before = real
                self._entries.store(place, told, JournalEntry("intent"), before)
            reach("statement-begun")
            outcome = self._run(target, told, before, real, context)
            kept = None if outcome.anew else before
            self._entries.store(place, told, outcome.entry, kept)
            reach("statement-done")
            return outcome.entry

    def _settle_others(
        self, target: TargetTable, place: Place, real: str, context: ServerContext
    ) -> None:
        """Find out what became of the target's other statements that were begun.

        A statement that was not executed, or whose effect cannot be told from somebody's change,
        begins anew at its next execution.
        """
        for other in list(self._entries.begun(self._pipeline, target)):
            if other.place == place:
                continue
            entry, before = other.entry, other.schema_before
            if real != before and _is_executed(target, other.statement, before, real, context):
                entry = JournalEntry("done")
            self._entries.store(other.place, other.statement, entry, None)

    def note(self, target: TargetTable, version: int, ordinal: int, what: str) -> None:
        """Store a mark that is no statement; see ``StatementJournal``."""
        place = (self._pipeline, target.database, target.table, version, ordinal)
        with self._session.transaction():
            self._control.fence(self._epoch, target)
            self._entries.store(place, JournalStatement(what), JournalEntry("done"), None)

    def stage(self, target: TargetTable) -> str:
        """What the process list says about our statement on a table; "" when it is not listed.

        Source: MySQL manual, "Accessing the Process List"; the progress in percent is MariaDB's.
        """
        ours = tuple(f"{verb} {target.sql}" for verb in _VERBS)
        for row in self._session.query("SHOW FULL PROCESSLIST"):
            seconds, state, text, *percent = row[5:]
            if (text or "").startswith(ours):
                done = f", {percent[0]}% of this stage" if percent and percent[0] else ""
                return f"{state or 'running'}, for {seconds} s{done}"
        return ""

    def change_rows(self, target: TargetTable, statement: TargetStatement) -> None:
        """Repeat a statement, for a part of the rows in each transaction, until it changes no row.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target refuses it, or cannot execute it now (``retryable``).
        """
        changed = 1
        while changed:
            with self._session.transaction():
                self._control.fence(self._epoch, target)
                changed = self._session.execute(f"{statement.sql} LIMIT {ROWS_AT_A_TIME}")
            reach("rows-changed")

    def _change_rows(self, target: TargetTable, statement: TargetStatement) -> JournalEntry:
        try:
            self.change_rows(target, statement)
        except TargetError as error:
            if error.retryable or isinstance(error, TargetLost):
                raise
            return JournalEntry("refused", error.message)
        return JournalEntry("done")

    def _run(
        self,
        target: TargetTable,
        statement: JournalStatement,
        before: str,
        real: str,
        context: ServerContext,
    ) -> _Outcome:
        """Execute the statement unless the table's real schema shows that it was."""
        actions = statement.actions
        creates = any(isinstance(action, TableCreation) for action in actions)
        try:
            schema_before = schema_of(before, context)
            now = schema_of(real, context)
            if creates and schema_before is not None:
                return _accept(target, schema_after(None, actions, target, context), now)
            if real == before and now is not None:
                reason = there_already(now, actions, target, context)
                if reason is not None:
                    return _there(target, reason)
                if (obstacle := self._met(target, actions, context, real)) is not None:
                    return obstacle
            expected = schema_after(schema_before, actions, target, context)
        except SourceError as error:
            reason = f"not executed, because its effect cannot be verified: {error}"
            return _Outcome(JournalEntry("refused", reason), anew=real == before)
        if real != before:
            return _compare("somebody changed the target meanwhile", expected, now)
        try:
            self._perform(statement.sql, alters=not creates)
            reach("statement-executed")
        except TargetError as error:
            if error.retryable:
                if error.number == LOCK_WAIT_TIMEOUT:
                    error.hint = f"a transaction holds {target}: see SHOW PROCESSLIST there"
                raise
            message = error.message
            if now is not None:
                found = rows_in_the_way(
                    self._session, target, now, actions, error, shard_columns=self._shard_columns
                )
                message += f"; {found}" if found else ""
            return _Outcome(JournalEntry("refused", message), anew=True)
        try:
            after = schema_of(show_create(self._session, target), context)
        except SourceError as error:
            return _Outcome(JournalEntry("refused", f"executed, but not verified: {error}"))
        return _compare("executed, but the table is not as expected", expected, after)

    def _met(
        self, target: TargetTable, actions: Sequence[Action], context: ServerContext, real: str
    ) -> _Outcome | None:
        """What becomes of a statement that meets a change by hand; None if it meets none."""
        compared = self._comparer.compare(target, context, real)
        hit = met(compared.expected, compared.found, actions)
        if not hit:
            if gone := replaced(compared.expected, compared.found, actions):
                columns = [f"{each.subject}: {each.found}" for each in gone]
                log.warning("wider_columns_replaced", target=target, columns=columns)
            return None
        after = state_after(compared.expected, actions, target, context).in_context(context)
        if holds_already(compared.expected, after, compared.found, actions):
            columns = [f"{each.subject}: {each.found}" for each in hit]
            log.warning("wider_columns_kept", target=target, columns=columns)
            return _Outcome(JournalEntry("done"), anew=True)
        return _Outcome(JournalEntry("refused", met_text(target, hit), MET_CODE), anew=True)

    def _perform(self, sql: str, *, alters: bool) -> None:
        """Execute DDL; with ``online`` by the first of two ways that lock nobody out.

        Source: MySQL manual, "Online DDL Operations": a server refuses an ALGORITHM or a LOCK that
        the change does not allow. INSTANT is requested by name, because LOCK=NONE excludes it.
        """
        if not self._online or not alters:
            self._session.execute(sql)
            return
        try:
            self._session.execute(f"{sql}, ALGORITHM=INSTANT")
        except TargetError as error:
            if error.number not in _NOT_THAT_WAY:
                raise
        else:
            return
        try:
            self._session.execute(f"{sql}, LOCK=NONE")
        except TargetError as error:
            if error.number in _NOT_THAT_WAY:
                error.message += (
                    "; it would lock out others: execute it by hand when that does no harm, or "
                    "start the sink with online_ddl = false"
                )
            raise


def _there(target: TargetTable, reason: str) -> _Outcome:
    """What the statement makes is there already; ``reason`` says why it does not fit."""
    if not reason:
        return _Outcome(JournalEntry("done"), True)
    text = f"{reason}; `shardmerge drift heal {target}` takes away what was made by hand"
    return _Outcome(JournalEntry("refused", text, MET_CODE), True)


def _is_executed(
    target: TargetTable, statement: JournalStatement, before: str, real: str, context: ServerContext
) -> bool:
    """Whether a table's real schema is what the statement makes of the schema before."""
    try:
        expected = schema_after(schema_of(before, context), statement.actions, target, context)
        return is_same(expected, schema_of(real, context))
    except SourceError:
        return False


def _accept(target: TargetTable, wanted: TableSchema, there: TableSchema | None) -> _Outcome:
    """CREATE TABLE of an existing table: it counts as executed if the table accepts the rows."""
    reason = "it is gone again" if there is None else misfit(wanted, there)
    if reason:
        text = f"{target} is there already and does not fit ({reason}); change it or drop it"
        return _Outcome(JournalEntry("refused", text), anew=True)
    return _Outcome(JournalEntry("done"))


def _compare(what: str, expected: TableSchema | None, real: TableSchema | None) -> _Outcome:
    if is_same(expected, real):
        return _Outcome(JournalEntry("done"))
    return _Outcome(
        JournalEntry(
            "refused",
            f"{what}: {difference(expected, real)}; bring the table to the expected schema",
        )
    )
