"""What servers accept and few people write; beside it, what they refuse."""

from __future__ import annotations

import pytest

from shardmerge.schemas.ddl.changes import (
    AddForeignKey,
    AddIndex,
    AlterTable,
    CreateTable,
    Irrelevant,
)
from shardmerge.schemas.ddl.expressions import canonical, column_names
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.ddl.grammar.definitions.types import BYTES
from shardmerge.schemas.model.errors import UnparsableDDL
from shardmerge.schemas.model.tables import IndexKind
from shardmerge.schemas.model.types import ColumnType

MYSQL = ServerContext(version=(8, 0))
MARIADB = ServerContext("mariadb", (11, 8), default_database="d")


def column_type(written: str, context: ServerContext = MYSQL) -> ColumnType:
    statement = parse(f"CREATE TABLE t (c {written})", context)
    assert isinstance(statement, CreateTable)
    return statement.schema.columns[0].type


def alter(sql: str, context: ServerContext) -> AlterTable:
    statement = parse(sql, context)
    assert isinstance(statement, AlterTable)
    return statement


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("DECIMAL(19.5)", ColumnType("decimal", 19, 0)),
        ("DECIMAL(0.2)", ColumnType("decimal", 10, 0)),
        ("FLOAT(7.4)", ColumnType("float")),
        ("LONG CHARACTER SET latin1", ColumnType("mediumtext", charset="latin1")),
        ("LONG CHAR VARYING", ColumnType("mediumtext")),
        ("SQL_TSI_YEAR(4)", ColumnType("year")),
        (
            "ENUM(0b01100001, 0x62, x'63', 'd')",
            ColumnType("enum", elements=(f"{BYTES}a", f"{BYTES}b", f"{BYTES}c", "d")),
        ),
        ("TEXT COLUMN_FORMAT COMPRESSED WITH COMPRESSION_DICTIONARY x", ColumnType("text")),
    ],
)
def test_a_type_in_an_odd_spelling_is_read(written: str, kind: ColumnType) -> None:
    assert column_type(written) == kind


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("CREATE TABLE t (t.c INT)", "c"),
        ("CREATE TABLE d.t (d.t.index INT)", "index"),
        ("CREATE TABLE t (.c INT)", "c"),
        ("CREATE TABLE d.20200101 (1e INT)", "1e"),
        ("CREATE TABLE t (`1` INT)", "1"),
        ("CREATE TABLE t (vector INT)", "vector"),
        ("CREATE TABLE default.t (c INT)", "c"),
        ("CREATE TABLE t (next INT) ENGINE := InnoDB", "next"),
    ],
)
def test_a_column_may_have_an_odd_name(sql: str, name: str) -> None:
    statement = parse(sql, MYSQL)
    assert isinstance(statement, CreateTable)
    assert statement.schema.columns[0].name == name


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t (1 INT)",
        "CREATE TABLE 20200101 (c INT)",
        "CREATE TABLE t (0x41 INT)",
        "CREATE TABLE default .t (c INT)",
        "CREATE TABLE t (N'c' INT)",
        "CREATE TABLE t (a.b.c.d INT)",
        "CREATE TABLE t (c DECIMAL(1.2, 3))",
        "CREATE TABLE t (c INT(-1))",
    ],
)
def test_what_is_no_name_and_no_length_is_an_error(sql: str) -> None:
    with pytest.raises(UnparsableDDL):
        parse(sql, MYSQL)


