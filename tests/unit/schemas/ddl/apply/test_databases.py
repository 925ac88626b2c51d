"""What databases and servers give the tables that say no character set."""

from __future__ import annotations

import pytest

from shardmerge.schemas.ddl.apply.databases import (
    Defaults,
    defaults_after,
    in_database,
    server_defaults,
)
from shardmerge.schemas.ddl.changes import AlterDatabase, CreateDatabase
from shardmerge.schemas.ddl.grammar import ServerContext, parse

SERVER = ServerContext(charset="latin1", collation="latin1_bin", default_database="d")


@pytest.mark.parametrize(
    ("sql", "before", "after"),
    [
        ("CREATE DATABASE x", None, ("latin1", "latin1_bin")),
        ("CREATE DATABASE x CHARSET latin1", None, ("latin1", "")),
        ("CREATE DATABASE x CHARSET DEFAULT", None, ("latin1", "latin1_bin")),
        ("CREATE DATABASE x COLLATE utf8mb4_bin", None, ("utf8mb4", "utf8mb4_bin")),
        ("CREATE DATABASE x COLLATE utf8mb4_0900_ai_ci", None, ("utf8mb4", "")),
        ("CREATE DATABASE x COLLATE ucs2_bin CHARSET ucs2", None, ("ucs2", "ucs2_bin")),
        ("ALTER DATABASE x READ ONLY = 1", None, None),
        ("ALTER DATABASE x READ ONLY = 1", ("ucs2", ""), ("ucs2", "")),
        ("ALTER DATABASE x CHARSET utf8", ("ucs2", "ucs2_bin"), ("utf8mb3", "")),
        ("ALTER DATABASE x CHARSET DEFAULT", ("ucs2", ""), ("latin1", "latin1_bin")),
    ],
)
def test_the_defaults_of_a_database(
    sql: str, before: Defaults | None, after: Defaults | None
) -> None:
    statement = parse(sql, SERVER)
    assert isinstance(statement, (CreateDatabase, AlterDatabase))
    assert defaults_after(statement, before, SERVER) == after


@pytest.mark.parametrize(
    ("sql", "after"),
    [
        ("ALTER DATABASE x COLLATE uca1400_ai_ci", ("ucs2", "ucs2_uca1400_ai_ci")),
        ("ALTER DATABASE x COLLATE latin1_bin CHARSET latin1", ("latin1", "latin1_bin")),
        ("ALTER DATABASE x COLLATE DEFAULT", ("ucs2", "")),
    ],
)
def test_the_defaults_of_a_database_of_mariadb(sql: str, after: Defaults) -> None:
    context = ServerContext("mariadb", (10, 11))
    statement = parse(sql, context)
    assert isinstance(statement, AlterDatabase)
    assert defaults_after(statement, ("ucs2", "ucs2_bin"), context) == after


@pytest.mark.parametrize(
    ("ddl", "said"),
    [
        (
            "SET character_set_server=utf8mb4, collation_server=utf8mb4_0900_ai_ci",
            ("utf8mb4", ""),
        ),
        (
            "SET character_set_server=utf8, collation_server=utf8_unicode_ci",
            ("utf8mb3", "utf8mb3_unicode_ci"),
        ),
        ("SET character_set_server=latin1", ("latin1", "")),
        ("SET collation_server=latin1_bin", None),
        ("SET sql_mode='character_set_client=x'", None),
        ("CREATE TABLE t (a INT COMMENT 'character_set_server=latin1')", None),
    ],
)
def test_the_servers_defaults_as_a_snapshot_tells_them(ddl: str, said: Defaults | None) -> None:
    assert server_defaults(ddl, ServerContext()) == said


def test_a_database_of_unknown_defaults_counts_with_the_servers() -> None:
    assert in_database(SERVER, None) is SERVER
    inside = in_database(SERVER, ("ucs2", ""))
    assert (inside.charset, inside.collation, inside.default_database) == ("ucs2", "", "d")
