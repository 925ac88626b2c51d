from __future__ import annotations

import pytest

from shardmerge.schemas.model.tables import Column
from shardmerge.spark_sink.validation.value_texts import default_value, shard_value, value_text
from tests.strategies import table


def column(definition: str) -> Column:
    return table(f"CREATE TABLE t (c {definition})").columns[0]


def sql(own: str, wanted: str, *, points: bool = True) -> str:
    found = value_text("`c`", column(own).type, column(wanted).type, points=points)
    assert found is not None
    return found.sql


@pytest.mark.parametrize(
    ("own", "wanted", "text"),
    [
        ("int(5) zerofill", "bigint", "CAST(`c` + 0 AS CHAR)"),
        ("year", "year", "CAST(`c` + 0 AS CHAR)"),
        ("bit(3)", "bit(9)", "CAST(`c` + 0 AS CHAR)"),
        ("bigint unsigned", "decimal(20,0)", "CAST(CAST(`c` AS DECIMAL(20,0)) AS CHAR)"),
        ("decimal(5,2)", "decimal(9,4)", "CAST(CAST(`c` AS DECIMAL(9,4)) AS CHAR)"),
        ("float", "double", "HEX(ST_AsBinary(POINT(`c` + 0e0, 0)))"),
        ("datetime", "datetime(3)", "CAST(CAST(`c` AS DATETIME(3)) AS CHAR)"),
        ("timestamp(2)", "timestamp(2)", "CAST(`c` AS CHAR)"),
        ("time", "time(6)", "CAST(CAST(`c` AS TIME(6)) AS CHAR)"),
        ("char(3) charset ascii", "varchar(9) charset utf8mb4", "CAST(`c` AS BINARY)"),
        (
            "varchar(3) charset latin1",
            "varchar(3) charset utf8mb4",
            "CAST(CONVERT(`c` USING utf8mb4) AS BINARY)",
        ),
        ("enum('a')", "enum('a','b')", "CAST(`c` AS BINARY)"),
        ("binary(2)", "binary(4)", "RPAD(`c`, 4, X'00')"),
        ("varbinary(2)", "blob", "`c`"),
        ("json", "json", "CAST(CAST(`c` AS CHAR) AS BINARY)"),
        ("point", "geometry", "HEX(`c`)"),
    ],
)
def test_a_value_is_written_as_the_targets_type_writes_it(own: str, wanted: str, text: str) -> None:
    assert sql(own, wanted) == text


def test_a_server_without_points_gives_the_digits_of_a_double() -> None:
    assert "AS DECIMAL(65,30)" in sql("double", "double", points=False)


def test_a_long_value_is_a_digest_in_its_row() -> None:
    kind = column("longtext").type
    found = value_text("`c`", kind, kind)
    assert found is not None
    assert found.in_row == "SHA2(CAST(`c` AS BINARY), 256)"


def test_the_length_of_a_padded_value_says_nothing() -> None:
    found = value_text("`c`", column("binary(2)").type, column("binary(4)").type)
    assert found is not None
    assert found.length == ""


def test_a_zero_date_of_a_shard_is_null_where_it_may_be() -> None:
    assert shard_value(column("date"), "`c`") == (
        "IF(`c` < '0001-01-01' OR MONTH(`c`) = 0 OR DAYOFMONTH(`c`) = 0, NULL, `c`)"
    )
    assert "CAST('0000-00-00 00:00:00' AS DATETIME(3))" in shard_value(
        column("datetime(3) not null"), "`c`"
    )
    assert shard_value(column("timestamp null"), "`c`") == "IF(`c` = 0, NULL, `c`)"
    assert shard_value(column("int"), "`c`") == "`c`"


@pytest.mark.parametrize(
    ("definition", "value"),
    [
        ("int default 5", "(5)"),
        ("int", "NULL"),
        ("int not null", None),
        ("varchar(9) not null default 'é'", "_utf8mb4 X'C3A9'"),
        ("bit(3) not null default b'101'", "5"),
        ("date not null default '2026-01-02'", "CAST(_utf8mb4 X'323032362D30312D3032' AS DATE)"),
        ("timestamp not null default '2026-01-02'", None),
        ("datetime default current_timestamp", None),
    ],
)
def test_a_default_is_known_if_it_is_one_value(definition: str, value: str | None) -> None:
    found = column(definition)
    assert default_value(found.default, found.type) == value
