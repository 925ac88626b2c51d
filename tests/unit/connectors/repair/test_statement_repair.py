"""A statement repair that ended anywhere is repeated, and the result is that of one that did not.

Debezium's trace does not tell the statement here ("Failed to properly convert default value").
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from shardmerge.connectors.binlog.binlog_events import Logged, RowsEvent, Statement
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.envelope import schema_change_event
from shardmerge.connectors.formats.stored_record import Extent, StoredRecord
from shardmerge.connectors.repair import source_topics
from shardmerge.connectors.repair.diagnosis.failures import FailedAt, failure_of
from shardmerge.connectors.repair.schema_history.left_out import left_out_of
from shardmerge.connectors.repair.source_connector import SourceConnector, Stand
from shardmerge.connectors.repair.statement_repair import Attended, StatementRepair
from shardmerge.schemas.ddl.changes import TableName
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline import topics
from tests.unit.connectors.debezium.test_source_config import PIPELINE

SOURCE = PIPELINE.sources[0]
CHANGES = topics.schema_changes(PIPELINE, SOURCE.name).name
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
FILE = "b.000001"
FAILURE = failure_of(
    "org.apache.kafka.connect.errors.ConnectException: Error\n"
    "\tat io.debezium.connector.binlog.BinlogStreamingChangeEventSource.handleQueryEvent(B.java)\n"
    "Caused by: io.debezium.DebeziumException: Failed to properly convert default value"
)
KNOWN = "ALTER TABLE t ADD x TIME NOT NULL DEFAULT '10'"
UNKNOWN = "ALTER TABLE t FROBNICATE COLUMN x"
STEPS = ("record", "history", "tables left out", "offset", "resumed")


def statement(pos: int, number: int, sql: str) -> Statement:
    return Statement(FILE, pos, pos + 100, f"{UUID}:{number}", "app", sql)


@pytest.fixture(autouse=True)
def no_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TopicReader", "RecordSender"):
        monkeypatch.setattr(source_topics, name, lambda *_: None)


LATER = statement(900, 6, "ALTER TABLE other ADD y INT")

OF_THE_SAME_TABLE = statement(1200, 7, "ALTER TABLE t ADD y INT")


@dataclass
class Line:
    """Kafka, Connect and the binlog in memory.

    Attributes:
        ahead: The binlog behind the connector's offset.
        fails_at: The step that fails once.
        is_done: Whether it fails after its effect: a kill, or an answer that was lost.
        kept: Topic → values of its records.
        rows: How many rows each event has; None if they cannot be counted.
    """

    ahead: Sequence[Logged]
    fails_at: str = ""
    is_done: bool = False
    kept: dict[str, list[tuple[bytes | None, bytes]]] = field(default_factory=dict)
    config: dict[str, str] = field(default_factory=dict)
    offset: dict[str, Any] = field(default_factory=dict)
    created: Mapping[str, str] = field(default_factory=dict)
    rows: int | None = None

    def fail_at(self, step: str, *, is_done: bool) -> None:
        if step == self.fails_at and is_done == self.is_done:
            self.fails_at = ""
            raise StackError("it was interrupted")

    # --- Kafka

    def extents(self, names: Iterable[str]) -> list[Extent]:
        return [Extent(n, 0, 0, len(self.kept.get(n, ())), 0) for n in names]

    def records(self, extent: Extent) -> Iterator[StoredRecord]:
        for number, (key, value) in enumerate(self.kept.get(extent.topic, ())):
            if number >= extent.begin:
                yield StoredRecord(extent.topic, 0, number, key, value)

    def send(self, topic: str, records: Sequence[tuple[bytes | None, bytes]]) -> None:
        step = "record" if topic == CHANGES else "history"
        if records:
            self.fail_at(step, is_done=False)
        self.kept.setdefault(topic, []).extend(records)
        if records:
            self.fail_at(step, is_done=True)

    # --- Connect

    def stop(self, name: str) -> None:
        assert name

    def resume(self, name: str) -> None:
        self.fail_at("resumed", is_done=False)

    def read_config(self, name: str) -> dict[str, str]:
        return self.config

    def set_config(self, name: str, config: Mapping[str, str]) -> None:
        is_left_out = "shardmerge.left_out" in config and "shardmerge.left_out" not in self.config
        if is_left_out:
            self.fail_at("tables left out", is_done=False)
        self.config = dict(config)
        if is_left_out:
            self.fail_at("tables left out", is_done=True)

    def read_offset(self, name: str) -> dict[str, Any]:
        return self.offset

    def set_offset(self, name: str, source: str, values: Mapping[str, Any]) -> None:
        self.fail_at("offset", is_done=False)
        self.offset = dict(values)
        self.fail_at("offset", is_done=True)

    # --- the source

    def gives_gtids(self) -> bool:
        return True

    def logged(self, file: str, pos: int, gtid: str = "") -> Iterator[Logged]:
        yield from (item for item in self.ahead if item.pos >= pos)

    def number_of_rows(self, event: RowsEvent) -> int | None:
        return self.rows

    def create_table(self, name: TableName) -> str | None:
        return self.created.get(name.table)

    # --- what came of it

    def connector(self) -> SourceConnector:
        """As a process sees it that has just begun."""
        rest = cast(ConnectRest, _Rest(self))
        connector = SourceConnector(PIPELINE, SOURCE, rest)
        connector.binlog = cast(Any, self)
        connector.topics._reader = cast(Any, self)
        connector.topics._sender = cast(Any, self)
        return connector

    def written(self) -> list[tuple[str, bool]]:
        """The statements with a record, and whether it says that nobody knows their tables."""
        events = [
            schema_change_event(CHANGES, number, key, value)
            for number, (key, value) in enumerate(self.kept.get(CHANGES, ()))
        ]
        return [(event.ddl, bool(event.unread)) for event in events]


class _Rest:
    """The part of ``ConnectRest`` that a repair calls."""

    def __init__(self, line: Line) -> None:
        self.config, self.offset = line.read_config, line.read_offset
        self.stop, self.resume = line.stop, line.resume
        self.set_config, self.set_offset = line.set_config, line.set_offset


def line(sql: str, *later: Statement) -> Line:
    found = Line([statement(400, 5, sql), *later])
    found.offset = {"file": FILE, "pos": 400, "gtids": f"{UUID}:1-4"}
    history = [_created(150, "1-2", "other"), _created(200, "1-3", "t")]
    connector = found.connector()
    connector.topics.add_history(history)
    return found


def _created(pos: int, gtids: str, table: str) -> bytes:
    document = {
        "position": {"file": FILE, "pos": pos, "gtids": f"{UUID}:{gtids}"},
        "ddl": f"CREATE TABLE {table} (id INT PRIMARY KEY)",
        "databaseName": "app",
        "tableChanges": [],
    }
    return json.dumps(document).encode()


def repaired(line: Line) -> Attended | None:
    """One look at a connector that failed; None when it would only be restarted."""
    repair = StatementRepair(line.connector())
    stand = repair.stand_before(FAILURE)
    return None if stand is None else repair.bring_past(stand, FAILURE)


def told(line: Line) -> str:
    """What the schema history says last of the table."""
    history = line.connector().topics.history()
    return next(r.text for r in reversed(history) if r.is_own and r.table == '"app"."t"')


def test_the_trace_does_not_tell_the_statement() -> None:
    assert FAILURE.at is FailedAt.STATEMENT and FAILURE.statement == ""


BEFORE_THE_OFFSET_IS_SET = [
    (KNOWN, "history", False),
    (KNOWN, "history", True),
    (KNOWN, "record", False),
    (KNOWN, "record", True),
    (KNOWN, "offset", False),
    (UNKNOWN, "history", False),
    (UNKNOWN, "history", True),
    (UNKNOWN, "tables left out", False),
    (UNKNOWN, "tables left out", True),
    (UNKNOWN, "record", False),
    (UNKNOWN, "record", True),
    (UNKNOWN, "offset", False),
]


@pytest.mark.parametrize(("sql", "step", "is_done"), BEFORE_THE_OFFSET_IS_SET)
@pytest.mark.parametrize("with_another", [False, True])
def test_an_interrupted_repair_is_repeated(
    sql: str, step: str, *, is_done: bool, with_another: bool
) -> None:
    """With another statement behind it; nobody can tell a table that another changes, too."""
    later = [LATER] if with_another else []
    later += [OF_THE_SAME_TABLE] if sql == UNKNOWN else []
    whole = line(sql, *later)
    outcome = repaired(whole)
    found = line(sql, *later)
    found.fails_at, found.is_done = step, is_done
    with pytest.raises(StackError, match="interrupted"):
        repaired(found)

    assert repaired(found) is outcome
    assert found.written() == whole.written() == [(sql, sql == UNKNOWN)]
    assert found.offset == whole.offset
    assert left_out_of(found.config) == left_out_of(whole.config)
    assert told(found) == told(whole)
    assert bool(left_out_of(found.config)) == (sql == UNKNOWN)


def test_a_record_is_never_missing_once_the_offset_is_behind_the_statement() -> None:
    for step in STEPS:
        for is_done in (False, True):
            found = line(KNOWN)
            found.fails_at, found.is_done = step, is_done
            before = dict(found.offset)
            with suppress(StackError):
                repaired(found)
            assert found.offset == before or found.written() == [(KNOWN, False)]


def test_what_the_first_try_told_counts_although_the_server_does_not_tell_it_any_more() -> None:
    """Else the connector would leave the table out, and no record would say so."""
    found = line(UNKNOWN)
    found.created = {"t": "CREATE TABLE `t` (`id` int NOT NULL, `x` int, PRIMARY KEY (`id`))"}
    found.fails_at = "offset"
    with pytest.raises(StackError):
        repaired(found)
    first = told(found)
    found.ahead = [*found.ahead, OF_THE_SAME_TABLE]

    assert repaired(found) is Attended.REPAIRED
    assert found.written() == [(UNKNOWN, False)]
    assert told(found) == first
    assert "shardmerge.left_out" not in found.config


def test_a_statement_that_debezium_has_read_is_not_the_failed_one() -> None:
    """A repair wrote its lost record; Debezium's own history says that it was read."""
    earlier = statement(400, 5, "ALTER TABLE t ADD a INT")
    found = Line([earlier, statement(600, 6, KNOWN)])
    found.offset = {"file": FILE, "pos": 400, "gtids": f"{UUID}:1-4"}
    topics_of = found.connector().topics
    read = json.loads(_created(500, "1-4", "t"))
    read["ddl"] = earlier.sql
    topics_of.add_history([_created(200, "1-3", "t"), json.dumps(read).encode()])
    topics_of.add_statement(earlier)
    stand = StatementRepair(found.connector()).stand_before(FAILURE)
    assert stand is not None and stand.statement.sql == KNOWN


@pytest.mark.parametrize(("rows", "rounds"), [(2, 0), (3, 1), (None, 1)])
def test_rows_that_cannot_be_counted_are_awaited(
    monkeypatch: pytest.MonkeyPatch, rows: int | None, rounds: int
) -> None:
    """The connector has delivered two rows of an event before the statement."""
    begun = RowsEvent(FILE, 300, 400, 200, 2, f"{UUID}:4", "app.t")
    found = line(KNOWN)
    found.ahead, found.rows = [begun, *found.ahead], rows
    found.offset = {"file": FILE, "pos": 200, "gtids": f"{UUID}:1-3", "event": 2, "row": 2}
    waited = []

    def behind_the_event(repair: StatementRepair) -> Stand | None:
        waited.append(repair)
        found.offset = {"file": FILE, "pos": 400, "gtids": f"{UUID}:1-4"}
        return repair.stand_before(FAILURE)

    monkeypatch.setattr(StatementRepair, "_deliver_more", behind_the_event)
    assert repaired(found) is Attended.REPAIRED
    assert len(waited) == rounds
