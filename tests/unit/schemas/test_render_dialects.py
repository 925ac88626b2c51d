"""What each kind and version of target lacks, and what it gets instead."""

from __future__ import annotations

import pytest

from shardmerge.schemas.errors import ConfigError
from shardmerge.schemas.model import Column, DefaultKind
from shardmerge.schemas.names import TargetTable
from shardmerge.schemas.pipeline import TARGETS
from shardmerge.schemas.render.collations import fit_collation
from shardmerge.schemas.render.dialect import CannotRender, FittedColumn, LeftOut, Place
from shardmerge.schemas.render.dialects import dialect_of
from shardmerge.schemas.render.features import missing_function
from shardmerge.schemas.render.mysql_dialect import MySqlDialect
from tests.strategies import table

TARGET = TargetTable("m", "t")


def column(definition: str) -> Column:
    return table(f"create table t (c {definition})").columns[0]


def fitted(target: str, definition: str, **place: object) -> FittedColumn | CannotRender:
    kind, _, version = target.partition(" ")
    return dialect_of(kind, version).fit_column(
        column(definition),
        Place(**place),  # type: ignore[arg-type]
    )


def test_every_kind_of_the_settings_has_a_dialect_and_its_name() -> None:
    names = {kind: dialect_of(kind, "8.0").name for kind in TARGETS}
    assert names == {"mysql": "MySQL 8.0", "mariadb": "MariaDB 8.0", "tidb": "TiDB 8.0"}
    with pytest.raises(ConfigError, match="oracle"):
        dialect_of("oracle", "19")


@pytest.mark.parametrize(
    ("target", "collation", "in_key", "found"),
    [
        ("mysql 8.0.36", "utf8mb4_0900_as_cs", True, "utf8mb4_0900_as_cs"),
        ("mysql 8.0.15", "utf8mb4_0900_bin", False, "utf8mb4_bin"),
        ("mysql 8.0.15", "utf8mb4_0900_bin", True, ""),
        ("mysql 5.7.44", "utf8mb4_0900_ai_ci", False, "utf8mb4_unicode_520_ci"),
        ("mysql 5.7.44", "utf8mb4_0900_ai_ci", True, ""),
        ("mysql 8.0.36", "utf8mb4_uca1400_ai_ci", True, "utf8mb4_0900_ai_ci"),
        ("mysql 8.0.36", "utf8mb4_nopad_bin", True, "utf8mb4_0900_bin"),
        ("mysql 8.0.36", "latin1_swedish_nopad_ci", False, ""),
        ("mysql 8.0.36", "utf8mb4_general_ci", True, "utf8mb4_general_ci"),
        ("mariadb 10.11", "utf8mb4_0900_ai_ci", True, "utf8mb4_uca1400_nopad_ai_ci"),
        ("mariadb 10.11", "utf8mb4_0900_bin", True, "utf8mb4_nopad_bin"),
        ("mariadb 10.11", "utf8mb4_sv_0900_as_cs", False, "utf8mb4_uca1400_nopad_as_cs"),
        ("mariadb 10.11", "utf8mb4_sv_0900_as_cs", True, ""),
        ("mariadb 10.4.30", "utf8mb4_0900_ai_ci", False, "utf8mb4_unicode_520_nopad_ci"),
        ("mariadb 10.4.30", "utf8mb4_0900_ai_ci", True, "utf8mb4_nopad_bin"),
        ("mariadb 10.4.30", "utf8mb4_uca1400_ai_ci", False, ""),
    ],
)
def test_a_collation_that_is_missing_gets_the_nearest_or_none_under_a_key(
    target: str, collation: str, in_key: bool, found: str
) -> None:
    kind, _, version = target.partition(" ")
    dialect = dialect_of(kind, version)
    assert isinstance(dialect, MySqlDialect)
    answer = fit_collation(collation, "c", in_key=in_key, server=dialect.server)
    if not found:
        assert isinstance(answer, CannotRender) and answer.hint
    else:
        assert not isinstance(answer, CannotRender)
        assert answer[0] == found and bool(answer[1]) is (found != collation)


