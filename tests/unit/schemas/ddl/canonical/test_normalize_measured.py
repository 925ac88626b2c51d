"""What servers make of odd statements: each was measured on MySQL 9.7 or MariaDB 10.11."""

from __future__ import annotations

import pytest

from shardmerge.schemas.ddl.apply.statements import apply_alter, apply_create
from shardmerge.schemas.ddl.canonical.normalize import normalize
from shardmerge.schemas.ddl.changes import AlterTable, CreateTable
from shardmerge.schemas.ddl.expressions import canonical
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.errors import UnparsableDDL
from shardmerge.schemas.model.tables import (
    Column,
    Default,
    DefaultKind,
    Generated,
    IndexKind,
    IndexPart,
    TableSchema,
)

MYSQL = ServerContext(version=(9, 7))
MARIADB = ServerContext("mariadb", (10, 11))
NULL = Default(DefaultKind.NULL)


def create(sql: str, context: ServerContext = MYSQL) -> TableSchema:
    statement = parse(sql, context)
    assert isinstance(statement, CreateTable)
    schema = apply_create(statement, context)
    assert normalize(schema, "t", context) == schema
    return schema


def column(definition: str, context: ServerContext = MYSQL) -> Column:
    return create(f"CREATE TABLE t (c {definition})", context).columns[0]


def parts(elements: str, context: ServerContext = MYSQL, options: str = "") -> list[IndexPart]:
    schema = create(f"CREATE TABLE t ({elements}) {options}", context)
    return [part for index in schema.indexes for part in index.parts]


@pytest.mark.parametrize(
    ("elements", "length", "options"),
    [
        ("c VARCHAR(2048), KEY (c)", 768, ""),
        ("c VARCHAR(10000), KEY (c(769))", 768, ""),
        ("c VARCHAR(768), KEY (c)", None, ""),
        ("c VARCHAR(2048) CHARSET latin1, KEY (c)", None, ""),
        ("c TEXT, KEY (c(769))", 768, ""),
        ("c BLOB, KEY (c(3073))", 3072, ""),
        ("c BLOB, KEY (c(3072))", 3072, ""),
        ("c VARBINARY(5000), KEY (c)", 3072, ""),
        ("c VARCHAR(255), KEY (c)", 250, "ENGINE=MyISAM"),
        ("c VARCHAR(255), KEY (c)", None, "ENGINE=InnoDB"),
    ],
)
@pytest.mark.parametrize("context", [MYSQL, MARIADB], ids=["mysql", "mariadb"])
def test_a_key_that_is_too_long_is_cut(
    elements: str, length: int | None, options: str, context: ServerContext
) -> None:
    assert parts(elements, context, options) == [IndexPart("c", length=length)]


@pytest.mark.parametrize(("context", "length"), [(MYSQL, 63), (MARIADB, 255)])
def test_mariadb_counts_a_tiny_text_in_characters(context: ServerContext, length: int) -> None:
    assert parts("c TINYTEXT, KEY (c(255))", context) == [IndexPart("c", length=length)]


def test_a_unique_key_is_not_cut() -> None:
    assert parts("c VARCHAR(2048) CHARSET latin1, UNIQUE (c)") == [IndexPart("c")]


@pytest.mark.parametrize(
    ("elements", "name"),
    [
        ("a INT, b INT, KEY (a, (b + 1))", "functional_index"),
        ("a INT, b INT, KEY ((b + 1), a)", "functional_index"),
        ("a INT, b INT, KEY (a, b)", "a"),
    ],
)
def test_mysql_names_an_index_with_an_expression_by_itself(elements: str, name: str) -> None:
    assert [i.name for i in create(f"CREATE TABLE t ({elements})").indexes] == [name]


@pytest.mark.parametrize("kind", ["TEXT", "TINYBLOB", "LONGTEXT", "JSON"])
def test_mysql_forgets_a_literal_default_of_what_can_have_none(kind: str) -> None:
    assert column(f"{kind} DEFAULT ''").default == NULL
    assert column(f"{kind} NOT NULL DEFAULT ''").default is None
    assert column(f"{kind} DEFAULT ('x')").default == Default(DefaultKind.EXPRESSION, "'x'")
    assert column(f"{kind} DEFAULT ''", MARIADB).default not in (NULL, None)


def test_a_collation_of_a_number_says_nothing() -> None:
    assert column("INT COLLATE utf8mb4_bin") == column("INT")


