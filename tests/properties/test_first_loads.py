"""A first load ends right, whatever happens meanwhile: docs/explanation/first-load.md."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shardmerge.spark_sink.loading import load_rules
from tests.properties.load_source import Shape
from tests.properties.load_target import Refused
from tests.properties.load_world import World

SHAPES = {
    "keyed": Shape(),
    "keyed, with a condition": Shape(condition=5),
    "with another unique key": Shape(has_unique=True),
    "with a unique key that comes later": Shape(has_unique=True, unique_comes=True),
    "without a key": Shape(has_key=False),
    "without a key, with a condition": Shape(has_key=False, condition=2),
    "with an ignored operation": Shape(ignores_deletes=True),
    "whose key comes and goes": Shape(loses_key=True),
    "whose key comes and goes, with a condition": Shape(loses_key=True, condition=2),
}
seeds = st.integers(0, 1 << 32)


@pytest.mark.parametrize("name", SHAPES)
@example(seed=1391, steps=75)
@given(seed=seeds, steps=st.sampled_from((20, 60, 150)))
def test_the_target_ends_equal_to_the_source(name: str, seed: int, steps: int) -> None:
    World(SHAPES[name], seed).run(steps)


@pytest.mark.parametrize(("seed", "steps"), [(8325, 75), (11040, 75), (11040, 100)])
def test_a_unique_key_waits_for_chunks_of_a_table_that_was_dropped_and_made_again(
    seed: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chunks may show rows of the new table while older events are still to come."""
    shape, real = SHAPES["with a unique key that comes later"], load_rules.may_have_duplicates
    World(shape, seed).run(steps)
    monkeypatch.setattr(
        load_rules,
        "may_have_duplicates",
        lambda load, *places: not load.is_void and real(load, *places),
    )
    with pytest.raises(Refused):
        World(shape, seed).run(steps)
