"""What is kept in an Iceberg table's properties: compare-and-set of epoch, offsets, journal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmerge.schemas.model.errors import ContractError, TargetError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.spark_sink.barrier.closing import Closing
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.planning.ranges import Advance, RangeResult
from shardmerge.spark_sink.targets.iceberg.texts.decided import Decided
from shardmerge.spark_sink.targets.iceberg.texts.layout import Field, Layout
from shardmerge.spark_sink.targets.iceberg.texts.stored import (
    StoredState,
    from_json,
    statement_key,
    to_json,
)
from shardmerge.spark_sink.targets.interface import JournalEntry

TABLE = TargetTable("m", "t")
STATEMENTS = st.builds(statement_key, st.integers(1, 10**6), st.integers(0, 99))
NAMES, NUMBERS = st.text(max_size=9), st.integers(0, 99)
FIELDS = st.builds(Field, NUMBERS, NAMES, st.sampled_from(["int", "decimal(9, 2)"]), st.booleans())
LAYOUTS = st.builds(
    Layout, st.lists(FIELDS, max_size=3).map(tuple), NUMBERS, st.lists(NUMBERS).map(tuple)
)
STATES = st.builds(
    StoredState,
    st.integers(0, 10**6),
    st.one_of(
        [
            st.dictionaries(st.builds(Partition, NAMES, NUMBERS, shard), st.integers(0, 2**62))
            for shard in (st.none(), st.builds(ShardId, NAMES, NAMES, NAMES))
        ]
    ),
    st.integers(0, 2**62),
    st.frozensets(STATEMENTS),
    st.dictionaries(STATEMENTS, st.text()),
    st.dictionaries(STATEMENTS, st.text()),
    st.one_of(
        st.none(),
        st.builds(Decided, LAYOUTS, NUMBERS, st.dictionaries(NAMES, NAMES), st.frozensets(NUMBERS)),
    ),
    st.sampled_from([None, *Closing]),
)


def result(start: int, end: int, rows: int = 1, partition: int = 0) -> RangeResult:
    return RangeResult("topic", partition, start, end, None, rows, rows, 0)


@given(STATES)
def test_a_state_is_read_as_it_was_written(state: StoredState) -> None:
    assert from_json(to_json(state)) == state
    assert to_json(from_json(to_json(state))) == to_json(state)


def test_a_state_with_parts_of_shared_topics_is_not_read_by_who_does_not_know_them() -> None:
    shard = ShardId("s1", "app", "t")
    own = StoredState(offsets={Partition("topic", 0): 7})
    shared = StoredState(offsets={Partition("topic", 0): 7, Partition("all", 1, shard): 9})
    assert '"format":1' in to_json(own) and "shared" not in to_json(own)
    assert '"format":2' in to_json(shared)
    assert from_json(to_json(shared)) == shared


def test_a_closed_table_is_not_read_by_who_does_not_know_the_mark() -> None:
    closed = StoredState(epoch=3, offsets={Partition("topic", 0): 7}, closed=Closing.SWAPPING)
    assert '"format":3' in to_json(closed) and from_json(to_json(closed)) == closed
    assert closed.fenced(4).closed is Closing.SWAPPING


def test_a_table_without_a_state_has_an_empty_one() -> None:
    assert from_json(None) == StoredState()


@pytest.mark.parametrize("text", ["", "1", "{}", '{"format": 2}', '{"format": 1}', "[]"])
def test_a_state_of_another_format_is_no_guess(text: str) -> None:
    with pytest.raises(ContractError, match="not readable"):
        from_json(text)


def test_a_later_writer_takes_over_and_an_older_one_is_refused() -> None:
    assert StoredState(epoch=3).fenced(3).epoch == 3
    assert StoredState(epoch=3).fenced(5).epoch == 5
    with pytest.raises(TargetError, match="another writer took over") as raised:
        StoredState(epoch=3).fenced(2)
    assert not raised.value.retryable


def test_offsets_move_only_from_where_they_stand() -> None:
    state = StoredState().advanced([result(7, 9, rows=2), result(0, 4, partition=1)])
    assert state.offsets == {Partition("topic", 0): 9, Partition("topic", 1): 4}
    assert state.rows == 3

    assert state.advanced([result(9, 12)]).offsets[Partition("topic", 0)] == 12
    with pytest.raises(TargetError, match="its offset is 9, expected 7"):
        state.advanced([result(7, 9)])


def test_offsets_move_back_too() -> None:
    moves = [
        Advance("topic", 0, 9, 3, TABLE, 0, 0, 0),
        Advance("topic", 1, 4, 5, TABLE, 0, 0, 0),
    ]
    state = StoredState().advanced([result(7, 9, rows=2), result(0, 4, partition=1)])
    assert not state.stands_behind(moves)

    moved = state.advanced(moves)

    assert moved.offsets == {Partition("topic", 0): 3, Partition("topic", 1): 5} and moved.rows == 3
    assert moved.stands_behind(moves)
    with pytest.raises(TargetError, match="its offset is 3, expected 9"):
        moved.advanced(moves)


def test_a_refused_statement_may_be_executed_later() -> None:
    state = StoredState().journalled("2.0", JournalEntry("refused", "why", "SM-6806"))
    assert (state.done, state.refused) == (frozenset(), {"2.0": "why"})
    assert state.codes == {"2.0": "SM-6806"}

    state = state.journalled("2.0", JournalEntry("done"))
    assert (state.done, state.refused, state.codes) == (frozenset({"2.0"}), {}, {})
