"""Which tables Debezium's reader stops at, on servers that do not count YEAR."""

from __future__ import annotations

import pytest

from shardmerge.connectors.debezium.year_columns import is_misread, may_misread

INT, YEAR = "int", "year"


@pytest.mark.parametrize("numbers", [8, 16, 24])
def test_one_year_beside_whole_bytes_of_numbers_is_misread(numbers: int) -> None:
    assert is_misread([*[INT] * numbers, YEAR])


@pytest.mark.parametrize("numbers", [1, 7, 9, 15])
def test_one_year_beside_other_numbers_of_columns_is_read(numbers: int) -> None:
    assert not is_misread([YEAR, *[INT] * numbers])


def test_two_years_are_misread_where_one_still_fits() -> None:
    assert not is_misread([*[INT] * 7, YEAR])
    assert is_misread([*[INT] * 7, YEAR, YEAR])


def test_without_a_number_or_without_a_year_nothing_is_misread() -> None:
    assert not is_misread([YEAR, "varchar"])
    assert not is_misread([INT] * 8)


@pytest.mark.parametrize("name", ["decimal", "double", "float", "tinyint"])
def test_every_kind_of_number_counts(name: str) -> None:
    assert is_misread([*[INT] * 7, name, YEAR])


def test_bits_enums_and_dates_do_not_count() -> None:
    assert not is_misread([*[INT] * 7, "bit", "enum", "date", YEAR])


@pytest.mark.parametrize(
    ("flavour", "version", "expected"),
    [
        ("mysql", (8, 0, 15), True),
        ("mysql", (8, 0, 28), True),
        ("mysql", (8, 0, 29), False),
        ("mysql", (8, 4, 3), False),
        ("mysql", (9, 7, 4), False),
        ("mysql", (5, 7, 22), False),
        ("mariadb", (10, 11, 6), False),
    ],
)
def test_old_servers_of_80_only(flavour: str, version: tuple[int, ...], expected: bool) -> None:
    assert may_misread(flavour, version) is expected
