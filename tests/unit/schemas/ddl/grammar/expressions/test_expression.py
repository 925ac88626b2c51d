"""Expressions have one text, however they were written."""

from __future__ import annotations

import pytest

from shardmerge.schemas.ddl.expressions import canonical, column_names, rename_columns
from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.errors import UnparsableDDL

MYSQL = ServerContext(version=(8, 0, 36))
MARIADB = ServerContext("mariadb", (10, 11))


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("a+1", "(`a` + 1)"),
        ("(`a` + 1)", "(`a` + 1)"),
        ("a + b * 2", "(`a` + (`b` * 2))"),
        ("(a + b) * 2", "((`a` + `b`) * 2)"),
        ("a - b - c", "((`a` - `b`) - `c`)"),
        ("-1", "-1"),
        ("-(1)", "-1"),
        ("- a", "-(`a`)"),
        ("a > 1 AND b < 2 AND c = 3", "((`a` > 1) and (`b` < 2) and (`c` = 3))"),
        ("a > 1 AND (b < 2 AND c = 3)", "((`a` > 1) and (`b` < 2) and (`c` = 3))"),
        ("a OR b AND c", "((`a` <> 0) or ((`b` <> 0) and (`c` <> 0)))"),
        ("a BETWEEN 1 AND 5 AND b", "((`a` between 1 and 5) and (`b` <> 0))"),
        ("a != 3", "(`a` <> 3)"),
        ("NOT a = 3", "(`a` <> 3)"),
        ("NOT (a IS NULL)", "(`a` is not null)"),
        ("ISNULL(a)", "(`a` is null)"),
        ("a NOT IN (1, 2)", "(`a` not in (1,2))"),
        ("t.a MOD 3", "(`a` % 3)"),
        ("MOD(a, 3)", "(`a` % 3)"),
        ("a DIV 2", "(`a` DIV 2)"),
        ("j->'$.n'", "json_extract(`j`,'$.n')"),
        ("j->>'$.n'", "json_unquote(json_extract(`j`,'$.n'))"),
        ("CONCAT(a, _utf8mb4' ', N'x')", "concat(`a`,' ','x')"),
        ("_latin1'x'", "'x'"),
        ("'it''s \\\\ \"q\"'", "'it''s \\\\ \"q\"'"),
        ("CAST(a AS CHAR(5) CHARACTER SET utf8mb4)", "cast(`a` as char(5))"),
        ("CONVERT(a, SIGNED INTEGER)", "cast(`a` as signed)"),
        ("CONVERT(a USING latin1)", "convert(`a` using latin1)"),
        ("DATE_ADD(d, INTERVAL 5 MINUTE)", "(`d` + interval 5 minute)"),
        ("d - INTERVAL 1 DAY", "(`d` - interval 1 day)"),
        ("CASE WHEN a THEN 1 ELSE 2 END", "(case when (`a` <> 0) then 1 else 2 end)"),
        ("IF(a IS NULL, 1, NULL)", "if((`a` is null),1,null)"),
        ("EXTRACT(YEAR FROM d)", "extract(year from `d`)"),
        ("TRIM(LEADING 'x' FROM a)", "trim(leading 'x' from `a`)"),
        ("SUBSTRING(a FROM 1 FOR 3)", "substr(`a`,1,3)"),
        ("CURRENT_TIMESTAMP", "now()"),
        ("NOW(3)", "now(3)"),
        ("a COLLATE utf8mb4_bin", "(`a` collate utf8mb4_bin)"),
        ("a REGEXP '^x'", "regexp_like(`a`,'^x')"),
        ("0x1F", "0x1f"),
        ("b'101'", "0x05"),
        (".5", "0.5"),
        ("a LIKE 'x|%' ESCAPE '|'", "(`a` like 'x|%' escape '|')"),
        ("`we``ird` + 1", "(`we``ird` + 1)"),
        ("TIMESTAMPDIFF(SECOND, a, b)", "timestampdiff(second,`a`,`b`)"),
        ("a & 3 | 4", "((`a` & 3) | 4)"),
        ("~a ^ 5", "(~(`a`) ^ 5)"),
        ("TRUE XOR FALSE", "(true xor false)"),
    ],
)
def test_an_expression_has_one_text(written: str, text: str) -> None:
    assert canonical(written, MYSQL) == text
    assert canonical(text, MYSQL) == text


