"""A first load ends right, whatever happens meanwhile: docs/explanation/first-load.md."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties.load_source import Shape
from tests.properties.load_world import World

SHAPES = {
    "keyed": Shape(),
    "keyed, with a condition": Shape(condition=5),
    "with another unique key": Shape(has_unique=True),
    "with a unique key that comes later": Shape(has_unique=True, unique_comes=True),
    "without a key": Shape(has_key=False),
    "without a key, with a condition": Shape(has_key=False, condition=2),
    "with an ignored operation": Shape(ignores_deletes=True),
}
seeds = st.integers(0, 1 << 32)


@pytest.mark.parametrize("name", SHAPES)
@given(seed=seeds, steps=st.sampled_from((20, 60, 150)))
def test_the_target_ends_equal_to_the_source(name: str, seed: int, steps: int) -> None:
    World(SHAPES[name], seed).run(steps)
