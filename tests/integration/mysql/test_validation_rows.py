"""Which rows a comparison on a real server counts, whose they are, and where ranges are cut."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.cli.validation.inputs.server_rows import ServerRows
from shardmerge.spark_sink.validation.compared_table import compared_table
from tests.unit.spark_sink.validation.facts import ORIGIN, RULE, shard, target, with_origin

from .compared_line import S1, S2, ToyLine, execute, told, validated
from .divergent_shards import BEGIN, MERGED, OWN, divergent, rows


def test_equal_keys_are_told_apart_by_the_origin_column(port: int, servers: ServerRows) -> None:
    own, rule = "(id INT PRIMARY KEY, a VARCHAR(9))", with_origin()
    merged = (
        "(id INT, a VARCHAR(9), _shard VARCHAR(194) COLLATE utf8mb4_bin, PRIMARY KEY (id, _shard))"
    )
    execute(
        port,
        *BEGIN,
        *(f"CREATE TABLE app.{name} {own}" for name in ("t_1", "t_2")),
        f"CREATE TABLE merged.t {merged}",
        *(
            rows(f"app.{s.table}", "id, a", [f"({n}, '{s.table}')" for n in range(50)])
            for s in (S1, S2)
        ),
        *(
            rows("merged.t", "id, a, _shard", [f"({n}, '{s.table}', '{s}')" for n in range(50)])
            for s in (S1, S2)
        ),
    )
    facts = target(f"CREATE TABLE t {own}", origin=ORIGIN)
    shards = [shard(s, f"CREATE TABLE t {own}", rule) for s in (S1, S2)]
    both, second = compared_table(facts, shards), compared_table(facts, shards, [S2])
    assert told(validated(both, servers, ToyLine(port))) == []
    execute(
        port,
        f"UPDATE merged.t SET a = 'x' WHERE id = 3 AND _shard = '{S1}'",
        f"DELETE FROM merged.t WHERE id = 4 AND _shard = '{S2}'",
        "INSERT INTO merged.t VALUES (5, 'x', 's9/app.t_9')",
    )
    first, other, strange = (str(s).encode().hex().upper() for s in (S1, S2, "s9/app.t_9"))
    assert told(validated(both, servers, ToyLine(port))) == [
        ("differs", "3", first, str(S1), "a"),
        ("extra", "5", strange, ""),
        ("missing", "4", other, str(S2)),
    ]
    assert told(validated(second, servers, ToyLine(port))) == [("missing", "4", other, str(S2))]


@pytest.mark.parametrize("where", ["b > 2 AND a <> 'ä5 '", "a LIKE 'ä%' AND b > 2 AND a <> 'ä5 '"])
def test_rows_outside_the_routes_condition_belong_not_to_the_target(
    port: int, servers: ServerRows, where: str
) -> None:
    divergent(port)
    rule = replace(RULE, where=where)
    table = compared_table(
        target(f"CREATE TABLE t {MERGED}"), [shard(S1, f"CREATE TABLE t {OWN}", rule)]
    )
    execute(port, "DELETE FROM merged.t WHERE id >= 100 OR b <= 2 OR id = 5")
    assert told(validated(table, servers, ToyLine(port))) == []
    execute(
        port, "INSERT INTO merged.t VALUES (5, 'ä5 ', 5, 0.5)", "DELETE FROM merged.t WHERE id = 6"
    )
    assert told(validated(table, servers, ToyLine(port))) == [
        ("extra", "5", ""),
        ("missing", "6", str(S1)),
    ]


def test_a_column_whose_default_is_not_known_is_compared_in_the_rows_that_have_it(
    port: int, servers: ServerRows
) -> None:
    wide = "(id INT PRIMARY KEY, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP)"
    execute(
        port,
        *BEGIN,
        f"CREATE TABLE app.t_1 {wide}",
        "CREATE TABLE app.t_2 (id INT PRIMARY KEY)",
        f"CREATE TABLE merged.t {wide}",
        rows("app.t_1", "id, at", ["(1, '2020-01-01')", "(2, '2020-01-02')"]),
        rows("app.t_2", "id", ["(11)", "(12)"]),
        "INSERT INTO merged.t SELECT * FROM app.t_1",
        "INSERT INTO merged.t (id) SELECT id FROM app.t_2",
    )
    table = compared_table(
        target(f"CREATE TABLE t {wide}"),
        [shard(S1, f"CREATE TABLE t {wide}"), shard(S2, "CREATE TABLE t (id INT PRIMARY KEY)")],
    )
    assert told(validated(table, servers, ToyLine(port))) == []
    execute(port, "UPDATE merged.t SET at = '2021-01-01' WHERE id IN (2, 12)")
    found = validated(table, servers, ToyLine(port))
    assert told(found) == [("differs", "2", str(S1), "at")]


def test_a_swap_that_crc32_would_not_see_is_seen(port: int, servers: ServerRows) -> None:
    own = "(id INT PRIMARY KEY, a CHAR(4))"
    execute(
        port,
        *BEGIN,
        *(f"CREATE TABLE {name} {own}" for name in ("app.t_1", "merged.t")),
        rows("app.t_1", "id, a", ["(1, 'aaaa')", "(2, 'bbbb')"]),
        rows("merged.t", "id, a", ["(1, 'bbbb')", "(2, 'aaaa')"]),
    )
    bare = f"CREATE TABLE t {own}"
    table = compared_table(target(bare), [shard(S1, bare)])
    assert len(validated(table, servers, ToyLine(port)).differences) == 2


@pytest.mark.parametrize(
    ("own", "merged"),
    [
        ("VARCHAR(20) CHARSET latin1", "VARCHAR(20) CHARSET utf8mb4 COLLATE utf8mb4_bin"),
        ("VARCHAR(20) COLLATE utf8mb4_general_ci", "VARCHAR(20) COLLATE utf8mb4_general_ci"),
        ("DATETIME(3)", "DATETIME(6)"),
        ("VARBINARY(9)", "VARBINARY(9)"),
        ("DECIMAL(7,2)", "DECIMAL(9,2)"),
    ],
)
def test_composite_keys_of_every_kind_are_cut_and_found(
    port: int, servers: ServerRows, own: str, merged: str
) -> None:
    def create(kind: str) -> str:
        return f"(k {kind}, n INT, v INT, PRIMARY KEY (k, n))"

    def value(n: int) -> str:
        if "DATETIME" in own:
            return f"'2026-01-{n % 28 + 1:02d} 00:00:00.5'"
        if "DECIMAL" in own:
            return f"{n % 7}.25"
        return f"'{'aÄbBéz'[n % 6]}{n % 4}'" if "VARCHAR" in own else f"X'{n % 5:02x}00'"

    cells = [f"({value(n)}, {n}, {n})" for n in range(100)]
    execute(
        port,
        *BEGIN,
        f"CREATE TABLE app.t_1 {create(own)}",
        f"CREATE TABLE merged.t {create(merged)}",
        rows("app.t_1", "k, n, v", cells),
        rows("merged.t", "k, n, v", cells),
    )
    table = compared_table(
        target(f"CREATE TABLE t {create(merged)}"), [shard(S1, f"CREATE TABLE t {create(own)}")]
    )
    clean = validated(table, servers, ToyLine(port), 7)
    assert (told(clean), clean.rows, clean.ranges) == ([], 100, 15)
    execute(port, "UPDATE merged.t SET v = -1 WHERE n = 41", "DELETE FROM merged.t WHERE n = 42")
    found = validated(table, servers, ToyLine(port), 7)
    assert sorted((d.kind.value, d.key[1]) for d in found.differences) == [
        ("differs", "41"),
        ("missing", "42"),
    ]
