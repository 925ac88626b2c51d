"""Shards on MySQL, their target on a TiDB: what was changed by hand is found, and no other row."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from shardmerge.cli.validation import repairs
from shardmerge.cli.validation.inputs.server_rows import ServerRows
from shardmerge.local.servers.other_versions import running_server
from shardmerge.schemas.pipeline.settings import Target
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from shardmerge.spark_sink.validation.compared_table import compared_table
from tests.integration.mysql.compared_line import (
    S1,
    S2,
    ToyLine,
    execute,
    pipeline,
    told,
    validated,
)
from tests.integration.mysql.compared_types import TYPES
from tests.unit.spark_sink.validation.facts import ORIGIN, shard, target, with_origin

from .running import ROOT, free_port

HELD = [
    (own, wanted, [v for v in values if own != "FLOAT" and not v.endswith(" '")] or ["0.5", "-2"])
    for own, wanted, values in TYPES
    if own != "POINT"
]
"""TiDB has no spatial types. The target's type would keep digits and trailing spaces that the
shard's does not."""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a MySQL with the shards."""
    with (
        tempfile.TemporaryDirectory(prefix="tidb-source-", dir=ROOT / ".local") as folder,
        running_server(
            "mysql80", Path(folder) / "data", free_port(), cache=ROOT / ".local" / "cache"
        ) as server,
    ):
        yield server.port


@pytest.fixture
def merged(tidb: MySqlAddress) -> Iterator[MySqlSession]:
    """The TiDB, with an empty database of the target."""
    session = MySqlSession(tidb)
    session.execute("SET SESSION sql_mode = '', time_zone = '+00:00'")
    session.execute("DROP DATABASE IF EXISTS merged")
    session.execute("CREATE DATABASE merged")
    yield session
    session.execute("DROP DATABASE merged")
    session.close()


@pytest.fixture
def servers(port: int, tidb_server: Target) -> Iterator[ServerRows]:
    found = ServerRows(replace(pipeline(port, port), target=tidb_server))
    yield found
    found.close()


def make_shards(port: int, *statements: str) -> None:
    execute(port, "DROP DATABASE IF EXISTS app", "CREATE DATABASE app", *statements)


@pytest.mark.parametrize(("own", "wanted", "values"), HELD)
def test_every_type_is_written_alike_on_both_servers(  # noqa: PLR0917 - fixtures
    port: int, merged: MySqlSession, servers: ServerRows, own: str, wanted: str, values: list[str]
) -> None:
    wanted = wanted.replace("BINARY(4)", "BINARY(2)") if own == "BINARY(2)" else wanted
    cells = [*values, "NULL"]
    make_shards(
        port,
        f"CREATE TABLE app.t_1 (id INT PRIMARY KEY, v {own})",
        *(f"INSERT INTO app.t_1 VALUES ({n}, {v})" for n, v in enumerate(cells)),
    )
    merged.execute(f"CREATE TABLE merged.t (id INT PRIMARY KEY, v {wanted})")
    for n, v in enumerate(cells):
        merged.execute(f"INSERT INTO merged.t VALUES ({n}, {v})")
    table = compared_table(
        target(f"CREATE TABLE t (id INT PRIMARY KEY, v {wanted})", points=False),
        [shard(S1, f"CREATE TABLE t (id INT PRIMARY KEY, v {own})")],
    )
    found = validated(table, servers, ToyLine(port))
    assert (told(found), found.table.columns) == ([], ("id", "v"))
    merged.execute("UPDATE merged.t SET v = NULL WHERE id = 0")
    assert told(validated(table, servers, ToyLine(port))) == [("differs", "0", str(S1), "v")]


def test_rows_that_were_changed_deleted_and_added_by_hand_are_found_and_repaired(
    port: int, merged: MySqlSession, servers: ServerRows
) -> None:
    own, renamed = "(id INT PRIMARY KEY, a VARCHAR(20))", "(id INT PRIMARY KEY, title VARCHAR(40))"
    rows = ", ".join(f"({n}, 'ä{n} ')" for n in range(60))
    make_shards(
        port,
        f"CREATE TABLE app.t_1 {own}", f"INSERT INTO app.t_1 VALUES {rows}",
        f"CREATE TABLE app.t_2 {renamed}", f"INSERT INTO app.t_2 VALUES {rows}",
    )  # fmt: skip
    merged.execute(
        "CREATE TABLE merged.t (id INT, a VARCHAR(40), _shard VARCHAR(194) COLLATE utf8mb4_bin,"
        " PRIMARY KEY (id, _shard))"
    )
    for each in (S1, S2):
        cells = ", ".join(f"({n}, 'ä{n} ', '{each}')" for n in range(60))
        merged.execute(f"INSERT INTO merged.t VALUES {cells}")
    rule = with_origin()
    table = compared_table(
        target("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(40))", origin=ORIGIN, points=False),
        [
            shard(S1, f"CREATE TABLE t {own}", rule),
            shard(S2, f"CREATE TABLE t {renamed}", rule, title="a#1"),
        ],
    )
    assert told(validated(table, servers, ToyLine(port))) == []
    merged.execute(f"UPDATE merged.t SET a = 'x' WHERE id = 3 AND _shard = '{S2}'")
    merged.execute(f"DELETE FROM merged.t WHERE id = 4 AND _shard = '{S1}'")
    merged.execute("INSERT INTO merged.t VALUES (5, 'x', 's9/app.t_9')")
    first, other, strange = (str(s).encode().hex().upper() for s in (S1, S2, "s9/app.t_9"))
    found = validated(table, servers, ToyLine(port))
    assert told(found) == [
        ("differs", "3", other, str(S2), "a"),
        ("extra", "5", strange, ""),
        ("missing", "4", first, str(S1)),
    ]
    for sql in repairs.statements(table, found.differences, servers).values():
        merged.execute(sql)
    assert told(validated(table, servers, ToyLine(port))) == []


def test_rows_without_a_key_are_counted(
    port: int, merged: MySqlSession, servers: ServerRows
) -> None:
    own = "(a INT, b VARCHAR(9))"
    make_shards(
        port, f"CREATE TABLE app.t_1 {own}", "INSERT INTO app.t_1 VALUES (1, 'x'), (1, 'x')"
    )
    merged.execute(f"CREATE TABLE merged.t {own}")
    merged.execute("INSERT INTO merged.t VALUES (1, 'x'), (1, 'x')")
    bare = f"CREATE TABLE t {own}"
    table = compared_table(target(bare, points=False), [shard(S1, bare)])
    assert validated(table, servers, ToyLine(port)).differences == []
    merged.execute("INSERT INTO merged.t VALUES (1, 'x')")
    found = validated(table, servers, ToyLine(port))
    assert [d.counts for d in found.differences] == [(2, 3)]
