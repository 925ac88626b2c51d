"""One source's connector as a repair sees it: its offset, its topics, its source's binlog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from shardmerge.connectors.binlog.binlog_events import Logged, Statement
from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.connectors.clock import now_ms
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name, readings_among
from shardmerge.connectors.debezium.source_config import TRUE_SCHEMA_HISTORY, epoch_of
from shardmerge.connectors.event_log import logger
from shardmerge.connectors.repair.diagnosis.captured import Captured
from shardmerge.connectors.repair.diagnosis.statement_plan import (
    TableDescription,
    described_by_server,
    touched_later,
)
from shardmerge.connectors.repair.diagnosis.undelivered import Delivered, first_unread, not_read
from shardmerge.connectors.repair.schema_history.history import (
    HistoryRecord,
    corrections,
    debezium_applies,
    table_records,
    true_order_applies,
)
from shardmerge.connectors.sources.source_binlog import SourceBinlog
from shardmerge.schemas.ddl.changes import TableName
from shardmerge.schemas.model.errors import SourceError
from shardmerge.schemas.pipeline.server_differences import server_context
from shardmerge.schemas.pipeline.settings import Pipeline, Source

from .marked_config import MarkedConfig
from .source_topics import SourceTopics

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Stand:
    """Where a connector stands before a statement that it cannot pass.

    Attributes:
        offset: The connector's.
        delivered: What Debezium has read, as far as its topics tell.
        ahead: The binlog behind the offset, up to the statement.
        statement: The statement.
    """

    offset: SourceOffset
    delivered: Delivered
    ahead: Sequence[Logged]
    statement: Statement

    @property
    def is_read_before(self) -> bool:
        """Whether Debezium has read the statement once."""
        return self.delivered.is_read(self.statement)


class SourceConnector:
    """The connector of one source. One thread at a time uses it; ``close`` it.

    Args:
        pipeline: Whose connector.
        source: One of its sources.
        rest: The Connect cluster.

    Attributes:
        name: The connector's.
        source: What it reads.
        context: How the source's server reads a statement.
        config: Its configuration.
        topics: What it writes of statements.
        binlog: What it reads.
        is_interrupted: Whether ``stop`` or ``go_on`` began and did not end. The connector may be
            stopped without a mark then.
    """

    def __init__(self, pipeline: Pipeline, source: Source, rest: ConnectRest) -> None:
        self.rest = rest
        self.name = connector_name(pipeline, source)
        self.source = source
        self.context = server_context(source)
        self.config = MarkedConfig(rest, self.name)
        self.topics = SourceTopics(pipeline, source)
        self.binlog = SourceBinlog(source)
        self.is_interrupted = False
        self._epoch_said = source.epoch

    def close(self) -> None:
        """Leave Kafka."""
        self.topics.close()

    def offset(self) -> SourceOffset | None:
        """The connector's offset; None before its first.

        Raises:
            StackError: Connect or the source does not answer.
        """
        values = self.rest.offset(self.name)
        return None if values is None else SourceOffset(values, self.binlog.gives_gtids())

    def is_set_aside(self) -> bool:
        """Whether it is to be left alone.

        It is stopped, or about to be, while tables of its source are read as a whole; or it is
        ahead of the pipeline file.

        Raises:
            StackError: Connect does not answer.
        """
        return bool(readings_among(self.rest.connectors(), self.name)) or self.is_ahead()

    def is_ahead(self) -> bool:
        """Whether it reads another server, in a later epoch than the pipeline file's.

        The binlog of the file's server says nothing of it then.

        Raises:
            StackError: Connect does not answer.
        """
        epoch = epoch_of(self.rest.config(self.name) or {})
        if epoch > self.source.epoch and epoch != self._epoch_said:
            self._epoch_said = epoch
            log.error(
                "connector_ahead", connector=self.name, epoch=epoch, file_epoch=self.source.epoch
            )
        return epoch > self.source.epoch

    def captured(self) -> Captured:
        """What the connector makes records of.

        Raises:
            StackError: Connect does not answer.
        """
        return Captured(self.rest.config(self.name) or {}, self.context)

    def ahead(self, offset: SourceOffset, delivered: Delivered) -> Iterator[Logged]:
        """What the connector will read from the binlog.

        Raises:
            StackError: The source does not answer, or has purged what is to be read.
        """
        return not_read(self.binlog.logged(*first_unread(offset, delivered)), offset)

    def ask_server(
        self, names: Sequence[TableName], later: Callable[[], Iterable[Logged]]
    ) -> dict[TableName, TableDescription | SourceError]:
        """Tables as the server defines them now, or why they may differ from that at a position.

        Args:
            names: The tables.
            later: Reads what the binlog has behind that position.

        Raises:
            StackError: Kafka, Connect or the source does not answer.
        """
        # In this order, a statement that comes between the two is seen.
        created = {name: self.binlog.create_table(name) for name in names}
        touched = touched_later(names, later(), self.context)
        told: dict[TableName, TableDescription | SourceError] = {}
        for name, text in created.items():
            if (other := touched.get(name)) is not None:
                told[name] = SourceError(
                    f"a later statement changed {name} too: {other.sql!r} at "
                    f"{other.file}:{other.pos}",
                    code="SM-4503",
                )
                continue
            try:
                told[name] = described_by_server(name, text)
            except SourceError as error:
                told[name] = error
        return told

    def ask_server_now(self, names: Sequence[TableName]) -> list[TableDescription]:
        """The tables, as the server defines them now, that are the same at the connector's offset.

        Raises:
            StackError: Kafka, Connect or the source does not answer.
        """
        offset = self.offset()
        if offset is None:
            return []
        told = self.ask_server(names, lambda: self.ahead(offset, self.topics.delivered()))
        return [table for table in told.values() if isinstance(table, TableDescription)]

    def stop(self) -> None:
        """Stop the connector, and mark that it is us who did."""
        # In this order, since a change of the configuration of a running connector restarts it.
        self.is_interrupted = True
        self.rest.stop(self.name)
        self.config.change({})
        self.is_interrupted = False

    def go_on(self) -> None:
        """Let the connector run, with the configuration that it had."""
        # In this order for the same reason.
        self.is_interrupted = True
        self.config.restore()
        self.rest.resume(self.name)
        self.is_interrupted = False

    def correct(self) -> bool:
        """Correct what a restarted connector will know of its tables.

        Returns:
            Whether anything had to be corrected.

        Raises:
            StackError: Kafka, Connect or the source does not answer.
        """
        offset = self.offset()
        if offset is None or offset.is_snapshot:
            return False
        found = self.corrections(offset)
        self.topics.add_history(found)
        if found:
            log.warning(
                "schema_history_corrected",
                source=self.source.name,
                records=len(found),
                connect_offset=offset.values,
            )
        return bool(found)

    def corrections(
        self,
        offset: SourceOffset,
        also_before: Callable[[HistoryRecord], bool] = lambda _: False,
        applies: Callable[[HistoryRecord, SourceOffset], bool] | None = None,
    ) -> list[bytes]:
        """The records that correct what the connector will know at an offset.

        Args:
            offset: Where it will start.
            also_before: Which other records count as before the offset.
            applies: Which records it will apply; by default, those that its schema history applies.
        """
        return corrections(
            self.topics.history(),
            offset,
            self.source.name,
            now_ms(),
            applies=applies or self.history_order(),
            also_before=also_before,
        )

    def history_order(self) -> Callable[[HistoryRecord, SourceOffset], bool]:
        """Which records the connector's schema history applies when it starts at an offset."""
        config: Mapping[str, str] = self.rest.config(self.name) or {}
        is_ours = config.get("schema.history.internal") == TRUE_SCHEMA_HISTORY
        return true_order_applies if is_ours else debezium_applies

    def tell(
        self, offset: SourceOffset, tables: Sequence[TableDescription], statement: str = ""
    ) -> None:
        """Append descriptions of tables to the schema history; to do so again does no harm.

        Args:
            offset: Where the connector will start.
            tables: Descriptions of the tables as they are at that offset.
            statement: ``file:pos`` of the statement that made them so; "" for none.
        """
        for table in tables:
            values = table_records(
                self.source.name,
                offset,
                now_ms(),
                table=table.id,
                text=table.text,
                statement=statement,
            )
            self.topics.add_history(values)
