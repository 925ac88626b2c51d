"""Which statement a connector failed at, and what it has not delivered before it. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from shardmerge.connectors.binlog.binlog_events import Logged, RowsEvent, Statement
from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.schemas.model.position import SourcePosition

_TRUNCATE = re.compile(r"\s*(?:SET\s+STATEMENT\s.*\sFOR\s+)?TRUNCATE\b", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Delivered:
    """The statements that Debezium has read, as far as its topics tell.

    Attributes:
        gtids: GTID → ``(file, pos)`` of each statement with a record in the schema-change topic.
        positions: ``(file, pos)`` of all statements with a record there, with or without a GTID.
        recorded: Places of the statements in the schema history, as ``Statement.recorded``.
            Debezium has read these, but their records may be lost.
        own: GTIDs, or ``(file, pos)`` without one, of statements whose record a repair wrote, and
            not Debezium too. Such a record does not show that Debezium has read the statement: the
            repair may have ended before it put the connector's offset behind it.
    """

    gtids: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    positions: frozenset[tuple[str, int]] = frozenset()
    recorded: frozenset[tuple[str, int]] = frozenset()
    own: frozenset[str | tuple[str, int]] = frozenset()

    def has(self, statement: Statement) -> bool:
        """Whether a statement's record is in the schema-change topic."""
        if statement.gtid:
            return statement.gtid in self.gtids
        return (statement.file, statement.pos) in self.positions

    def is_read(self, statement: Statement) -> bool:
        """Whether Debezium has read the statement without failing at it."""
        if statement.recorded in self.recorded:
            return True
        id_ = statement.gtid or (statement.file, statement.pos)
        return self.has(statement) and id_ not in self.own


def is_failed_statement(statement: Statement, told: str, delivered: Delivered) -> bool:
    """Whether a task failed at this statement. Ask in the order of the binlog.

    Args:
        statement: Behind the connector's offset.
        told: The text of the statement that its stack trace names; "" when it names none.
        delivered: What Debezium has read.
    """
    if told:
        return _compared_text(statement.sql) == _compared_text(told)
    # Debezium reads them in order.
    return not delivered.is_read(statement)


def first_unread(offset: SourceOffset, delivered: Delivered) -> tuple[str, int, str]:
    """Where to begin to read the binlog: file, pos, and the GTID at that place; "" for none.

    With GTIDs, the position in an offset can be behind a statement whose record is delivered, while
    the statement's transaction is not among the GTIDs: it will be read again.
    """
    gtids = offset.read_gtids
    if gtids is None:
        return offset.file, offset.pos, ""
    again = [
        (SourcePosition(0, *place, 0), gtid)
        for gtid, place in delivered.gtids.items()
        if not gtids.has(gtid)
    ]
    first, gtid = min(again, default=(offset.position, ""))
    if first < offset.position:
        return first.file, first.pos, gtid
    return offset.file, offset.pos, ""


def not_read(items: Iterable[Logged], offset: SourceOffset) -> Iterator[Logged]:
    """The items of a binlog, read from the offset's place on, that the connector has not read."""
    gtids = offset.read_gtids
    for item in items:
        if item.gtid and gtids is not None:
            if not gtids.has(item.gtid):
                yield item
        elif SourcePosition(0, item.file, item.pos, 0) >= offset.position:
            yield item


@dataclass(frozen=True, slots=True)
class Gap:
    """What is between a connector's offset and the statement at which it failed.

    Attributes:
        missing: What certainly is not delivered and concerns the tables in question.
        partial: The rows event, if it concerns these tables, of which ``SourceOffset.row`` rows are
            delivered. Only its number of rows tells whether these are all.
        passed: Statements whose records are delivered, although the offset is before them.
    """

    missing: tuple[Logged, ...] = ()
    partial: RowsEvent | None = None
    passed: tuple[Statement, ...] = ()


def gap_before(
    failed: Statement,
    ahead: Sequence[Logged],
    offset: SourceOffset,
    delivered: Delivered,
    tables: Collection[str] | None,
    *,
    comes: Callable[[Logged], bool] = lambda _: True,
) -> Gap:
    """What a connector has not delivered before the statement that it failed at.

    Args:
        failed: The statement.
        ahead: The binlog behind the offset, see ``not_read``.
        offset: The connector's.
        delivered: What is in the schema-change topic.
        tables: ``database.table`` of the tables whose rows matter; None: all. Rows whose table is
            not known always matter.
        comes: Whether the connector makes a record of an event at all.
    """
    missing: list[Logged] = []
    passed: list[Statement] = []
    partial: RowsEvent | None = None
    begun = _begun_transaction(ahead, offset)
    for item in ahead:
        if item == failed:
            break
        if isinstance(item, Statement):
            if delivered.has(item):
                passed.append(item)
            elif _is_row(item):
                if comes(item) and not _stands_behind(offset, item):
                    missing.append(item)
            elif item.recorded in delivered.recorded:
                missing.append(item)
            # Else Debezium sends nothing for it, as for GRANT: what it sends it records first.
            continue
        if tables is not None and item.table and item.table not in tables:
            continue
        if not comes(item):
            continue
        if item.transaction_pos == begun:
            if item.index < offset.event:
                continue
            if item.index == offset.event and offset.row:
                partial = item
                continue
        missing.append(item)
    return Gap(tuple(missing), partial, tuple(passed))


def lost_statements(gap: Gap) -> tuple[Statement, ...]:
    """The statements whose records alone are missing, in order; none where rows are missing, too.

    Debezium has read them, and the task that failed took their records along. Their texts are
    known, so the records need not be waited for.
    """
    lost = tuple(i for i in gap.missing if isinstance(i, Statement) and not _is_row(i))
    return lost if gap.partial is None and len(lost) == len(gap.missing) else ()


def _begun_transaction(ahead: Sequence[Logged], offset: SourceOffset) -> int:
    """Where the transaction begins that the offset has delivered in part; -1 without one."""
    if not offset.event and not offset.row:
        return -1
    # On MariaDB a statement is a transaction, too. It has no rows; rows behind it are of others.
    first = next((i for i in ahead if isinstance(i, RowsEvent) or not i.in_transaction), None)
    return first.transaction_pos if isinstance(first, RowsEvent) else -1


def _is_row(statement: Statement) -> bool:
    """Whether Debezium sends it among the table's rows, and does not write it into its history."""
    return _TRUNCATE.match(statement.sql) is not None


def _stands_behind(offset: SourceOffset, statement: Statement) -> bool:
    """Whether the offset is that of the statement's own record, before the statement's end."""
    return bool(offset.event) and (offset.file, offset.pos) == (statement.file, statement.begin)


def _compared_text(sql: str) -> str:
    return " ".join(sql.split()).rstrip("; ")
