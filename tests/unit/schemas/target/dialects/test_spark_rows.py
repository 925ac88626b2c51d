"""Texts as literals of Spark SQL."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmerge.schemas.records.earlier_statements import _text
from shardmerge.schemas.target.dialects.spark_rows import string_literal


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("it's", r"'it\'s'"),
        ("a\\b", r"'a\\b'"),
        (chr(0) + "12", r"'\u000012'"),
        ("\r\n", r"'\r\n'"),
    ],
)
def test_what_has_a_meaning_in_a_literal_is_escaped(text: str, literal: str) -> None:
    assert string_literal(text) == literal


@given(st.text(st.characters(codec="utf-8") | st.sampled_from("\0\\'\n0u")))
def test_an_earlier_statement_is_read_back_whole(text: str) -> None:
    literal = string_literal(text)
    assert "\0" not in literal
    assert _text(literal[1:-1]) == text
