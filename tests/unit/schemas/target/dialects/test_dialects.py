"""What each kind and version of target lacks, and what it gets instead."""

from __future__ import annotations

import pytest

from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.tables import (
    Column,
    Default,
    DefaultKind,
    Index,
    IndexKind,
    IndexPart,
)
from shardmerge.schemas.pipeline.file import TARGETS
from shardmerge.schemas.target.dialects.collations import fit_collation
from shardmerge.schemas.target.dialects.dialect import CannotRender, FittedColumn, LeftOut, Place
from shardmerge.schemas.target.dialects.dialects import dialect_of
from shardmerge.schemas.target.dialects.features import missing_function
from shardmerge.schemas.target.dialects.mysql_dialect import MySqlDialect
from shardmerge.schemas.target.dialects.mysql_fit import in_flavour
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
    assert names == {
        "mysql": "MySQL 8.0", "mariadb": "MariaDB 8.0", "tidb": "TiDB 8.0",
        "iceberg": "Iceberg in Spark SQL",
    }  # fmt: skip
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
        ("mariadb 10.4.30", "utf8mb4_uca1400_ai_ci", False, "utf8mb4_bin"),
        ("mariadb 10.4.30", "utf8mb4_uca1400_nopad_ai_ci", False, ""),
        ("mysql 8.0.36", "utf8mb3_uca1400_ai_ci", True, "utf8mb3_bin"),
        ("mysql 8.0.36", "utf8mb3_uca1400_nopad_ai_ci", True, ""),
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


def test_a_type_that_json_value_returns_is_known_to_mysql_alone() -> None:
    maria = dialect_of("mariadb", "10.11")
    assert isinstance(maria, MySqlDialect)
    signed, text = "json_value(`j`, '$.a' returning signed)", "json_value(`j`, '$.a')"
    assert missing_function(signed, MySqlDialect().server) == ""
    assert missing_function(signed, maria.server) == "JSON_VALUE ... RETURNING"
    assert missing_function("json_value(`j`, '$. returning signed')", maria.server) == ""
    # MySQL stores this clause for a text without one.
    stored = "json_value(`j`, '$.a' returning char(512))"
    assert missing_function(stored, maria.server) == ""
    assert in_flavour(stored, maria.server) == text
    assert in_flavour(text, MySqlDialect().server) == stored


