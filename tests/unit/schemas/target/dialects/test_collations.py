"""A key tells apart on the target what it tells apart on the shards, or its shards are held."""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.target.dialects.dialect import CannotRender, FittedColumn, Place
from shardmerge.schemas.target.dialects.dialects import dialect_of
from tests.strategies import table

MYSQL_8, GENERAL = "utf8mb4_0900_ai_ci", "utf8mb4_general_ci"
UCA1400 = "utf8mb4_uca1400_ai_ci"


def _column(definition: str) -> Column:
    return table(f"create table t (c {definition})").columns[0]


def _fitted(target: str, definition: str, place: Place) -> FittedColumn | CannotRender:
    kind, _, version = target.partition(" ")
    return dialect_of(kind, version).fit_column(_column(definition), place)


@pytest.mark.parametrize(
    ("target", "defaults", "definition", "collation"),
    [
        ("mysql 8.0.36", {MYSQL_8}, "varchar(9)", ""),
        ("mysql 8.0.36", {GENERAL}, "varchar(9)", "utf8mb4_general_ci"),
        ("mysql 8.0.36", {MYSQL_8, GENERAL}, "varchar(9)", "utf8mb4_0900_bin"),
        ("mysql 5.7.44", {GENERAL}, "varchar(9)", ""),
        ("mysql 5.7.44", {MYSQL_8}, "varchar(9)", None),
        ("mysql 5.7.44", {MYSQL_8}, "char(36)", "utf8mb4_bin"),
        ("mysql 5.7.44", {MYSQL_8}, "varchar(9) charset latin1", ""),
        ("mysql 5.7.44", {MYSQL_8}, "enum('a')", ""),
        ("mariadb 10.11", {MYSQL_8}, "varchar(9)", "utf8mb4_uca1400_nopad_ai_ci"),
        ("mariadb 10.6", {MYSQL_8}, "varchar(9)", "utf8mb4_nopad_bin"),
        ("mariadb 10.11", {GENERAL}, "varchar(9)", ""),
        ("mariadb 11.8", {GENERAL}, "varchar(9)", "utf8mb4_general_ci"),
        ("mysql 8.0.36", {UCA1400}, "varchar(9) charset utf8mb3", "utf8mb3_bin"),
        ("mysql 8.0.36", {UCA1400, MYSQL_8}, "varchar(9) charset utf8mb3", "utf8mb3_bin"),
        ("mysql 8.0.36", {UCA1400}, "varchar(9) charset ucs2", "ucs2_bin"),
        ("mysql 8.0.36", {UCA1400}, "varchar(9) charset latin1", ""),
        ("mysql 8.0.36", {GENERAL, MYSQL_8}, "varchar(9) charset utf8mb3", ""),
        ("mariadb 11.8", {UCA1400}, "varchar(9) charset utf8mb3", ""),
        ("mariadb 11.8", {MYSQL_8}, "varchar(9) charset utf8mb3", "utf8mb3_general_ci"),
        ("mariadb 10.6", {UCA1400}, "varchar(9) charset utf8mb3", "utf8mb3_bin"),
        ("mariadb 10.6", {UCA1400}, "varchar(9)", "utf8mb4_bin"),
        ("tidb 7.5", {UCA1400}, "varchar(9) charset utf8mb3", ""),
        ("tidb 7.5", {MYSQL_8}, "varchar(9)", MYSQL_8),
        ("tidb 7.5", {GENERAL}, "varchar(9)", ""),
        ("tidb 7.5", {MYSQL_8, GENERAL}, "varchar(9)", "utf8mb4_0900_bin"),
        ("tidb 7.1", {MYSQL_8}, "varchar(9)", None),
        ("tidb 7.1", {MYSQL_8}, "char(36)", "utf8mb4_bin"),
        ("tidb 7.5", set(), "varchar(9) collate utf8mb4_0900_as_ci", "utf8mb4_0900_bin"),
        ("tidb 7.1", set(), "varchar(9) collate utf8mb4_0900_as_ci", None),
        ("tidb 7.5", set(), "varchar(9) collate utf8mb4_0900_bin", "utf8mb4_0900_bin"),
        ("tidb 7.5", set(), "varchar(9) collate utf8mb4_swedish_ci", "utf8mb4_bin"),
        ("tidb 7.5", set(), "varchar(9)", ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("key", ["primary", "unique"])
def test_a_key_has_a_collation_as_fine_as_that_of_its_shards(
    target: str, defaults: set[str], definition: str, collation: str | None, key: str
) -> None:
    found = _fitted(target, definition, Place(key, collations=frozenset(defaults)))

    if collation is None:
        assert isinstance(found, CannotRender) and found.code == "SM-1223"
        return
    assert isinstance(found, FittedColumn)
    assert found.column.type.collation == collation


def test_a_key_with_another_collation_than_the_targets_default_tells_why() -> None:
    found = _fitted("tidb 7.5", "varchar(9)", Place("primary", collations=frozenset({MYSQL_8})))
    assert isinstance(found, FittedColumn)
    assert found.notes == (
        "its shards' default collation utf8mb4_0900_ai_ci is not the target's (utf8mb4_bin)",
    )


@pytest.mark.parametrize("target", ["mysql 5.7.44", "mariadb 10.11", "tidb 7.5"])
def test_outside_of_keys_the_targets_default_stays(target: str) -> None:
    found = _fitted(target, "varchar(9)", Place(collations=frozenset({MYSQL_8})))
    assert isinstance(found, FittedColumn)
    assert found.column.type.collation == "" and not found.notes


@pytest.mark.parametrize("target", ["mysql 5.7.44", "mariadb 10.11", "tidb 7.5"])
def test_a_key_that_the_target_has_keeps_its_collation_and_it_is_told(target: str) -> None:
    defaults, had = frozenset({MYSQL_8}), _column("varchar(4)")
    place = Place("primary", previous=had, collations=defaults, was_key=True)
    found = _fitted(target, "varchar(9)", place)
    assert isinstance(found, FittedColumn)
    assert found.column.type.collation == ""
    assert "loaded anew" in found.notes[0]


def test_a_key_that_tidb_compares_by_bytes_already_stays_so() -> None:
    as_ci = "varchar(9) collate utf8mb4_0900_as_ci"
    bytewise = _column("varchar(9) collate utf8mb4_bin")
    found = _fitted("tidb 7.5", as_ci, Place("primary", previous=bytewise))
    assert isinstance(found, FittedColumn)
    assert found.column.type == bytewise.type
    assert "spaces at the end" in found.notes[0]


@pytest.mark.parametrize(
    ("target", "collation"),
    [("mariadb 10.11", "utf8mb4_uca1400_nopad_ai_ci"), ("tidb 7.5", MYSQL_8)],
)
def test_a_column_keeps_the_collation_of_a_unique_index_that_went(
    target: str, collation: str
) -> None:
    had = replace(_column("varchar(9)").type, collation=collation)
    before = replace(_column("varchar(9)"), type=had)
    for kept, type_before in ((collation, before), ("", _column("varchar(9) collate utf8mb4_bin"))):
        place = Place(previous=type_before, collations=frozenset({MYSQL_8}))
        found = _fitted(target, "varchar(9)", place)
        assert isinstance(found, FittedColumn) and found.column.type.collation == kept
