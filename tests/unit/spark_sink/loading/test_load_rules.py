from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.spark_sink.barrier.shard_gates import ShardGates
from shardmerge.spark_sink.loading.load_rules import (
    chosen,
    kind_of,
    may_give_out,
    may_have_duplicates,
    may_have_rows_before,
    moved,
    next_base,
    next_order,
    passed_over_to,
    proves,
    stream_stop,
)
from shardmerge.spark_sink.loading.load_state import Load, LoadKind
from tests.unit.spark_sink.loading.loads import SHARD, TARGET, at, done, gates, load

CHUNKS, SNAPSHOT = LoadKind.CHUNKS, LoadKind.SNAPSHOT


@pytest.mark.parametrize(
    ("has_key", "has_other", "applies", "expected"),
    [
        (True, False, True, CHUNKS),
        (True, True, True, SNAPSHOT),
        (False, False, True, SNAPSHOT),
        (True, False, False, SNAPSHOT),
    ],
)
def test_only_what_one_key_decides_is_read_in_chunks(
    has_key: bool, has_other: bool, applies: bool, expected: LoadKind
) -> None:
    found = kind_of(
        has_key=has_key, has_other_unique_key=has_other, applies_every_operation=applies
    )
    assert found is expected


@pytest.mark.parametrize(
    ("positions", "first_blocked", "expected"),
    [
        ((), 0, None),  # the target does not exist yet
        ((), 1, None),
        ((50,), 1, 1),  # known, and its statements are not executed
        ((50,), 2, 1),
        ((50, 60), 1, 1),  # a held gate: the one behind it cannot be reached
        ((50, 60), 3, 2),
    ],
)
def test_a_base_moves_to_the_last_gate_that_rows_can_reach(
    positions: tuple[int, ...], first_blocked: int, expected: int | None
) -> None:
    assert next_base(gates(*positions), load(), first_blocked) == expected


def test_a_load_that_is_proven_stays() -> None:
    assert next_base(gates(50), done(load(), 0).proven(), 2) is None
    assert next_base(gates(50), done(load(SNAPSHOT), 0).proven(), 2) is None


def test_the_stream_waits_at_the_base_until_the_load_is_complete() -> None:
    two = gates(50)
    assert stream_stop(two, load(), ()) == 0
    assert stream_stop(two, load().move(2, at(50)), ()) == 1
    assert stream_stop(two, done(load(), 0), ()) == 0
    assert stream_stop(two, done(load(), 0).proven(), ()) is None


def test_the_stream_waits_at_an_order_until_its_load_has_begun() -> None:
    complete = done(load(), 0).proven()
    assert next_order(complete, [1, 3, 2]) == 2
    assert stream_stop(gates(50, 60), complete, [1, 3]) == 2
    assert next_order(complete, [1]) is None


def test_chunks_are_given_out_behind_an_open_gate() -> None:
    def may(of_gates: int, first_blocked: int, *, has_base: bool = True) -> bool:
        return may_give_out(
            gates(*range(50, 50 + of_gates)), load(), first_blocked, source_has_base=has_base
        )

    assert may(0, 1)
    assert not may(0, 0)  # rows wait for statements
    assert not may(1, 2)  # the base moves first
    assert not may(0, 1, has_base=False)
    assert not may_give_out(gates(), load().pause(), 1, source_has_base=True)
    assert not may_give_out(gates(), done(load(), 0).proven(), 1, source_has_base=True)


@pytest.mark.parametrize(
    ("known_to", "positions", "expected"),
    [(99, (), False), (100, (), True), (500, (100,), True), (500, (99,), False)],
)
def test_a_load_is_proven_when_no_change_can_lie_before_its_chunks(
    known_to: int, positions: tuple[int, ...], expected: bool
) -> None:
    assert proves(gates(*positions), done(load(), 0, before=100), at(known_to)) is expected


def test_what_is_not_read_is_not_proven() -> None:
    assert not proves(gates(), load(CHUNKS, "5"), at(500))
    assert not proves(gates(), done(load(CHUNKS, "5"), 0), at(500))


