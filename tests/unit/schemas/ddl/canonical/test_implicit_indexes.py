"""Indexes that servers make for foreign keys: measured on MySQL 8.0.15 and MariaDB 10.11."""

from __future__ import annotations

import pytest

from shardmerge.schemas.ddl.apply.statements import apply_alter, apply_create
from shardmerge.schemas.ddl.changes import AlterTable, CreateTable, CreateTableLike
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.errors import UnsupportedDDL
from shardmerge.schemas.model.tables import IndexKind, TableSchema
from shardmerge.schemas.records.plain import dump, load

MYSQL = ServerContext(version=(8, 0, 15))
MARIADB = ServerContext("mariadb", (10, 11, 18))
BOTH = pytest.mark.parametrize("context", [MYSQL, MARIADB], ids=["mysql", "mariadb"])
ONE = "CREATE TABLE t (b INT, c INT, v VARCHAR(20), FOREIGN KEY (b) REFERENCES p (a))"
TEXT = "CREATE TABLE t (v VARCHAR(20), FOREIGN KEY (v) REFERENCES p (code))"


def after(context: ServerContext, *statements: str) -> TableSchema:
    """The table t after a CREATE TABLE and ALTER TABLEs."""
    first, *others = (parse(sql, context) for sql in statements)
    assert isinstance(first, CreateTable)
    schema = apply_create(first, context)
    for statement in others:
        assert isinstance(statement, AlterTable)
        schema = apply_alter(schema, statement, "t", context).schema
    return schema


def keys(schema: TableSchema) -> dict[str, str]:
    """Names and parts."""
    return {
        index.name: ",".join(
            part.column + (f"({part.length})" if part.length else "") + " DESC" * part.descending
            for part in index.parts
        )
        for index in schema.indexes
    }


@BOTH
@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        ("FOREIGN KEY (b) REFERENCES p (a)", {"b": "b"}),
        ("FOREIGN KEY ix (b) REFERENCES p (a)", {"ix": "b"}),
        ("CONSTRAINT f FOREIGN KEY ix (b) REFERENCES p (a)", {"f": "b"}),
        ("FOREIGN KEY (b) REFERENCES p (a), KEY (b, c)", {"b": "b,c"}),
        ("KEY k (b, c), FOREIGN KEY (b) REFERENCES p (a)", {"k": "b,c"}),
        ("PRIMARY KEY (b, c), FOREIGN KEY (b) REFERENCES p (a)", {"PRIMARY": "b,c"}),
        ("KEY k (c, b), FOREIGN KEY (b) REFERENCES p (a)", {"k": "c,b", "b": "b"}),
        (
            "CONSTRAINT f FOREIGN KEY (b) REFERENCES p (a),"
            " CONSTRAINT g FOREIGN KEY (b) REFERENCES p (a)",
            {"g": "b"},
        ),
        (
            "CONSTRAINT f FOREIGN KEY (b) REFERENCES p (a),"
            " CONSTRAINT g FOREIGN KEY (b, c) REFERENCES p (a, x)",
            {"g": "b,c"},
        ),
        (
            "CONSTRAINT f FOREIGN KEY (b, c) REFERENCES p (a, x),"
            " CONSTRAINT g FOREIGN KEY (b) REFERENCES p (a)",
            {"f": "b,c"},
        ),
        (
            "FOREIGN KEY (b) REFERENCES p (a), KEY (c), FOREIGN KEY f2 (b) REFERENCES p (a)",
            {"c": "c", "f2": "b"},
        ),
    ],
)
def test_a_table_is_made_with_the_indexes_that_its_foreign_keys_need(
    elements: str, expected: dict[str, str], context: ServerContext
) -> None:
    assert keys(after(context, f"CREATE TABLE t (b INT, c INT, {elements})")) == expected


@BOTH
@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("ADD KEY x (b, c)", {"x": "b,c"}),
        ("ADD PRIMARY KEY (b)", {"PRIMARY": "b"}),
        ("ADD KEY x (c, b)", {"b": "b", "x": "c,b"}),
        ("ADD CONSTRAINT b UNIQUE (b)", {"b": "b"}),
        ("ADD CONSTRAINT g FOREIGN KEY (b) REFERENCES p (a)", {"g": "b"}),
        ("ADD d INT", {"b": "b"}),
        ("DROP FOREIGN KEY t_ibfk_1, ADD KEY x (b)", {"x": "b"}),
    ],
)
def test_an_implicit_index_goes_when_another_begins_with_its_columns(
    action: str, expected: dict[str, str], context: ServerContext
) -> None:
    assert keys(after(context, ONE, f"ALTER TABLE t {action}")) == expected


