from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmerge.agents.handling import effects
from shardmerge.agents.handling.effects import Arrival, Effects, JournalEntry, Send
from shardmerge.agents.tracking import tracked
from shardmerge.agents.tracking.tracked import DatabaseDefaults, TableCopy, Unknown
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.shard_columns import Lineage
from shardmerge.schemas.model.tables import Column, TableSchema
from shardmerge.schemas.model.types import ColumnType

sends = st.builds(
    Send,
    topic=st.text(),
    key=st.binary(),
    value=st.binary(),
    headers=st.lists(st.tuples(st.text(), st.text())).map(tuple),
)
entries = st.builds(
    JournalEntry,
    offset=st.integers(0, 2**62),
    effects=st.builds(
        Effects,
        puts=st.dictionaries(st.binary(), st.none() | st.binary()),
        sends=st.lists(sends).map(tuple),
    ),
)


@given(entries)
def test_a_journal_row_is_read_back_as_it_was(entry):
    data = effects.to_bytes(entry)
    assert effects.from_bytes(data) == entry
    assert effects.to_bytes(effects.from_bytes(data)) == data


def test_the_order_of_puts_does_not_change_the_bytes():
    one = JournalEntry(1, Effects({b"a": b"1", b"b": None}))
    other = JournalEntry(1, Effects({b"b": None, b"a": b"1"}))
    assert effects.to_bytes(one) == effects.to_bytes(other)


def test_a_journal_of_another_version_is_refused():
    with pytest.raises(ContractError, match="format 2"):
        effects.from_bytes(b'{"format":2}')


@pytest.mark.parametrize(
    ("journal", "offset", "expected"),
    [
        (None, 0, Arrival.NEXT), (None, 3, Arrival.BEYOND), (4, 5, Arrival.NEXT),
        (4, 7, Arrival.BEYOND), (4, 4, Arrival.REPEATED), (4, 3, Arrival.PAST),
    ],
)  # fmt: skip
def test_a_record_is_related_to_the_journal(journal, offset, expected):
    entry = None if journal is None else JournalEntry(journal, Effects())
    assert effects.classify(entry, offset) is expected


@pytest.mark.parametrize(
    "value",
    [
        TableSchema((Column("ID", ColumnType("int")),)),
        Unknown("why"),
        DatabaseDefaults("latin1", "latin1_bin"),
        TableCopy((Lineage("b", "a"), Lineage("c", ""))),
    ],
)
def test_tracked_values_are_read_back_as_they_were(value):
    assert tracked.from_bytes(tracked.to_bytes(value)) == value


def test_any_name_makes_a_row_key_of_its_own():
    shards = [ShardId("s", "a/b", "c"), ShardId("s", "a", "b/c"), ShardId("s", 'a"', "ä")]
    shards.append(tracked.copy_id(shards[1]))
    keys = [tracked.row_key(s) for s in shards]
    assert len(set(keys)) == len(keys)
    assert [tracked.from_row_key(k) for k in keys] == shards
    assert tracked.from_row_key(effects.journal_key("s", 0)) is None