@pytest.mark.parametrize(
    ("definition", "mysql", "mariadb"),
    [
        ("INT UNIQUE UNIQUE KEY", ["c"], ["c"]),
        ("SERIAL UNIQUE", ["c"], ["c"]),
        ("INT UNIQUE PRIMARY KEY", ["PRIMARY", "c"], ["PRIMARY"]),
        ("SERIAL PRIMARY KEY", ["PRIMARY", "c"], ["PRIMARY"]),
    ],
)
def test_unique_said_twice_is_one_index(
    definition: str, mysql: list[str], mariadb: list[str]
) -> None:
    for context, names in ((MYSQL, mysql), (MARIADB, mariadb)):
        found = create(f"CREATE TABLE t (c {definition})", context)
        assert [index.name for index in found.indexes] == names


@pytest.mark.parametrize("context", [MYSQL, MARIADB], ids=["mysql", "mariadb"])
def test_columns_are_spelled_as_the_table_does(context: ServerContext) -> None:
    sql = (
        "CREATE TABLE t (a INT, b INT AS (A + 1), CHECK (A > B),"
        " CONSTRAINT k FOREIGN KEY (A) REFERENCES p (X))"
    )
    found = create(sql, context)
    assert found.columns[1].generated is not None
    assert found.columns[1].generated.expression == "(`a` + 1)"
    assert [check.expression for check in found.checks] == ["(`a` > `b`)"]
    assert [(key.columns, key.parent_columns) for key in found.foreign_keys] == [(("a",), ("X",))]


def test_a_functional_index_is_spelled_as_the_table_does() -> None:
    assert parts("a INT, KEY k ((A * 2), A)") == [
        IndexPart(expression="(`a` * 2)"),
        IndexPart("a"),
    ]


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("2020-01-02:03:04:05", "2020-01-02 03:04:05"),
        ("2020-01-02--03:004:0005", "2020-01-02 03:04:05"),
        ("02020-0001-00002 3", "2020-01-02 03:00:00"),
        ("2020##01--02^03.04", "2020-01-02 03:04:00"),
        ("2020-01-02 03::04.", "2020-01-02 03:04:00"),
        ("2020-01-02:", "2020-01-02 00:00:00"),
        ("20-1-2T3:4:5", "2020-01-02 03:04:05"),
        ("0:0:0", "0000-00-00 00:00:00"),
        ("2/2/2", "0002-02-02 00:00:00"),
        ("2.2.2", "2002-02-02 00:00:00"),
        ("002/2/2", "0002-02-02 00:00:00"),
        ("0000-00-00 00:00:00.000", "0000-00-00 00:00:00"),
    ],
)
def test_anything_may_stand_between_the_numbers_of_a_moment(written: str, stored: str) -> None:
    assert column(f"DATETIME DEFAULT '{written}'").default == Default(DefaultKind.LITERAL, stored)


@pytest.mark.parametrize(
    ("definition", "mysql", "mariadb"),
    [
        ("DATETIME DEFAULT '2018-06-26 12:34:56.7'", "2018-06-26 12:34:57", "2018-06-26 12:34:56"),
        ("DATETIME DEFAULT '2018-12-31 23:59:59.5'", "2019-01-01 00:00:00", "2018-12-31 23:59:59"),
        ("DATETIME(1) DEFAULT '2018-06-26 1:2:3.96'", "2018-06-26 01:02:04.0",
         "2018-06-26 01:02:03.9"),
        ("DATETIME(2) DEFAULT '2018-06-26 1:2:3.964'", "2018-06-26 01:02:03.96",
         "2018-06-26 01:02:03.96"),
        ("TIME(2) DEFAULT '1:2:3.456'", "01:02:03.46", "01:02:03.45"),
        ("TIME DEFAULT '-1:59:59.5'", "-02:00:00", "-01:59:59"),
        ("TIME DEFAULT '0000-00-00 01:00:00.000'", "01:00:00", "01:00:00"),
        ("DATE DEFAULT '2020-01-02 23:59:59.9'", "2020-01-02", "2020-01-02"),
    ],
)  # fmt: skip
def test_mysql_rounds_a_fraction_and_mariadb_cuts_it(
    definition: str, mysql: str, mariadb: str
) -> None:
    assert column(definition).default == Default(DefaultKind.LITERAL, mysql)
    assert column(definition, MARIADB).default == Default(DefaultKind.LITERAL, mariadb)


def test_an_alteration_rounds_too() -> None:
    statement = parse("ALTER TABLE t ALTER c SET DEFAULT '1:2:3.5'", MYSQL)
    assert isinstance(statement, AlterTable)
    found = apply_alter(create("CREATE TABLE t (c TIME)"), statement, "t", MYSQL).schema
    assert found.columns[0].default == Default(DefaultKind.LITERAL, "01:02:04")


