"""The table of values that do not arrive as they are, and where it is told."""

from __future__ import annotations

from pathlib import Path

from shardmerge.connectors.debezium.value_limits import LIMITS, limits_of
from shardmerge.schemas.model.types import ColumnType

ROOT = Path(__file__).resolve().parents[4]


def test_the_reference_page_lists_the_limits_of_the_table() -> None:
    text = (ROOT / "docs/reference/values.md").read_text(encoding="utf-8")
    told = text.partition("<!-- generated: value-limits -->\n")[2].partition("<!--")[0]
    assert told.strip().split("\n") == [f"* {limit.sentence}." for limit in LIMITS]


def test_limits_have_names_of_their_own() -> None:
    assert len({limit.id for limit in LIMITS}) == len(LIMITS)


def test_a_column_that_is_exact_has_no_limit() -> None:
    exact = [
        ColumnType("tinyint", 1),
        ColumnType("double"),
        ColumnType("time", fsp=6),
        ColumnType("varchar", 9, charset="utf8mb4"),
        ColumnType("year"),
    ]
    assert [list(limits_of(kind, True)) for kind in exact] == [[]] * len(exact)


def test_a_limit_says_what_happens_and_where() -> None:
    [limit] = limits_of(ColumnType("float"), False)
    assert limit.sentence == (
        "FLOAT: read by a snapshot, first or again, a value with more than six digits has six"
    )
