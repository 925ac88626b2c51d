"""The coordinator's table, put together from its changelog."""

from __future__ import annotations

from shardmerge.agents.coordination.state import state_rows
from shardmerge.agents.handling.effects import (
    Effects,
    Send,
    SourceRecord,
    at_hand_key,
    journal_key,
    to_bytes,
)
from shardmerge.agents.handling.memory_rows import MemoryRows
from shardmerge.agents.handling.record_group import RecordGroup
from shardmerge.agents.handling.stored_table import changelog, table_of
from shardmerge.connectors.formats.stored_record import StoredRecord
from shardmerge.schemas.model.names import TargetTable
from tests.recorded import Recorded


def put(offset: int, key: bytes, value: bytes | None, partition: int = 0) -> StoredRecord:
    return StoredRecord("p-agents-target-states-changelog", partition, offset, key, value)


def test_the_last_put_of_a_row_counts_and_a_deletion_takes_it_away() -> None:
    records = [put(0, b"a", b"1"), put(1, b"b", b"1"), put(2, b"a", b"2"), put(3, b"b", None)]
    assert table_of(records).puts == {b"a": b"2"}


def test_records_at_hand_are_completed_wherever_their_worker_is_with_them() -> None:
    journal = journal_key("p.schema-log", 1)
    effects = Effects({b"a": b"new", b"gone": None}, (Send("p.ddl", b"k", b"v"),))
    at = at_hand_key(1)
    record = SourceRecord("p.schema-log", 1, 7, None, b"")
    group = RecordGroup({})
    group.add(record, effects)
    assert group.at_hand is not None
    hand = to_bytes(group.at_hand)
    before = [put(0, b"a", b"old", 1), put(1, b"gone", b"old", 1), put(2, at, hand, 1)]
    steps = [put(3, b"a", b"new", 1), put(4, b"gone", None, 1)]
    expected = {b"a": b"new", b"gone": None}
    for so_far in range(3):
        found = table_of(before + steps[:so_far]).puts
        assert {key: found.get(key) for key in expected} == expected
        assert journal in found
        assert at not in found


def test_the_state_is_the_one_that_the_agents_have() -> None:
    made = Recorded()
    made.execute("s1", "CREATE TABLE tbl1 (id INT PRIMARY KEY, a INT)", snapshot=True)
    made.execute("s1", "ALTER TABLE tbl1 ADD b INT")
    rows, target = MemoryRows(), TargetTable("merged", "tbl")

    rows.take(table_of(made.changelog()))

    assert state_rows.header_key(target) in table_of(made.changelog()).puts
    state = rows.state(target)
    assert (state.version, [c.column.name for c in state.columns]) == (2, ["id", "a", "b"])


def test_the_topic_is_the_one_that_faust_makes() -> None:
    assert changelog(Recorded().pipeline) == "p-agents-target-states-changelog"