@pytest.mark.parametrize(
    ("before", "after", "in_key", "says"),
    [
        ("int", "bigint", True, ""), ("int", "bigint", False, ""),
        ("varchar(3)", "varchar(9)", True, ""), ("decimal(5,2)", "decimal(9,2)", False, ""),
        ("decimal(5,2)", "decimal(9,2)", True, "primary key"),
        ("datetime", "datetime(3)", True, ""), ("char(3)", "varchar(3)", True, "primary key"),
        ("varchar(9)", "varchar(9) collate utf8mb4_general_ci", True, "another order"),
        ("int", "date", False, "converts"), ("varchar(9)", "json", False, "converts"),
        ("decimal(5,2)", "date", False, "no ENUM, SET, BIT or fractions"),
        ("varchar(9) charset ascii", "varchar(9)", False, "utf8mb4"),
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


MARIADB = ServerContext("mariadb", (10, 11))


def mariadb_column(definition: str) -> Column:
    statement = parse(f"create table t (c {definition})", MARIADB)
    assert isinstance(statement, CreateTable)
    return apply_create(statement, MARIADB).columns[0]


@pytest.mark.parametrize(
    ("target", "definition", "rendered"),
    [
        ("mysql 8.0.36", "uuid not null", "`c` char(36) CHARACTER SET ascii NOT NULL"),
        ("mariadb 10.11", "uuid not null", "`c` uuid NOT NULL"),
        ("mariadb 10.4.30", "uuid not null", "`c` char(36) CHARACTER SET ascii NOT NULL"),
        ("mysql 8.0.36", "inet6", "`c` varchar(39) CHARACTER SET ascii"),
        ("mysql 8.0.36", "text default 'it''s \\\\'",
         "`c` text CHARACTER SET utf8mb4 DEFAULT ('it''s \\\\')"),
        ("mysql 8.0.36", "blob default 'ab'", "`c` blob DEFAULT (0x6162)"),
        ("mysql 8.0.36", "blob not null default ''", "`c` blob NOT NULL DEFAULT ('')"),
        ("mysql 5.7.44", "text not null default 'x'", "`c` text CHARACTER SET utf8mb4 NOT NULL"),
        ("mariadb 10.11", "text not null default ''",
         "`c` text CHARACTER SET utf8mb4 NOT NULL DEFAULT ''"),
        ("mysql 8.0.36", "varchar(9) default natural_sort_key('x')",
         "`c` varchar(9) CHARACTER SET utf8mb4"),
        ("tidb 7.5", "uuid not null", "`c` char(36) CHARACTER SET ascii NOT NULL"),
    ],
)  # fmt: skip
def test_columns_of_mariadb_shards_have_a_form_on_every_target(
    target: str, definition: str, rendered: str
) -> None:
    kind, _, version = target.partition(" ")
    dialect = dialect_of(kind, version)
    answer = dialect.fit_column(mariadb_column(definition), Place())
    assert not isinstance(answer, CannotRender)
    (added,) = dialect.add_column(TARGET, answer.column)  # type: ignore[misc]
    assert added.sql == f"ALTER TABLE `m`.`t` ADD COLUMN {rendered}"


def test_a_default_that_the_target_lacks_gives_way_to_the_zero_value_where_rows_need_one() -> None:
    for target, definition, zero in (
        ("mysql 5.7.44", "int not null default (1 + 1)", "0"),
        ("mysql 5.7.44", "json not null default (json_array())", None),
        ("tidb 7.5", "varchar(9) not null default (concat('a', 'b'))", ""),
    ):
        answer = fitted(target, definition, optional=True)
        assert not isinstance(answer, CannotRender) and answer.column.default
        assert answer.column.nullable is (zero is None)
        assert answer.column.default.text == (zero or "")
        assert answer.notes[-1].startswith("rows without it get ")


def test_types_of_the_servers_own_have_no_zero_value() -> None:
    dialect = dialect_of("mariadb", "10.11")
    assert dialect.zero_value(mariadb_column("uuid").type) is None
    assert dialect.zero_value(mariadb_column("text").type) == Default(DefaultKind.LITERAL, "")
    assert dialect.zero_value(mariadb_column("blob").type) == Default(DefaultKind.LITERAL, "0x")


def test_servers_without_json_refuse_it() -> None:
    answer = MySqlDialect(ServerContext("mysql", (5, 6))).fit_column(column("json"), Place())
    assert isinstance(answer, CannotRender) and "no type json" in answer.reason


def test_checks_and_indexes_by_functions_that_the_target_lacks_are_left_out() -> None:
    schema = table(
        "create table t (a varchar(9), key kf ((regexp_substr(a, 'x'))), check (is_uuid(a)))"
    )
    mariadb = dialect_of("mariadb", "10.11")
    assert isinstance(mariadb.fit_check(schema.checks[0]), LeftOut)
    assert isinstance(mariadb.fit_index(schema.indexes[0], schema), LeftOut)
    old = MySqlDialect(ServerContext("mysql", (8, 0, 36)))
    assert old.fit_check(schema.checks[0]) == schema.checks[0]


@pytest.mark.parametrize("target", ["mysql 9.7.0", "mariadb 10.11.8", "tidb 8.5.0"])
def test_a_vector_index_is_left_out_where_there_is_none(target: str) -> None:
    kind, _, version = target.partition(" ")
    index = Index("v", IndexKind.VECTOR, (IndexPart("c"),))
    schema = table("create table t (c int)")
    assert isinstance(dialect_of(kind, version).fit_index(index, schema), LeftOut)
    assert dialect_of("mariadb", "11.8.2").fit_index(index, schema) == index
