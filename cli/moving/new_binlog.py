"""Reads what a new server's binlog has behind the transactions that a connector has read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shardmerge.connectors.binlog.binlog_events import (
    BinlogEvent,
    RowsEvent,
    logged,
    transaction_begun,
)
from shardmerge.connectors.binlog.gtids import Gtids
from shardmerge.connectors.sources.source_binlog import SourceBinlog
from shardmerge.schemas.pipeline.settings import Source

from .resumption import NewBinlog


def new_binlog(source: Source, read: Gtids, begun: str) -> NewBinlog:
    """What the binlog of the server at a source's address has.

    Args:
        source: With the address.
        read: The transactions that are read.
        begun: A transaction that is not among them, and is in the binlog.

    Raises:
        StackError: The server does not answer, or does not show its binlog.
    """
    binlog = SourceBinlog(source)
    return found_in(binlog.events(binlog.file_within(read)), read, begun)


def rows_of(source: Source, event: RowsEvent) -> int | None:
    """How many rows an event has in the binlog of the server at a source's address.

    None if a value in it cannot be decoded.

    Raises:
        StackError: The server does not answer, or has no such event.
    """
    return SourceBinlog(source).number_of_rows(event)


def found_in(events: Iterable[BinlogEvent], read: Gtids, begun: str) -> NewBinlog:
    """The same of events, which begin at or before the first transaction that is not read."""
    first: list[str] = []

    def watched() -> Iterator[BinlogEvent]:
        is_there = False
        for event in events:
            if gtid := transaction_begun(event):
                if is_there:
                    return
                is_there = gtid == begun
                if not first and not read.has(gtid):
                    first.append(gtid)
            yield event

    rows = [each for each in logged(watched()) if isinstance(each, RowsEvent)]
    return NewBinlog("".join(first), tuple(each for each in rows if each.gtid == begun))