def test_chunks_that_were_perhaps_read_behind_a_change_are_read_again() -> None:
    one = done(load(CHUNKS, "3", "6"), 0, before=40)
    one = done(one, 1, before=60)
    after = moved(gates(50, 70), one, 2, ())
    assert [c.read_before is not None for c in after.chunks] == [True, False, False]
    assert after.base == 3


@pytest.mark.parametrize(("order", "kept"), [(1, True), (2, False), (3, False), (4, True)])
def test_an_order_between_the_two_bases_reads_all_again(order: int, kept: bool) -> None:
    after = moved(gates(50, 70, 90), done(load(), 0, before=40), 2, [order])
    assert (after.chunks[0].read_before is not None) is kept


def test_what_was_all_read_before_a_change_is_complete_when_the_change_comes() -> None:
    """Whatever the change is: the key of the table may be gone behind it."""
    read = done(load(CHUNKS, "3"), 0, 1, before=50)
    for change in (gates(50, 70), gates(50, 70, new_key=50)):
        after = moved(change, read, 2, ())
        assert (after.is_complete, after.base) == (True, 1)
        assert after.chunks == read.chunks
    # A snapshot is not in the target yet, and its rows have the earlier columns.
    assert moved(gates(50), done(load(SNAPSHOT), 0, before=50), 1, ()).chunks == ()


def test_what_was_perhaps_read_behind_a_change_is_not_complete() -> None:
    late = done(load(CHUNKS, "3"), 0, 1, before=51)
    assert moved(gates(50), late, 1, ()).base == 2
    part = done(load(CHUNKS, "3"), 0, before=40)
    assert moved(gates(50), part, 1, ()).base == 2
    # A decision wants its rows read again, or nothing is left to be read.
    read = done(load(), 0, before=40)
    assert moved(gates(50), read, 1, [2]).base == 2
    assert moved(gates(50, dropped=50), read, 1, ()).is_void


def test_another_key_on_the_way_cuts_the_table_anew() -> None:
    after = moved(gates(50, 70, new_key=50), done(load(CHUNKS, "3"), 0, before=40), 2, ())
    assert after.chunks == ()


def test_a_drop_ends_the_load_although_the_table_is_made_again() -> None:
    after = moved(gates(50, 70, dropped=50), load(SNAPSHOT), 2, ())
    assert after.is_void
    assert after.base == 2
    assert after.position == at(50)


def test_statements_wait_until_the_base_is_their_gate() -> None:
    two = gates(50)
    assert may_have_rows_before(two, load(), at(50))
    assert not may_have_rows_before(two, load().move(2, at(50)), at(50))
    assert not may_have_rows_before(two, done(load(), 0).proven(), at(50))


def test_a_unique_value_may_be_there_twice_until_the_stream_has_passed_the_chunks() -> None:
    read = done(load(), 0, before=100)
    assert may_have_duplicates(read, at(500), at(100))
    assert may_have_duplicates(read.proven(), at(99), at(100))
    assert not may_have_duplicates(read.proven(), at(100), at(100))
    assert not may_have_duplicates(load(SNAPSHOT), at(1), at(100))
    # The chunk may have been read behind the DROP, from a table that was made again.
    for one in (read, read.move(2, at(50)), read.move(2, at(150), new_key=True)):
        void = one.end_void(3, at(50))
        assert may_have_duplicates(void, at(99), at(100))
        assert not may_have_duplicates(void, at(100), at(100))
    assert not may_have_duplicates(load().end_void(2, at(50)), at(1), at(100))


def test_rows_before_a_snapshot_are_passed_over() -> None:
    two = gates(50)
    assert passed_over_to(two, load()) is None
    # The snapshot is taken behind the base.
    assert passed_over_to(two, load(SNAPSHOT).move(2, at(50))) == at(50)
    taken = done(load(SNAPSHOT), 0, before=70)
    assert passed_over_to(two, taken) == gates().gates[0].position
    assert passed_over_to(two, taken.proven().copied()) == at(70)
    assert passed_over_to(two, load(SNAPSHOT).end_void(2, at(50))) == at(50)


