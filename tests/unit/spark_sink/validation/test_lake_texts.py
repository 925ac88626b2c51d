from __future__ import annotations

import pytest

from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.loading.chunk_ranges import KeyRange
from shardmerge.spark_sink.validation.compared_table import compared_table
from shardmerge.spark_sink.validation.doubts import Difference, DifferenceKind, SeenRow
from shardmerge.spark_sink.validation.lake_texts import (
    LakeKeyColumn,
    is_lake_key,
    lake_literal,
    lake_text,
)
from shardmerge.spark_sink.validation.repair_statements import delete_statement, lake_statement
from shardmerge.spark_sink.validation.row_keys import (
    RowKeyColumn,
    first_boundary,
    keys_condition,
    orders_by_bytes,
)
from shardmerge.spark_sink.validation.validation_queries import (
    digest_counts,
    next_boundary,
    range_digest,
    row_digests,
)
from tests.strategies import table

from .facts import S1, shard, target

OWN = "CREATE TABLE t (id bigint unsigned PRIMARY KEY, a varchar(9), j json)"
LAKE = compared_table(target(OWN, catalog="lake"), [shard(S1, OWN)])
DIGEST = (
    "left(SHA2(concat_ws('#', CAST(`id` AS string), `a`, concat(IF(`id` IS NULL, '1', '0'),"
    " IF(`a` IS NULL, '1', '0')), CAST(char_length(`a`) AS string)), 256), 16)"
)
PLACE = "`lake`.`merged`.`t`"


def kind(definition: str) -> ColumnType:
    return table(f"CREATE TABLE t (c {definition})").columns[0].type


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        ("int", "CAST(`c` AS string)"),
        ("bit(64)", "CAST(`c` AS string)"),
        ("decimal(9,2)", "CAST(`c` AS string)"),
        ("date", "CAST(`c` AS string)"),
        ("datetime(3)", "date_format(`c`, 'yyyy-MM-dd HH:mm:ss.SSS')"),
        ("timestamp", "date_format(`c`, 'yyyy-MM-dd HH:mm:ss')"),
        ("varbinary(9)", "hex(`c`)"),
        ("point", "hex(`c`)"),
        ("enum('a')", "`c`"),
        ("json", "`c`"),
    ],
)
def test_spark_writes_a_value_as_the_shards_do(definition: str, text: str) -> None:
    found = lake_text("`c`", kind(definition))
    assert found is not None
    assert found.sql == text


def test_a_decimal_that_spark_lacks_cannot_be_compared() -> None:
    assert lake_text("`c`", kind("decimal(39,2)")) is None
    assert not is_lake_key(kind("decimal(39,2)"))
    assert is_lake_key(kind("decimal(38,2)"))
    assert not is_lake_key(kind("double"))


def test_the_queries_of_an_iceberg_table_are_spark_sql() -> None:
    side = LAKE.side
    assert range_digest(side, KeyRange(("3",), ("9",))) == (
        "SELECT COUNT(*), IFNULL(bit_xor(CAST(d AS bigint)), 0) FROM"
        f" (SELECT conv({DIGEST}, 16, -10) AS d FROM {PLACE} WHERE (`id` > 3) AND (`id` <= 9))"
    )
    assert next_boundary(side, None, 100) == (
        f"SELECT CAST(`id` AS string) FROM {PLACE} ORDER BY `id` LIMIT 1 OFFSET 99"
    )
    assert row_digests(side, KeyRange()) == (
        f"SELECT CAST(`id` AS string), CAST(conv({DIGEST}, 16, 10) AS decimal(20,0)), `j`"
        f" FROM {PLACE}"
    )


def test_json_is_read_for_each_row_because_spark_writes_it_in_another_way() -> None:
    assert LAKE.hashed == ("id", "a")
    assert LAKE.columns == ("id", "a", "j")
    assert [text is not None and text.is_json for text in LAKE.side.loose] == [True]
    assert "JSON texts of column j" in LAKE.only_rows


def test_a_table_whose_key_spark_cannot_cut_is_counted() -> None:
    own = "CREATE TABLE t (id double PRIMARY KEY, a int, j json)"
    found = compared_table(target(own, catalog="lake"), [shard(S1, own)])
    assert found.key == ()
    assert found.columns == ("id", "a")
    assert "not compared, because rows are counted: j" in found.left_out
    assert "SUM(CAST(d AS decimal(20,0)))" in range_digest(found.side, KeyRange())
    assert digest_counts(found.side).endswith("GROUP BY d")


def test_keys_of_all_kinds_are_spark_literals() -> None:
    texts = {
        "int": ("7", "7"),
        "decimal(9,2)": ("1.50", "CAST('1.50' AS decimal(9,2))"),
        "varchar(9)": ("4142", "CAST(X'4142' AS string)"),
        "varbinary(9)": ("00FF", "X'00FF'"),
        "date": ("2020-01-02", "CAST('2020-01-02' AS date)"),
        "datetime": ("2020-01-02 03:04:05", "CAST('2020-01-02 03:04:05' AS timestamp_ntz)"),
    }
    for definition, (text, literal) in texts.items():
        column = LakeKeyColumn("k", kind(definition))
        assert keys_condition([column], [(text,)]) == f"`k` IN ({literal})"
        assert (column.compared, column.literal(text)) == ("`k`", literal)


@pytest.mark.parametrize(
    ("definition", "text", "literal"),
    [
        ("double", "0101000000000000000000F83F0000000000000000", "CAST('1.5' AS double)"),
        ("time(6)", "-838:59:58.000001", "-3020398000001"),
        ("time", "00:00:01", "1000000"),
        ("text", "a'b", "CAST(X'612762' AS string)"),
        ("blob", "00FF", "X'00FF'"),
        ("bit(9)", "5", "5"),
    ],
)
def test_a_shards_text_of_a_value_becomes_a_literal(
    definition: str, text: str, literal: str
) -> None:
    assert lake_literal(kind(definition), text) == literal


def test_repairs_are_spark_sql_without_a_limit() -> None:
    row = SeenRow(S1, (b"7", b"x", None))
    missing = Difference(DifferenceKind.MISSING, ("7",), S1)
    assert lake_statement(LAKE, LAKE.shards[0], missing, row) == (
        f"INSERT INTO {PLACE} (`id`, `a`, `j`) VALUES (7, CAST(X'78' AS string), NULL);"
    )
    differs = Difference(DifferenceKind.DIFFERS, ("7",), S1, ("a",))
    assert lake_statement(LAKE, LAKE.shards[0], differs, row) == (
        f"UPDATE {PLACE} SET `a` = CAST(X'78' AS string) WHERE `id` IN (7);"
    )
    extra = Difference(DifferenceKind.EXTRA, ("8",))
    assert delete_statement(LAKE, extra) == f"DELETE FROM {PLACE} WHERE `id` IN (8);"


def test_ranges_are_cut_by_the_first_boundary_of_the_shards() -> None:
    number = RowKeyColumn("id", kind("bigint"))
    assert first_boundary([number], [("10",), ("9",)]) == ("9",)
    text = RowKeyColumn("id", kind("varchar(9)"))
    assert first_boundary([text], [("41",), ("4142",)]) == ("41",)
    assert first_boundary([text], []) is None


def test_only_texts_in_order_of_their_bytes_are_ordered_as_spark_orders_them() -> None:
    assert orders_by_bytes([kind("int"), kind("varchar(9) collate utf8mb4_bin")])
    assert not orders_by_bytes([kind("varchar(9) collate utf8mb4_0900_ai_ci")])
    assert not orders_by_bytes([kind("varchar(9) charset latin1 collate latin1_bin")])
