"""MySQL's types in Iceberg tables: every value has a place, or it is said which has not."""

from __future__ import annotations

import re

import pytest

from shardmerge.schemas.lattice.type_join import WIDE, joined_type
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import INTEGER_NAMES, ColumnType
from shardmerge.schemas.target.dialects.dialect import CannotRender, LeftOut, Place
from shardmerge.schemas.target.dialects.spark import SparkDialect
from shardmerge.schemas.target.dialects.spark_types import can_widen, spark_type, type_notes
from tests.strategies import ALL_TYPES, table

SPARK = SparkDialect()
_BYTES = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8}


@pytest.mark.parametrize(
    ("mysql", "spark"),
    [
        ("tinyint", "int"), ("tinyint(1)", "int"), ("mediumint unsigned", "int"), ("int", "int"),
        ("int unsigned", "bigint"), ("bigint", "bigint"), ("bigint unsigned", "decimal(20,0)"),
        ("decimal(9,2)", "decimal(9,2)"), ("decimal(38,30)", "decimal(38,30)"),
        ("decimal(39,2)", "string"), ("decimal(65,30)", "string"), ("float", "float"),
        ("double", "double"), ("bit(1)", "bigint"), ("bit(63)", "bigint"),
        ("bit(64)", "decimal(20,0)"), ("year", "int"), ("date", "date"), ("time(6)", "bigint"),
        ("datetime(3)", "timestamp_ntz"), ("timestamp", "timestamp"), ("char(3)", "string"),
        ("varchar(9)", "string"), ("longtext", "string"), ("enum('a')", "string"),
        ("set('a')", "string"), ("json", "string"), ("binary(16)", "binary"),
        ("varbinary(9)", "binary"), ("longblob", "binary"), ("point", "binary"),
        ("geometry", "binary"),
    ],
)  # fmt: skip
def test_the_type_table(mysql: str, spark: str) -> None:
    assert spark_type(table(f"create table t (c {mysql})").columns[0].type) == spark


@pytest.mark.parametrize("name", INTEGER_NAMES)
@pytest.mark.parametrize("unsigned", [False, True])
def test_every_integer_fits_by_its_range(name: str, unsigned: bool) -> None:
    bits = 8 * _BYTES[name]
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    least, most = _range(spark_type(ColumnType(name, unsigned=unsigned)))
    assert least <= low and high <= most


def _range(spark: str) -> tuple[int, int]:
    if spark in ("int", "bigint"):
        bits = 32 if spark == "int" else 64
        return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    match = re.fullmatch(r"decimal\((\d+),0\)", spark)
    assert match
    return -(10 ** int(match[1]) - 1), 10 ** int(match[1]) - 1


def test_a_wider_mysql_type_is_the_same_widened_or_refused_never_narrowed() -> None:
    seen = set()
    for a in ALL_TYPES:
        for b in ALL_TYPES:
            joined = joined_type((a, b), WIDE)
            if isinstance(joined, str):
                continue
            before, after = spark_type(a), spark_type(joined)
            assert before == after or not can_widen(after, before), (a, joined)
            seen.add((before == after, can_widen(before, after)))
    assert seen == {(True, False), (False, True), (False, False)}


@pytest.mark.parametrize(
    ("before", "after", "can"),
    [
        ("int", "bigint", True), ("bigint", "int", False), ("float", "double", True),
        ("decimal(9,2)", "decimal(12,2)", True), ("decimal(12,2)", "decimal(9,2)", False),
        ("decimal(9,2)", "decimal(12,4)", False), ("int", "decimal(20,0)", False),
        ("int", "string", False), ("date", "timestamp_ntz", False), ("int", "int", False),
    ],
)  # fmt: skip
def test_iceberg_widens_three_things_only(before: str, after: str, can: bool) -> None:
    assert can_widen(before, after) is can


@pytest.mark.parametrize(
    ("before", "after", "stays"),
    [
        ("decimal(12,4)", "decimal(10,2)", "decimal(12,4)"),
        ("decimal(12,4)", "decimal(10,4)", "decimal(12,4)"),
        ("decimal(12,4)", "decimal(14,2)", "decimal(16,4)"),
        ("decimal(38,30)", "decimal(20,2)", None),
        ("decimal(9,2)", "decimal(9,4)", None),
        ("bigint unsigned", "bigint", "decimal(20,0)"),
        ("bigint unsigned", "int unsigned", "decimal(20,0)"),
        ("decimal(12,4)", "int", None),
        ("decimal(14,4)", "int", "decimal(14,4)"),
        ("bit(64)", "bit(8)", "decimal(20,0)"),
        ("bigint", "int", "bigint"), ("double", "float", "double"),
        ("int", "bigint", "bigint"), ("decimal(65,2)", "decimal(20,2)", None),
    ],
)  # fmt: skip
def test_a_column_stays_wider_where_iceberg_cannot_narrow_it(
    before: str, after: str, stays: str | None
) -> None:
    previous = _column(before)
    fitted = SPARK.fit_column(_column(after), Place(previous=previous))
    assert not isinstance(fitted, CannotRender)
    changed = SPARK.change_column(TargetTable("merged", "t"), previous, fitted.column, in_key=False)
    assert isinstance(changed, CannotRender) is (stays is None)
    if stays is not None:
        assert spark_type(fitted.column.type) == stays


@pytest.mark.parametrize(
    ("mysql", "says"),
    [
        ("date", "month or day 0"), ("datetime", "becomes NULL"), ("timestamp", "becomes NULL"),
        ("decimal(39,0)", "39 digits"), ("time", "microseconds"), ("point", "bytes"),
    ],
)  # fmt: skip
def test_what_a_type_cannot_hold_is_told(mysql: str, says: str) -> None:
    (note,) = type_notes(table(f"create table t (c {mysql})").columns[0].type)
    assert says in note


