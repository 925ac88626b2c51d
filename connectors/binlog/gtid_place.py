"""Which transactions are read by a connector that reads the binlog by file and position. Pure.

Debezium reads by GTID where MySQL's ``gtid_mode`` is ON when its task starts, else by file and
position. While it reads by file and position, the GTIDs in its offset do not change, and only the
binlog tells what it has read since.

Source: MySQL Reference Manual, "Replication Mode Concepts"; Debezium 3.6,
``BinlogStreamingChangeEventSource``; measured, tests/integration/connect/test_gtid_mode.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .binlog_events import BinlogEvent, transaction_begun
from .gtids import MySqlGtids, gtids_of
from .source_offset import SourceOffset

_BETWEEN_TRANSACTIONS = ("Rotate", "Stop")
REFUSED_WITHOUT_GTID = "Cannot replicate anonymous transaction"
"""A server's error to a client that reads by GTID; while ``gtid_mode`` is ON, to every client."""
REFUSED_WITH_GTID = "Cannot replicate GTID-transaction"
"""A server's error while ``gtid_mode`` is OFF."""
NO_GTIDS = MySqlGtids({})


@dataclass(frozen=True, slots=True)
class Place:
    """What the binlog tells of a place in it.

    Attributes:
        read: The transactions with a GTID that have ended before it.
        is_within_anonymous: Whether it is within a transaction without a GTID.
    """

    read: MySqlGtids
    is_within_anonymous: bool


def place_at(events: Iterable[BinlogEvent], file: str, pos: int) -> Place:
    """What the binlog tells of a place in it.

    Args:
        events: From the beginning of the file on; no more of them are taken than are needed.
        file: The binlog file.
        pos: Bytes from its beginning, where an event begins or the file ends.
    """
    read, begun, end = NO_GTIDS, None, 0
    for event in events:
        if event.file != file:
            break
        if event.kind == "Previous_gtids":
            read = read.union(_set(event.info))
            continue
        opened = transaction_begun(event)
        is_over = opened is not None or event.kind in _BETWEEN_TRANSACTIONS
        if begun is not None and is_over:
            read, begun = (read.adding(begun) if begun else read), None
        if event.pos >= pos:
            return Place(read, begun == "")
        begun, end = (begun if opened is None else opened), event.end
    # A server writes whole transactions: the last one of a file is over at the file's end.
    if begun and end <= pos:
        read = read.adding(begun)
    return Place(read, begun == "" and end > pos)


def first_anonymous(events: Iterable[BinlogEvent]) -> BinlogEvent | None:
    """The first event that begins a transaction without a GTID."""
    return next((event for event in events if transaction_begun(event) == ""), None)


def offset_by_gtid(offset: SourceOffset, place: Place) -> SourceOffset:
    """The offset with which a connector goes on by GTID from where it stands."""
    return offset.with_gtids(_all_read(offset, place))


def offset_by_place(offset: SourceOffset, place: Place, executed: MySqlGtids) -> SourceOffset:
    """The offset with which a connector goes on by file and position from where it stands.

    Debezium refuses an offset whose GTIDs lack transactions that the server has purged, even when
    it does not read by them. So the GTIDs include what was read by position meanwhile.

    Args:
        offset: The connector's.
        place: What the binlog tells of it.
        executed: The server's ``gtid_executed``. While that is empty there is nothing to mark, and
            Debezium would refuse an offset with a GTID.
    """
    if not executed.intervals:
        return offset
    server = next(iter(executed.intervals)).partition(":")[0]
    return offset.with_gtids(_all_read(offset, place), marked_for=server)


def reads_by_position(offset: SourceOffset, place: Place) -> bool:
    """Whether a connector that moved without a new GTID in its offset reads by position.

    A connector that reads by GTID moves without a new GTID only within a transaction, and right
    behind a DDL. Then at most one transaction before its position is missing in its GTIDs.
    """
    return _all_read(offset, place).count > _own(offset).count + 1


def _all_read(offset: SourceOffset, place: Place) -> MySqlGtids:
    return _own(offset).union(place.read)


def _own(offset: SourceOffset) -> MySqlGtids:
    gtids = offset.gtids
    return gtids if isinstance(gtids, MySqlGtids) else NO_GTIDS


def _set(text: str) -> MySqlGtids:
    gtids = gtids_of(text)
    return gtids if isinstance(gtids, MySqlGtids) else NO_GTIDS
