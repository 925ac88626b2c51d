from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shardmerge.spark_sink.planning.batch_size import BatchSize

MB = 1 << 20


def size() -> BatchSize:
    return BatchSize(500_000, 512 * MB, 10)


def test_batches_grow_up_to_their_most_records_while_they_are_quick() -> None:
    found = size()
    bounds = []
    for _ in range(3):
        bounds.append(found.records)
        found.took(found.records, found.records * 100, 1)
    assert bounds == [100_000, 400_000, 500_000]


def test_a_slow_batch_is_followed_by_a_smaller_one() -> None:
    found = size()
    found.took(100_000, MB, 40)
    assert found.records == 25_000


def test_large_rows_come_in_small_batches() -> None:
    found = size()
    found.took(100_000, 5_120 * MB, 9)
    assert found.records == 10_000
    found.took(10, 1_024 * MB, 9)
    assert found.records == 5


def test_a_few_records_tell_nothing_of_many() -> None:
    found = size()
    found.took(20, 2_000, 0.5)
    assert found.records == 100_000


def test_small_batches_become_large_again() -> None:
    found = size()
    found.took(100_000, 512 * MB * 100_000, 1)
    assert found.records == 1
    bounds = []
    for _ in range(6):
        found.took(found.records, found.records, 0.01)
        bounds.append(found.records)
    assert bounds == [1_000, 4_000, 16_000, 64_000, 256_000, 500_000]


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 2**40), st.floats(0, 1e6))))
def test_the_bound_is_never_beyond_the_setting_nor_below_one(
    batches: list[tuple[int, int, float]],
) -> None:
    found = size()
    for batch in batches:
        found.took(*batch)
        assert 1 <= found.records <= 500_000
