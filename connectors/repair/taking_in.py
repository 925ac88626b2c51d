"""Lets a connector read its left-out tables again, once the server can define them."""

from __future__ import annotations

from shardmerge.connectors.binlog.binlog_events import written_name
from shardmerge.connectors.event_log import logger
from shardmerge.schemas.ddl.changes import TableName

from .source_connector import SourceConnector

log = logger(__name__)


def take_in(connector: SourceConnector) -> tuple[TableName, ...]:
    """Let a running connector read its left-out tables again.

    Args:
        connector: Nobody else uses it meanwhile.

    Returns:
        The tables that it reads from now on; empty if none that it left out can be told.

    Raises:
        StackError: Connect, Kafka or the source does not answer: call again later.
    """
    left_out = connector.config.left_out()
    wanted = [table.name for table in left_out]
    if not left_out or not connector.ask_server_now(wanted):
        return ()
    connector.stop()
    # Its offset is certain only when it has stopped.
    told, offset = connector.ask_server_now(wanted), connector.offset()
    names = tuple(table.name for table in told)
    if told and offset is not None:
        place = f"{offset.file}:{offset.pos}"
        connector.correct()
        connector.tell(offset, told, place)
        connector.config.leave_out(tuple(t for t in left_out if t.name not in names))
        for name in names:
            log.warning(
                "table_taken_in",
                source=connector.source.name,
                table=written_name(name),
                position=place,
            )
    connector.go_on()
    return names