@BOTH
@pytest.mark.parametrize(
    "between",
    ["DROP FOREIGN KEY t_ibfk_1", "MODIFY b INT NOT NULL", "ADD d INT FIRST"],
)
def test_the_server_remembers_that_it_made_the_index(between: str, context: ServerContext) -> None:
    found = after(context, ONE, f"ALTER TABLE t {between}", "ALTER TABLE t ADD KEY x (b, c)")
    assert keys(found) == {"x": "b,c"}


@BOTH
def test_a_name_of_its_own_makes_it_explicit(context: ServerContext) -> None:
    found = after(context, ONE, "ALTER TABLE t RENAME INDEX b TO y", "ALTER TABLE t ADD KEY x (b)")
    assert keys(found) == {"y": "b", "x": "b"}


def test_mysql_wants_ascending_parts_and_mariadb_does_not_look() -> None:
    add = "ALTER TABLE t ADD KEY x (b DESC)"
    assert keys(after(MYSQL, ONE, add)) == {"b": "b", "x": "b DESC"}
    assert keys(after(MARIADB, ONE, add)) == {"x": "b DESC"}


def test_a_prefix_as_long_as_the_column_is_one_to_mysql_until_the_next_statement() -> None:
    add = "ALTER TABLE t ADD KEY x (v(20))"
    assert keys(after(MYSQL, TEXT, add)) == {"v": "v", "x": "v"}
    assert keys(after(MYSQL, TEXT, add, "ALTER TABLE t FORCE")) == {"x": "v"}
    assert keys(after(MARIADB, TEXT, add)) == {"x": "v"}
    assert keys(after(MARIADB, TEXT, "ALTER TABLE t ADD KEY x (v(5))")) == {"v": "v", "x": "v(5)"}


def test_mariadb_gives_a_later_fulltext_index_the_implicit_ones_place() -> None:
    found = after(MARIADB, TEXT, "ALTER TABLE t ADD FULLTEXT ft (v)")
    assert keys(found) == {"ft": "v"}
    made = "CREATE TABLE t (v VARCHAR(20), FULLTEXT ft (v))"
    add = "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (v) REFERENCES p (code)"
    assert keys(after(MARIADB, made, add, "ALTER TABLE t FORCE")) == {"ft": "v", "f": "v"}


@pytest.mark.parametrize("keys_first", [False, True])
def test_a_fulltext_index_of_the_same_statement_counts(keys_first: bool) -> None:
    elements = ["FULLTEXT ft (v)", "CONSTRAINT f FOREIGN KEY (v) REFERENCES p (code)"]
    if keys_first:
        elements.reverse()
    whole = f"CREATE TABLE t (v VARCHAR(20), {', '.join(elements)}) ENGINE=MyISAM"
    table = "CREATE TABLE t (v VARCHAR(20)) ENGINE=MyISAM"
    add = f"ALTER TABLE t ADD {', ADD '.join(elements)}"
    for made in ([whole], [table, add]):
        assert keys(after(MARIADB, *made)) == {"ft": "v"}
        both = {"ft": "v"} if keys_first else {"f": "v", "ft": "v"}
        assert keys(after(MYSQL, *made)) == both


def test_to_mysql_a_fulltext_index_takes_its_place_in_the_next_statement() -> None:
    made = "CREATE TABLE t (v VARCHAR(20), FULLTEXT ft (v))"
    add = "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (v) REFERENCES p (code)"
    assert keys(after(MYSQL, made, add)) == {"f": "v", "ft": "v"}
    assert keys(after(MYSQL, made, add, "ALTER TABLE t ADD d INT")) == {"ft": "v"}
    assert keys(after(MYSQL, made, add, "ALTER TABLE t DISABLE KEYS")) == {"f": "v", "ft": "v"}


def test_a_hash_supports_no_foreign_key_on_mariadb() -> None:
    add = "ALTER TABLE t ADD KEY x USING HASH (b, c DESC)"
    found = after(MARIADB, ONE, add)
    assert keys(found) == {"b": "b", "x": "b,c"}
    assert [index.hashed for index in found.indexes] == [False, True]
    unique = "CREATE TABLE t (b INT, FOREIGN KEY (b) REFERENCES p (a), UNIQUE (b) USING HASH)"
    assert keys(after(MARIADB, unique)) == {"b_2": "b", "b": "b"}
    assert keys(after(MYSQL, unique)) == {"b": "b"}


