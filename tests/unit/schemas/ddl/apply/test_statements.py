"""ALTER TABLE in the server's order, with the lineage of every column."""

from __future__ import annotations

import pytest

from shardmerge.schemas.ddl.apply.statements import (
    AlterResult,
    apply_alter,
    apply_create,
    apply_rename,
)
from shardmerge.schemas.ddl.canonical.normalize import normalize
from shardmerge.schemas.ddl.changes import AlterTable, CreateTable, CreateTableLike, TableName
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.errors import UnsupportedDDL
from shardmerge.schemas.model.shard_columns import Lineage
from shardmerge.schemas.model.tables import TableSchema

MYSQL = ServerContext(version=(8, 0, 36))
MARIADB = ServerContext("mariadb", (10, 11))
T = (
    "CREATE TABLE t (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20) DEFAULT 'x',"
    " c DECIMAL(10,2) NOT NULL, s VARCHAR(100), KEY ia (a), UNIQUE KEY ub (b), KEY iac (a, c),"
    " CONSTRAINT ca CHECK (a > 0))"
)


def create(sql: str = T, context: ServerContext = MYSQL) -> TableSchema:
    statement = parse(sql, context)
    assert isinstance(statement, CreateTable)
    return apply_create(statement, context)


def alter(
    sql: str, schema: TableSchema | None = None, context: ServerContext = MYSQL
) -> AlterResult:
    statement = parse(sql, context)
    assert isinstance(statement, AlterTable)
    before = schema or create(context=context)
    result = apply_alter(before, statement, "t", context)
    assert normalize(result.schema, "t", context) == result.schema
    return result


def names(schema: TableSchema) -> list[str]:
    return [column.name for column in schema.columns]


def keys(schema: TableSchema) -> dict[str, str]:
    return {
        index.name: ",".join(
            part.column + (f"({part.length})" if part.length else "") for part in index.parts
        )
        for index in schema.indexes
    }


@pytest.mark.parametrize(
    ("actions", "order"),
    [
        ("ADD x INT", "id a b c s x"),
        ("ADD x INT FIRST", "x id a b c s"),
        ("ADD x INT AFTER a", "id a x b c s"),
        ("ADD x INT, ADD y INT AFTER x, ADD z INT FIRST", "z id a b c s x y"),
        ("ADD (x INT, y INT)", "id a b c s x y"),
        ("DROP a, DROP COLUMN s", "id b c"),
        ("MODIFY a BIGINT FIRST", "a id b c s"),
        ("CHANGE a A2 INT AFTER c", "id b c A2 s"),
        ("RENAME COLUMN a TO c, RENAME COLUMN c TO a", "id c b a s"),
        ("CHANGE a c INT, CHANGE c a INT", "id c b a s"),
        ("DROP a, ADD a TEXT", "id b c s a"),
        ("RENAME COLUMN a TO z, ADD a INT AFTER z", "id z a b c s"),
        ("MODIFY b INT FIRST, ADD x INT AFTER b", "b x id a c s"),
    ],
)
def test_columns_stand_where_the_server_puts_them(actions: str, order: str) -> None:
    assert names(alter(f"ALTER TABLE t {actions}").schema) == order.split()


def test_lineage_follows_renames_and_tells_a_column_added_anew() -> None:
    found = alter(
        "ALTER TABLE t DROP a, ADD a INT, CHANGE b bb INT, RENAME COLUMN c TO cc, ADD n INT"
    )
    assert found.lineage == (
        Lineage("id", "id"),
        Lineage("bb", "b"),
        Lineage("cc", "c"),
        Lineage("s", "s"),
        Lineage("a", ""),
        Lineage("n", ""),
    )


def test_a_dropped_column_leaves_its_indexes() -> None:
    assert keys(alter("ALTER TABLE t DROP a").schema) == {"PRIMARY": "id", "ub": "b", "iac": "c"}


def test_a_column_dropped_and_added_keeps_its_index_with_the_old_size_as_prefix() -> None:
    found = keys(alter("ALTER TABLE t DROP a, ADD a VARCHAR(9)").schema)
    assert (found["ia"], found["iac"]) == ("a(4)", "a(4),c")


def test_indexes_follow_renamed_columns() -> None:
    found = keys(alter("ALTER TABLE t CHANGE a z INT, RENAME COLUMN b TO y").schema)
    assert found == {"PRIMARY": "id", "ub": "y", "ia": "z", "iac": "z,c"}


@pytest.mark.parametrize(
    ("actions", "column"),
    [
        ("ADD a INT, RENAME COLUMN a TO z", "z"),
        ("ADD a INT FIRST, RENAME COLUMN a TO z", "a"),
        ("ADD a INT FIRST, CHANGE a z INT", "a"),
        ("DROP a, RENAME COLUMN s TO a", ""),
    ],
)
def test_an_index_follows_the_first_column_with_its_columns_name(actions: str, column: str) -> None:
    found = keys(alter(f"ALTER TABLE t {actions}").schema)
    assert found.get("ia", "").partition("(")[0] == column


