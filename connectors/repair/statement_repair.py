"""Brings a connector past a statement that Debezium cannot read, or misreads.

1. The statement's tables after it are worked out (``history_tables``).
2. Rows before the statement that the connector has not delivered are found: rows of these tables,
   or all rows if the server cannot be asked to leave out one transaction. The connector runs up to
   the statement again, with the smallest queue, until all of them are delivered: a task that fails
   loses what it has read and not sent. Where only records of statements are lost, they are written
   instead.
3. The statement's tables go to the schema history, the statement to the source's schema-change
   topic, and the connector's offset behind it. In this order: if the repair ends in between, the
   connector fails at the statement again, the repair is repeated, and tells the same tables.

If nobody can tell the tables after it, the statement's record says so. Then the tracker holds their
shards, and the connector leaves the tables out (``left_out``) until the server can be asked
(``taking_in``).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from shardmerge.connectors.binlog.binlog_events import Logged, Statement, table_name, written_name
from shardmerge.connectors.event_log import logger
from shardmerge.connectors.formats.connector_status import ConnectorStatus
from shardmerge.connectors.repair.diagnosis.failures import FailedAt, Failure, failure_of
from shardmerge.connectors.repair.diagnosis.statement_plan import (
    TableDescription,
    described_table,
    is_of_one,
    leaves_out_by_gtid,
    named_tables,
    offset_past,
    refuse_truncate,
    refuse_unknown_tables,
    tables_before,
)
from shardmerge.connectors.repair.diagnosis.undelivered import (
    Gap,
    gap_before,
    is_failed_statement,
    lost_statements,
)
from shardmerge.connectors.repair.schema_history.history_tables import HistoryTables
from shardmerge.connectors.repair.schema_history.left_out import LeftOut
from shardmerge.schemas.ddl.changes import TableName
from shardmerge.schemas.model.errors import SourceError, StackError

from .source_connector import SourceConnector, Stand

log = logger(__name__)
_SMALLEST_QUEUE: Mapping[str, str] = {
    "max.queue.size": "2",
    "max.batch.size": "1",
    # Notifications and heartbeats: the row behind such a record would be lost each time.
    "notification.enabled.channels": "log",
    "heartbeat.interval.ms": "0",
}
"""At most two records are lost when the connector fails, and the first it reads hardly ever is."""
_ROUNDS = 12
_FAILS_WITHIN_S = 180.0
_PAUSE_S = 0.1


class Attended(StrEnum):
    """What was done for a failed connector."""

    RESTARTED = "restarted"
    CORRECTED = "restarted, with a corrected schema history"
    REPAIRED = "brought past a statement that Debezium cannot read"
    BEGUN_ANEW = "begun anew, since it was interrupted before it had a place"
    PASSED = "brought past a statement whose tables nobody can tell: their shards are held"
    MADE_KNOWN = "restarted, with a table that it had not heard of"
    FITTED = "restarted, with an offset that fits gtid_mode"
    HELD = "held, since the source refuses what is to be read"


@dataclass(frozen=True, slots=True)
class Behind:
    """What is known of a statement's tables right behind it.

    Attributes:
        names: The tables; empty when they are not known.
        told: The descriptions that Debezium gets of them.
        left_out: Those that it must not read from here on.
        unread: Why they cannot be told; "" when they can.
    """

    names: Sequence[TableName]
    told: Sequence[TableDescription]
    left_out: tuple[LeftOut, ...] = ()
    unread: str = ""


class StatementRepair:
    """Brings one connector past statements. One thread at a time uses it.

    Args:
        connector: The connector that fails.
    """

    def __init__(self, connector: SourceConnector) -> None:
        self._connector = connector

    def stand_before(self, failure: Failure) -> Stand | None:
        """Where the connector stands before the statement that made it fail.

        Returns:
            None where that cannot be told: there is no offset, or no such statement behind it.

        Raises:
            StackError: Connect, Kafka or the source does not answer.
        """
        offset = self._connector.offset()
        if offset is None:
            return None
        delivered = self._connector.topics.delivered()
        ahead: list[Logged] = []
        changed: dict[TableName, Statement] = {}
        tables = None
        for item in self._connector.ahead(offset, delivered):
            ahead.append(item)
            if failure.at is FailedAt.STATEMENT:
                if isinstance(item, Statement) and is_failed_statement(
                    item, failure.statement, delivered
                ):
                    return Stand(offset, delivered, ahead, item)
            elif isinstance(item, Statement):
                if tables is None:
                    history = self._connector.topics.history()
                    tables = tables_before(history, item, self._connector.context)
                for name in tables.take(item.sql, item.database):
                    changed.setdefault(name, item)
            elif failure.is_of_table(item.table) and table_name(item.table) in changed:
                # The first statement that changes the table and is followed by rows of it.
                statement = changed[table_name(item.table)]
                return Stand(offset, delivered, ahead[: ahead.index(statement) + 1], statement)
        return None

    def bring_past(self, stand: Stand, failure: Failure) -> Attended:
        """Bring the connector past the statement.

        Args:
            stand: Its place before the statement.
            failure: How it failed.

        Raises:
            StackError: Connect, Kafka or the source does not answer: begin again later.
        """
        source, statement = self._connector.source.name, stand.statement
        behind = self._behind(statement)
        log.warning(
            "statement_repair_begun",
            source=source,
            position=f"{statement.file}:{statement.pos}",
            sql=statement.sql,
        )
        self._connector.stop()
        for number in range(_ROUNDS):
            stand, gap = self._with_records(stand, behind)
            if not self._is_open(gap, stand):
                self._put_behind(stand, behind, gap.passed)
                return self._say(statement, behind, number)
            log.info(
                "statement_repair_waits",
                source=source,
                round=number,
                undelivered=len(gap.missing),
                position=gap.missing[0] if gap.missing else gap.partial,
            )
            again = self._deliver_more()
            if again is None or again.statement != statement:
                # It got past the statement, or fails elsewhere now: the next look sees to that.
                self._connector.go_on()
                return Attended.RESTARTED
            stand = again
        raise StackError(
            f"source {source}: {_ROUNDS} tries did not deliver the rows before "
            f"{statement.file}:{statement.pos}",
            hint="it is tried again; if it comes to this again, see the worker's log",
            code="SM-4502",
        )

    def _say(self, statement: Statement, behind: Behind, rounds: int) -> Attended:
        source = self._connector.source.name
        if not behind.unread:
            log.warning("statement_repaired", source=source, rounds=rounds)
            return Attended.REPAIRED
        log.error(
            "statement_held",
            source=source,
            position=f"{statement.file}:{statement.pos}",
            tables=[written_name(name) for name in behind.names],
            sql=statement.sql,
            reason=behind.unread,
            hint="tell the schema with: shardmerge command set-schema",
        )
        return Attended.PASSED

    def _behind(self, statement: Statement) -> Behind:
        """The statement's tables as they are right behind it, as far as anybody knows."""
        context = self._connector.context
        tables = tables_before(self._connector.topics.history(), statement, context)
        names = tables.take(statement.sql, statement.database)
        try:
            refuse_truncate(statement, context)
        except SourceError as error:
            # A TRUNCATE changes no schema: Debezium still knows the table.
            return Behind(named_tables(statement, context), (), unread=str(error))
        try:
            refuse_unknown_tables(statement, names, context)
            return Behind(names, self._tables_behind(statement, names, tables))
        except SourceError as error:
            place = f"{statement.file}:{statement.pos}"
            return Behind(
                names,
                [described_table(name, None) for name in names],
                tuple(LeftOut(name, place) for name in names),
                f"Debezium cannot read the statement, and its tables are not known: {error}",
            )

    def _tables_behind(
        self, statement: Statement, names: Sequence[TableName], tables: HistoryTables
    ) -> list[TableDescription]:
        """The statement's tables as they are right behind it.

        Raises:
            SourceError: That cannot be known.
        """
        try:
            return [described_table(name, tables.table(name)) for name in names]
        except SourceError as error:
            if told_already := self._told_already(statement, names):
                return told_already
            binlog = self._connector.binlog
            told = self._connector.ask_server(
                names, lambda: binlog.logged(statement.file, statement.end)
            )
            for table in told.values():
                if isinstance(table, SourceError):
                    raise SourceError(
                        f"{error.message}; the source's server does not tell it either: "
                        f"{table.message}",
                        code="SM-4503",
                    ) from error
            return [table for table in told.values() if isinstance(table, TableDescription)]

    def _told_already(
        self, statement: Statement, names: Sequence[TableName]
    ) -> list[TableDescription]:
        """The tables as the same repair told them before it was interrupted; empty if it did not.

        Its record of the statement, which the tracker has, says that they are known. Where they
        were not known, it made Debezium forget all of them.
        """
        place = f"{statement.file}:{statement.pos}"
        texts = {
            record.table: record.text
            for record in self._connector.topics.history()
            if record.is_own and record.statement == place
        }
        told = [TableDescription(name, "") for name in names]
        if not all(table.id in texts for table in told):
            return []
        told = [replace(table, text=texts[table.id]) for table in told]
        return [] if all(table.text.startswith("DROP ") for table in told) else told

    def _with_records(self, stand: Stand, behind: Behind) -> tuple[Stand, Gap]:
        """The gap before the statement, once lost records of statements are written.

        Nothing but chance decides how many of them a task delivers before it fails again.
        """
        # Read again now that the connector is stopped.
        stand = replace(stand, delivered=self._connector.topics.delivered())
        gap = self._gap(stand, behind)
        lost = lost_statements(gap)
        if not lost:
            return stand, gap
        for statement in lost:
            self._connector.topics.add_statement(statement)
        source = self._connector.source.name
        log.info("statement_records_written", source=source, records=len(lost))
        stand = replace(stand, delivered=self._connector.topics.delivered())
        return stand, self._gap(stand, behind)

    def _gap(self, stand: Stand, behind: Behind) -> Gap:
        by_gtid = behind.names and leaves_out_by_gtid(stand.offset, stand.statement)
        names = {written_name(name) for name in behind.names} if by_gtid else None
        comes = self._connector.captured().has
        return gap_before(
            stand.statement, stand.ahead, stand.offset, stand.delivered, names, comes=comes
        )

    def _is_open(self, gap: Gap, stand: Stand) -> bool:
        """Whether something is not delivered that must be delivered before the statement."""
        if gap.missing:
            return True
        if gap.partial is None:
            return False
        rows = self._connector.binlog.number_of_rows(gap.partial)
        # If they cannot be counted, the connector is to get behind them.
        return rows is None or rows > stand.offset.row

    def _deliver_more(self) -> Stand | None:
        """Let the connector run up to its statement again; None when it gets past it."""
        connector = self._connector
        connector.correct()
        connector.config.change(_SMALLEST_QUEUE)
        connector.rest.resume(connector.name)
        deadline = time.monotonic() + _FAILS_WITHIN_S
        while (status := connector.rest.status(connector.name)) is None or not status.is_failed:
            if time.monotonic() > deadline:
                return None
            time.sleep(_PAUSE_S)
        connector.stop()
        return self.stand_before(failure_of(trace_of(status)))

    def _put_behind(self, stand: Stand, behind: Behind, passed: Sequence[Statement]) -> None:
        """Write down what the statement made, and put the connector's offset behind it.

        Until the offset is set, each step can be repeated. The record comes behind the tables, so
        that a repeated repair finds what it told of them, and before the offset: no row behind the
        statement may come without it.
        """
        connector, statement = self._connector, stand.statement
        target = offset_past(stand.offset, statement, passed)
        connector.topics.add_history(
            connector.corrections(target, lambda record: is_of_one(record, passed))
        )
        connector.tell(target, behind.told, f"{statement.file}:{statement.pos}")
        if behind.left_out:
            left_out = (*connector.config.left_out(), *behind.left_out)
            connector.config.leave_out(tuple(dict.fromkeys(left_out)))
        if not stand.delivered.has(statement):
            connector.topics.add_statement(statement, behind.unread)
        connector.rest.set_offset(connector.name, connector.source.name, target.values)
        connector.go_on()


def trace_of(status: ConnectorStatus) -> str:
    """The stack trace of a failed connector, or of its failed task."""
    return status.trace or next((task.trace for task in status.tasks if task.trace), "")