def test_pipes_mean_what_the_sql_mode_says() -> None:
    joined = ServerContext(sql_mode=frozenset({"PIPES_AS_CONCAT"}))
    assert canonical("a || b", MYSQL) == "((`a` <> 0) or (`b` <> 0))"
    assert canonical("a || b", joined) == "concat(`a`,`b`)"


@pytest.mark.parametrize("mode", ["PIPES_AS_CONCAT", "ANSI"])
@pytest.mark.parametrize(
    ("written", "text"),
    [
        # Measured on MySQL 5.7, 8.0 and 9.7, MariaDB 10.11 and 11.8.
        ("b = c || 'x'", "(`b` = concat(`c`,'x'))"),
        ("a + b || 'x'", "(`a` + concat(`b`,'x'))"),
        ("a || 'x' * 2", "(concat(`a`,'x') * 2)"),
        ("a ^ 2 || 3", "(`a` ^ concat(2,3))"),
        ("a || 2 ^ 3", "(concat(`a`,2) ^ 3)"),
        ("a DIV 2 || 3", "(`a` DIV concat(2,3))"),
        ("-a || 2", "concat(-(`a`),2)"),
        ("a || -2", "concat(`a`,-2)"),
        ("NOT a || 2", "(concat(`a`,2) = 0)"),
        ("!a || 2", "concat((`a` = 0),2)"),
        ("a AND b || c", "((`a` <> 0) and (concat(`b`,`c`) <> 0))"),
        ("a || b || c", "concat(concat(`a`,`b`),`c`)"),
        ("a LIKE b || '%' ESCAPE '|' || ''", "(`a` like concat(`b`,'%') escape concat('|',''))"),
        ("a BETWEEN b || 'a' AND b || 'b'", "(`a` between concat(`b`,'a') and concat(`b`,'b'))"),
        ("a REGEXP b || 'x'", "regexp_like(`a`,concat(`b`,'x'))"),
        ("INTERVAL 1 DAY + d || ''", "(concat(`d`,'') + interval 1 day)"),
        ("a || b COLLATE utf8mb4_bin", "concat(`a`,(`b` collate utf8mb4_bin))"),
        ("a OR b || c", "((`a` <> 0) or (concat(`b`,`c`) <> 0))"),
    ],
)
def test_pipes_that_join_strings_bind_tighter_than_arithmetic(
    mode: str, written: str, text: str
) -> None:
    joined = ServerContext(version=(8, 0, 36), sql_mode=frozenset({mode}))
    assert canonical(written, joined) == text


def test_in_mariadbs_oracle_mode_pipes_stand_beside_plus_and_skip_null() -> None:
    oracle = ServerContext("mariadb", (10, 11), frozenset({"ORACLE"}))
    assert canonical("a ^ 2 || b = 'x'", oracle) == "(concat_operator_oracle((`a` ^ 2),`b`) = 'x')"