@pytest.mark.parametrize(
    "action",
    [
        "CHECK PARTITION p0, p1 QUICK FAST FOR UPGRADE",
        "REPAIR PARTITION p0, p1 EXTENDED USE_FRM",
        "TRUNCATE PARTITION ALL, ALGORITHM=INPLACE",
        "DROP PARTITION p0, p1, LOCK=NONE",
        "ADD PARTITION",
        "ADD PARTITION PARTITIONS 3",
        "SECONDARY_LOAD PARTITION (p0, p1)",
        "SECONDARY_UNLOAD",
    ],
)
def test_a_partition_action_is_read_to_its_end(action: str) -> None:
    texts = [
        getattr(found, "text", "") for found in alter(f"ALTER TABLE t {action}", MYSQL).actions
    ]
    assert ", ".join(texts).replace(" , ", ", ").replace("( ", "(").replace(" )", ")") == (
        action.replace("=", " = ")
    )


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("WEIGHT_STRING(a AS CHAR(3))", "weight_string(`a` as char(3))"),
        ("a > {d '2020-01-01'}", "(`a` > DATE'2020-01-01')"),
        ("{ts '2020-01-01 00:00:00'}", "TIMESTAMP'2020-01-01 00:00:00'"),
        ("{x a + 1}", "(`a` + 1)"),
    ],
)
def test_odd_expressions_have_their_text(written: str, text: str) -> None:
    assert canonical(written, MYSQL) == text


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("@v", "@v"),
        ("@@session.Sql_Mode", "@@sql_mode"),
        ("(@v := 1)", "(@v := 1)"),
        ("@v = 1", "(@v = 1)"),
        ("(1----1)", "(1 - -1)"),
    ],
)
def test_mariadb_takes_variables_in_a_default_and_mysql_does_not(written: str, text: str) -> None:
    assert canonical(written, MARIADB) == text
    if "@" in written:
        with pytest.raises(UnparsableDDL):
            canonical(written, MYSQL)


def test_names_with_their_table_lose_it() -> None:
    found = alter("ALTER TABLE t DROP t.a, DROP FOREIGN KEY t.k, DROP INDEX d.t.i", MYSQL)
    assert [action.name for action in found.actions] == ["a", "k", "i"]  # type: ignore[union-attr]


def test_a_foreign_keys_columns_may_have_a_length_and_an_order() -> None:
    found = alter("ALTER TABLE t ADD CONSTRAINT t.k FOREIGN KEY (a(5), b ASC) REFERENCES p", MYSQL)
    (action,) = found.actions
    assert isinstance(action, AddForeignKey)
    assert (action.foreign_key.name, action.foreign_key.columns) == ("k", ("a", "b"))


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t (c INT FLAGS='X') ENGINE=Mroonga DEFAULT CHARSET=utf8 TOKENIZER='y'",
        "CREATE TABLE t (c INT, FULLTEXT KEY (c) NORMALIZER='n' COMMENT 'x')",
        "CREATE TABLE t (c INT) ENGINE=CONNECT TABLE_TYPE=ODBC `PAGE_COMPRESSED`=ON BLOCKS=4",
        "CREATE TABLE t (c TEXT COMPRESSED=zlib CHARACTER SET utf8mb4 DEFAULT '')",
        "CREATE TABLE t (c TEXT CHARACTER SET utf8mb4 COMPRESSED)",
        "CREATE TABLE t (c INT) COMPRESSION=zlib FOO='x'",
        "CREATE TABLE t (c TEXT COLLATE DEFAULT)",
        "CREATE TABLE t (c INT CONSTRAINT k REFERENCES o (id))",
        "CREATE TABLE t (c INT CONSTRAINT REFERENCES o (id))",
        "CREATE TABLE t (c INT DEFAULT NEXT VALUE FOR s, e INT DEFAULT (nextval(d.s)))",
        "CREATE TABLE t (a INT, c CHAR(9) AS (COLUMN_GET(b, 1 AS CHAR)) PERSISTENT, b BLOB)",
        "CREATE INDEX i ON t (c) NOWAIT COMMENT 'x' USING BTREE",
        "CREATE INDEX i ON t (c) WAIT 5",
        "ALTER TABLE t ADD PERIOD IF NOT EXISTS FOR p (a, b)",
        "ALTER TABLE t DROP PERIOD IF EXISTS FOR p",
        "ALTER TABLE t CONVERT TABLE u TO PARTITION p VALUES LESS THAN (5) WITH VALIDATION",
        "ALTER TABLE t CONVERT PARTITION p TO TABLE d.u",
        "ALTER TABLE t PARTITION BY RANGE (c) (PARTITION p VALUES LESS THAN (3) REMOTE_SERVER='s')",
    ],
)
def test_mariadbs_syntax_is_read_from_mariadb_only(sql: str) -> None:
    assert not isinstance(parse(sql, MARIADB), Irrelevant)
    with pytest.raises(UnparsableDDL):
        parse(sql, MYSQL)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t (c INT) FROBNICATE 5",
        "CREATE TABLE t (c INT FROBNICATE)",
        "ALTER TABLE t REMOVE FOO",
        "ALTER TABLE t ADD PERIOD IF FOR p (a, b)",
    ],
)
def test_an_engines_option_needs_its_equals_sign(sql: str) -> None:
    with pytest.raises(UnparsableDDL):
        parse(sql, MARIADB)


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t ADD VECTOR INDEX v (c) M=6 DISTANCE=cosine",
        "CREATE VECTOR INDEX v ON t (c) M=6",
    ],
)
def test_mariadbs_vector_index_is_an_index(sql: str) -> None:
    (action,) = alter(sql, MARIADB).actions
    assert isinstance(action, AddIndex)
    assert (action.index.name, action.index.kind) == ("v", IndexKind.VECTOR)
    with pytest.raises(UnparsableDDL):
        parse(sql, MYSQL)


