"""The canonical form: one schema, one value, however it was written."""

from __future__ import annotations

import pytest

from shardmerge.schemas.ddl.apply.databases import in_database
from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.canonical.normalize import normalize
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.describe import column_text
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.tables import Column, Default, DefaultKind, TableSchema

MYSQL = ServerContext(version=(8, 0, 36))
MARIADB = ServerContext("mariadb", (10, 11))
MARIADB_11 = ServerContext("mariadb", (11, 8, 9))
OLD = ServerContext(version=(5, 7))


def create(sql: str, context: ServerContext = MYSQL) -> TableSchema:
    statement = parse(sql, context)
    assert isinstance(statement, CreateTable)
    return apply_create(statement, context)


def column(definition: str, context: ServerContext = MYSQL, options: str = "") -> Column:
    return create(f"CREATE TABLE t (c {definition}) {options}", context).columns[0]


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ("INTEGER(11)", "int"),
        ("INT4 SIGNED", "int"),
        ("BOOL", "tinyint(1)"),
        ("TINYINT(4)", "tinyint"),
        ("TINYINT(1) UNSIGNED", "tinyint unsigned"),
        ("INT(5) ZEROFILL", "int unsigned zerofill"),
        ("NUMERIC", "decimal(10,0)"),
        ("DEC(5)", "decimal(5,0)"),
        ("FIXED(6,2)", "decimal(6,2)"),
        ("REAL", "double"),
        ("FLOAT(24)", "float"),
        ("FLOAT(25)", "double"),
        ("DOUBLE PRECISION", "double"),
        ("BIT", "bit(1)"),
        ("YEAR(4)", "year"),
        ("DATETIME(0)", "datetime"),
        ("CHARACTER", "char(1)"),
        ("CHARACTER VARYING(5)", "varchar(5)"),
        ("NCHAR(3)", "char(3) character set utf8"),
        ("NATIONAL VARCHAR(3)", "varchar(3) character set utf8mb3"),
        ("CHAR(3) CHARACTER SET binary", "binary(3)"),
        ("TEXT CHARACTER SET binary", "blob"),
        ("VARCHAR(3) BYTE", "varbinary(3)"),
        ("VARCHAR(3) BINARY", "varchar(3) collate utf8mb4_bin"),
        ("VARCHAR(3) ASCII BINARY", "varchar(3) collate latin1_bin"),
        ("TEXT(63) CHARSET latin1", "tinytext charset latin1"),
        ("TEXT(64)", "text"),
        ("TEXT(63)", "tinytext"),
        ("TEXT(20000)", "mediumtext"),
        ("BLOB(255)", "tinyblob"),
        ("LONG", "mediumtext"),
        ("LONG VARBINARY", "mediumblob"),
        ("VARCHAR(3) COLLATE utf8mb4_0900_ai_ci", "varchar(3)"),
        ("GEOMCOLLECTION", "geometrycollection"),
        ("ENUM('a', 'b ')", "enum('a','b')"),
        ("ENUM(0xC3A9, x'78')", "enum('é','x')"),
        ("ENUM(0xE9) CHARACTER SET latin1", "enum('é') CHARACTER SET latin1"),
        ("ENUM(0x80) CHARACTER SET latin1", "enum('€') CHARACTER SET latin1"),
        ("ENUM(0x00E9, 0x41) CHARACTER SET ucs2", "enum('é','A') CHARACTER SET ucs2"),
        ("ENUM(0xC0) CHARACTER SET cp1251", "enum('А') CHARACTER SET cp1251"),
        ("SET(b'1100001', 0x7)", "set('a','\x07')"),
        ("ENUM(0xC3A9) CHARACTER SET binary", "enum('é') CHARACTER SET binary"),
        ("ENUM(0xC3A9) DEFAULT 'é'", "enum('é') DEFAULT 'é'"),
    ],
)
def test_two_spellings_of_a_type_are_one(written: str, same: str) -> None:
    assert column(written) == column(same)


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        ("INT DEFAULT '5'", "5"),
        ("INT DEFAULT 0x10", "16"),
        ("INT DEFAULT +1", "1"),
        ("INT DEFAULT 1.5", "2"),
        ("BOOL DEFAULT TRUE", "1"),
        ("BIGINT UNSIGNED DEFAULT 18446744073709551615", "18446744073709551615"),
        ("INT(5) ZEROFILL DEFAULT '00005'", "5"),
        ("DECIMAL(5,2) DEFAULT .5", "0.50"),
        ("DECIMAL(5,0) DEFAULT 5.", "5"),
        ("DECIMAL(5,2) DEFAULT '-0.001'", "0.00"),
        ("FLOAT DEFAULT 1e3", "1000"),
        ("DOUBLE DEFAULT 1.0E-10", "1e-10"),
        ("DOUBLE(10,2) DEFAULT 1", "1.00"),
        ("BIT(8) DEFAULT 0b0011", "b'11'"),
        ("BIT(8) DEFAULT 5", "b'101'"),
        ("VARCHAR(9) DEFAULT 0x6162", "ab"),
        ("VARCHAR(9) DEFAULT _latin1 x'E9'", "é"),
        ("VARCHAR(9) DEFAULT 1.50", "1.50"),
        ("CHAR(9) DEFAULT 'a  '", "a"),
        ("BINARY(3) DEFAULT 'a'", "0x610000"),
        ("VARBINARY(3) DEFAULT x'0A0B'", "0x0a0b"),
        ("DATE DEFAULT '2020-2-9'", "2020-02-09"),
        ("DATE DEFAULT 20200209", "2020-02-09"),
        ("DATE DEFAULT DATE '2020-01-01'", "2020-01-01"),
        ("DATETIME(2) DEFAULT '2020-01-01'", "2020-01-01 00:00:00.00"),
        ("DATETIME DEFAULT 0", "0000-00-00 00:00:00"),
        ("TIME(2) DEFAULT '5'", "00:00:05.00"),
        ("TIME DEFAULT '1:2'", "01:02:00"),
        ("TIME DEFAULT '-10:00:00'", "-10:00:00"),
        ("TIME DEFAULT 12345", "01:23:45"),
        ("YEAR DEFAULT '99'", "1999"),
        ("YEAR DEFAULT 0", "0000"),
        ("YEAR DEFAULT '0'", "2000"),
        ("ENUM('a','B') DEFAULT 'b'", "B"),
        ("ENUM('a','b') DEFAULT 2", "b"),
        ("SET('a','b','c') DEFAULT 'c,A'", "a,c"),
        ("SET('a','b') DEFAULT ''", ""),
    ],
)
def test_a_default_has_the_form_that_the_server_stores(definition: str, text: str) -> None:
    assert column(definition).default == Default(DefaultKind.LITERAL, text)