def test_a_longer_column_keeps_its_prefix_and_a_whole_one_stays_whole() -> None:
    before = create("CREATE TABLE t (s VARCHAR(20), u VARCHAR(20), KEY s (s(10)), KEY u (u))")
    found = alter("ALTER TABLE t MODIFY s VARCHAR(50), MODIFY u VARCHAR(50)", before)
    assert keys(found.schema) == {"s": "s(10)", "u": "u"}
    shorter = alter("ALTER TABLE t MODIFY s VARCHAR(10)", before)
    assert keys(shorter.schema)["s"] == "s"


def test_an_index_is_dropped_before_one_of_the_same_name_is_added() -> None:
    found = alter("ALTER TABLE t ADD INDEX ia (b), DROP INDEX ia")
    assert keys(found.schema)["ia"] == "b"


def test_a_primary_key_makes_its_columns_not_null() -> None:
    found = alter("ALTER TABLE t DROP PRIMARY KEY, MODIFY id INT, ADD PRIMARY KEY (a)").schema
    assert [column.nullable for column in found.columns[:2]] == [True, False]
    assert found.columns[1].default is None


def test_columns_stay_not_null_without_their_primary_key() -> None:
    before = create("CREATE TABLE t (a INT PRIMARY KEY, b INT)")
    assert not alter("ALTER TABLE t DROP PRIMARY KEY", before).schema.columns[0].nullable


def test_the_default_charset_reaches_columns_of_the_same_statement() -> None:
    found = alter("ALTER TABLE t ADD x CHAR(5), MODIFY b CHAR(5), CHARACTER SET latin1").schema
    charsets = {column.name: column.type.charset for column in found.columns}
    assert charsets == {"id": "", "a": "", "b": "latin1", "c": "", "s": "utf8mb4", "x": "latin1"}


def test_convert_overrides_what_the_columns_say_and_widens_texts() -> None:
    before = create(
        "CREATE TABLE t (a TINYTEXT, b TEXT, c VARCHAR(20000), d ENUM('x'), e BLOB) CHARSET=latin1"
    )
    found = alter(
        "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4, ADD z CHAR(3) CHARACTER SET latin1", before
    ).schema
    assert [column.type.name for column in found.columns] == [
        "text", "mediumtext", "mediumtext", "enum", "blob", "char",
    ]  # fmt: skip
    assert {column.type.charset for column in found.columns} == {"utf8mb4", ""}
    assert found.charset == "utf8mb4"


def test_defaults_are_set_and_dropped() -> None:
    found = alter("ALTER TABLE t ALTER a SET DEFAULT '7', ALTER COLUMN b DROP DEFAULT").schema
    assert [str(c.default and c.default.text) for c in found.columns[1:3]] == ["7", ""]


def test_a_check_goes_with_its_column_and_follows_its_new_name() -> None:
    assert alter("ALTER TABLE t DROP a").schema.checks == ()
    renamed = alter("ALTER TABLE t RENAME COLUMN a TO aa", context=MARIADB).schema
    assert renamed.checks[0].expression == "(`aa` > 0)"


def test_constraints_are_dropped_by_any_of_their_words() -> None:
    for words in ("DROP CHECK ca", "DROP CONSTRAINT ca"):
        assert alter(f"ALTER TABLE t {words}").schema.checks == ()
    assert "ub" not in keys(alter("ALTER TABLE t DROP CONSTRAINT ub").schema)


def test_a_check_can_cease_to_be_enforced() -> None:
    found = alter("ALTER TABLE t ALTER CHECK ca NOT ENFORCED").schema.checks[0]
    assert (found.expression, found.enforced) == ("(`a` > 0)", False)


@pytest.mark.parametrize(
    "action",
    [
        "DROP nosuch",
        "MODIFY nosuch INT",
        "RENAME COLUMN nosuch TO x",
        "ALTER nosuch SET DEFAULT 1",
        "ADD a INT",
        "ADD A INT",
        "CHANGE a b INT",
        "ADD x INT AFTER nosuch",
        "MODIFY a INT FIRST, MODIFY a BIGINT FIRST",
        "MODIFY a INT FIRST, MODIFY A BIGINT",
        "CHANGE a x INT AFTER b, CHANGE a y INT AFTER c",
        "DROP id, DROP a, DROP b, DROP c, DROP s",
        "DROP INDEX nosuch",
        "RENAME INDEX nosuch TO x",
        "ADD INDEX ia (b)",
        "ADD INDEX x (nosuch)",
        "DROP CHECK nosuch",
        "DROP FOREIGN KEY nosuch",
    ],
)
def test_what_contradicts_the_schema_is_an_error_that_names_it(action: str) -> None:
    with pytest.raises(UnsupportedDDL) as caught:
        alter(f"ALTER TABLE t {action}")
    assert "table t" in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    "action",
    [
        "ADD COLUMN IF NOT EXISTS a BIGINT",
        "DROP COLUMN IF EXISTS nosuch",
        "MODIFY COLUMN IF EXISTS nosuch INT",
        "CHANGE COLUMN IF EXISTS nosuch x INT",
        "ADD INDEX IF NOT EXISTS ia (b)",
        "DROP INDEX IF EXISTS nosuch",
        "RENAME COLUMN IF EXISTS nosuch TO x",
        "RENAME INDEX IF EXISTS nosuch TO x",
        "RENAME KEY IF EXISTS nosuch TO x",
        "ALTER COLUMN IF EXISTS nosuch SET DEFAULT 5",
        "ALTER IF EXISTS nosuch DROP DEFAULT",
        "ALTER INDEX IF EXISTS nosuch IGNORED",
        "ALTER KEY IF EXISTS nosuch NOT IGNORED",
        "DROP CONSTRAINT IF EXISTS nosuch",
    ],
)
def test_if_exists_makes_an_action_void(action: str) -> None:
    before = create(context=MARIADB)
    assert alter(f"ALTER TABLE t {action}", before, MARIADB).schema == before