@pytest.mark.parametrize(
    ("definition", "default", "on_update"),
    [
        ("DATETIME(3) DEFAULT CURRENT_TIMESTAMP(6)", "CURRENT_TIMESTAMP(3)", ""),
        ("TIMESTAMP(2) DEFAULT NOW() ON UPDATE NOW()", "CURRENT_TIMESTAMP(2)",
         "CURRENT_TIMESTAMP(2)"),
        ("TIMESTAMP DEFAULT 0 ON UPDATE NOW(6)", "0000-00-00 00:00:00", "CURRENT_TIMESTAMP"),
    ],
)  # fmt: skip
def test_mariadb_gives_the_current_time_the_columns_digits(
    definition: str, default: str, on_update: str
) -> None:
    found = column(definition, MARIADB)
    assert found.default is not None
    assert (found.default.text, found.on_update) == (default, on_update)


def test_a_default_follows_a_renamed_column() -> None:
    statement = parse("ALTER TABLE t RENAME COLUMN a TO x", MARIADB)
    assert isinstance(statement, AlterTable)
    before = create("CREATE TABLE t (a INT, b INT DEFAULT (a + 1))", MARIADB)
    after = apply_alter(before, statement, "t", MARIADB).schema
    assert after.columns[1].default == Default(DefaultKind.EXPRESSION, "(`x` + 1)")


def test_an_engine_without_foreign_keys_keeps_only_their_index() -> None:
    found = create("CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES p (x)) ENGINE=MyISAM")
    assert (found.foreign_keys, [index.name for index in found.indexes]) == ((), ["a"])


def test_mariadb_forgets_the_reaction_set_default() -> None:
    sql = "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES p (x) ON DELETE SET DEFAULT)"
    assert create(sql, MARIADB).foreign_keys[0].on_delete == ""
    assert create(sql).foreign_keys[0].on_delete == "SET DEFAULT"


def test_a_fraction_as_a_bit_default_is_rounded() -> None:
    assert column("BIT(8) DEFAULT 1.5").default == Default(DefaultKind.LITERAL, "b'10'")


@pytest.mark.parametrize("context", [MYSQL, MARIADB], ids=["mysql", "mariadb"])
def test_is_unknown_is_is_null(context: ServerContext) -> None:
    found = create("CREATE TABLE t (a INT, CHECK (a IS NOT UNKNOWN))", context)
    assert found.checks[0].expression == "(`a` is not null)"


def test_the_fraction_of_a_years_default_is_rounded() -> None:
    assert column("YEAR DEFAULT 1.5").default == Default(DefaultKind.LITERAL, "2002")


@pytest.mark.parametrize(
    ("written", "mysql", "mariadb"),
    [
        ("INSTR(b, 'x')", "locate('x',`b`)", "locate('x',`b`)"),
        ("DATEDIFF(IFNULL(a, b), b)", "datediff(ifnull(`a`,`b`),`b`)",
         "datediff(ifnull(`a`,`b`),`b`)"),
        ("to_days(a) - to_days(b)", "datediff(`a`,`b`)", "datediff(`a`,`b`)"),
        ("b NOT REGEXP 'x'", "(not(regexp_like(`b`,'x')))", "((`b` regexp 'x') = 0)"),
    ],
)  # fmt: skip
def test_expressions_have_the_servers_form(written: str, mysql: str, mariadb: str) -> None:
    assert canonical(written, MYSQL) == mysql
    assert canonical(written, MARIADB) == mariadb


def test_a_columns_own_check_goes_with_it_on_mariadb() -> None:
    statement = parse("ALTER TABLE t DROP e", MARIADB)
    assert isinstance(statement, AlterTable)
    before = create("CREATE TABLE t (s CHAR(20), e INT CHECK (s LIKE 'x%'))", MARIADB)
    assert apply_alter(before, statement, "t", MARIADB).schema.checks == ()


def test_mariadb_forgets_the_default_of_a_generated_column() -> None:
    statement = parse("ALTER TABLE t ALTER b SET DEFAULT 5", MARIADB)
    assert isinstance(statement, AlterTable)
    before = create("CREATE TABLE t (a INT, b INT AS (-a))", MARIADB)
    assert apply_alter(before, statement, "t", MARIADB).schema == before


