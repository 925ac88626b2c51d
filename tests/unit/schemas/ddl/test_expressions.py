"""The columns that canonical expressions name."""

from __future__ import annotations

from shardmerge.schemas.ddl.expressions import canonical, column_names
from tests.strategies import SERVER


def test_the_columns_of_an_expression_are_named_once_in_order() -> None:
    text = canonical("concat(b, a, 'c', `b`, `it``s`)", SERVER)
    assert column_names(text) == ("b", "a", "it`s")
