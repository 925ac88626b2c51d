"""What the target's table is called by, and has, beside what its shards have."""

from __future__ import annotations

import re

from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.grammar import parse
from shardmerge.schemas.lattice.join import join_tables
from shardmerge.schemas.lattice.joined import JoinedTable
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.tables import Check
from shardmerge.schemas.target.dialects.dialects import dialect_of
from shardmerge.schemas.target.target_table import target_schema

MARIADB = ServerContext("mariadb", (10, 11, 6))
NAMED = "id int primary key, data json, n int check (n > 0), constraint own check (n < 9)"


def _checks(target: str, joined: JoinedTable, named: tuple[Check, ...] = ()) -> list[str]:
    to = target_schema(joined, (), "orders", dialect=dialect_of(*target.split()), named=named)
    return [check.name for check in to.schema.checks]


def test_a_check_named_like_its_column_gets_a_name_of_the_target_where_names_are_shared() -> None:
    statement = parse(f"create table t ({NAMED})", MARIADB)
    assert isinstance(statement, CreateTable)
    schema = apply_create(statement, MARIADB)
    assert [check.name for check in schema.checks] == ["data", "n", "own"]
    joined = join_tables([schema])
    assert isinstance(joined, JoinedTable)

    data, n, own = _checks("mysql 8.0.36", joined)
    assert own == "own"
    assert data != n and all(re.fullmatch(r"orders_chk_\d+", name) for name in (data, n))
    # MariaDB has such names in each table, and a target that has them keeps them.
    assert _checks("mariadb 10.11", joined) == ["data", "n", "own"]
    assert _checks("mysql 8.0.36", joined, schema.checks) == ["data", "n", "own"]
