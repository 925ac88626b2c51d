"""A group's rows and effects are those that its records leave one by one."""

from __future__ import annotations

from shardmerge.agents.handling.effects import (
    Effects,
    JournalEntry,
    Send,
    SourceRecord,
    from_bytes,
    journal_key,
    to_bytes,
)
from shardmerge.agents.handling.record_group import MAX_BYTES, MAX_RECORDS, RecordGroup

ROWS = {b"a": b"1", b"b": b"2"}


def record(offset: int, topic: str = "s1") -> SourceRecord:
    return SourceRecord(topic, 0, offset, None, b"")


def test_a_group_without_a_record_has_nothing_at_hand_and_the_rows_of_the_table():
    group = RecordGroup(ROWS)
    assert group.at_hand is None
    assert sorted(group.keys()) == [b"a", b"b"]
    assert (group.get(b"a"), group.get(b"c")) == (b"1", None)


def test_a_fold_sees_the_rows_that_the_records_before_it_leave():
    group = RecordGroup(ROWS)
    group.add(record(5), Effects({b"a": None, b"c": b"3"}))
    assert (group.get(b"a"), group.get(b"b"), group.get(b"c")) == (None, b"2", b"3")
    assert sorted(group.keys()) == [b"b", b"c"]
    assert ROWS == {b"a": b"1", b"b": b"2"}


def test_a_row_is_read_from_the_table_once_for_all_records():
    class Counting(dict[bytes, bytes]):
        def get(self, key: bytes, default: object = None) -> bytes | None:  # type: ignore[override]
            asked.append(key)
            return super().get(key)

    asked: list[bytes] = []
    group = RecordGroup(Counting(ROWS))
    for offset in range(3):
        assert (group.get(b"a"), group.get(b"none")) == (b"1", None)
        group.add(record(offset), Effects({b"c": b"3"}))
    assert asked == [b"a", b"none"]


def test_a_journal_tells_the_last_record_of_its_partition_whoever_wrote_it():
    stored = to_bytes(JournalEntry(4, Effects()))
    group = RecordGroup({journal_key("s1", 0): stored})
    assert group.journal("s1", 0) == JournalEntry(4, Effects())
    assert group.journal("s2", 0) is None
    group.add(record(5), Effects())
    group.add(record(0, "s2"), Effects())
    assert [entry and entry.offset for entry in map(group.journal, ("s1", "s2"), (0, 0))] == [5, 0]
    assert group.journal("s1", 1) is None


def test_of_several_puts_of_a_row_the_last_one_counts_and_all_sends_stay_in_order():
    group = RecordGroup(ROWS)
    one, two, three = (Send("ddl", b"t", text) for text in (b"1", b"2", b"3"))
    group.add(record(5), Effects({b"a": b"5", b"b": None}, (one,)))
    group.add(record(7, "s2"), Effects({b"b": b"7"}, (two,)))
    group.add(record(6), Effects({b"a": None}, (three,)))
    entry = group.at_hand
    assert entry is not None
    assert entry.offset == 6
    assert entry.effects.sends == (one, two, three)
    journals = {journal_key("s1", 0): 6, journal_key("s2", 0): 7}
    puts = dict(entry.effects.puts)
    assert {k: from_bytes(puts.pop(k) or b"").offset for k in journals} == journals
    assert puts == {b"a": None, b"b": b"7"}


def test_a_group_is_full_by_its_records_or_its_bytes():
    group = RecordGroup(ROWS)
    for offset in range(MAX_RECORDS):
        assert not group.is_full
        group.add(record(offset), Effects())
    assert group.is_full
    group = RecordGroup(ROWS)
    group.add(record(0), Effects({b"a": b"x" * MAX_BYTES}))
    assert group.is_full