@pytest.mark.parametrize(
    ("definition", "default", "nullable"),
    [
        ("INT", Default(DefaultKind.NULL), True),
        ("INT DEFAULT NULL", Default(DefaultKind.NULL), True),
        ("INT NOT NULL", None, False),
        ("INT PRIMARY KEY", None, False),
        ("INT AUTO_INCREMENT UNIQUE", None, False),
        ("SERIAL", None, False),
        ("INT AS (1) VIRTUAL", None, True),
        ("TIMESTAMP", Default(DefaultKind.NULL), True),
        ("DATETIME DEFAULT NOW()", Default(DefaultKind.EXPRESSION, "CURRENT_TIMESTAMP"), True),
        ("TIME(3) DEFAULT NOW(3)", Default(DefaultKind.EXPRESSION, "CURRENT_TIMESTAMP(3)"), True),
        ("CHAR(36) DEFAULT (UUID())", Default(DefaultKind.EXPRESSION, "uuid()"), True),
    ],
)  # fmt: skip
def test_what_is_not_said_is_filled_in(
    definition: str, default: Default | None, nullable: bool
) -> None:
    found = column(definition)
    assert (found.default, found.nullable) == (default, nullable)


def test_old_servers_give_timestamps_a_default() -> None:
    first, second, third = create(
        "CREATE TABLE t (a TIMESTAMP, b TIMESTAMP, c TIMESTAMP NULL)", OLD
    ).columns
    assert column_text(first) == (
        "`a` timestamp NOT NULL DEFAULT (CURRENT_TIMESTAMP) ON UPDATE CURRENT_TIMESTAMP"
    )
    assert column_text(second) == "`b` timestamp NOT NULL DEFAULT '0000-00-00 00:00:00'"
    assert column_text(third) == "`c` timestamp"


@pytest.mark.parametrize(
    ("definition", "options", "charset", "collation"),
    [
        ("VARCHAR(5)", "", "utf8mb4", ""),
        ("VARCHAR(5)", "CHARSET=latin1", "latin1", ""),
        ("VARCHAR(5)", "COLLATE latin1_bin", "latin1", "latin1_bin"),
        ("VARCHAR(5)", "CHARSET=utf8 COLLATE utf8_general_ci", "utf8mb3", ""),
        ("VARCHAR(5) CHARACTER SET utf8mb4", "COLLATE utf8mb4_bin", "utf8mb4", ""),
        ("VARCHAR(5) COLLATE utf8mb4_bin", "CHARSET=latin1", "utf8mb4", "utf8mb4_bin"),
        ("ENUM('a')", "CHARSET=latin1", "latin1", ""),
        ("INT", "CHARSET=latin1", "", ""),
        ("JSON", "CHARSET=latin1", "", ""),
    ],
)
def test_a_column_inherits_the_tables_charset(
    definition: str, options: str, charset: str, collation: str
) -> None:
    found = column(definition, options=options).type
    assert (found.charset, found.collation) == (charset, collation)


