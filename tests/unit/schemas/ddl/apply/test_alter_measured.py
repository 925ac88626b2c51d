"""What servers make of odd ALTER TABLEs: measured on MySQL 5.7, 8.0.15, 9.7 and MariaDB 10.11."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.ddl.apply.server_tables import Catalog
from shardmerge.schemas.ddl.apply.statements import apply_alter, apply_create
from shardmerge.schemas.ddl.changes import AlterTable, CreateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.errors import UnsupportedDDL
from shardmerge.schemas.model.tables import (
    Default,
    DefaultKind,
    Generated,
    Index,
    IndexKind,
    IndexPart,
    TableSchema,
)
from tests.unit.schemas.ddl.canonical.test_normalize_measured import (
    MARIADB,
    MYSQL,
    NULL,
    column,
    create,
    parts,
)


def altered(action: str, context: ServerContext, made: str) -> TableSchema:
    """The table t after one ALTER TABLE."""
    statement = parse(f"ALTER TABLE t {action}", context)
    assert isinstance(statement, AlterTable)
    return apply_alter(create(made, context), statement, "t", context).schema


OLD = ServerContext(version=(8, 0, 15))
ABS = Default(DefaultKind.EXPRESSION, "abs(-3)")


@pytest.mark.parametrize(("context", "default"), [(OLD, None), (MYSQL, ABS), (MARIADB, ABS)])
@pytest.mark.parametrize("null", ["", "NOT NULL"])
def test_mysql_8_0_15_forgets_an_expression_as_default_of_the_primary_key(
    null: str, context: ServerContext, default: Default | None
) -> None:
    assert column(f"INT {null} DEFAULT (ABS(-3)) PRIMARY KEY", context).default == default
    made = "CREATE TABLE t (c INT PRIMARY KEY)"
    found = altered("MODIFY c BIGINT NOT NULL DEFAULT (ABS(-3))", context, made)
    assert found.columns[0].default == default


@pytest.mark.parametrize(("context", "default"), [(OLD, None), (MYSQL, None), (MARIADB, ABS)])
def test_mysql_forgets_an_expression_that_a_column_of_the_primary_key_is_given(
    context: ServerContext, default: Default | None
) -> None:
    made = "CREATE TABLE t (c INT PRIMARY KEY)"
    found = altered("ALTER c SET DEFAULT (ABS(-3))", context, made)
    assert found.columns[0].default == default


def test_mysql_8_0_15_keeps_it_where_the_key_alone_is_new() -> None:
    made = "CREATE TABLE t (c INT NOT NULL DEFAULT (ABS(-3)))"
    assert altered("ADD PRIMARY KEY (c)", OLD, made).columns[0].default == ABS


@pytest.mark.parametrize("context", [MYSQL, MARIADB])
@pytest.mark.parametrize(
    ("words", "nullable"), [("AUTO_INCREMENT NULL", True), ("NULL AUTO_INCREMENT", False)]
)
def test_null_behind_auto_increment_counts(
    words: str, nullable: bool, context: ServerContext
) -> None:
    assert column(f"INT {words} UNIQUE", context).nullable == nullable


@pytest.mark.parametrize("context", [MYSQL, MARIADB])
def test_elements_of_charset_binary_keep_their_spaces(context: ServerContext) -> None:
    found = create("CREATE TABLE t (e ENUM('v','z ')) CHARSET binary", context)
    assert found.columns[0].type.elements == ("v", "z ")
    other = create("CREATE TABLE t (e ENUM('v','z ')) CHARSET latin1", context)
    assert other.columns[0].type.elements == ("v", "z")


def test_mysql_8_0_15_keeps_the_text_of_an_expression_when_columns_swap_names() -> None:
    made = "CREATE TABLE t (a INT, b INT, c INT AS (a + 1), KEY k ((b + 1)))"
    found = altered("RENAME COLUMN a TO b, RENAME COLUMN b TO a", OLD, made)
    assert found.columns[2].generated == Generated("(`a` + 1)", stored=False)
    assert found.indexes[0].parts[0].expression == "(`b` + 1)"


def test_mariadb_follows_renames_in_expressions() -> None:
    made = "CREATE TABLE t (a INT, b INT, c INT AS (a + 1))"
    found = altered("RENAME COLUMN a TO b, RENAME COLUMN b TO a", MARIADB, made)
    assert found.columns[2].generated == Generated("(`b` + 1)", stored=False)


def test_mariadb_gives_a_moment_that_follows_updates_the_zero_default() -> None:
    zero = Default(DefaultKind.LITERAL, "0000-00-00 00:00:00")
    assert column("DATETIME NOT NULL ON UPDATE NOW()", MARIADB).default == zero
    assert column("TIMESTAMP NOT NULL ON UPDATE NOW()", MARIADB).default == zero
    assert column("TIMESTAMP NOT NULL ON UPDATE NOW()", MYSQL).default is None
    made = "CREATE TABLE t (a INT PRIMARY KEY)"
    for kind in ("TIMESTAMP", "DATETIME"):
        found = altered(f"MODIFY a {kind} DEFAULT NULL ON UPDATE NOW()", MARIADB, made)
        assert found.columns[0].default == zero


def test_mariadb_forgets_the_default_of_a_numbered_column() -> None:
    made = "CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY)"
    assert altered("ALTER a SET DEFAULT 0", MARIADB, made).columns[0].default is None


@pytest.mark.parametrize("written", ["(PI())", "PI()"])
def test_mariadb_computes_pi_as_a_default(written: str) -> None:
    number = Default(DefaultKind.LITERAL, "3.141592653589793")
    assert column(f"DOUBLE DEFAULT {written}", MARIADB).default == number
    assert column(f"INT DEFAULT {written}", MARIADB).default == Default(DefaultKind.LITERAL, "3")
    assert column("DOUBLE DEFAULT (-PI())", MARIADB).default == Default(
        DefaultKind.LITERAL, "-3.141592653589793"
    )
    assert column("DOUBLE DEFAULT (PI() + 1)", MARIADB).default == Default(
        DefaultKind.EXPRESSION, "(pi() + 1)"
    )


def test_mariadb_widens_no_text_that_the_converting_statement_defines() -> None:
    made = "CREATE TABLE t (a TEXT, b TEXT) CHARSET=latin1"
    action = "MODIFY b TEXT CHARSET latin1, ADD c TEXT CHARSET latin1, CONVERT TO CHARSET utf8mb4"
    kinds = [c.type.name for c in altered(action, MARIADB, made).columns]
    assert kinds == ["mediumtext", "text", "text"]
    kinds = [c.type.name for c in altered(action, MYSQL, made).columns]
    assert kinds == ["mediumtext", "mediumtext", "text"]


V57 = ServerContext(version=(5, 7, 22))


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ("INT", "tinytext"), ("DATETIME(6)", "tinytext"), ("DECIMAL(62,0)", "tinytext"),
        ("DECIMAL(65,30)", "text"), ("BIT(64)", "text"), ("CHAR(63)", "tinytext"),
        ("CHAR(64)", "text"), ("CHAR(127) CHARSET ucs2", "tinytext"),
        ("CHAR(128) CHARSET ucs2", "text"), ("TINYTEXT", "text"), ("BLOB", "mediumtext"),
        ("MEDIUMTEXT", "longtext"), ("JSON", "longtext"), ("GEOMETRY", "longtext"),
        (f"ENUM('{'y' * 64}')", "text"), (f"SET('{'y' * 31}','{'z' * 31}')", "tinytext"),
    ],
)  # fmt: skip
def test_mysql_8_sizes_a_text_that_it_converts_by_what_the_column_was(
    before: str, text: str
) -> None:
    action = "CONVERT TO CHARACTER SET utf8mb4, MODIFY c TEXT"
    made = f"CREATE TABLE t (c {before}) CHARSET=latin1"
    for context in (OLD, MYSQL):
        assert altered(action, context, made).columns[0].type.name == text
    for context in (V57, MARIADB):
        assert altered(action, context, made).columns[0].type.name == "text"


@pytest.mark.parametrize("written", ["(2)", "((2))", "(+2)", "('2')", "(0x2)", "(b'10')"])
def test_a_constant_in_parentheses_is_a_literal_behind_set_default(written: str) -> None:
    literal = Default(DefaultKind.LITERAL, "2")
    made = "CREATE TABLE t (c INT PRIMARY KEY)"
    for context in (OLD, MYSQL, MARIADB):
        found = altered(f"ALTER c SET DEFAULT {written}", context, made)
        assert found.columns[0].default == literal


def test_in_a_definition_it_is_an_expression_to_mysql_and_so_is_a_negative_one() -> None:
    assert column("INT DEFAULT (2)").default == Default(DefaultKind.EXPRESSION, "2")
    made = "CREATE TABLE t (c INT)"
    for action, default in (
        ("ALTER c SET DEFAULT (-2)", Default(DefaultKind.EXPRESSION, "-2")),
        ("ALTER c SET DEFAULT (2 + 1)", Default(DefaultKind.EXPRESSION, "(2 + 1)")),
        ("ALTER c SET DEFAULT (NULL)", NULL),
    ):
        assert altered(action, MYSQL, made).columns[0].default == default


@pytest.mark.parametrize("context", [MYSQL, MARIADB])
def test_a_check_that_names_no_column_goes_with_any_column(context: ServerContext) -> None:
    made = "CREATE TABLE t (a INT, b INT, CONSTRAINT x CHECK (1 < 2), CONSTRAINT y CHECK (a > 1))"
    assert [check.name for check in altered("DROP b", context, made).checks] == ["y"]
    assert len(altered("ADD c INT", context, made).checks) == 2


@pytest.mark.parametrize(
    ("elements", "length"),
    [("g POINT NOT NULL, KEY (g)", 25), ("g POINT, UNIQUE (g)", 25), ("g POINT PRIMARY KEY", 25),
     ("g LINESTRING, KEY (g)", 3072),
     ("g LINESTRING, KEY (g(30))", 30), ("g LINESTRING, UNIQUE (g)", 8)],
)  # fmt: skip
def test_mariadb_indexes_the_first_bytes_of_a_shape(elements: str, length: int) -> None:
    assert parts(elements, MARIADB) == [IndexPart("g", length=length)]


def test_mysql_makes_a_plain_index_of_a_shape_a_spatial_one() -> None:
    found = create("CREATE TABLE t (g POINT NOT NULL, KEY k (g))", MYSQL)
    assert found.indexes == (Index("k", IndexKind.SPATIAL, (IndexPart("g"),)),)


@pytest.mark.parametrize("words", ["", "IF EXISTS "])
def test_mariadb_drops_the_key_and_not_the_columns_own_check_of_that_name(words: str) -> None:
    made = "CREATE TABLE t (a INT, f INT CHECK (f > 1), UNIQUE KEY f (a))"
    found = altered(f"DROP CONSTRAINT {words}f", MARIADB, made)
    assert (found.indexes, [check.name for check in found.checks]) == ((), ["f"])


def test_if_not_exists_looks_at_the_table_before_the_statement() -> None:
    made = "CREATE TABLE t (a INT, b INT)"
    found = altered("DROP b, ADD COLUMN IF NOT EXISTS b TEXT AFTER nowhere", MARIADB, made)
    assert [c.name for c in found.columns] == ["a"]


@pytest.mark.parametrize(
    ("action", "keys", "nullable"),
    [
        ("ADD COLUMN IF NOT EXISTS b INT UNIQUE", ["PRIMARY", "b"], True),
        ("ADD COLUMN IF NOT EXISTS a INT UNIQUE", ["PRIMARY", "b", "a"], True),
        ("ADD COLUMN IF NOT EXISTS c INT KEY", ["PRIMARY", "b"], False),
        ("MODIFY IF EXISTS b INT UNIQUE", ["PRIMARY", "b"], True),
        ("CHANGE IF EXISTS b c INT UNIQUE", ["PRIMARY", "b", "c"], True),
        ("MODIFY IF EXISTS nothing INT UNIQUE", ["PRIMARY", "b"], True),
    ],
)
def test_if_exists_looks_for_the_keys_of_a_definition_by_themselves(
    action: str, keys: list[str], nullable: bool
) -> None:
    made = "CREATE TABLE t (a INT PRIMARY KEY, b INT, UNIQUE b (b))"
    found = altered(action, MARIADB, made)
    assert sorted(index.name for index in found.indexes) == sorted(keys)
    assert found.columns[-1].nullable == nullable


@pytest.mark.parametrize(
    ("again", "invisible"), [("(a)", True), ("(b)", False), ("(a) COMMENT 'x'", False)]
)
def test_mariadb_keeps_an_index_that_it_drops_and_adds_alike(again: str, invisible: bool) -> None:
    made = "CREATE TABLE t (a INT, b INT, KEY x (a) IGNORED)"
    found = altered(f"DROP KEY x, ADD KEY x {again}", MARIADB, made)
    assert [index.invisible for index in found.indexes] == [invisible]


@pytest.mark.parametrize(
    ("action", "ignored"),
    [
        ("ALTER INDEX x IGNORED", {"x": True, "y": False}),
        (
            "RENAME INDEX x TO y, RENAME INDEX y TO x, ALTER INDEX x IGNORED",
            {"y": False, "x": True},
        ),
        (
            "RENAME INDEX x TO z, RENAME INDEX y TO x, ALTER INDEX x IGNORED",
            {"z": False, "x": True},
        ),
        ("ADD UNIQUE KEY x (b), RENAME INDEX x TO z, ALTER INDEX x IGNORED", {"z": False}),
    ],
)
def test_mariadb_ignores_the_index_that_has_the_name_afterwards(
    action: str, ignored: dict[str, bool]
) -> None:
    made = "CREATE TABLE t (a INT, b INT, KEY x (a), KEY y (b))"
    found = {index.name: index.invisible for index in altered(action, MARIADB, made).indexes}
    assert {name: found[name] for name in ignored} == ignored


@pytest.mark.parametrize(("kind", "length"), [("INET6", 16), ("UUID", 16), ("INT", 4)])
def test_a_replaced_column_leaves_its_size_as_prefix(kind: str, length: int) -> None:
    made = f"CREATE TABLE t (a {kind}, UNIQUE x (a))"
    found = altered("DROP a, ADD a TEXT", MARIADB, made)
    assert found.indexes[0].parts == (IndexPart("a", length=length),)


@pytest.mark.parametrize(
    ("action", "old", "new", "mariadb"),
    [
        ("COLLATE latin1_bin, CHARSET latin1", "", "latin1_bin", "latin1_bin"),
        ("CHARSET latin1 COLLATE latin1_bin CHARSET latin1", "", "latin1_bin", "latin1_bin"),
        ("COLLATE latin1_bin, CONVERT TO CHARSET latin1", "", "", "latin1_bin"),
        ("COLLATE latin1_bin, CONVERT TO CHARSET latin1, CHARSET latin1", "", "", "latin1_bin"),
        ("CONVERT TO CHARSET latin1 COLLATE latin1_bin, CHARSET latin1", "", "latin1_bin", ""),
    ],
)
def test_a_charset_behind_a_collation(action: str, old: str, new: str, mariadb: str) -> None:
    made = "CREATE TABLE t (a INT) CHARSET ucs2"
    contexts = (OLD, MYSQL, MARIADB)
    found = [altered(action, context, made) for context in contexts]
    assert [table.charset for table in found] == ["latin1"] * 3
    assert [table.collation for table in found] == [old, new, mariadb]


def test_mariadb_keeps_a_collation_before_a_charset_that_is_the_databases() -> None:
    made = "CREATE TABLE t (a CHAR(5)) CHARSET ucs2"
    for action in (
        "CONVERT TO CHARSET utf8mb4 COLLATE utf8mb4_bin, CONVERT TO CHARSET DEFAULT",
        "COLLATE utf8mb4_bin, CHARSET DEFAULT",
    ):
        found = altered(action, MARIADB, made)
        assert (found.charset, found.collation) == ("utf8mb4", "utf8mb4_bin")


TIMESTAMPS = ServerContext(version=(5, 7, 22))
NOW = Default(DefaultKind.EXPRESSION, "CURRENT_TIMESTAMP")
ZERO = Default(DefaultKind.LITERAL, "0000-00-00 00:00:00")


@pytest.mark.parametrize(
    ("made", "action", "defaults"),
    [
        ("s TIMESTAMP", "ADD x TIMESTAMP", [NOW, ZERO]),
        ("a INT", "ADD x TIMESTAMP", [NULL, NOW]),
        ("a INT", "ADD x TIMESTAMP, ADD y TIMESTAMP", [NULL, NOW, ZERO]),
        ("s TIMESTAMP", "ADD y TIMESTAMP FIRST", [NOW, NOW]),
        ("a TIMESTAMP NULL, b TIMESTAMP", "ADD c TIMESTAMP", [NULL, ZERO, ZERO]),
        ("a INT, b TIMESTAMP", "MODIFY a TIMESTAMP", [NOW, NOW]),
        ("a TIMESTAMP NOT NULL ON UPDATE NOW()", "ADD b TIMESTAMP", [ZERO, ZERO]),
    ],
)
def test_the_first_timestamp_of_the_table_gets_the_current_time(
    made: str, action: str, defaults: list[Default]
) -> None:
    found = altered(action, TIMESTAMPS, f"CREATE TABLE t ({made})")
    assert [c.default for c in found.columns] == defaults


@pytest.mark.parametrize(
    ("actions", "columns"),
    [
        ("ADD c INT, MODIFY c DATE AFTER x", {"x": "int", "c": "date", "y": "int"}),
        ("ADD c INT, ADD d INT, MODIFY c DATE", {"x": "int", "y": "int", "d": "int", "c": "date"}),
        ("ADD c INT, CHANGE gone c DATE FIRST", {"c": "date", "x": "int", "y": "int"}),
        ("ADD c INT, MODIFY c DATE, MODIFY c YEAR", {"x": "int", "y": "int", "c": "year"}),
        ("ADD c INT, MODIFY COLUMN IF EXISTS c DATE", {"x": "int", "y": "int", "c": "int"}),
    ],
)
def test_mariadb_redefines_a_column_that_the_statement_adds(
    actions: str, columns: dict[str, str]
) -> None:
    made = "CREATE TABLE t (x INT, y INT)"
    found = altered(actions, MARIADB, made)
    assert {c.name: c.type.name for c in found.columns} == columns
    if "IF EXISTS" not in actions:
        with pytest.raises(UnsupportedDDL, match="no column"):
            altered(actions, MYSQL, made)


def test_a_redefined_new_column_keeps_its_key_and_loses_its_check() -> None:
    added = "ADD c INT UNIQUE CHECK (c > 1), MODIFY c BIGINT NOT NULL"
    found = altered(added, MARIADB, "CREATE TABLE t (x INT)")
    assert [index.name for index in found.indexes] == ["c"]
    assert not found.checks
    for wrong in ("MODIFY c DATE, ADD c INT", "ADD c INT, CHANGE c d DATE"):
        with pytest.raises(UnsupportedDDL, match="no column c"):
            altered(wrong, MARIADB, "CREATE TABLE t (x INT)")


@pytest.mark.parametrize("action", ["SET DEFAULT 0", "SET DEFAULT (NOW())", "DROP DEFAULT"])
@pytest.mark.parametrize(
    ("default", "stays"),
    [
        ("DEFAULT NOW()", False),
        ("DEFAULT '2020-01-01'", True),
        ("DEFAULT (NOW() + INTERVAL 1 DAY)", True),
        ("", True),
    ],
)
def test_mariadb_takes_on_update_away_with_the_current_time(
    default: str, stays: bool, action: str
) -> None:
    made = f"CREATE TABLE t (c DATETIME {default} ON UPDATE NOW())"
    found = altered(f"ALTER c {action}", MARIADB, made).columns[0]
    assert found.on_update == ("CURRENT_TIMESTAMP" if stays else "")
    if "+" not in default:
        assert altered(f"ALTER c {action}", MYSQL, made).columns[0].on_update


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE IF NOT EXISTS t",
        "CREATE TABLE IF NOT EXISTS t (CHECK (x > 1))",
        "CREATE TABLE IF NOT EXISTS t (KEY (x)) ENGINE=InnoDB",
        "CREATE TABLE t ENGINE=CONNECT TABLE_TYPE=MYSQL CONNECTION='mysql://h/d'",
        "CREATE TABLE t ENGINE=SEQUENCE",
    ],
)
def test_a_table_without_columns_is_read_and_not_made(sql: str) -> None:
    """Servers take it where the table exists, and MariaDB's engines may know the columns."""
    statement = parse(sql, MARIADB)
    assert isinstance(statement, CreateTable)
    with pytest.raises(UnsupportedDDL, match="defines no columns"):
        apply_create(statement, MARIADB)