def test_an_old_servers_generated_timestamp_is_not_null() -> None:
    found = create("CREATE TABLE t (a INT, c TIMESTAMP AS (a))", ServerContext(version=(5, 7)))
    assert not found.columns[1].nullable
    assert create("CREATE TABLE t (a INT, c TIMESTAMP AS (a))").columns[1].nullable


@pytest.mark.parametrize(
    ("context", "names"), [(MYSQL, ["k", "a"]), (MARIADB, ["k"])], ids=["mysql", "mariadb"]
)
def test_to_mysql_a_descending_index_is_none_for_a_foreign_key(
    context: ServerContext, names: list[str]
) -> None:
    sql = "CREATE TABLE t (a INT, KEY k (a DESC), FOREIGN KEY (a) REFERENCES p (x))"
    assert [index.name for index in create(sql, context).indexes] == names


@pytest.mark.parametrize("context", [MYSQL, MARIADB], ids=["mysql", "mariadb"])
def test_the_number_of_a_foreign_key_that_is_dropped_is_not_used_again(
    context: ServerContext,
) -> None:
    statement = parse(
        "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES q (x), DROP FOREIGN KEY t_ibfk_1", context
    )
    assert isinstance(statement, AlterTable)
    before = create("CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES p (x))", context)
    after = apply_alter(before, statement, "t", context).schema
    assert [key.name for key in after.foreign_keys] == ["t_ibfk_2"]


def test_mariadb_shows_no_reference_system() -> None:
    assert column("GEOMETRY REF_SYSTEM_ID=4326", MARIADB).type.srid is None
    assert column("GEOMETRY SRID 4326").type.srid == 4326


def test_short_names_of_collations_get_their_charset() -> None:
    found = column("VARCHAR(5) CHARACTER SET utf8mb3 COLLATE uca1400_ai_ci", MARIADB)
    assert found.type.collation == "utf8mb3_uca1400_ai_ci"
    assert column("CHAR CHARACTER SET latin5 COLLATE latin5_turkish_ci").type.collation == ""


@pytest.mark.parametrize(
    ("definition", "charset", "collation"),
    [
        ("VARCHAR(64) BINARY COLLATE utf8_bin", "utf8mb3", "utf8mb3_bin"),
        ("TEXT BINARY NOT NULL COLLATE latin1_general_ci", "latin1", "latin1_bin"),
        ("CHAR(3) CHARSET utf8 BINARY COLLATE utf8_general_ci", "utf8mb3", ""),
    ],
)
def test_a_collation_beside_binary_tells_the_charset(
    definition: str, charset: str, collation: str
) -> None:
    kind = column(definition).type
    assert (kind.charset, kind.collation) == (charset, collation)


def test_mysql_5_7_and_mariadb_read_a_collation_beside_binary_in_their_way() -> None:
    old = ServerContext(version=(5, 7, 22))
    kind = column("CHAR(3) CHARSET utf8 BINARY COLLATE utf8_general_ci", old).type
    assert (kind.charset, kind.collation) == ("utf8mb3", "utf8mb3_bin")
    kind = column("VARCHAR(64) BINARY COLLATE utf8_bin", MARIADB).type
    assert (kind.charset, kind.collation) == ("utf8mb3", "utf8mb3_bin")


@pytest.mark.parametrize(
    ("elements", "length"),
    [("g POINT, KEY (g)", 25), ("g POINT, KEY (g(10))", 25), ("g POINT, KEY (g(40))", 25),
     ("g GEOMETRY, KEY (g(32))", 32), ("g GEOMETRY NOT NULL, UNIQUE (g(3000))", 3000)],
)  # fmt: skip
def test_to_mysql_5_7_an_index_of_a_shape_is_one_of_its_bytes(elements: str, length: int) -> None:
    table = create(f"CREATE TABLE t ({elements})", ServerContext(version=(5, 7, 22)))
    (index,) = table.indexes
    assert (index.kind is IndexKind.SPATIAL, index.parts[0].length) == (False, length)


def test_hundreds_of_parentheses_are_read_and_deeper_calls_refused_in_words() -> None:
    deep = f"{'(' * 2000}a + 1{')' * 2000}"
    table = create(f"CREATE TABLE t (a INT, b INT AS ({deep}), CHECK ((({deep})) > (1)))")
    assert table.columns[1].generated == Generated("(`a` + 1)", False)
    assert table.checks[0].expression == "((`a` + 1) > 1)"
    with pytest.raises(UnparsableDDL, match="nested too deeply"):
        parse(f"CREATE TABLE t (a INT AS ({'abs(' * 2000}1{')' * 2000}))", MYSQL)