@pytest.mark.parametrize("method", ["RANGE FIELDS (c)", "LIST FIELDS (c, e)"])
def test_fields_is_another_word_for_columns(method: str) -> None:
    values = "IN ((1, 2))" if "LIST" in method else "LESS THAN (1)"
    parse(f"ALTER TABLE t PARTITION BY {method} (PARTITION p VALUES {values})", MYSQL)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE DEFINER=a@..b$c. FUNCTION f() RETURNS INT RETURN 1",
        "CREATE DEFINER=x*y@% PROCEDURE p() SELECT 1",
    ],
)
def test_a_definer_may_be_any_text(sql: str) -> None:
    assert isinstance(parse(sql, MYSQL), Irrelevant)


def test_a_definer_without_an_object_is_an_error() -> None:
    with pytest.raises(UnparsableDDL):
        parse("CREATE DEFINER=a@b", MYSQL)


@pytest.mark.parametrize(
    ("written", "text", "columns"),
    [
        ("NEXT VALUE FOR s", "nextval(d.s)", ()),
        ("PREVIOUS VALUE FOR x.s + a", "(lastval(x.s) + `a`)", ("a",)),
        ("SETVAL(s, a)", "setval(d.s,`a`)", ("a",)),
        ("COLUMN_CREATE('x', a AS INT)", "column_create('x',`a` as int)", ("a",)),
        (
            "DATE_FORMAT(a, GET_FORMAT(DATE, 'ISO'))",
            "date_format(`a`,get_format(date,'ISO'))",
            None,
        ),
    ],
)
def test_words_in_an_expression_that_are_no_columns(
    written: str, text: str, columns: tuple[str, ...] | None
) -> None:
    assert canonical(written, MARIADB) == text
    assert column_names(text) == (("a",) if columns is None else columns)


def test_an_introducer_before_a_json_path_says_nothing() -> None:
    plain = canonical("JSON_VALUE(a, '$.b' RETURNING CHAR(3))", MYSQL)
    assert canonical("JSON_VALUE(a, _utf8mb4'$.b' RETURNING CHAR(3))", MYSQL) == plain


@pytest.mark.parametrize("check", ["(SELECT MAX(a) FROM u) = 1", "a > @x", "(a > (1))", "f(')')"])
def test_a_check_that_the_server_forgets_may_be_anything(check: str) -> None:
    for version in ((5, 7, 44), (8, 0, 15)):
        old = ServerContext(version=version)
        made = parse(f"CREATE TABLE t (a INT CHECK ({check}), b INT, CHECK ({check}))", old)
        assert isinstance(made, CreateTable)
        assert [column.name for column in made.schema.columns] == ["a", "b"]
        assert len(alter(f"ALTER TABLE t ADD CHECK ({check}), ADD c INT", old).actions) == 2
        for wrong in ("CHECK", "CHECK a > 1", f"CHECK ({check}", f"CHECK {check})"):
            with pytest.raises(UnparsableDDL):
                parse(f"ALTER TABLE t ADD {wrong}", old)


def test_a_check_that_the_server_keeps_is_read() -> None:
    with pytest.raises(UnparsableDDL):
        parse("CREATE TABLE t (a INT, CHECK ((SELECT 1) = a))", ServerContext(version=(8, 0, 16)))
