"""Two shards of different schemas and their target, with what a test changes by hand in it."""

from __future__ import annotations

from shardmerge.spark_sink.validation.compared_table import compared_table
from tests.unit.spark_sink.validation.facts import shard, target

from .compared_line import S1, S2, execute

BEGIN = (
    "DROP DATABASE IF EXISTS app", "DROP DATABASE IF EXISTS merged", "CREATE DATABASE app",
    "CREATE DATABASE merged",
)  # fmt: skip
OWN = "(id INT PRIMARY KEY, a VARCHAR(20), b INT)"
RENAMED = "(id BIGINT UNSIGNED PRIMARY KEY, title VARCHAR(40), c DECIMAL(9,2))"
MERGED = (
    "(id DECIMAL(20,0) PRIMARY KEY, a VARCHAR(40), b INT DEFAULT 7, c DECIMAL(12,4) DEFAULT 0.5)"
)


def rows(table: str, columns: str, values: list[str]) -> str:
    return f"INSERT INTO {table} ({columns}) VALUES {', '.join(values)}"


def divergent(port: int) -> None:
    """Two shards with other columns, types and names, and their target."""
    execute(
        port,
        *BEGIN,
        f"CREATE TABLE app.t_1 {OWN}",
        f"CREATE TABLE app.t_2 {RENAMED}",
        f"CREATE TABLE merged.t {MERGED}",
        rows("app.t_1", "id, a, b", [f"({n}, 'ä{n} ', {n % 9})" for n in range(100)]),
        rows("merged.t", "id, a, b", [f"({n}, 'ä{n} ', {n % 9})" for n in range(100)]),
        rows("app.t_2", "id, title, c", [f"({n}, 'b{n}', {n}.25)" for n in range(100, 200)]),
        rows("merged.t", "id, a, c", [f"({n}, 'b{n}', {n}.25)" for n in range(100, 200)]),
    )


DIVERGENT = compared_table(
    target(f"CREATE TABLE t {MERGED}"),
    [
        shard(S1, f"CREATE TABLE t {OWN}"),
        shard(S2, f"CREATE TABLE t {RENAMED}", title="a#1"),
    ],
)
PLANTED = (
    "UPDATE merged.t SET a = 'other' WHERE id = 7",
    "UPDATE merged.t SET c = 101.2501, b = 3 WHERE id = 101",
    "UPDATE merged.t SET a = 'b102 ' WHERE id = 102",
    "DELETE FROM merged.t WHERE id = 55",
    "INSERT INTO merged.t VALUES (1000, 'x', 1, 1)",
)
TOLD = [
    ("differs", "101", str(S2), "c"),
    ("differs", "102", str(S2), "a"),
    ("differs", "7", str(S1), "a"),
    ("extra", "1000", ""),
    ("missing", "55", str(S1)),
]