def _column(definition: str) -> Column:
    return table(f"create table t (c {definition}, d int)").columns[0]


def test_a_column_that_rows_may_leave_out_is_nullable_since_there_are_no_defaults() -> None:
    fitted = SPARK.fit_column(_column("int not null default 5"), Place(optional=True))
    assert not isinstance(fitted, CannotRender)
    assert fitted.column.nullable and "takes no default" in " ".join(fitted.notes)


def test_not_null_is_kept_where_it_is_and_never_added() -> None:
    column = _column("int not null")
    new = SPARK.fit_column(column, Place(is_new_table=True))
    kept = SPARK.fit_column(column, Place(previous=column))
    added = SPARK.fit_column(column, Place(previous=_column("int")))
    assert not any(isinstance(f, CannotRender) for f in (new, kept, added))
    assert [f.column.nullable for f in (new, kept, added)] == [False, False, True]  # type: ignore[union-attr]


def test_a_computed_column_is_ordinary_and_its_spark_text_is_told() -> None:
    fitted = SPARK.fit_column(_column("int as (d > 1)"), Place())
    assert not isinstance(fitted, CannotRender)
    assert fitted.column.generated is None and fitted.column.nullable
    assert "cast((`d` > 1) as int)" in fitted.notes[0]


def test_a_computed_column_that_spark_cannot_compute_is_kept_all_the_same() -> None:
    fitted = SPARK.fit_column(_column("varchar(9) as (json_extract(d, '$.x'))"), Place())
    assert not isinstance(fitted, CannotRender)
    assert "in Spark" not in fitted.notes[0] and "keeps their values" in fitted.notes[0]


def test_keys_indexes_and_checks_are_left_out_with_the_reason() -> None:
    schema = table("create table t (a int primary key, key ka (a), check (a > 0))")
    assert all(isinstance(SPARK.fit_index(i, schema), LeftOut) for i in schema.indexes)
    assert isinstance(SPARK.fit_check(schema.checks[0]), LeftOut)


@pytest.mark.parametrize(
    ("definition", "fill", "literal"),
    [
        ("int", "NULL", "NULL"), ("int not null", "NULL", None), ("int", "", None),
        ("int", "expression (1 + 1)", None), ("bigint unsigned", "value 7", "7"),
        ("decimal(9,2)", "value -1.5", "-1.5"), ("decimal(65,2)", "value 1", None),
        ("bit(3)", "value 5", "5"), ("year", "value 2020", "2020"), ("double", "value 1.5", None),
        ("varchar(9)", "value it's \\", "'it\\'s \\\\'"), ("enum('a')", "value a", "'a'"),
        ("blob", "value 0x00", None), ("json", "value {}", None),
        ("time", "value -01:02:03.5", "-3723500000"), ("time", "value 00:00:00", "0"),
        ("time", "value 5", None), ("date", "value 2020-02-03", "DATE '2020-02-03'"),
        ("date", "value 20200203", None), ("date", "value 2020-00-03", "NULL"),
        ("date not null", "value 0000-00-00", None),
        ("datetime(1)", "value 2020-02-03 04:05:06.7", "TIMESTAMP_NTZ '2020-02-03 04:05:06.7'"),
        ("datetime", "value 2020-02-03", None), ("timestamp", "value 2020-02-03 04:05:06", None),
        ("timestamp null", "value 0000-00-00 00:00:00", "NULL"),
    ],
)  # fmt: skip
def test_a_value_of_rows_is_a_literal_of_the_columns_type(
    definition: str, fill: str, literal: str | None
) -> None:
    column = _column(definition)

    assert SPARK.row_value(fill, column) == literal
    assert SPARK.has_value(column, "5") == "`c` <=> 5"


def test_text_of_comments_is_escaped_as_spark_reads_it() -> None:
    schema = table("create table t (a int comment 'it''s \\\\ \\n')")
    (made,) = SPARK.create_table(TargetTable("m", "t"), schema)  # type: ignore[misc]
    assert made.sql == "CREATE TABLE `m`.`t` (`a` int COMMENT 'it\\'s \\\\ \\n') USING iceberg"


def test_a_key_keeps_a_date_not_null_and_others_make_room_for_zero_dates() -> None:
    column = _column("date not null")
    key = SPARK.fit_column(column, Place(key="primary", is_new_table=True))
    other = SPARK.fit_column(column, Place(is_new_table=True))
    assert not isinstance(key, CannotRender) and not isinstance(other, CannotRender)
    assert (key.column.nullable, other.column.nullable) == (False, True)


def test_what_an_iceberg_table_that_is_there_cannot_become_is_refused() -> None:
    target = TargetTable("m", "t")
    required, optional = _column("int not null"), _column("int")
    added = SPARK.add_column(target, required)
    changed = SPARK.change_column(target, optional, required, in_key=False)
    for answer in (added, changed):
        assert isinstance(answer, CannotRender) and "NOT NULL" in answer.reason and answer.hint


def test_nothing_is_said_of_what_an_iceberg_table_does_not_have() -> None:
    target = TargetTable("m", "t")
    schema = table("create table t (a int primary key, key ka (a), check (a > 0))")
    key, index, check = schema.indexes[0], schema.indexes[1], schema.checks[0]
    assert SPARK.add_index(target, index) == SPARK.drop_index(target, index) == ()
    assert SPARK.add_check(target, check) == SPARK.drop_check(target, check) == ()
    assert SPARK.change_primary_key(target, key, None) == ()
    assert SPARK.zero_value(schema.columns[0].type) is None
