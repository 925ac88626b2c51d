"""Debezium's schema history: what a restarted connector knows of its tables. Pure.

Debezium writes a record for each statement. When a connector starts, it applies the records "at or
before" its offset, in the order of the topic. Its comparison is not always right:

* with GTIDs, a statement that follows right behind the offset counts as before it, and is applied
  a second time when the binlog gives it again;
* without GTIDs, every statement that was ever streamed counts, also those behind the offset;
* when a source's GTIDs were switched off, no statement from before that counts.

So before a connector is started, ``corrections`` compares what Debezium would know with what is
true. It gives records that correct the difference when they are written behind the others. They
describe whole tables and are marked as a snapshot's, so they always apply. A statement that comes
again then changes such a table for the first time, and adds its own record behind.

Source: Debezium 3.6, ``AbstractSchemaHistory.recover``, ``BinlogHistoryRecordComparator``,
``BinlogOffsetContext``; measured, tests/integration/connect/test_history_order.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shardmerge.connectors.binlog.gtids import MySqlGtids, is_within, precedes
from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.schemas.ddl.changes import DropDatabase
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.errors import ContractError, SourceError
from shardmerge.schemas.model.names import quote_identifier
from shardmerge.schemas.model.position import SourcePosition

_TABLE_ID = re.compile(r'"((?:[^"]|"")*)"\."((?:[^"]|"")*)"')
_DROPS = re.compile(r"\bDROP\s", re.IGNORECASE)
OWN = "shardmerge"
"""Field of our own records, which Debezium does not read. It has ``table``, the id of the table
that the record tells, and ``statement``, the place of the statement for which it was written. The
same word is the value of ``snapshot`` in the record's position."""


@dataclass(frozen=True, slots=True)
class HistoryRecord:
    """A record of the schema history.

    Attributes:
        offset: The connector's offset when it wrote the record. For a streamed statement: its end,
            with the GTIDs before it. For a statement within a transaction, as all are on MariaDB:
            where the transaction begins, with the number of its events before the statement.
        snapshot: Whether it describes a table as it stood, and comes from no statement.
        text: The statement; "" for none.
        changes: Debezium's description of each changed table; empty for none.
        database: The default database; "" for none.
        is_own: Whether we wrote it.
        table: Of a record of ours with a text: Debezium's id of the table that it tells.
        statement: Of a record of ours: ``file:pos`` of the statement it is for; "" for none.
    """

    offset: SourceOffset
    snapshot: bool
    text: str
    changes: tuple[Mapping[str, Any], ...]
    database: str = ""
    is_own: bool = False
    table: str = ""
    statement: str = ""

    @property
    def is_by_place(self) -> bool:
        """Whether its statement was read by position, so that it has an order in one binlog only.

        When a source reads by GTID again, the tables of such records are written again as a
        snapshot's records, which also apply on another server's binlog.
        """
        return not self.snapshot and (self.offset.gtids is None or self.offset.is_by_place)

    def is_of_before(self, file: str, pos: int) -> bool:
        """Whether the record is about the state before a statement at that position."""
        there = SourcePosition(0, file, pos, 0)
        if self.is_own:
            at, _, number = self.statement.rpartition(":")
            return bool(at) and SourcePosition(0, at, int(number), 0) < there
        return self.snapshot or self.is_read_before(there)

    def is_read_before(self, place: SourcePosition) -> bool:
        """Whether a connector that reads from the place on does not read the statement again."""
        here = self.offset.position
        return here < place or (here == place and not self.offset.event)


@dataclass(frozen=True, slots=True)
class KnownTable:
    """What is known of one table: Debezium's description, or a text of ours."""

    description: Mapping[str, Any] | None = None
    text: str = ""