def test_a_unique_key_that_is_too_long_is_a_hash_to_mariadb() -> None:
    made = "CREATE TABLE t (b INT, v TEXT, UNIQUE u (b, v))"
    add = "ALTER TABLE t ADD FOREIGN KEY (b) REFERENCES p (a)"
    assert keys(after(MARIADB, made, add)) == {"u": "b,v", "b": "b"}
    small = "CREATE TABLE t (v VARCHAR(255), UNIQUE u (v DESC)) ENGINE=MyISAM CHARSET=utf8mb4"
    assert keys(after(MARIADB, small)) == {"u": "v"}


def test_mariadb_forgets_the_hash_of_a_unique_index_in_the_next_statement() -> None:
    made = "CREATE TABLE t (b INT, UNIQUE u USING HASH (b), KEY k USING HASH (b))"
    assert [index.hashed for index in after(MARIADB, made).indexes] == [True, True]
    found = after(MARIADB, made, "ALTER TABLE t COMMENT 'x'")
    assert [index.hashed for index in found.indexes] == [False, True]


def test_an_index_of_a_snapshot_makes_room_where_the_server_proves_it_implicit() -> None:
    shown = "CREATE TABLE t (b INT, KEY b (b), CONSTRAINT f FOREIGN KEY (b) REFERENCES p (a))"
    found = after(MYSQL, shown, "ALTER TABLE t ADD CONSTRAINT b UNIQUE (b)")
    assert [(index.name, index.kind) for index in found.indexes] == [("b", IndexKind.UNIQUE)]
    with pytest.raises(UnsupportedDDL, match="already has an index b"):
        after(MYSQL, "CREATE TABLE t (b INT, KEY b (b))", "ALTER TABLE t ADD UNIQUE b (b)")


def test_if_not_exists_looks_for_the_foreign_keys_name() -> None:
    named = ONE.replace("FOREIGN", "CONSTRAINT f1 FOREIGN")
    for words in ("CONSTRAINT FOREIGN KEY IF NOT EXISTS", "FOREIGN KEY IF NOT EXISTS"):
        found = after(MARIADB, named, f"ALTER TABLE t ADD {words} f1 (c) REFERENCES p (a)")
        assert [key.columns for key in found.foreign_keys] == [("b",)]
        assert keys(found) == {"f1": "b"}


@BOTH
def test_a_copy_has_the_index_and_not_the_foreign_key(context: ServerContext) -> None:
    statement = parse("CREATE TABLE u LIKE t", context)
    assert isinstance(statement, CreateTableLike)
    copy = apply_create(statement, context, like=after(context, ONE))
    assert (keys(copy), copy.foreign_keys) == ({"b": "b"}, ())
    assert copy.indexes[0].implicit


def test_the_mark_is_stored_and_older_stored_schemas_have_none() -> None:
    found = after(MYSQL, ONE)
    assert load(TableSchema, dump(found)).indexes[0].implicit
    older = dump(found).replace(b'"implicit":true,', b"").replace(b'"hashed":false,', b"")
    assert b"implicit" not in older
    assert not load(TableSchema, older).indexes[0].implicit


@pytest.mark.parametrize(
    ("version", "name"), [((5, 7, 22), "t_ibfk_1"), ((8, 0, 15), "ix"), ((8, 0, 16), "t_ibfk_1")]
)
def test_only_mysql_8_0_up_to_15_names_a_foreign_key_after_its_index(
    version: tuple[int, ...], name: str
) -> None:
    made = (
        "CREATE TABLE t (b INT, FOREIGN KEY ix (b) REFERENCES p (a) MATCH FULL ON DELETE CASCADE)"
    )
    (key,) = after(ServerContext(version=version), made).foreign_keys
    assert key.name == name
    # 5.7 forgets what stands behind a MATCH.
    assert key.on_delete == ("CASCADE" if version >= (8,) else "")


@pytest.mark.parametrize(
    ("engine", "expected"),
    [("MyISAM", {"k": "v(250)"}), ("InnoDB", {"k": "v(250)", "v": "v"})],
)
def test_mariadb_cuts_an_implicit_index_before_it_looks_for_one_like_it(
    engine: str, expected: dict[str, str]
) -> None:
    made = f"CREATE TABLE t (v VARCHAR(255), KEY k (v(250))) ENGINE={engine} CHARSET utf16"
    found = after(MARIADB, made, "ALTER TABLE t ADD FOREIGN KEY (v) REFERENCES p (code)")
    assert keys(found) == expected
