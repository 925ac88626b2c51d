"""Gets one source's connector going again when it has failed.

A failed connector is restarted, and before that:

1. Its offset is fitted to its server's ``gtid_mode`` (``gtid_switch``), or it is held.
2. What it will know of its tables is corrected (``history``): at a restart right behind a DDL,
   Debezium applies statements twice, or too early.
3. When it failed at a statement that it cannot read, it is brought past it (``statement_repair``).
4. When it failed at a row because it misread a statement on the row's table, that table is written
   to the schema history as the statements' texts tell it. If the connector will read the statement
   again, it is brought past it as in step 3. A table that it has never heard of is made known
   (``unknown_table``).

While tables of the source are read as a whole (``whole``) its connector is stopped, and left alone.

Each step can be repeated. A key of the connector's configuration says that a repair is at work and
keeps what it changed there, so that another process goes on with it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.formats.connector_status import ConnectorStatus
from shardmerge.connectors.repair.diagnosis.failures import FailedAt, Failure, failure_of
from shardmerge.connectors.repair.diagnosis.statement_plan import misread_tables
from shardmerge.connectors.repair.schema_history.history import is_before
from shardmerge.schemas.ddl.changes import TableName
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.settings import Pipeline, Source

from .gtid_switch import Fitted, GtidSwitch
from .source_connector import SourceConnector
from .statement_repair import Attended, StatementRepair, trace_of
from .taking_in import take_in
from .unknown_table import UnknownTable


class SourceRepair:
    """Looks after one source's connector. Threads may share it; ``close`` it.

    Args:
        pipeline: Whose connector.
        source: One of its sources.
        rest: The Connect cluster.

    Attributes:
        times_taken_back: How often ``take_back`` let the connector run again.
    """

    def __init__(self, pipeline: Pipeline, source: Source, rest: ConnectRest) -> None:
        self._connector = SourceConnector(pipeline, source, rest)
        self._statements = StatementRepair(self._connector)
        self._unknown = UnknownTable(self._connector)
        self._gtids = GtidSwitch(self._connector)
        self._lock = threading.Lock()
        self.times_taken_back = 0

    def close(self) -> None:
        """Leave Kafka."""
        self._connector.close()

    @property
    def is_at_work(self) -> bool:
        """Whether somebody repairs or restarts the connector at this moment."""
        return self._lock.locked()

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Keep everybody else from the connector; False, and nothing is kept, if it is at work."""
        is_ours = self._lock.acquire(blocking=False)
        try:
            yield is_ours
        finally:
            if is_ours:
                self._lock.release()

    def source_end(self) -> SourcePosition:
        """Where the source's binlog ends now.

        Raises:
            StackError: The source does not answer.
        """
        return self._connector.binlog.end()

    def offset(self) -> SourceOffset | None:
        """The connector's offset; None before its first.

        Raises:
            StackError: Connect or the source does not answer.
        """
        return self._connector.offset()

    def restart(self) -> None:
        """Restart a connector that runs, at a place where that is safe.

        Raises:
            StackError: Connect, Kafka or the source does not answer.
        """
        with self._lock:
            if not self._connector.is_set_aside():
                self._restart()

    def set_aside(self) -> bool:
        """Stop the connector, for a reading of whole tables that Connect knows already.

        Until the reading is deleted, and ``take_back`` is called, nothing else here touches the
        connector.

        Returns:
            Whether the reading can go on. False while a repair is at work: the connector is not
            stopped then. False, too, if the connector that was stopped has no offset, or is within
            its first snapshot.

        Raises:
            StackError: Connect or the source does not answer, or it does not stop in time.
        """
        with self._lock:
            if self._connector.config.is_marked() or self._connector.is_ahead():
                return False
            self._connector.rest.stop(self._connector.name)
            offset = self._connector.offset()
            return offset is not None and not offset.is_snapshot

    def take_back(self) -> None:
        """Let the connector that ``set_aside`` stopped run again; do nothing if it runs.

        Raises:
            StackError: Connect, Kafka or the source does not answer: call again later.
        """
        with self._lock:
            status = self._connector.rest.status(self._connector.name)
            if status is None or status.state != "STOPPED" or self._connector.config.is_marked():
                return
            if self._gtids.fit() is Fitted.HELD:
                # This sets the repair's mark, so ``finish`` looks after the connector.
                self._connector.stop()
                return
            self._connector.correct()
            self._connector.go_on()
            self.times_taken_back += 1

    def is_under_repair(self) -> bool:
        """Whether a repair has begun and not ended, or the connector is ahead of the file.

        Raises:
            StackError: Connect does not answer.
        """
        return self._connector.config.is_marked() or self._connector.is_ahead()

    def see_gtid_mode(self) -> None:
        """Ask the source for its ``gtid_mode``, whatever its connector does.

        Raises:
            StackError: The source does not answer.
        """
        self._gtids.see_mode()

    def look_at_gtids(self) -> bool:
        """Restart a connector that runs if its offset does not fit the mode that was seen.

        It is restarted, too, if an earlier restart got no answer.

        Returns:
            Whether it was restarted, or is held.

        Raises:
            StackError: Connect, Kafka or the source does not answer.
            ContractError: The connector's topics hold what it did not write.
        """
        with self._lock:
            if self._connector.is_set_aside():
                return False
            if self._connector.is_interrupted:
                # Connect may still stop it, for us.
                self._restart()
                return True
            return self._gtids.look()

    def attend(self, status: ConnectorStatus) -> Attended:
        """Get a failed connector going again.

        Args:
            status: What Connect says of it.

        Raises:
            StackError: Connect, Kafka or the source does not answer: call again later.
            ContractError: The connector's topics hold what it did not write.
        """
        with self._lock:
            if self._connector.is_set_aside():
                return Attended.HELD
            fitted = self._gtids.fit(trace_of(status))
            if fitted is Fitted.HELD:
                return Attended.HELD
            if fitted is Fitted.CHANGED:
                self._connector.go_on()
                return Attended.FITTED
            corrected = self._connector.correct()
            failure = failure_of(trace_of(status))
            if failure.at is FailedAt.ROW:
                return self._tell_again(failure, corrected=corrected)
            if failure.at is FailedAt.STATEMENT:
                stand = self._statements.stand_before(failure)
                # A statement that it has read before failed only because it came a second time.
                if stand is not None and not (corrected and stand.is_read_before):
                    return self._statements.bring_past(stand, failure)
            self._connector.rest.restart_failed(self._connector.name)
            return Attended.CORRECTED if corrected else Attended.RESTARTED

    def take_in(self) -> tuple[TableName, ...]:
        """Let a running connector read its left-out tables again, where that is possible.

        Returns:
            The tables.

        Raises:
            StackError: Connect, Kafka or the source does not answer: call again later.
            ContractError: The connector's topics hold what it did not write.
        """
        with self._lock:
            if self._connector.is_set_aside():
                return ()
            return take_in(self._connector)

    def begin_anew(self) -> None:
        """Let a connector whose first snapshot has no position begin with that snapshot again.

        It gets the offset of an interrupted snapshot, with the binlog's present end as position.
        The offset cannot be deleted: Connect 4.3.1 never does so for a connector that has an
        offsets topic of its own ("Cannot add partition to transaction while in state READY",
        measured).

        Raises:
            StackError: Connect or the source does not answer: call again later.
        """
        with self._lock:
            if self._connector.is_set_aside():
                return
            connector = self._connector
            end = connector.binlog.end()
            connector.stop()
            connector.rest.set_offset(
                connector.name,
                connector.source.name,
                {"snapshot": "INITIAL", "file": end.file, "pos": end.pos},
            )
            connector.go_on()

    def finish(self, status: ConnectorStatus) -> bool:
        """Go on with a repair that another process, or this one, began and did not end.

        Args:
            status: What Connect says of the connector, which has not failed.

        Returns:
            Whether there was one.

        Raises:
            StackError: Connect, Kafka or the source does not answer: call again later.
        """
        with self._lock:
            if self._connector.is_set_aside():
                return False
            connector = self._connector
            if connector.is_interrupted:
                return self._restart()
            if not connector.config.is_marked():
                return False
            if status.state == "STOPPED":
                if self._gtids.fit() is Fitted.HELD:
                    return False
                connector.correct()
                connector.go_on()
                return True
            # It runs into its statement again, and the failure there tells which one it is.
            connector.correct()
            connector.config.restore()
            return True

    def _restart(self) -> bool:
        """Restart the connector, whether it runs or is stopped; False if it is held instead."""
        self._connector.stop()
        if self._gtids.fit() is Fitted.HELD:
            return False
        self._connector.correct()
        self._connector.go_on()
        return True

    def _tell_again(self, failure: Failure, *, corrected: bool) -> Attended:
        """Describe a table to Debezium again, since its rows do not fit Debezium's description."""
        connector, offset = self._connector, self._connector.offset()
        if offset is not None:
            records = connector.topics.history()
            before = [record for record in records if is_before(record, offset)]
            if told := misread_tables(before, connector.context):
                connector.tell(offset, told)
                corrected = True
            elif not corrected or misread_tables(records, connector.context):
                stand = self._statements.stand_before(failure)
                if stand is not None:
                    return self._statements.bring_past(stand, failure)
                if self._unknown.make_known(failure):
                    return Attended.MADE_KNOWN
        connector.rest.restart_failed(connector.name)
        return Attended.CORRECTED if corrected else Attended.RESTARTED


def repairs_of(pipeline: Pipeline, rest: ConnectRest) -> dict[str, SourceRepair]:
    """Connector's name → its repair, for each source of a pipeline; close each."""
    return {
        connector_name(pipeline, source): SourceRepair(pipeline, source, rest)
        for source in pipeline.sources
    }
