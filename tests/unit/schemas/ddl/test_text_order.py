"""Which expressions may have another value where texts are compared in another collation."""

from __future__ import annotations

import pytest

from shardmerge.schemas.ddl.text_order import compares_texts


@pytest.mark.parametrize(
    "expression",
    [
        "(`a` = 'x')",
        "(`A` <> `b`)",
        "(`a` like 'x%')",
        "(`a` in ('x','y'))",
        "(case `a` when 'x' then 1 end)",
        "lower(`a`)",
        "concat(replace(`a`,'x','y'),`b`)",
        "concat(`a`,(`b` collate utf8mb4_bin))",
    ],
)
def test_a_comparison_of_a_text_counts(expression: str) -> None:
    assert compares_texts(expression, {"a"})
    assert not compares_texts(expression, {"c"})


@pytest.mark.parametrize(
    "expression",
    [
        "concat(`a`,'=','<like>')",
        "char_length(`a`)",
        "(char_length(`a`) + 1)",
        "((char_length(`a`) > 0) and (length(`a`) in (1,2)))",
        "json_unquote(json_extract(`a`,'$.x'))",
        "sha2(concat(`a`,`in (`),256)",
        "left(`a`,3)",
    ],
)
def test_an_expression_that_looks_at_characters_alone_does_not_count(expression: str) -> None:
    assert not compares_texts(expression, {"a"})
