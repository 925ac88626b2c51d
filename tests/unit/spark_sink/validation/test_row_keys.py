from __future__ import annotations

from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.validation.row_keys import (
    RowKeyColumn,
    key_texts,
    keys_condition,
    orders_alike,
)

INT = ColumnType("int")
LATIN = ColumnType("varchar", 9, charset="latin1", collation="latin1_bin")
UTF8 = ColumnType("varchar", 9, charset="utf8mb4", collation="utf8mb4_bin")


def test_a_text_of_another_charset_is_found_by_the_index_of_its_column() -> None:
    own = RowKeyColumn("k", LATIN, wanted=UTF8)
    assert own.selected == "HEX(CAST(CONVERT(`k` USING utf8mb4) AS BINARY))"
    assert keys_condition([own], [("C3A9",), ("41",)]) == (
        "`k` IN (CONVERT(_utf8mb4 X'C3A9' USING latin1) COLLATE latin1_bin,"
        " CONVERT(_utf8mb4 X'41' USING latin1) COLLATE latin1_bin)"
    )


def test_ranges_of_texts_that_servers_order_otherwise_go_by_bytes() -> None:
    own = RowKeyColumn("k", UTF8, by_bytes=True)
    assert own.compared == "CAST(CONVERT(`k` USING utf8mb4) AS BINARY)"
    assert own.literal("41") == "X'41'"
    assert not orders_alike([LATIN, UTF8])
    assert orders_alike([UTF8, UTF8])
    assert orders_alike([INT, ColumnType("bigint")])


def test_an_origin_column_is_a_constant_on_the_shard() -> None:
    key = [
        RowKeyColumn("id", INT),
        RowKeyColumn("_shard", UTF8, constant="_utf8mb4 X'7331'", in_ranges=False),
    ]
    assert key_texts(key) == "CAST(`id` + 0 AS CHAR), HEX(CAST(_utf8mb4 X'7331' AS BINARY))"
    assert keys_condition(key, [("7", "7331")]) == (
        "(`id` = 7 AND _utf8mb4 X'7331' = _utf8mb4 X'7331')"
    )


def test_an_enum_of_a_key_is_its_number() -> None:
    own = RowKeyColumn("e", ColumnType("enum", elements=("a", "b"), charset="utf8mb4"))
    assert own.selected == "CAST(`e` + 0 AS CHAR)"
    assert keys_condition([own], [("2",)]) == "(`e` + 0) IN (2)"
