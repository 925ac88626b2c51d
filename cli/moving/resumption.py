"""Where a connector goes on that has stopped within a transaction. Pure.

An offset within a transaction numbers the transaction's events that are delivered, and the rows of
its next event. At another server Debezium is sent every transaction that the offset's GTIDs do not
name. It leaves out as many events, and rows, of the *first* transaction that comes. So rows would
be lost, and others come twice, if another transaction came first, or if the transaction had other
events there. Mostly the offset stands behind the transaction's last row: Debezium counts a
transaction as read only with the next one. Then the offset is written anew, as one behind it.

Source: Debezium 3.6, ``BinlogStreamingChangeEventSource``; measured,
tests/integration/connect/test_failover.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shardmerge.connectors.binlog.binlog_events import RowsEvent
from shardmerge.connectors.binlog.source_offset import SourceOffset


@dataclass(frozen=True, slots=True)
class NewBinlog:
    """What the new server's binlog has behind the transactions that are read.

    Attributes:
        first: GTID of the first transaction that was not read; "" for none.
        events: The rows events of the transaction in which the connector has stopped.
    """

    first: str = ""
    events: Sequence[RowsEvent] = ()


@dataclass(frozen=True, slots=True)
class Resumption:
    """How the connector goes on.

    Attributes:
        values: The offset to write; None if it may stay.
        obstacle: Why it cannot go on; "" if it can.
    """

    values: Mapping[str, Any] | None = None
    obstacle: str = ""


def resumption(
    offset: SourceOffset, begun: str, binlog: NewBinlog, rows_of: Callable[[RowsEvent], int | None]
) -> Resumption:
    """How a connector goes on whose offset is within a transaction.

    Args:
        offset: By GTID.
        begun: The transaction: its rows are in Kafka. "" if no row of it is.
        binlog: Of the new server.
        rows_of: How many rows an event has; None if they cannot be counted.
    """
    if not begun:
        return Resumption(_behind(offset, ""))
    # Compressed events cannot be counted. They are those of the server before if that compresses,
    # too.
    if all(event.table for event in binlog.events):
        left = [event for event in binlog.events if event.index >= offset.event]
        if offset.row:
            if not left or left[0].index != offset.event:
                return Resumption(
                    obstacle=f"its connector has stopped within transaction {begun}, which has "
                    "other events in the binlog of the new server: Debezium could not leave out "
                    "the rows that are delivered"
                )
            rows = rows_of(left[0])
            if rows is not None and rows <= offset.row:
                left = left[1:]
        if not left:
            return Resumption(_behind(offset, begun))
    return Resumption() if binlog.first == begun else _other_first(begun, binlog.first)


def _other_first(begun: str, first: str) -> Resumption:
    return Resumption(
        obstacle=f"its connector has stopped in the middle of transaction {begun}, and the binlog "
        f"of the new server has {first or 'no such transaction'} before it, which was not read: "
        "Debezium would leave out its rows, and read those of the other one twice"
    )


def _behind(offset: SourceOffset, gtid: str) -> Mapping[str, Any]:
    """The offset at the beginning of a transaction: behind the named one, or behind those read."""
    there = offset.with_gtid(gtid) if gtid else offset
    return {key: value for key, value in there.values.items() if key not in ("event", "row")}