@pytest.mark.parametrize("context", [MYSQL, MARIADB])
def test_an_existing_table_stays_when_it_is_made_if_not_exists(context: ServerContext) -> None:
    catalog = Catalog()
    here = replace(context, default_database="d")
    for sql in ("CREATE TABLE t (x INT)", "CREATE TABLE IF NOT EXISTS t (KEY (x))"):
        catalog.execute(parse(sql, here), here)
    (schema,) = catalog.tables.values()
    assert [column.name for column in schema.columns] == ["x"] and not schema.indexes


@pytest.mark.parametrize("instead", ["RENAME COLUMN c TO x", "ADD x DATE", "CHANGE c x BIGINT"])
def test_a_columns_own_check_goes_with_no_other_column_on_mariadb(instead: str) -> None:
    own = "CREATE TABLE t (x INT, c INT, a INT CHECK (x > 5))"
    (check,) = altered(f"DROP x, {instead}", MARIADB, own).checks
    assert (check.name, check.expression) == ("a", "(`x` > 5)")
    assert not altered("DROP a", MARIADB, own).checks
    of_table = "CREATE TABLE t (x INT, c INT, CONSTRAINT k CHECK (x > 5))"
    assert not altered(f"DROP x, {instead}", MARIADB, of_table).checks


def test_mariadb_keeps_an_expression_as_default_of_a_numbered_column_and_no_literal() -> None:
    made = "CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY)"
    found = altered("ALTER a SET DEFAULT (1 + 2)", MARIADB, made).columns[0]
    assert found.default == Default(DefaultKind.EXPRESSION, "(1 + 2)") and found.auto_increment
    assert altered("ALTER a SET DEFAULT 7", MARIADB, made).columns[0].default is None
    shown = "CREATE TABLE t (a INT NOT NULL DEFAULT (1 + 2) AUTO_INCREMENT PRIMARY KEY)"
    assert create(shown, MARIADB).columns[0] == found
    for action in ("SET DEFAULT 7", "DROP DEFAULT"):
        assert altered(f"ALTER a {action}", MARIADB, shown).columns[0].default is None
    assert create(shown, MYSQL).columns[0].default is None


@pytest.mark.parametrize("context", [OLD, MYSQL])
def test_mysql_keeps_no_default_of_a_numbered_column(context: ServerContext) -> None:
    made = "CREATE TABLE t (a INT NOT NULL AUTO_INCREMENT, UNIQUE KEY i (a))"
    for default in ("7", "(1 + 2)"):
        assert altered(f"ALTER a SET DEFAULT {default}", context, made).columns[0].default is None


def test_an_expression_of_the_statement_means_the_columns_of_after_it() -> None:
    made = "CREATE TABLE t (d INT, x INT, g INT AS (x + 1))"
    found = altered("ADD x DATE, CHANGE x f INT AS (x + 2) STORED", MARIADB, made)
    texts = {c.name: c.generated.expression for c in found.columns if c.generated}
    assert texts["f"] == "(`x` + 2)"
    swapped = altered("RENAME COLUMN d TO x, RENAME COLUMN x TO d, ADD h INT AS (x)", MARIADB, made)
    texts = {c.name: c.generated.expression for c in swapped.columns if c.generated}
    assert texts == {"g": "(`d` + 1)", "h": "`x`"}
