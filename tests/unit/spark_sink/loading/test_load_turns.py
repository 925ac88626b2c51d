from __future__ import annotations

import pytest

from shardmerge.schemas.model.names import ShardId
from shardmerge.spark_sink.loading.load_state import Load, LoadKind
from shardmerge.spark_sink.loading.load_turns import (
    ChunkTurn,
    LoadLimits,
    RateBudget,
    next_chunks,
)
from tests.unit.spark_sink.loading.loads import done, load

EDGES = ("1", "2", "3", "4")


def shard(source: str, table: str = "t") -> Load:
    """A load of five chunks."""
    return load(LoadKind.CHUNKS, *EDGES, shard=ShardId(source, "app", table))


def turns(
    loads: list[Load], most: int = 99, rate: dict[str, RateBudget] | None = None, **limits: int
) -> list[tuple[int, int]]:
    bounds = {source: LoadLimits(count) for source, count in limits.items()}
    found = next_chunks(loads, [True] * len(loads), bounds, rate or {}, most)
    return [(turn.load, turn.number) for turn in found]


def test_shards_of_a_source_take_turns_within_its_connections() -> None:
    assert turns([shard("s1", "a"), shard("s1", "b")], s1=3) == [(0, 0), (1, 0), (0, 1)]


def test_each_source_has_its_own_limit() -> None:
    assert turns([shard("s1"), shard("s2")], s1=1, s2=2) == [(0, 0), (1, 0), (1, 1)]


def test_running_chunks_count() -> None:
    busy = shard("s1", "a").begin(0).begin(1)
    assert turns([busy, shard("s1", "b")], s1=3) == [(1, 0)]
    assert turns([busy], most=3) == [(0, 2)]
    assert turns([busy], s1=2) == []
    assert turns([busy], s1=1) == []


def test_only_planned_chunks_of_loads_that_may_go_on_are_given_out() -> None:
    one = done(shard("s1").begin(1), 0)
    assert turns([one], s1=3) == [(0, 2), (0, 3)]
    assert next_chunks([one], [False], {}, {}, 9) == ()


def test_four_chunks_are_read_at_once_unless_somebody_says_otherwise() -> None:
    assert next_chunks([shard("s1")], [True], {}, {}, 9) == tuple(
        ChunkTurn(0, number) for number in range(4)
    )


def test_nothing_is_given_out_while_the_rate_is_used_up() -> None:
    rate = {"s1": RateBudget(0.0, 0.0)}
    assert turns([shard("s1"), shard("s2")], s1=1, s2=1, rate=rate) == [(1, 0)]
    assert turns([shard("s1")], s1=1, rate={"s1": RateBudget(0.1, 0.0)}) == [(0, 0)]
    assert turns([shard("s2")], s2=1, rate=rate) == [(0, 0)]


def test_rows_beyond_the_rate_are_waited_for() -> None:
    budget = RateBudget(1_000, 10.0).without(3_500)
    assert budget.later(12.0, 1_000).rows == pytest.approx(-500)
    assert budget.later(13.0, 1_000).rows == pytest.approx(500)
    assert budget.later(99.0, 1_000).rows == pytest.approx(1_000)


def test_a_clock_that_goes_back_gives_nothing() -> None:
    assert RateBudget(5, 10.0).later(9.0, 1_000) == RateBudget(5, 10.0)