def test_the_databases_charset_is_inherited_by_the_table() -> None:
    statement = parse("CREATE TABLE t (a VARCHAR(5))", MYSQL)
    assert isinstance(statement, CreateTable)
    found = apply_create(statement, in_database(MYSQL, ("latin1", "")))
    assert (found.charset, found.columns[0].type.charset) == ("latin1", "latin1")


def test_a_default_collation_is_the_servers() -> None:
    assert column("VARCHAR(5) COLLATE utf8mb4_general_ci", OLD).type.collation == ""
    assert column("VARCHAR(5) COLLATE utf8mb4_general_ci").type.collation != ""


@pytest.mark.parametrize(
    ("options", "collation"),
    [
        ("CHARACTER SET utf8mb4", ""),
        ("CHARACTER SET DEFAULT", "utf8mb4_general_ci"),
        ("COLLATE utf8mb4_uca1400_ai_ci", ""),
    ],
)
def test_mariadbs_default_charset_has_its_older_collation(options: str, collation: str) -> None:
    """Measured, 11.8: a name looks at character_set_collations, DEFAULT does not."""
    found = create(f"CREATE TABLE t (a VARCHAR(5)) {options}", MARIADB_11)
    assert (found.charset, found.collation) == ("utf8mb4", collation)
    assert found.columns[0].type.collation == collation


def test_indexes_get_their_columns_name_and_a_number() -> None:
    found = create("CREATE TABLE t (a INT, b INT, KEY a (a), KEY a_2 (b), KEY (a, b), KEY ((a+1)))")
    assert [index.name for index in found.indexes] == ["a", "a_2", "a_3", "functional_index"]


def test_indexes_stand_in_the_servers_order() -> None:
    found = create(
        "CREATE TABLE t (a INT NOT NULL, b INT, s TEXT, FULLTEXT KEY f (s), KEY k (a),"
        " UNIQUE un (b), UNIQUE u (a), PRIMARY KEY (a))"
    )
    assert [index.name for index in found.indexes] == ["PRIMARY", "u", "un", "k", "f"]


def test_a_prefix_as_long_as_the_column_is_none() -> None:
    found = create("CREATE TABLE t (s VARCHAR(10), b TEXT, KEY k (s(10)), KEY j (s(9), b(5)))")
    assert [[part.length for part in index.parts] for index in found.indexes] == [[None], [9, 5]]


def test_checks_and_foreign_keys_are_named_after_the_table() -> None:
    found = create(
        "CREATE TABLE t (a INT CHECK (a > 0), b INT, CONSTRAINT x CHECK (b > 0), CHECK (a < b),"
        " FOREIGN KEY (a) REFERENCES p (id))"
    )
    assert [check.name for check in found.checks] == ["t_chk_1", "x", "t_chk_2"]
    assert [key.name for key in found.foreign_keys] == ["t_ibfk_1"]
    assert [index.name for index in found.indexes] == ["a"]


def test_servers_that_forget_checks_have_none() -> None:
    sql = "CREATE TABLE t (a INT CHECK (a > 0))"
    assert create(sql, ServerContext(version=(8, 0, 15))).checks == ()
    assert len(create(sql, ServerContext(version=(8, 0, 16))).checks) == 1


def test_mariadb_stores_json_as_checked_text() -> None:
    found = create("CREATE TABLE t (j JSON)", MARIADB)
    assert found.columns[0].type.name == "longtext"
    assert found.checks[0].expression == "json_valid(`j`)"


@pytest.mark.parametrize("context", [MYSQL, MARIADB, OLD])
def test_normalizing_twice_changes_nothing(context: ServerContext) -> None:
    found = create(
        "CREATE TABLE t (id SERIAL PRIMARY KEY, a NCHAR(5) DEFAULT 'x', b TEXT(9) BINARY,"
        " ts TIMESTAMP, d DECIMAL DEFAULT 1, e SET('a','b') DEFAULT 'b,a', KEY (a(5)),"
        " g INT AS (d + 1), CHECK (d > 0), FOREIGN KEY (d) REFERENCES p (x)) ENGINE=InnoDB",
        context,
    )
    assert normalize(found, "t", context) == found


def test_elements_of_bytes_have_the_tables_charset() -> None:
    assert column("ENUM(0xC3A9)", options="CHARSET=latin1").type.elements == ("Ã©",)
    assert column("ENUM(0xC3A9)", options="CHARSET=utf8mb4").type.elements == ("é",)