def history_record(value: bytes | None, place: str) -> HistoryRecord | None:
    """Read a record; None for a record that Debezium ignores.

    Args:
        value: Of the Kafka record.
        place: Topic, partition and offset, for messages.

    Raises:
        ContractError: It is not a record of a schema history.
    """
    if value is None:
        return None
    try:
        document = json.loads(value)
        position = document["position"]
        own = document.get(OWN) or {}
        return HistoryRecord(
            offset=SourceOffset(position),
            snapshot=bool(position.get("snapshot")),
            text=str(document.get("ddl") or ""),
            changes=tuple(document.get("tableChanges") or ()),
            database=str(document.get("databaseName") or ""),
            is_own=OWN in document,
            table=str(own.get("table") or ""),
            statement=str(own.get("statement") or ""),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ContractError(
            f"{place} is not a record of a schema history: {error}",
            hint="schema.history.internal.kafka.topic must name a topic that only this connector "
            "writes",
            code="SM-2109",
        ) from error


def is_before(record: HistoryRecord, offset: SourceOffset) -> bool:
    """Whether a record's statement is not read again by a connector that starts at the offset."""
    certain = _is_certainly_before(record, offset)
    if certain is not None:
        return certain
    return offset.read_gtids is None and record.is_read_before(offset.position)


def _is_certainly_before(record: HistoryRecord, offset: SourceOffset) -> bool | None:
    """``is_before``, decided by GTIDs, or by position without them; None if GTIDs leave it open."""
    if record.snapshot:
        return True
    own, other = record.offset.gtids, offset.gtids
    if own is None or other is None or record.offset.is_by_place:
        return record.is_read_before(offset.position)
    # The record's GTIDs are those before its statement; the offset's are the transactions read.
    return True if precedes(own, other) else None


def debezium_applies(record: HistoryRecord, offset: SourceOffset) -> bool:
    """Whether Debezium applies a record when it starts at the offset."""
    own, other = record.offset.gtids, offset.gtids
    if other is not None or offset.is_by_place:
        if own is None and not record.offset.is_by_place:
            return True
        # To Debezium the mark is a part of the set, and a part of every set of its server.
        if (str(own), record.offset.is_by_place) == (str(other), offset.is_by_place):
            if offset.is_snapshot and not record.snapshot:
                return False
            return record.offset.event <= offset.event
        return own is None or (other is not None and is_within(own, other))
    if own is not None or record.offset.is_by_place:
        return False
    if record.offset.values.get("server_id"):
        # A connector that has not read yet does not know the server's id. Debezium then takes the
        # two for different servers, and compares their statements by a time that neither has.
        return True
    here, there = record.offset, offset
    if here.position != there.position:
        return here.position < there.position
    row = -1 if here.values.get("row") is None else here.row
    there_row = -1 if there.values.get("row") is None else there.row
    return (here.event, row) <= (there.event, there_row)


def true_order_applies(record: HistoryRecord, offset: SourceOffset) -> bool:
    """Whether the schema history of ours, ``TrueSchemaHistory``, applies a record.

    It is ``is_before``, except that it does not know whether the server gives GTIDs now. It knows
    this only from the mark of an offset that was read by position.
    """
    certain = _is_certainly_before(record, offset)
    if certain is not None:
        return certain
    if offset.is_by_place:
        return record.is_read_before(offset.position)
    own = record.offset.gtids
    if str(own) != str(offset.gtids) or not isinstance(own, MySqlGtids):
        return False
    return record.offset.position < offset.position


def known_tables(
    records: Iterable[HistoryRecord], applies: Callable[[HistoryRecord], bool]
) -> dict[str, KnownTable]:
    """What the records that apply tell of each table, by Debezium's table id."""
    tables: dict[str, KnownTable] = {}
    for record in records:
        if not applies(record):
            continue
        for change in record.changes:
            if before := change.get("previousId"):
                tables.pop(str(before), None)
            if change["type"] == "DROP":
                tables.pop(str(change["id"]), None)
            else:
                tables[str(change["id"])] = KnownTable(_description(change))
        if not record.changes and (database := _dropped_database(record.text)):
            tables = {n: t for n, t in tables.items() if (named_table(n) or ("",))[0] != database}
        if record.table and record.text.startswith("DROP "):
            tables.pop(record.table, None)
        elif record.table:
            tables[record.table] = KnownTable(text=record.text)
    return tables


def corrections(
    records: Sequence[HistoryRecord],
    offset: SourceOffset,
    source: str,
    ts_ms: int,
    *,
    applies: Callable[[HistoryRecord, SourceOffset], bool] = debezium_applies,
    also_before: Callable[[HistoryRecord], bool] = lambda _: False,
) -> list[bytes]:
    """The records that correct what Debezium knows at the offset, in order.

    Args:
        records: The whole history.
        offset: Where the connector will start.
        source: The source's name.
        ts_ms: Now, ms since 1970.
        applies: Which records a connector applies when it starts at an offset.
        also_before: Which other records count as before the offset.

    Returns:
        Values of Kafka records; empty when there is nothing to correct.
    """
    true = known_tables(records, lambda r: is_before(r, offset) or also_before(r))
    debezium = known_tables(records, lambda r: applies(r, offset))
    found: list[bytes] = []
    for table in sorted(debezium.keys() - true.keys()):
        change = {"type": "DROP", "id": table}
        found.append(own_record(source, offset, ts_ms, changes=[change]))
    for table, known in sorted(true.items()):
        if debezium.get(table) == known:
            continue
        if known.description is not None:
            change = {**known.description, "type": "CREATE"}
            found.append(own_record(source, offset, ts_ms, changes=[change]))
        else:
            found += table_records(source, offset, ts_ms, table=table, text=known.text)
    return found


def table_records(
    source: str, offset: SourceOffset, ts_ms: int, *, table: str, text: str, statement: str = ""
) -> list[bytes]:
    """The records that describe a table by a statement, in order; see ``own_record``.

    Debezium ignores a CREATE TABLE of a table that it knows, so a DROP TABLE comes first.

    Args:
        source: The source's name.
        offset: Where the connector will start.
        ts_ms: Now, ms since 1970.
        table: Debezium's id of the table.
        text: The CREATE TABLE, or a DROP TABLE.
        statement: ``file:pos`` of the statement that it is written for; "" for none.
    """
    name = named_table(table)
    texts = [text] if text.startswith("DROP ") or name is None else [drop_text(*name), text]
    return [
        own_record(source, offset, ts_ms, text=part, table=table, statement=statement)
        for part in texts
    ]


def drop_text(database: str, table: str) -> str:
    """The statement that makes Debezium forget a table."""
    return f"DROP TABLE IF EXISTS {quote_identifier(database)}.{quote_identifier(table)}"


def own_record(
    source: str,
    offset: SourceOffset,
    ts_ms: int,
    *,
    text: str = "",
    table: str = "",
    changes: Sequence[Mapping[str, Any]] = (),
    statement: str = "",
) -> bytes:
    """Our own record, which applies at every offset from this one on.

    Args:
        source: The source's name.
        offset: Where the connector will start.
        ts_ms: Now, ms since 1970.
        text: A CREATE or DROP TABLE that Debezium shall parse; "" with ``changes``.
        table: Debezium's id of the table that the text tells.
        changes: Descriptions of tables, in Debezium's form.
        statement: ``file:pos`` of the statement that it is written for; "" for none.
    """
    values = offset.values
    position = {key: values[key] for key in ("ts_sec", "file", "pos", "gtids") if key in values}
    document = {
        "source": {"server": source},
        "position": {**position, "snapshot": OWN},
        "ts_ms": ts_ms,
        "databaseName": "",
        "ddl": text,
        "tableChanges": list(changes),
        OWN: {"table": table, "statement": statement},
    }
    return json.dumps(document, ensure_ascii=False, sort_keys=True).encode()


def table_id(database: str, table: str) -> str:
    """A table's id as Debezium writes it: ``"database"."table"``."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in (database, table))


def named_table(number: str) -> tuple[str, str] | None:
    """Database and table of an id as ``table_id`` makes it; None for another form."""
    match = _TABLE_ID.fullmatch(number)
    return match and (match[1].replace('""', '"'), match[2].replace('""', '"'))


def _dropped_database(text: str) -> str:
    """The database that a statement drops; "" for another statement.

    Debezium's record of it has no changes: it executes the text again when it starts.
    """
    if _DROPS.search(text) is None:
        return ""
    try:
        statement = parse(text, ServerContext())
    except SourceError:
        return ""
    return statement.name if isinstance(statement, DropDatabase) else ""


def _description(change: Mapping[str, Any]) -> Mapping[str, Any]:
    """A change without the fields that tell how the table became what it is."""
    return {k: v for k, v in change.items() if k not in ("type", "previousId")}