def test_tables_of_any_name_share_a_result_unless_it_has_the_name() -> None:
    def altered(name: str, actions: str) -> TableSchema:
        statement = parse(f"ALTER TABLE {name} {actions}", MYSQL)
        assert isinstance(statement, AlterTable)
        before = create("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
        return apply_alter(before, statement, name, MYSQL).schema

    assert altered("one", "ADD COLUMN z INT") is altered("two", "ADD COLUMN z INT")
    checks = [altered(name, "ADD CHECK (a > 0)").checks[0].name for name in ("one", "two")]
    assert checks == ["one_chk_1", "two_chk_1"]
    own = "ADD COLUMN z INT, ADD FOREIGN KEY (z) REFERENCES p (z)"
    keys_of = [altered(name, own).foreign_keys[0].name for name in ("one", "two")]
    assert keys_of == ["one_ibfk_1", "two_ibfk_1"]
    for name in ("one", "two"):
        with pytest.raises(UnsupportedDDL, match=f"{name}.* nobody|nobody.* {name}"):
            altered(name, "DROP COLUMN nobody")


def test_options_and_comments_are_kept_out_of_the_columns() -> None:
    before = create()
    found = alter("ALTER TABLE t ENGINE=InnoDB, COMMENT='x', FORCE, AUTO_INCREMENT=9").schema
    assert (found.columns, found.indexes, found.comment) == (before.columns, before.indexes, "x")


def test_generated_names_follow_a_renamed_table() -> None:
    before = create("CREATE TABLE t (a INT CHECK (a > 0), FOREIGN KEY (a) REFERENCES p (x))")
    found = alter("ALTER TABLE t RENAME TO u", before)
    assert found.renamed_to == TableName("", "u")
    assert found.schema.checks[0].name == "u_chk_1"
    assert found.schema.foreign_keys[0].name == "u_ibfk_1"
    assert apply_rename(found.schema, "u", "t") == before


def test_a_table_made_like_another_has_no_foreign_keys_and_checks_of_its_own() -> None:
    other = create("CREATE TABLE p (a INT CHECK (a > 0), FOREIGN KEY (a) REFERENCES p (x))")
    like = parse("CREATE TABLE t LIKE p", MYSQL)
    assert isinstance(like, CreateTableLike)
    found = apply_create(like, MYSQL, other)
    assert found.columns == other.columns
    assert [check.name for check in found.checks] == ["t_chk_1"]
    assert found.foreign_keys == ()
    with pytest.raises(UnsupportedDDL, match="not tracked"):
        apply_create(like, MYSQL)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("ADD COLUMN `X` INTEGER(11) DEFAULT '5' COMMENT 'c' AFTER a", "add x int default 5 first"),
        ("MODIFY `s` VARCHAR(9) NULL", "CHANGE s s varchar(9) DEFAULT NULL"),
        ("ADD UNIQUE KEY `k` (`A`)", "add unique k (a) using btree comment 'x'"),
        ("DROP INDEX `ia`", "drop key ia"),
        ("ADD x BOOL NOT NULL DEFAULT false", "ADD x TINYINT(1) DEFAULT 0 NOT NULL"),
        ("ALTER a SET DEFAULT 5", "ALTER COLUMN `a` SET DEFAULT '5'"),
    ],
)
def test_the_same_change_in_other_words_has_the_same_text(first: str, second: str) -> None:
    assert alter(f"ALTER TABLE t {first}").actions == alter(f"ALTER TABLE t {second}").actions


def test_different_changes_have_different_texts() -> None:
    texts = {
        alter(f"ALTER TABLE t {action}").actions
        for action in ("ADD x INT", "ADD x BIGINT", "ADD x INT NOT NULL", "ADD y INT", "DROP a")
    }
    assert len(texts) == 5
