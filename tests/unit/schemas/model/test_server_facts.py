"""What is made of a server's answers about itself, and how its tables are read by it."""

from __future__ import annotations

import pytest

from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.server_facts import ServerFacts, kind_and_version, server_facts
from shardmerge.schemas.model.tables import TableSchema

TIDB = "8.0.11-TiDB-v8.4.0-this-is-a-placeholder"
TIDB_COLLATIONS = {"utf8": "utf8_bin", "utf8mb4": "utf8mb4_bin", "latin1": "latin1_bin"}


def facts(version: str = TIDB, **variables: str) -> ServerFacts:
    return server_facts(version, {"sql_mode": "", **variables}, TIDB_COLLATIONS)


def create(sql: str, context: ServerContext) -> TableSchema:
    statement = parse(sql, context)
    assert isinstance(statement, CreateTable)
    return apply_create(statement, context)


@pytest.mark.parametrize(
    ("text", "kind", "version"),
    [
        ("8.0.15", "mysql", (8, 0, 15)),
        ("5.7.22-log", "mysql", (5, 7, 22)),
        ("9.7.0-Debian", "mysql", (9, 7, 0)),
        ("10.11.6-MariaDB-0+deb12u1", "mariadb", (10, 11, 6)),
        ("5.5.5-10.11.6-MariaDB", "mariadb", (10, 11, 6)),
        (TIDB, "tidb", (8, 4, 0)),
        ("5.7.25-TiDB-v7.1.0", "tidb", (7, 1, 0)),
        ("8.0.11-TiDB-None", "tidb", ()),
    ],
)
def test_a_version_tells_kind_and_numbers(text: str, kind: str, version: tuple[int, ...]) -> None:
    assert kind_and_version(text) == (kind, version)


def test_names_of_charsets_and_collations_are_canonical() -> None:
    assert facts(collation_server="utf8_bin").default_collations == (
        ("latin1", "latin1_bin"), ("utf8mb3", "utf8mb3_bin"), ("utf8mb4", "utf8mb4_bin"),
    )  # fmt: skip
    assert facts(collation_server="utf8_bin").collation == "utf8mb3_bin"


@pytest.mark.parametrize(
    ("variable", "value", "charset", "collation"),
    [
        ("default_collation_for_utf8mb4", "utf8mb4_general_ci", "utf8mb4", "utf8mb4_general_ci"),
        (
            "character_set_collations",
            "utf8mb3=utf8mb3_uca1400_ai_ci,utf8mb4=utf8mb4_uca1400_ai_ci",
            "utf8mb3",
            "utf8mb3_uca1400_ai_ci",
        ),
    ],
)
def test_a_variable_that_says_which_collation_a_charset_gets_counts(
    variable: str, value: str, charset: str, collation: str
) -> None:
    found = facts(**{variable: value})
    assert dict(found.default_collations)[charset] == collation


def test_a_table_that_tells_no_collation_is_as_its_server_shows_it() -> None:
    context = facts(collation_server="utf8mb4_bin").context("d")
    written = create(
        "CREATE TABLE t (v VARCHAR(9) CHARACTER SET utf8mb4, w CHAR(3) CHARACTER SET latin1)"
        " DEFAULT CHARACTER SET utf8mb4",
        context,
    )
    shown = create(
        "CREATE TABLE `t` (`v` varchar(9) DEFAULT NULL,"
        " `w` char(3) CHARACTER SET latin1 COLLATE latin1_bin DEFAULT NULL"
        ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
        context,
    )
    assert written == shown
    # MySQL's own default is another one there.
    other = create("CREATE TABLE t (v VARCHAR(9) COLLATE utf8mb4_0900_ai_ci)", context)
    assert other.columns[0].type.collation == "utf8mb4_0900_ai_ci"


def test_a_server_that_told_nothing_has_its_version_s_defaults() -> None:
    context = ServerContext(version=(8, 0, 36))
    assert context.default_collation("utf8mb4") == "utf8mb4_0900_ai_ci"
    assert context.default_collation("latin1") == "latin1_swedish_ci"


def test_a_database_s_default_goes_before_the_server_s() -> None:
    found = facts(character_set_server="utf8mb4", collation_server="utf8mb4_bin")
    assert found.context("d").collation == "utf8mb4_bin"
    of_database = found.context("d", "latin1", "latin1_bin")
    assert (of_database.charset, of_database.collation) == ("latin1", "latin1_bin")


@pytest.mark.parametrize(("value", "checks"), [("OFF", 0), ("ON", 1)])
def test_tidb_keeps_checks_where_its_variable_says_so(value: str, checks: int) -> None:
    context = facts(tidb_enable_check_constraint=value).context("d")
    schema = create("CREATE TABLE t (a INT, CONSTRAINT k CHECK (a > 1))", context)
    assert len(schema.checks) == checks


def test_only_a_tidb_has_its_variables() -> None:
    assert facts(tidb_txn_mode="pessimistic").variable("tidb_txn_mode") == "PESSIMISTIC"
    assert facts("8.0.15", tidb_txn_mode="pessimistic").variable("tidb_txn_mode") == ""
