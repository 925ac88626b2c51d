"""Functions have the name and the arguments with which servers store them."""

from __future__ import annotations

import pytest

from shardmerge.schemas.ddl.expressions import canonical
from shardmerge.schemas.model.server_context import ServerContext

MYSQL = ServerContext(version=(8, 0, 36))
OLD_MYSQL = ServerContext(version=(5, 7))
MARIADB = ServerContext("mariadb", (10, 11))
EVERY = (MYSQL, OLD_MYSQL, MARIADB)


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("ROUND(a)", "round(`a`,0)"),
        ("ROUND(a, 2)", "round(`a`,2)"),
        ("WEEK(d)", "week(`d`,0)"),
        ("WEEK(d, 3)", "week(`d`,3)"),
        ("WEEKOFYEAR(d)", "week(`d`,3)"),
        ("YEARWEEK(d)", "yearweek(`d`,0)"),
        ("BIN(a)", "conv(`a`,10,2)"),
        ("OCT(a + 1)", "conv((`a` + 1),10,8)"),
        ("ATAN2(a, b)", "atan(`a`,`b`)"),
        ("FROM_UNIXTIME(a)", "from_unixtime(`a`)"),
        ("FROM_UNIXTIME(a, '%Y')", "date_format(from_unixtime(`a`),'%Y')"),
        ("ST_ASBINARY(g)", "st_aswkb(`g`)"),
        ("GEOMCOLLECTION(g)", "geometrycollection(`g`)"),
        ("OCTET_LENGTH('{0}')", "length('{0}')"),
        ("JSON_MERGE(a, b)", "json_merge_preserve(`a`,`b`)"),
    ],
)
@pytest.mark.parametrize("context", EVERY, ids=["mysql8", "mysql57", "mariadb"])
def test_a_function_has_the_form_in_which_every_server_stores_it(
    written: str, text: str, context: ServerContext
) -> None:
    assert canonical(written, context) == text
    assert canonical(text, context) == text


@pytest.mark.parametrize(
    ("written", "mysql", "old_mysql", "mariadb"),
    [
        ("ST_LINEFROMTEXT(a)", "st_linefromtext(`a`)", "st_geometryfromtext(`a`)",
         "st_geometryfromtext(`a`)"),
        ("ST_GEOMFROMWKB(a, 4326)", "st_geomfromwkb(`a`,4326)", "st_geometryfromwkb(`a`,4326)",
         "st_geometryfromwkb(`a`,4326)"),
        ("ST_POINTFROMGEOHASH(a, 0)", *("st_pointfromgeohash(`a`,0)",) * 3),
        ("CONTAINS(a, b)", "contains(`a`,`b`)", "mbrcontains(`a`,`b`)", "st_contains(`a`,`b`)"),
        ("X(a)", "x(`a`)", "st_x(`a`)", "st_x(`a`)"),
        ("GLENGTH(a)", "glength(`a`)", "st_length(`a`)", "st_length(`a`)"),
        ("JSON_LENGTH(j, '$.a')", *("json_length(json_extract(`j`,'$.a'))",) * 2,
         "json_length(`j`,'$.a')"),
        ("JSON_PRETTY(j)", *("json_pretty(`j`)",) * 2, "json_detailed(`j`)"),
        ("CHR(a)", *("chr(`a`)",) * 2, "char(`a` using utf8mb4)"),
        ("ADD_MONTHS(d, 1)", *("add_months(`d`,1)",) * 2, "(`d` + interval 1 month)"),
        ("COLUMN_DELETE(b, 'x', 1)", *("column_delete(`b`,'x',1)",) * 2,
         "column_add(`b`,'x',null as int,1,null as int)"),
    ],
)  # fmt: skip
def test_servers_store_these_under_different_names(
    written: str, mysql: str, old_mysql: str, mariadb: str
) -> None:
    assert [canonical(written, context) for context in EVERY] == [mysql, old_mysql, mariadb]
    for context, text in zip(EVERY, (mysql, old_mysql, mariadb), strict=True):
        assert canonical(text, context) == text


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("COLUMN_CREATE('x', 1 AS INTEGER)", "column_create('x',1 as int)"),
        ("COLUMN_ADD(b, 'x', 1 AS UNSIGNED INT)", "column_add(`b`,'x',1 as unsigned int)"),
        ("COLUMN_GET(b, 'x' AS INT)", "column_get(`b`,'x' as signed)"),
        ("COLUMN_GET(b, 'x' AS DECIMAL)", "column_get(`b`,'x' as decimal(10,0))"),
    ],
)
def test_mariadbs_dynamic_columns_have_their_types(written: str, text: str) -> None:
    assert canonical(written, MARIADB) == text
    assert canonical(text, MARIADB) == text
