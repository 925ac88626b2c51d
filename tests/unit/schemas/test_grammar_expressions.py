"""Expressions have one text, however they were written."""

from __future__ import annotations

import pytest

from shardmerge.schemas.errors import UnparsableDDL
from shardmerge.schemas.expressions import canonical, column_names, rename_columns
from shardmerge.schemas.grammar import ServerContext

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
        ("a OR b AND c", "(`a` or (`b` and `c`))"),
        ("a BETWEEN 1 AND 5 AND b", "((`a` between 1 and 5) and `b`)"),
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
        ("_latin1'x'", "_latin1'x'"),
        ("'it''s \\\\ \"q\"'", "'it''s \\\\ \"q\"'"),
        ("CAST(a AS CHAR(5) CHARACTER SET utf8mb4)", "cast(`a` as char(5))"),
        ("CONVERT(a, SIGNED INTEGER)", "cast(`a` as signed)"),
        ("CONVERT(a USING latin1)", "convert(`a` using latin1)"),
        ("DATE_ADD(d, INTERVAL 5 MINUTE)", "(`d` + interval 5 minute)"),
        ("d - INTERVAL 1 DAY", "(`d` - interval 1 day)"),
        ("CASE WHEN a THEN 1 ELSE 2 END", "(case when `a` then 1 else 2 end)"),
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
    assert canonical("a || b", MYSQL) == "(`a` or `b`)"
    assert canonical("a || b", joined) == "concat(`a`,`b`)"


def test_mariadb_writes_some_things_otherwise() -> None:
    assert canonical("a REGEXP 'x'", MARIADB) == "(`a` regexp 'x')"
    assert canonical("!a", MARIADB) == "(`a` = 0)"


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
