"""MySQL's expressions in Spark SQL."""

from __future__ import annotations

import pytest

from shardmerge.schemas.ddl.expressions import canonical, column_names
from shardmerge.schemas.target.dialects.dialect import CannotRender
from shardmerge.schemas.target.dialects.sql_translation import to_spark
from tests.strategies import SERVER


@pytest.mark.parametrize(
    ("sql", "spark"),
    [
        ("a + 1", "(`a` + 1)"),
        ("a / b", "(`a` / nullif(`b`, 0))"),
        ("a div b", "(`a` DIV nullif(`b`, 0))"),
        ("mod(a, 2)", "(`a` % nullif(2, 0))"),
        ("a <=> b", "(`a` <=> `b`)"),
        ("a is not null", "(NOT (`a` IS NULL))"),
        ("a between 1 and 2 and b", "((`a` BETWEEN 1 AND 2) AND (`b` <> 0))"),
        ("a in (1, 2) or not b", "((`a` IN (1, 2)) OR (`b` = 0))"),
        ("a xor (b > 1)", "((`a` <> 0) <> (`b` > 1))"),
        ("(a > 1) + 1", "(cast((`a` > 1) as int) + 1)"),
        ("if(a, 'x', b)", "if((`a` <> 0), 'x', `b`)"),
        ("case when a > 1 then 'x' else 'y' end", "(CASE WHEN (`a` > 1) THEN 'x' ELSE 'y' END)"),
        ("case a when 1 then 'x' end", "(CASE `a` WHEN 1 THEN 'x' END)"),
        ("ifnull(a, 0)", "coalesce(`a`, 0)"),
        ("greatest(a, b)", "if(`a` IS NULL OR `b` IS NULL, NULL, greatest(`a`, `b`))"),
        ("length(a)", "octet_length(`a`)"),
        ("char_length(a)", "char_length(`a`)"),
        ("concat(a, '-', b)", "concat(`a`, '-', `b`)"),
        ("substr(a, 2, 3)", "substring(`a`, 2, 3)"),
        ("trim(a)", "trim(BOTH ' ' FROM `a`)"),
        ("ltrim(a)", "trim(LEADING ' ' FROM `a`)"),
        ("replace(a, 'x', 'y')", "replace(`a`, 'x', 'y')"),
        ("lpad(a, 5, '0')", "lpad(`a`, 5, '0')"),
        ("instr(a, 'x')", "locate('x', `a`)"),
        ("locate('x', a, 3)", "locate('x', `a`, 3)"),
        ("log10(a)", "log(10, `a`)"),
        ("round(a, 2)", "round(`a`, 2)"),
        ("sha2(a, 256)", "sha2(`a`, 256)"),
        ("a like 'x!%' escape '!'", "(`a` LIKE 'x!%' ESCAPE '!')"),
        ("a not like 'x'", "(`a` NOT LIKE 'x')"),
        ("a regexp '^x'", "(`a` RLIKE '^x')"),
        ("year(a)", "year(`a`)"),
        ("day(a)", "dayofmonth(`a`)"),
        ("datediff(a, b)", "datediff(`a`, `b`)"),
        ("date(a)", "cast(`a` as date)"),
        ("date_add(a, interval 2 month)", "(`a` + INTERVAL '2' MONTH)"),
        ("date_format(a, '%Y-%m at %H')", "date_format(`a`, 'yyyy-MM \\'at\\' HH')"),
        ("date_format(a, '%H:%i:%s')", "date_format(`a`, 'HH:mm:ss')"),
        ("date_format(a, '%M %e %W %k %c %T')", "date_format(`a`, 'MMMM d EEEE H M HH:mm:ss')"),
        ("timestampdiff(minute, a, b)", "timestampdiff(MINUTE, `a`, `b`)"),
        ("extract(year from a)", "extract(YEAR FROM `a`)"),
        ("cast(floor(a) as signed)", "cast(floor(`a`) as bigint)"),
        ("cast(left(a, 3) as unsigned)", "cast(left(`a`, 3) as decimal(20,0))"),
        ("cast(a->>'$.x' as signed)", "cast(get_json_object(`a`, '$.x') as bigint)"),
        ("a & 4 <> 0", "((`a` & 4) <> 0)"),
        ("a & 9223372036854775807", "(`a` & 9223372036854775807)"),
        ("cast(a as char(3))", "left(cast(`a` as string), 3)"),
        ("cast(a as decimal(9,2))", "cast(`a` as decimal(9,2))"),
        ("a->>'$.x'", "get_json_object(`a`, '$.x')"),
        ("now(3)", "current_timestamp()"),
        ("uuid()", "uuid()"),
        ("'it''s \\\\ \\n'", "'it\\'s \\\\ \\n'"),
        ("`we``ird` = -1", "(`we``ird` = -1)"),
    ],
)
def test_the_usual_functions_have_a_spark_text(sql: str, spark: str) -> None:
    assert to_spark(canonical(sql, SERVER)) == spark


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("truncate(a, 2)", "TRUNCATE"),
        ("json_extract(a, '$.x')", "JSON_EXTRACT"),
        ("json_length(a)", "json_length"),
        ("week(a)", "WEEK"),
        ("to_days(a)", "DATEDIFF"),
        ("st_x(a)", "st_x"),
        ("a collate utf8mb4_bin", "COLLATE"),
        ("convert(a using latin1)", "latin1"),
        ("cast(a as binary)", "binary"),
        ("cast(a as time)", "TIME"),
        ("cast(a as decimal(50,2))", "decimal(50,2)"),
        ("~a", "~"),
        ("a & b", "&"),
        ("a & 9223372036854775808", "2^63"),
        ("a & 1.5", "&"),
        ("a | 8", "|"),
        ("cast(a as signed)", "CAST AS SIGNED"),
        ("cast(a / 2 as unsigned)", "CAST AS SIGNED"),
        ("a << 2", "<<"),
        ("0x41", "x'41'"),
        ("substr(a, 0)", "SUBSTR"),
        ("substr(a, b)", "SUBSTR"),
        ("trim(leading 'xy' from a)", "TRIM"),
        ("a + interval b day", "interval"),
        ("a + interval '1:1' minute_second", "MINUTE_SECOND"),
        ("date_format(a, '%U')", "%U"),
        ("date_format(a, b)", "literal"),
        ("date_format(a, '%A')", "date format"),
        ("regexp_like(a, 'x', 'i')", "match type"),
        ("conv(a, 10, 2)", "CONV"),
        ("timestampdiff(microsecond, a, b)", "MICROSECOND"),
        ("extract(day_hour from a)", "DAY_HOUR"),
        ("cast(a as json)", "JSON"),
    ],
)  # fmt: skip
def test_what_spark_lacks_is_refused_with_the_part_that_it_lacks(sql: str, says: str) -> None:
    found = to_spark(canonical(sql, SERVER))
    assert isinstance(found, CannotRender)
    assert says.lower() in found.reason.lower() and found.hint


def test_what_sqlglot_cannot_read_is_refused_too() -> None:
    found = to_spark("(`a` +")
    assert isinstance(found, CannotRender) and "could not be read" in found.reason


def test_a_condition_that_is_a_value_is_a_number_as_in_mysql() -> None:
    text = canonical("a > 1", SERVER)
    assert to_spark(text) == "(`a` > 1)"
    assert to_spark(text, as_value=True) == "cast((`a` > 1) as int)"


def test_the_columns_of_an_expression_are_named_once_in_order() -> None:
    text = canonical("concat(b, a, 'c', `b`, `it``s`)", SERVER)
    assert column_names(text) == ("b", "a", "it`s")