@pytest.mark.parametrize(
    ("target", "definition", "kind", "text"),
    [
        ("mysql 8.0.36", "text default ('x')", DefaultKind.EXPRESSION, "'x'"),
        ("mariadb 10.11", "text default ('x')", DefaultKind.LITERAL, "x"),
        ("mariadb 10.11", "int default (5)", DefaultKind.LITERAL, "5"),
        ("mariadb 10.11", "json default (json_array())", DefaultKind.EXPRESSION, "json_array()"),
        ("mysql 5.7.44", "text default ('x')", DefaultKind.NULL, ""),
        ("mysql 8.0.15", "datetime default now()", DefaultKind.EXPRESSION, "CURRENT_TIMESTAMP"),
        ("mysql 8.0.15", "varchar(36) default (uuid())", DefaultKind.NULL, ""),
        ("tidb 7.5", "int default (1 + 1)", DefaultKind.NULL, ""),
        ("tidb 7.5", "datetime default now()", DefaultKind.EXPRESSION, "CURRENT_TIMESTAMP"),
    ],
)
def test_a_default_in_the_form_that_the_target_keeps(
    target: str, definition: str, kind: DefaultKind, text: str
) -> None:
    answer = fitted(target, definition)
    assert not isinstance(answer, CannotRender) and answer.column.default
    assert (answer.column.default.kind, answer.column.default.text) == (kind, text)


@pytest.mark.parametrize(
    ("target", "definition"),
    [
        ("tidb 7.5", "point"), ("tidb 7.5", "char(3) charset ucs2"),
        ("mariadb 10.11", "char(3) charset gb18030"), ("mariadb 10.11", "vector(3)"),
    ],
)  # fmt: skip
def test_a_type_that_the_target_lacks_is_refused_with_a_way_out(
    target: str, definition: str
) -> None:
    answer = fitted(target, definition)
    assert isinstance(answer, CannotRender) and "c" in answer.reason.split() and answer.hint


def test_a_server_that_adds_times_by_itself_gets_the_zero_timestamp_instead() -> None:
    for target, default in (("mysql 5.7.44", "0000-00-00 00:00:00.00"), ("mysql 8.0.15", None)):
        answer = fitted(target, "timestamp(2) not null")
        assert not isinstance(answer, CannotRender)
        assert (answer.column.default.text if answer.column.default else None) == default


def test_functions_count_outside_strings_and_names_only() -> None:
    server = MySqlDialect().server
    old = dialect_of("mysql", "5.7")
    assert isinstance(old, MySqlDialect)
    assert missing_function("regexp_like(`a`,'x')", old.server) == "regexp_like"
    assert missing_function("regexp_like(`a`,'x')", server) == ""
    assert missing_function("concat('regexp_like(',`regexp_like(`)", old.server) == ""
    assert missing_function("1 member of (`a`)", old.server) == "member of"


@pytest.mark.parametrize(
    ("before", "after", "in_key", "says"),
    [
        ("int", "bigint", True, ""), ("int", "bigint", False, ""),
        ("varchar(3)", "varchar(9)", True, ""), ("decimal(5,2)", "decimal(9,2)", False, ""),
        ("decimal(5,2)", "decimal(9,2)", True, "primary key"),
        ("datetime", "datetime(3)", True, "primary key"),
        ("int", "date", False, "conversion"), ("varchar(9)", "json", False, "conversion"),
        ("varchar(9) charset utf8mb3", "varchar(9)", False, ""),
        ("varchar(9)", "varchar(9) charset latin1", False, "utf8mb4"),
        ("int as (1)", "int as (2)", False, "computed"),
    ],
)  # fmt: skip
def test_tidb_refuses_what_its_documents_refuse(
    before: str, after: str, in_key: bool, says: str
) -> None:
    answer = dialect_of("tidb", "7.5").change_column(
        TARGET, column(before), column(after), in_key=in_key
    )
    if says:
        assert isinstance(answer, CannotRender) and says in answer.reason and answer.hint
    else:
        assert not isinstance(answer, CannotRender) and len(answer) == 1


def test_indexes_that_a_target_lacks_are_left_out() -> None:
    schema = table(
        "create table t (a varchar(9), j json, key kf ((a + 1)), fulltext key ft (a),"
        " fulltext key fn (a) with parser ngram, key kd (a desc),"
        " key km ((cast(j as unsigned array))))"
    )

    def left_out(target: str) -> set[str]:
        kind, _, version = target.partition(" ")
        found = {i.name: dialect_of(kind, version).fit_index(i, schema) for i in schema.indexes}
        return {name for name, index in found.items() if isinstance(index, LeftOut)}

    assert left_out("mysql 8.0.36") == set()
    assert left_out("mysql 8.0.15") == {"km"}
    assert left_out("mysql 5.7.44") == {"kf", "km"}
    assert left_out("mariadb 10.11") == {"kf", "km", "fn"}
    assert left_out("tidb 7.5") == {"kf", "km", "ft", "fn"}
