"""Conditions on rows: SQL's three values, by the type of what is compared."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from shardmerge.schemas.model.errors import ConfigError, UnsupportedDDL
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.pipeline.row_conditions import (
    ConditionColumn,
    check_condition,
    column_names,
    condition_on,
)
from shardmerge.spark_sink.rows.values.readers import reader
from shardmerge.spark_sink.rows.values.times import moment_text

TYPES = {
    "i": ColumnType("bigint", unsigned=True), "d": ColumnType("decimal", 10, 2),
    "f": ColumnType("double"), "s": ColumnType("varchar", 20), "e": ColumnType("enum"),
    "day": ColumnType("date"), "at": ColumnType("datetime", fsp=3),
    "ts": ColumnType("timestamp", fsp=6), "b": ColumnType("blob"), "any": ColumnType("int"),
    "r": ColumnType("float"), "y": ColumnType("year"),
}  # fmt: skip


def text_of(kind: ColumnType, value: Any) -> str | None:
    column = reader(kind)
    return moment_text(column.form, column.read([value])[0])


COLUMNS = {
    name: ConditionColumn(place, kind, partial(text_of, kind))
    for place, (name, kind) in enumerate(TYPES.items())
}


def truth(text: str, **values: Any) -> bool | None:
    check_condition(text, "here")
    return condition_on(text, COLUMNS)([values.get(name) for name in TYPES])


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("i = 18446744073709551615", {"i": 2**64 - 1}, True),
        ("i = 18446744073709551615", {"i": 2**64 - 2}, False),
        ("i > -1", {"i": 0}, True),
        ("d >= 10.5", {"d": "10.50"}, True),
        ("d < 9", {"d": "10.00"}, False),
        ("f BETWEEN 1 AND 2", {"f": 1.5}, True),
        ("f NOT BETWEEN 1 AND 2", {"f": 1.5}, False),
        ("f = 0.1", {"f": 0.1}, True),
        ("f = -0.1", {"f": -0.1}, True),
        ("0.1 = f", {"f": 0.1}, True),
        ("f <> 0.1", {"f": 0.1}, False),
        ("f <=> 0.1", {"f": 0.1}, True),
        ("f <=> NULL", {}, True),
        ("f IN (0.2, 0.1)", {"f": 0.1}, True),
        ("f BETWEEN 0.1 AND 0.1", {"f": 0.1}, True),
        ("f = d", {"f": 0.1, "d": "0.10"}, True),
        ("f = i", {"f": 2.0**53, "i": 2**53 + 1}, True),
        ("f = 1", {"f": 1}, True),
        ("f = 0.1", {}, None),
        ("r = 0.1", {"r": 0.1}, False),
        ("r > 0.1", {"r": 0.1}, True),
        ("r > 0.1", {"r": 0.10000000149011612}, True),
        ("r = 0.5", {"r": 0.5}, True),
        ("r = f", {"r": 0.1, "f": 0.10000000149011612}, True),
        ("r < 3.4028235e38", {"r": 3.4028235e38}, True),
        ("r = 1", {}, None),
        ("y = 0", {"y": 1900}, True),
        ("y < 1901", {"y": 1900}, True),
        ("y BETWEEN 1900 AND 2000", {"y": 1900}, False),
        ("y = 1901", {"y": 1901}, True),
        ("y IN (0, 2000)", {"y": 2000}, True),
        ("y = 0", {}, None),
        ("i < d", {"i": 3, "d": "3.01"}, True),
        ("s = 'EU'", {"s": "EU"}, True),
        ("s = 'EU'", {"s": "eu"}, False),
        ("`s` <> 'it''s'", {"s": "it's"}, False),
        ("s IN ('a', 'b') AND NOT i = 1", {"s": "b", "i": 2}, True),
        ("s NOT IN ('a', 'b')", {"s": "b"}, False),
        ("s LIKE 'a\\_%z'", {"s": "a_\nz"}, True),
        ("s LIKE 'a_c'", {"s": "abbc"}, False),
        ("s NOT LIKE '%x%'", {"s": "abc"}, True),
        ("e = 'new' OR e = 'old'", {"e": "old"}, True),
        ("day >= '2026-01-01'", {"day": 20_454}, True),
        ("day >= '2026-01-02'", {"day": 20_454}, False),
        ("at = '2026-01-01 00:00:00.5'", {"at": 1_767_225_600_500}, True),
        ("at < '2026-01-01 00:00:00.500001'", {"at": 1_767_225_600_500}, True),
        ("at >= '2026-01-01'", {"at": 1_767_225_600_000}, True),
        ("ts < '2026-01-01'", {"ts": "2025-12-31T23:59:59.999999Z"}, True),
        ("`any` = 1", {"any": 1}, True),
        ("s IS NULL", {}, True),
        ("s IS NOT NULL", {}, False),
        ("s = 'x'", {}, None),
        ("NOT s = 'x'", {}, None),
        ("s = 'x' AND i = 1", {"i": 2}, False),
        ("s = 'x' AND i = 1", {"i": 1}, None),
        ("s = 'x' OR i = 1", {"i": 1}, True),
        ("s = 'x' OR i = 1", {"i": 2}, None),
        ("i IN (1, NULL)", {"i": 2}, None),
        ("s <=> NULL", {}, True),
        ("s <=> 'x'", {}, False),
        ("NOT (i = 1 OR TRUE)", {"i": 2}, False),
    ],
)
def test_rows(text: str, values: dict[str, Any], expected: bool | None) -> None:
    assert truth(text, **values) is expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("i =", "is no condition"), ("1 = 1", "names no column"), ("lower(s) = 'a'", "LOWER"),
        ("i + 1 = 2", "not supported"), ("i = (SELECT 1)", "not supported"),
        ("s REGEXP 'a'", "not supported"), ("i = 1; DROP TABLE t", "not supported"),
        ("t.i = 1", "not supported"), ("s LIKE 'a|%' ESCAPE '|'", "not supported"),
    ],
)  # fmt: skip
def test_what_is_no_condition_or_not_supported_is_a_wrong_setting(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        check_condition(text, "[[routes]] 1")


@pytest.mark.parametrize(
    "text",
    [
        "i", "i = 'one'", "s = 1", "s = -1", "day = 'tomorrow'", "day = 20260101", "b = 'x'",
        "i = s", "i LIKE '1%'", "i IS TRUE", "s = 'a' AND i",
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_told(text: str) -> None:
    check_condition(text, "here")
    with pytest.raises(UnsupportedDDL, match="where"):
        condition_on(text, COLUMNS)


def test_the_columns_that_it_names() -> None:
    assert column_names("`S` = 'a' AND (i = 1 OR s IS NULL)") == ("i", "s")
