"""Expressions of MySQL and their Spark SQL: both engines give the same values for the same rows.

Numbers are compared as numbers, everything else as text.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.schemas.ddl.expressions import canonical
from shardmerge.schemas.target.dialects.sql_translation import to_spark
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from tests.strategies import SERVER

ROWS = (
    (1, 2, "abc", "b", "2024-02-29", "2024-02-29 23:59:58", "1.50"),
    (-7, 3, "  héllo, wörld ", "o", "1999-12-31", "2000-01-01 00:00:00", "-2.25"),
    (0, 0, "", "x", "2020-01-01", "1970-01-01 00:00:01", "0.00"),
    (5, None, None, None, None, None, None),
    (None, 4, "a%b_c", "%", "2023-07-15", "2023-07-15 12:00:00", "99.99"),
)
"""Columns n, m (int), s, c (strings), d (date), t (datetime), p (decimal(9,2))."""
EXPRESSIONS = (
    "n + m", "n - m * 2", "n / m", "n div m", "n % m", "-n", "p / 3", "n = m", "n <=> m", "n <> m",
    "n > m and m > 1", "n or m", "not n", "n xor m", "n is null", "n is not true", "n in (1, 5)",
    "n not in (1, 5)", "n between 0 and 4", "(n > 1) + 1", "if(n, 'yes', 'no')",
    "case when n > 1 then 'x' when n then 'y' else 'z' end", "case n when 1 then 'one' end",
    "ifnull(n, 9)", "nullif(n, 1)", "coalesce(n, m, 0)", "greatest(n, m)", "least(n, m)",
    "n & 6", "abs(n)", "ceil(p)", "floor(p)", "round(p)", "round(p, 1)", "sign(n)",
    "pow(m, 2)", "sqrt(m)", "concat(s, '-', c)", "concat_ws(',', s, c)", "substr(s, 2, 3)",
    "left(s, 2)", "right(s, 2)", "length(s)", "char_length(s)", "lower(s)", "upper(s)", "trim(s)",
    "ltrim(s)", "rtrim(s)", "trim(leading 'a' from s)", "replace(s, 'l', 'L')", "reverse(s)",
    "repeat(s, 2)", "lpad(s, 5, '*')", "rpad(s, 5, '*')", "lpad(s, 2, '*')", "instr(s, c)",
    "locate(c, s)", "locate('l', s, 4)", "hex(m)", "hex(s)", "md5(s)", "sha(s)", "sha2(s, 256)",
    "crc32(s)", "ascii(s)", "substring_index(s, ',', 1)", "find_in_set(c, 'a,b,x')",
    "s like 'a%'", "s like 'a!%b%' escape '!'", "s not like '%o%'", "s regexp '^a'",
    "year(d)", "month(d)", "day(d)", "dayofweek(d)", "dayofyear(d)", "quarter(d)", "weekday(d)",
    "last_day(d)", "hour(t)", "minute(t)", "second(t)", "datediff(d, t)", "date(t)",
    "d + interval 1 day", "d + interval 1 month", "t - interval 90 minute",
    "date_add(d, interval 1 year)", "date_format(t, '%Y-%m-%d at %H:%i:%s')",
    "date_format(d, '%y %e %c %j %W %M')", "timestampdiff(second, d, t)",
    "timestampdiff(month, d, t)", "extract(year from t)", "extract(hour from t)",
    "cast(floor(p) as signed)", "cast(substr(hex(m), 1) as unsigned)", "cast(n as char)",
    "cast(s as char(2))",
    "n in (1)", "n not in (5)", "(n, m) in ((1, 2))", "(n, m) <> (1, 2)", "n = m in (2)",
    "timestampadd(day, 1, d)", "trim('a' from s)", "cast(p as decimal)", "cast(n as decimal(5))",
    "cast(m as decimal(5,2))", "'it''s \\\\ \\n \"'",
    "concat(year(d), '-', lpad(month(d), 2, '0'))",
)  # fmt: skip


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master("local[1]")
        .appName("translated-expressions")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    yield session
    session.stop()


def _in_mysql(port: int, expressions: list[str]) -> list[tuple[Any, ...]]:
    session = MySqlSession(MySqlAddress("127.0.0.1", port, USER, PASSWORD))
    session.execute("DROP DATABASE IF EXISTS expressions")
    session.execute("CREATE DATABASE expressions CHARACTER SET utf8mb4")
    session.execute(
        "CREATE TABLE expressions.r (i int auto_increment primary key, n int, m int,"
        " s varchar(40) COLLATE utf8mb4_bin, c varchar(9) COLLATE utf8mb4_bin, d date,"
        " t datetime, p decimal(9,2))"
    )
    for row in ROWS:
        marks = ", ".join(["%s"] * len(row))
        session.execute(f"INSERT INTO expressions.r (n, m, s, c, d, t, p) VALUES ({marks})", row)
    found = session.query(f"SELECT {', '.join(expressions)} FROM expressions.r ORDER BY i")
    session.close()
    return found


def _in_spark(spark: SparkSession, expressions: list[str]) -> list[tuple[Any, ...]]:
    def text(value: object) -> str:
        if value is None:
            return "NULL"
        return str(value) if isinstance(value, int) else f"'{value}'"

    rows = ", ".join(f"({i}, {', '.join(map(text, row))})" for i, row in enumerate(ROWS))
    frame = spark.sql(
        "SELECT i, cast(n as int) n, cast(m as int) m, cast(s as string) s, cast(c as string) c,"
        " cast(d as date) d, cast(t as timestamp_ntz) t, cast(p as decimal(9,2)) p"
        f" FROM VALUES {rows} AS r(i, n, m, s, c, d, t, p)"
    )
    chosen = frame.orderBy("i").selectExpr(*(f"{e} AS x{i}" for i, e in enumerate(expressions)))
    return [tuple(row) for row in chosen.collect()]


def _plain(value: object) -> object:
    match value:
        case bool() | int() | float() | Decimal():
            return round(float(value), 4)
        case datetime():
            return value.isoformat(sep=" ")
        case date():
            return value.isoformat()
        case bytes():
            return value.decode()
        case str():
            try:
                return round(float(value), 4)
            except ValueError:
                return value.removesuffix(" 00:00:00")
    return value


# PySpark leaves the socket of collect() to the garbage collector.
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_both_engines_give_the_same_values(
    spark: SparkSession, server_port: Callable[[str], int]
) -> None:
    mysql = [canonical(sql, SERVER) for sql in EXPRESSIONS]
    # MySQL 8.0.15 reads the text that 8.0.36 would print.
    translated = [to_spark(text, as_value=True) for text in mysql]
    refused = [e for e, t in zip(EXPRESSIONS, translated, strict=True) if not isinstance(t, str)]
    assert not refused
    expected = _in_mysql(server_port("mysql80"), mysql)
    found = _in_spark(spark, [str(text) for text in translated])
    wrong = [
        f"{sql}: row {row}: MySQL {expected[row][place]!r}, Spark {found[row][place]!r}"
        for place, sql in enumerate(EXPRESSIONS)
        for row in range(len(ROWS))
        if _plain(expected[row][place]) != _plain(found[row][place])
    ]
    assert not wrong, "\n".join(wrong)