def chosen_kind(of: Load, *, unique: bool = False, applies: bool = True, key: str = "id") -> str:
    found = gates(50, key=key)
    if not key:
        found = ShardGates(SHARD)
        for gate in gates(50).gates:
            found.append(replace(gate, key=()))
    after = chosen(found, of, has_other_unique_key=unique, applies_every_operation=applies)
    return after.kind.value


def test_a_load_is_read_as_is_right_for_its_table() -> None:
    new = Load(SHARD, TARGET, 1, SNAPSHOT, 1)
    assert chosen_kind(new) == "chunks"
    assert chosen_kind(new, unique=True) == "snapshot"
    assert chosen_kind(new, applies=False) == "snapshot"
    assert chosen_kind(new, key="") == "snapshot"
    assert chosen_kind(new.move(2, at(50))) == "chunks"


def test_what_is_begun_is_read_to_its_end_in_the_same_way() -> None:
    assert chosen_kind(load(CHUNKS, "5").begin(0), unique=True) == "chunks"
    assert chosen_kind(load(SNAPSHOT).begin(0)) == "snapshot"


def keyless_from(version: int) -> ShardGates:
    """Gates at 50 and 70 behind the first one; the shard has lost its key at one of them."""
    found = ShardGates(SHARD)
    for gate in gates(50, 70).gates:
        found.append(replace(gate, key=gate.key if gate.version < version else ()))
    return found


@pytest.mark.parametrize("version", [2, 3])
def test_a_load_whose_shard_loses_its_key_begins_again_as_a_snapshot(version: int) -> None:
    found = keyless_from(version)
    begun = done(load(CHUNKS, "3"), 0, before=40).begin(1)
    after = moved(found, begun, 2, ())
    assert (after.kind, after.base, after.chunks) == (SNAPSHOT, 3, ())
    assert (after.clears, after.has_mixed_rows) == (True, True)
    # Rows behind the first gate would meet a target that lacks the rows of other chunks.
    assert passed_over_to(found, after) == at(70)
    assert chosen(found, after, has_other_unique_key=False, applies_every_operation=True) == after


def test_rows_are_deleted_only_if_chunks_or_the_stream_may_have_brought_some() -> None:
    found = keyless_from(3)
    assert not moved(found, load(CHUNKS, "3"), 2, ()).clears
    # The stream has been applied up to the second gate.
    assert moved(found, moved(found, load(CHUNKS, "3"), 1, ()), 2, ()).clears
    assert moved(found, load(CHUNKS, "3").begin(0).give_back(0), 2, ()).clears


def test_a_load_that_an_earlier_version_left_without_a_key_begins_again() -> None:
    found = keyless_from(3)
    left = load(CHUNKS, "3").move(3, at(50), new_key=True)
    after = chosen(found, left, has_other_unique_key=False, applies_every_operation=True)
    assert (after.kind, after.clears) == (SNAPSHOT, True)


def test_a_load_that_regains_its_key_begins_again_too() -> None:
    found = ShardGates(SHARD)
    for gate in gates(50, 70).gates:
        found.append(replace(gate, key=() if gate.version == 2 else gate.key))
    on = moved(found, done(load(CHUNKS, "3"), 0, before=40), 2, ())
    after = chosen(found, on, has_other_unique_key=False, applies_every_operation=True)
    assert (after.kind, after.clears) == (SNAPSHOT, True)


def test_a_load_of_chunks_that_may_have_brought_rows_begins_again() -> None:
    def clears(of: Load) -> bool:
        after = chosen(gates(50), of, has_other_unique_key=True, applies_every_operation=True)
        assert after.kind is SNAPSHOT
        return after.clears

    assert not clears(load())
    assert clears(load().begin(0).give_back(0))
    # Rows of the stream up to its base may be in the target.
    assert clears(load().move(2, at(50)))
    assert not clears(load(SNAPSHOT).move(2, at(50)))


def test_a_shard_that_had_no_key_stays_a_snapshot() -> None:
    found = ShardGates(SHARD)
    first, second = gates(50).gates
    found.append(replace(first, key=()))
    found.append(second)
    moved_on = Load(SHARD, TARGET, 1, SNAPSHOT, 1).move(2, at(50))
    after = chosen(found, moved_on, has_other_unique_key=False, applies_every_operation=True)
    assert after.kind is SNAPSHOT
