"""Shards of different schemas on a real server: planted differences are found, told, repaired."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from shardmerge.cli.validation import repairs
from shardmerge.cli.validation.inputs.server_rows import OtherTable, ServerRows
from shardmerge.spark_sink.loading.chunk_ranges import KeyRange
from shardmerge.spark_sink.validation.compared_table import compared_table
from shardmerge.spark_sink.validation.repair_statements import session_statement
from tests.breadth import with_further
from tests.unit.spark_sink.validation.facts import shard, target

from .compared_line import S1, ToyLine, execute, pipeline, told, validated
from .divergent_shards import BEGIN, DIVERGENT, PLANTED, TOLD, divergent


def test_divergent_schemas_are_equal_until_somebody_changes_the_target(
    port: int, servers: ServerRows
) -> None:
    divergent(port)
    clean = validated(DIVERGENT, servers, ToyLine(port))
    assert (told(clean), clean.rows) == ([], 200)
    assert clean.ranges == 11
    execute(port, *PLANTED)
    assert told(validated(DIVERGENT, servers, ToyLine(port))) == TOLD


@pytest.mark.parametrize("server", with_further("mariadb1011", "mysql97"))
def test_other_servers_compare_the_same(server: str, server_port: Callable[[str], int]) -> None:
    """MySQL 9.7 has no MD5."""
    other = server_port(server)
    divergent(other)
    is_maria = server.startswith("mariadb")
    servers = ServerRows(pipeline(other, other, maria="source, target" if is_maria else ""))
    try:
        assert told(validated(DIVERGENT, servers, ToyLine(other))) == []
        execute(other, *PLANTED)
        assert told(validated(DIVERGENT, servers, ToyLine(other))) == TOLD
    finally:
        servers.close()


def test_the_statements_of_a_repair_make_the_target_equal(port: int, servers: ServerRows) -> None:
    divergent(port)
    execute(port, *PLANTED)
    found = validated(DIVERGENT, servers, ToyLine(port))
    statements = repairs.statements(DIVERGENT, found.differences, servers)
    assert len(statements) == len(TOLD)
    execute(port, *statements.values())
    assert told(validated(DIVERGENT, servers, ToyLine(port))) == []


def test_a_session_with_other_settings_repairs_the_same(port: int, servers: ServerRows) -> None:
    columns = "(id INT PRIMARY KEY, at TIMESTAMP(3) NULL, d DATE)"
    execute(
        port, *BEGIN,
        f"CREATE TABLE app.t_1 {columns}",
        f"CREATE TABLE merged.t {columns}",
        "INSERT INTO app.t_1 VALUES (1, '2026-10-25 00:30:00.5', '0000-00-00')",
        "INSERT INTO app.t_1 VALUES (2, '2026-10-25 01:30:00.5', '2026-01-00')",
        "INSERT INTO merged.t VALUES (1, '2020-01-01 00:00:00', '0000-00-00')",
    )  # fmt: skip
    table = compared_table(
        target(f"CREATE TABLE t {columns}"), [shard(S1, f"CREATE TABLE t {columns}")]
    )
    found = validated(table, servers, ToyLine(port))
    statements = repairs.statements(table, found.differences, servers)
    operator = [
        "SET time_zone = '-08:00', sql_mode = 'TRADITIONAL'",
        session_statement(table),
        *statements.values(),
    ]
    execute(port, *operator)
    assert told(validated(table, servers, ToyLine(port))) == []


def test_a_writer_makes_no_difference_and_hides_none(port: int, servers: ServerRows) -> None:
    divergent(port)
    execute(port, *(each for each in PLANTED if "102" not in each))
    chance = random.Random(7)

    def write(number: int) -> tuple[str, str]:
        row = chance.randrange(8, 50)
        match number % 3:
            case 0:
                return tuple(  # type: ignore[return-value]
                    f"REPLACE INTO {table} (id, a, b) VALUES ({row}, 'n{number}', {number})"
                    for table in ("app.t_1", "merged.t")
                )
            case 1:
                return tuple(  # type: ignore[return-value]
                    f"DELETE FROM {table} WHERE id = {row}" for table in ("app.t_1", "merged.t")
                )
            case _:
                return tuple(  # type: ignore[return-value]
                    f"UPDATE {table} SET {column} = 'm{number}' WHERE id = {110 + row}"
                    for table, column in (("app.t_2", "title"), ("merged.t", "a"))
                )

    line = ToyLine(port)
    threads = line.run(write, 8.0)
    expected = [each for each in TOLD if "102" not in each]
    rounds = 0
    while not line.ended:
        found = validated(DIVERGENT, servers, line)
        assert told(found) == expected
        rounds += 1
    for thread in threads:
        thread.join(30)
    assert rounds > 1
    assert len(line.log) > 100


def test_a_table_that_ddl_changed_is_told_from_a_server_that_fails(
    port: int, servers: ServerRows
) -> None:
    divergent(port)
    execute(port, "ALTER TABLE app.t_1 DROP b")
    with pytest.raises(OtherTable, match="Unknown column 'b'"):
        servers.range_digests(DIVERGENT.shards, KeyRange())
