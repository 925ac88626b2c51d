"""Numbers in JSON that MySQL's parser reads as the double that they name."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmerge.spark_sink.targets.mysql.lines.json_numbers import read_exactly, server_reads


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "null",
        '"5.066837196502553e99"',
        '{"5.066837196502553e99": "a\\"1.5e3"}',
        "[1, -2, 18446744073709551615, 0.5, 1e100, 123456789.125, -0.0]",
    ],
)
def test_text_that_is_read_rightly_stays_as_it_is(text: str) -> None:
    assert read_exactly(text) == text


@pytest.mark.parametrize("number", ["5.066837196502553e99", "-5.066837196502553e99", "0.9876e-298"])
def test_a_number_that_would_be_read_as_its_neighbour_gets_another_text(number: str) -> None:
    told = read_exactly(f'{{"a": [{number}], "{number}": "{number}"}}')
    assert server_reads(told[len('{"a": [') : told.index("]")]) == float(number)
    assert json.loads(told) == {"a": [float(number)], number: number}


def test_mysqls_parser_reads_a_neighbour() -> None:
    # Measured: SELECT CAST('5.066837196502553e99' AS JSON), MySQL 8.0.15.
    assert server_reads("5.066837196502553e99") == 5.066837196502554e99


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_an_exact_parser_reads_the_same_number(value: float) -> None:
    assert json.loads(read_exactly(f"[{value!r}]")) == [value]