def test_mariadb_writes_some_things_otherwise() -> None:
    assert canonical("a REGEXP 'x'", MARIADB) == "(`a` regexp 'x')"
    assert canonical("!a", MARIADB) == "(`a` = 0)"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # What is written, and what a server makes of it.
        ("a AND b", "0 <> a AND 0 <> b"),
        ("a && 1", "a <> 0 and 1"),
        ("a XOR 1", "(0 <> a) xor (0 <> 1)"),
        ("a IS TRUE", "(0 <> a) is true"),
        ("a IS UNKNOWN", "a is null"),
        ("!(a)", "0 = a"),
        ("NOT a", "a = 0"),
        ("!(a + 1)", "(a + 1) = 0"),
        ("NOT NOT a", "a <> 0"),
        ("NOT (a AND b > 1)", "a = 0 or b <= 1"),
        ("NOT (a OR b)", "not(a) and not(b)"),
        ("NOT (a XOR b)", "(not(a)) xor b"),
        ("IF(a, 1, 2)", "if(0 <> a, 1, 2)"),
        ("CASE WHEN a THEN 1 END", "case when 0 <> a then 1 end"),
        ("(a > 1) <> 0 AND b", "a > 1 AND b <> 0"),
    ],
)
@pytest.mark.parametrize("context", [MYSQL, MARIADB], ids=["mysql", "mariadb"])
def test_conditions_have_one_text_however_a_server_writes_them(
    one: str, other: str, context: ServerContext
) -> None:
    assert canonical(one, context) == canonical(other, context)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # What is written, and what MySQL 5.7, 8.0, 9.7, MariaDB 10.11 and 11.8 store.
        ("CAST(a AS DECIMAL)", "cast(a as decimal(10,0))"),
        ("CAST(a AS DECIMAL(5))", "cast(a as decimal(5,0))"),
        ("CONVERT(a, DEC)", "cast(a as decimal(10,0))"),
        ("CAST(a AS NCHAR(3))", "cast(a as char(3) charset utf8mb3)"),
        ("CAST(a AS NATIONAL CHAR(3))", "cast(a as char(3) charset utf8)"),
        ("CAST(a AS CHAR BYTE)", "cast(a as char charset binary)"),
        ("CAST(a AS VARCHAR(5))", "cast(a as char(5) charset utf8mb4)"),
        ("CAST(a AS TIME(0))", "cast(a as time)"),
        ("CAST(a AS DATETIME(0))", "cast(a as datetime)"),
        ("CAST(a AS FLOAT(24))", "cast(a as float)"),
        ("CAST(a AS FLOAT(25))", "cast(a as double)"),
        ("CAST(a AS REAL)", "cast(a as double)"),
        ("a IN (1)", "a = 1"),
        ("a NOT IN (1)", "a <> 1"),
        ("NOT (a IN (b))", "a <> b"),
        ("0 IN (a)", "0 = a"),
        ("a + 1 IN (1) AND b", "a + 1 = 1 AND b <> 0"),
        ("a = b IN (1)", "a = (b = 1)"),
        ("a = b LIKE 'x' = 1", "(a = (b like 'x')) = 1"),
        ("a = b IS NULL", "(a = b) is null"),
        ("a BETWEEN 1 AND b IN (1,2)", "a between 1 and (b in (1,2))"),
        ("(a,b) IN ((1,2))", "a = 1 and b = 2"),
        ("ROW(a,b) NOT IN (ROW(1,2))", "a <> 1 or b <> 2"),
        ("NOT ((a,b) = (1,2))", "a <> 1 or b <> 2"),
        ("(a,(b,c)) = (1,(2,3)) AND d", "a = 1 and b = 2 and c = 3 and d <> 0"),
        ("(a,b) <=> (1,2)", "a <=> 1 and b <=> 2"),
        ("TRIM('x' FROM a)", "trim(both 'x' from a)"),
        ("TIMESTAMP(a)", "cast(a as datetime)"),
        ("TIMESTAMP(CONCAT(a,b))", "cast(concat(a,b) as datetime)"),
        ("TIME(IFNULL(a,b))", "cast(ifnull(a,b) as time)"),
        ("TIMESTAMPADD(SQL_TSI_HOUR,a+1,d)", "d + interval (a + 1) hour"),
        ("GET_FORMAT(TIMESTAMP,'ISO')", "get_format(DATETIME, 'ISO')"),
    ],
)
@pytest.mark.parametrize("context", [MYSQL, MARIADB], ids=["mysql", "mariadb"])
def test_what_servers_store_in_another_form_has_one_text(
    one: str, other: str, context: ServerContext
) -> None:
    assert canonical(one, context) == canonical(other, context)
    assert canonical(canonical(one, context), context) == canonical(one, context)


def test_a_rows_inequality_is_not_the_one_of_its_values() -> None:
    assert canonical("(a,b) > (1,2)", MYSQL) == "((`a`,`b`) > (1,2))"
    assert canonical("(a,b) IN ((1,2),(3,4))", MYSQL) == "((`a`,`b`) in ((1,2),(3,4)))"


