"""Makes known a table that a connector has never heard of.

Debezium lists a source's tables before it notes the place of its first snapshot. A table that is
made between the two is in neither (measured, 3.6.1): the first row of it behind that place stops
the connector, and its rows before never come. So the server is
asked for the table, the tracker gets a description as from a snapshot, and the table's rows are
requested like those of any table that is read again.
"""

from __future__ import annotations

from shardmerge.connectors.binlog.binlog_events import table_name
from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.connectors.debezium.signals import can_be_asked_for
from shardmerge.connectors.event_log import logger
from shardmerge.connectors.repair.diagnosis.failures import Failure
from shardmerge.connectors.repair.diagnosis.statement_plan import TableDescription
from shardmerge.connectors.repair.schema_history.history import is_before, known_tables, table_id
from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.changes import CreateTable, TableName
from shardmerge.schemas.ddl.grammar import parse
from shardmerge.schemas.model.errors import SourceError
from shardmerge.schemas.model.names import ShardId

from .source_connector import SourceConnector

log = logger(__name__)


class UnknownTable:
    """The tables that one connector does not know. One thread at a time uses it.

    Args:
        connector: The connector.
    """

    def __init__(self, connector: SourceConnector) -> None:
        self._connector = connector

    def make_known(self, failure: Failure) -> bool:
        """Make known the table whose row stopped the connector, and let the connector run.

        Returns:
            Whether that was done. It is not done when the connector knows the table; when the
            server cannot tell it, since a later statement changes it; and when its rows cannot be
            requested: it has no primary key, or Debezium's signals cannot handle its name.

        Raises:
            StackError: Connect, Kafka or the source does not answer: call again later.
        """
        connector, offset = self._connector, self._connector.offset()
        name = table_name(failure.table)
        shard = ShardId(connector.source.name, name.database, name.table)
        if offset is None or not name.table or not can_be_asked_for(shard):
            return False
        if self._is_known(name, offset) or (told := self._server_table(name)) is None:
            return False
        connector.stop()
        place = f"{offset.file}:{offset.pos}"
        connector.topics.add_description(told.text, offset)
        connector.topics.ask_for_rows(f"{connector.source.name}/{place}", shard)
        connector.tell(offset, [told], place)
        connector.go_on()
        log.warning(
            "table_made_known",
            source=connector.source.name,
            table=failure.table,
            position=place,
        )
        return True

    def _is_known(self, name: TableName, offset: SourceOffset) -> bool:
        records = self._connector.topics.history()
        known = known_tables(records, lambda record: is_before(record, offset))
        return table_id(name.database, name.table) in known

    def _server_table(self, name: TableName) -> TableDescription | None:
        """The table as it is at the offset; None when the server cannot tell, or it has no key."""
        connector = self._connector
        told = next(iter(connector.ask_server_now([name])), None)
        if told is None:
            return None
        try:
            statement = parse(told.text, connector.context)
            if not isinstance(statement, CreateTable):
                return None
            schema = apply_create(statement, connector.context)
        except SourceError:
            return None  # the tracker could not read it either
        return told if schema.primary_key is not None else None
