from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from tests.e2e.runner.compare import (
    FoundColumn,
    FoundIndex,
    column_faults,
    index_faults,
    plain_default,
    plain_expression,
    plain_type,
    plain_value,
    row_faults,
)
from tests.e2e.runner.model import Final


def final(complete: bool = True, **fields: Any) -> Final:
    base: dict[str, Any] = {"columns": None, "indexes": None, "row_count": None, "rows": None}
    return Final(**{**base, "state": "", "complete": complete, **fields})


def column(name: str = "a", kind: str = "int", **fields: Any) -> FoundColumn:
    base: dict[str, Any] = {"nullable": True, "default": None, "charset": None, "collation": None}
    return FoundColumn(name, kind, **{**base, "generated": "", **fields})


NONE: frozenset[str] = frozenset()


def test_a_display_width_says_nothing() -> None:
    wanted = final(columns=({"name": "A", "type": "int(11)", "null": True},))
    assert column_faults(wanted, [column()], NONE) == []


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"type": "bigint"}, {"kind": "int"}),
        ({"null": False}, {"nullable": True}),
        ({"default": "1"}, {"default": "2"}),
        ({"charset": "utf8mb4"}, {"charset": "latin1"}),
        ({"collation": "utf8mb3_bin"}, {"collation": "utf8_general_ci"}),
        ({"generated": "a + 1"}, {"generated": "(`a` + 2)"}),
    ],
)
def test_a_property_that_differs_is_told(wanted: dict[str, Any], found: dict[str, Any]) -> None:
    faults = column_faults(final(columns=({"name": "a", **wanted},)), [column(**found)], NONE)
    assert len(faults) == 1


@pytest.mark.parametrize("attribute", ["type", "null", "default"])
def test_a_property_that_differs_between_the_shards_is_not_compared(attribute: str) -> None:
    wanted = {"name": "a", attribute: "nonsense", f"{attribute}_differs": []}
    assert column_faults(final(columns=(wanted,)), [column()], NONE) == []


def test_a_column_too_many_is_told_when_the_list_is_complete() -> None:
    wanted = ({"name": "a"},)
    found = [column("a"), column("b")]
    assert column_faults(final(columns=wanted), found, frozenset({"b"}))
    assert not column_faults(final(complete=False, columns=wanted), found, frozenset({"b"}))
    assert column_faults(final(complete=False, columns=wanted), found, NONE)


def test_indexes_are_compared_by_name_columns_and_uniqueness() -> None:
    wanted = final(indexes={"k": {"columns": ["A"], "unique": False}})
    assert index_faults(wanted, [FoundIndex("k", False, ("a",))]) == []
    assert index_faults(wanted, [FoundIndex("k", True, ("a",))])
    assert index_faults(wanted, [FoundIndex("k", False, ("b",))])
    assert index_faults(wanted, [])
    assert index_faults(wanted, [FoundIndex("k", False, ("a",)), FoundIndex("x", False, ("a",))])


def test_rows_are_compared_as_a_bag() -> None:
    wanted = final(columns=({"name": "a"}, {"name": "b"}), rows=((1, None), (2, "x"), (2, "x")))
    good: list[dict[str, object]] = [{"a": 2, "b": "x"}, {"a": 1, "b": None}, {"a": 2, "b": "x"}]
    assert row_faults(wanted, good) == []
    assert row_faults(wanted, good[:2])
    assert row_faults(wanted, [*good, {"a": 3, "b": "x"}])


def test_a_row_count_is_compared() -> None:
    assert row_faults(final(row_count=1), []) == ["0 rows, not 1"]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, Decimal("1.00")),
        (True, 1),
        (1.1, 1.10000002),
        (dt.datetime(2026, 1, 1), "2026-01-01 00:00:00"),
        (dt.datetime(2026, 1, 1, 2, 3, 4, 500000), "2026-01-01 02:03:04.5"),
        (dt.date(2026, 1, 1), "2026-01-01"),
        (dt.timedelta(hours=-30), "-30:00:00"),
        (b"abc", "abc"),
    ],
)
def test_equal_values_have_one_form(left: object, right: object) -> None:
    assert plain_value(left) == plain_value(right)


@pytest.mark.parametrize(
    ("left", "right"), [("1", 1), (None, ""), (None, 0), ("a", "A"), (b"\xff", "?")]
)
def test_different_values_stay_different(left: object, right: object) -> None:
    assert plain_value(left) != plain_value(right)


def test_types_defaults_and_expressions_have_one_form() -> None:
    assert plain_type("INT(10) UNSIGNED") == "int unsigned"
    assert plain_type("decimal(10,2)") == "decimal(10,2)"
    assert plain_type("varchar(10)") == "varchar(10)"
    assert plain_default("current_timestamp()") == plain_default("CURRENT_TIMESTAMP")
    assert plain_default("'x'") == "x"
    assert plain_default("NULL") is None
    assert plain_expression("(`id` + 1)") == plain_expression("id+1")


def test_a_decimal_may_be_written_as_text() -> None:
    wanted = final(columns=({"name": "a"},), rows=(("2.00",),))
    assert row_faults(wanted, [{"a": Decimal("2.000000")}]) == []
    assert row_faults(wanted, [{"a": Decimal("2.01")}])
    assert row_faults(wanted, [{"a": "2.0"}])