@pytest.mark.parametrize(
    ("written", "context", "text"),
    [
        # MySQL executes what it stored, so what is not stored does not count.
        ("CHAR(a USING latin1)", MYSQL, "char(`a`)"),
        ("CHAR(a USING latin1)", MARIADB, "char(`a` using latin1)"),
        ("a LIKE 'x' ESCAPE '|'", ServerContext(version=(8, 0, 15)), "(`a` like 'x')"),
        ("a LIKE 'x' ESCAPE '|'", ServerContext(version=(5, 7)), "(`a` like 'x')"),
        ("a LIKE 'x' ESCAPE '|'", MARIADB, "(`a` like 'x' escape '|')"),
        ("CAST(a AS CHAR CHARSET latin1 BINARY)", MYSQL, "cast(`a` as char charset latin1)"),
        ("CAST(a AS CHAR BINARY)", MARIADB, "cast(`a` as char binary)"),
        ("JSON_VALUE(j, '$.a')", MYSQL, "json_value(`j`, '$.a' returning char(512))"),
        ("JSON_VALUE(j, '$.a')", MARIADB, "json_value(`j`, '$.a')"),
        ("WEIGHT_STRING(a AS BINARY(3))", MYSQL,
         "weight_string(cast(`a` as char(3) charset binary))"),
        ("weight_string(cast(`a` as char(3) charset binary),0,3,65)", MARIADB,
         "weight_string(cast(`a` as char(3) charset binary) as char(3))"),
        ("WEIGHT_STRING(a AS BINARY(3))", MARIADB,
         "weight_string(cast(`a` as char(3) charset binary) as char(3))"),
        ("weight_string(`a`,0,0,1)", MARIADB, "weight_string(`a`)"),
        ("WEIGHT_STRING(a LEVEL 1)", MARIADB, "weight_string(`a`)"),
        ("TRIM(LEADING FROM a)", MARIADB, "ltrim(`a`)"),
        ("TRIM(TRAILING FROM a)", MARIADB, "rtrim(`a`)"),
        ("TRIM(BOTH FROM a)", MARIADB, "trim(`a`)"),
        ("- -5", MARIADB, "5"),
        ("- -5", MYSQL, "-(-5)"),
    ],
)  # fmt: skip
def test_each_server_stores_these_in_its_own_way(
    written: str, context: ServerContext, text: str
) -> None:
    assert canonical(written, context) == text
    assert canonical(text, context) == text


def test_not_binds_tightly_under_high_not_precedence() -> None:
    high = ServerContext(sql_mode=frozenset({"HIGH_NOT_PRECEDENCE"}))
    assert canonical("NOT a BETWEEN 1 AND 2", high) == "((`a` = 0) between 1 and 2)"
    assert canonical("a + NOT b = 1", high) == "((`a` + (`b` = 0)) = 1)"
    assert canonical("a NOT IN (1,2) AND b IS NOT NULL", high) == (
        "((`a` not in (1,2)) and (`b` is not null))"
    )
    assert canonical("NOT a BETWEEN 1 AND 2", MYSQL) == "(`a` not between 1 and 2)"


def test_values_that_are_compared_are_no_conditions() -> None:
    assert canonical("CASE a WHEN b THEN 1 END", MYSQL) == "(case `a` when `b` then 1 end)"
    assert canonical("a = b", MYSQL) != canonical("b = a", MYSQL)
    assert canonical("TRUE AND a", MARIADB) == "((1 <> 0) and (`a` <> 0))"


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("_latin1'x'", "'x'"),
        ("_utf8mb4'é'", "'é'"),
        ("_latin1 0x61", "'a'"),
        ("_utf16'\\0x'", "'x'"),
        ("_ucs2'x'", "'x'"),
        ("_utf32 0x61", "'a'"),
        ("_utf16le 0x6100", "'a'"),
        ("_utf16'\\0i\\0t\\0\\'\\0s'", "'it''s'"),
        ("_binary'x'", "_binary'x'"),
        ("_latin1'é'", "_latin1'é'"),
        ("_latin1 0xe9", "_latin1 0xe9"),
        ("_ucs2 0xd800", "_ucs2 0xd800"),
    ],
)
def test_a_literals_charset_counts_only_where_its_bytes_mean_other_text(
    written: str, text: str
) -> None:
    assert canonical(written, MYSQL) == text


@pytest.mark.parametrize("text", ["a +", "(a", "a b", "SELECT 1", "@x", "@@sql_mode", "f(a", ""])
def test_what_is_no_expression_is_an_error(text: str) -> None:
    with pytest.raises(UnparsableDDL):
        canonical(text, MYSQL)


def test_the_columns_of_an_expression_are_told() -> None:
    text = canonical("b + IF(a, '`no`', c) + a", MYSQL)
    assert column_names(text) == ("b", "a", "c")
    assert column_names("now()") == ()


def test_columns_are_renamed_in_names_and_not_in_strings() -> None:
    text = canonical("A + LENGTH('`a`') + b", MYSQL)
    assert rename_columns(text, {"a": "x`y"}) == "((`x``y` + length('`a`')) + `b`)"
