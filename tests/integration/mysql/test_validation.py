"""Validation on a real server: what was changed by hand is found, and nothing else."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from shardmerge.cli.validation import repairs
from shardmerge.cli.validation.inputs.server_rows import OtherTable, ServerRows
from shardmerge.spark_sink.loading.chunk_ranges import KeyRange
from shardmerge.spark_sink.validation.compared_table import compared_table
from shardmerge.spark_sink.validation.repair_statements import session_statement
from tests.breadth import with_further
from tests.unit.spark_sink.validation.facts import (
    ORIGIN,
    RULE,
    shard,
    target,
    with_origin,
)

from .compared_line import S1, S2, ToyLine, execute, pipeline, told, validated

BEGIN = (
    "DROP DATABASE IF EXISTS app", "DROP DATABASE IF EXISTS merged", "CREATE DATABASE app",
    "CREATE DATABASE merged",
)  # fmt: skip
OWN = "(id INT PRIMARY KEY, a VARCHAR(20), b INT)"
RENAMED = "(id BIGINT UNSIGNED PRIMARY KEY, title VARCHAR(40), c DECIMAL(9,2))"
MERGED = (
    "(id DECIMAL(20,0) PRIMARY KEY, a VARCHAR(40), b INT DEFAULT 7, c DECIMAL(12,4) DEFAULT 0.5)"
)


@pytest.fixture(scope="module")
def port(server_port: Callable[[str], int]) -> int:
    return server_port("mysql80")


@pytest.fixture
def servers(port: int) -> Iterator[ServerRows]:
    found = ServerRows(pipeline(port, port))
    yield found
    found.close()


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


@pytest.mark.parametrize("where", ["b > 2", "a LIKE 'ä%' AND b > 2"])
def test_rows_without_a_key_outside_the_routes_condition_are_not_counted(
    port: int, servers: ServerRows, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shardmerge.cli.validation.inputs.server_rows._PART", 2)
    own = "(a VARCHAR(9), b INT)"
    cells = ["('ä', 3)", "('ä', 3)", "('ä', 2)", "('äb', 4)"]
    if "LIKE" in where:
        cells += ["('x', 3)", "(NULL, 3)"]
    execute(
        port,
        *BEGIN,
        *(f"CREATE TABLE {name} {own}" for name in ("app.t_1", "app.t_2", "merged.t")),
        rows("app.t_1", "a, b", cells),
        rows("app.t_2", "a, b", cells[1:]),
        rows("merged.t", "a, b", ["('ä', 3)"] * 3 + ["('äb', 4)"] * 2),
    )
    bare, rule = f"CREATE TABLE t {own}", replace(RULE, where=where)
    table = compared_table(target(bare), [shard(S1, bare, rule), shard(S2, bare, rule)])
    clean = validated(table, servers, ToyLine(port))
    assert (clean.differences, clean.rows) == ([], 5)
    execute(
        port,
        "DELETE FROM merged.t WHERE b = 4 LIMIT 1",
        "INSERT INTO merged.t VALUES ('ä', 2), ('ä', 2)",
    )
    found = validated(table, servers, ToyLine(port))
    assert sorted(d.counts for d in found.differences if d.counts) == [(0, 2), (2, 1)]


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


def test_rows_without_a_key_are_counted(port: int, servers: ServerRows) -> None:
    own = "(a INT, b VARCHAR(9))"
    execute(
        port,
        *BEGIN,
        *(f"CREATE TABLE {name} {own}" for name in ("app.t_1", "app.t_2", "merged.t")),
        *(rows(f"app.{t}", "a, b", ["(1, 'x')", "(1, 'x')", "(2, NULL)"]) for t in ("t_1", "t_2")),
        rows("merged.t", "a, b", ["(1, 'x')"] * 4 + ["(2, NULL)"] * 2),
    )
    bare = f"CREATE TABLE t {own}"
    table = compared_table(target(bare), [shard(S1, bare), shard(S2, bare)])
    assert validated(table, servers, ToyLine(port)).differences == []
    execute(port, "UPDATE merged.t SET a = 2, b = NULL WHERE a = 1 LIMIT 2")
    found = validated(table, servers, ToyLine(port))
    assert sorted(d.counts for d in found.differences if d.counts) == [(2, 4), (4, 2)]


@pytest.mark.parametrize("server", with_further("mysql80", "mariadb1011"))
def test_rows_without_a_key_are_shown_and_repaired(
    server: str, server_port: Callable[[str], int]
) -> None:
    port = server_port(server)
    own = (
        "(i INT, f FLOAT, t VARCHAR(9) CHARACTER SET latin1, x VARBINARY(9), d DECIMAL(9,2),"
        " at TIMESTAMP(3) NULL, j TEXT)"
    )
    one = "(1, 0.1, 'ä', x'00ff', 1.50, '2026-01-01 00:30:00.5', 'quote '' and \\\\')"
    other = "(1, 0.1, 'Ä', NULL, 1.50, NULL, NULL)"
    execute(
        port,
        *BEGIN,
        *(f"CREATE TABLE {name} {own}" for name in ("app.t_1", "app.t_2", "merged.t")),
        rows("app.t_1", "i, f, t, x, d, at, j", [one] * 3),
        rows("app.t_2", "i, f, t, x, d, at, j", [one, other]),
        # One row is there too seldom. Of the other one, which differs from a third one only by
        # its letter, there are too many; the third one is nowhere else.
        rows("merged.t", "i, f, t, x, d, at, j", [one] * 2 + [other] * 3),
        rows("merged.t", "i, f, t", ["(9, 0.5, 'extra')"]),
    )
    bare = f"CREATE TABLE t {own}"
    table = compared_table(target(bare), [shard(S1, bare), shard(S2, bare)])
    maria = "source, target" if server.startswith("mariadb") else ""
    servers = ServerRows(pipeline(port, port, maria=maria))
    try:
        found = validated(table, servers, ToyLine(port))
        shown = repairs.samples(table, found.differences, servers)
        by_counts = {d.counts: shown[d.key].shown for d in found.differences}
        assert by_counts.keys() == {(4, 2), (1, 3), (0, 1)}
        assert by_counts[4, 2] == {
            "i": "1", "f": "0.1", "t": "ä", "x": "0x00FF", "d": "1.50",
            "at": "2026-01-01 00:30:00.500", "j": "quote ' and \\",
        }  # fmt: skip
        assert by_counts[0, 1]["t"] == "extra"
        owners = {d.counts: d.owners for d in found.differences}
        assert owners == {(4, 2): ((S1, 3), (S2, 1)), (1, 3): ((S2, 1),), (0, 1): ()}
        statements = repairs.statements(table, found.differences, servers, shown)
        operator = ["SET NAMES latin1", "SET time_zone = '-08:00', sql_mode = 'TRADITIONAL'"]
        execute(port, *operator, session_statement(table), *statements.values())
        assert validated(table, servers, ToyLine(port)).differences == []
    finally:
        servers.close()


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


def test_a_table_that_ddl_changed_is_told_from_a_server_that_fails(
    port: int, servers: ServerRows
) -> None:
    divergent(port)
    execute(port, "ALTER TABLE app.t_1 DROP b")
    with pytest.raises(OtherTable, match="Unknown column 'b'"):
        servers.range_digests(DIVERGENT.shards, KeyRange())


TYPES = [
    ("TINYINT(3) ZEROFILL", "BIGINT UNSIGNED", ["5", "255", "0"]),
    ("BIGINT UNSIGNED", "DECIMAL(20,0)", ["18446744073709551615", "0"]),
    ("DECIMAL(5,2)", "DECIMAL(10,4)", ["-1.50", "999.99", "0"]),
    ("INT", "DECIMAL(12,2)", ["-2147483648", "7"]),
    ("FLOAT", "DOUBLE", ["1.1 + 0e0", "3.4e38", "1e-38", "0"]),
    ("DOUBLE", "DOUBLE", ["1e15", "1e-300", "0.1", "123456789.123456789", "-0e0"]),
    ("BIT(3)", "BIT(64)", ["b'101'", "0"]),
    ("YEAR", "YEAR", ["0000", "1901", "2155"]),
    ("DATE", "DATE", ["'2026-02-28'", "'9999-12-31'"]),
    ("DATETIME", "DATETIME(6)", ["'2026-02-28 12:13:14'", "'1000-01-01'"]),
    ("DATETIME(3)", "DATETIME(3)", ["'2026-02-28 12:13:14.5'"]),
    ("TIMESTAMP(2) NULL", "TIMESTAMP(4) NULL", ["'2026-02-28 12:13:14.25'"]),
    ("TIME(1)", "TIME(3)", ["'-838:59:58.5'", "'00:00:00'"]),
    ("CHAR(9) CHARSET latin1", "VARCHAR(20) CHARSET utf8mb4", ["'é '", "''", "'a#b'"]),
    ("VARCHAR(9) CHARSET utf8", "VARCHAR(20) CHARSET utf8mb4", ["'€ '", "''"]),
    ("TEXT CHARSET latin1", "LONGTEXT CHARSET utf8mb4", ["'é\\n\\\\'", "REPEAT('x', 60000)"]),
    ("BINARY(2)", "BINARY(4)", ["X'0001'", "X'FF00'"]),
    ("VARBINARY(4)", "LONGBLOB", ["X'00FF'", "''"]),
    ("ENUM('a','é') CHARSET latin1", "ENUM('a','é','c') CHARSET utf8mb4", ["'é'", "0"]),
    ("SET('a','b')", "SET('a','b','c')", ["'a,b'", "''"]),
    ("JSON", "JSON", ["'{\"b\": 1.5, \"a\": [true, null, \"€\"]}'", "'1e100'"]),
    ("POINT", "POINT", ["ST_GeomFromText('POINT(1.5 -2)')"]),
]  # fmt: skip


@pytest.mark.parametrize(("own", "wanted", "values"), TYPES)
def test_every_type_is_written_alike_on_both_sides(
    port: int, servers: ServerRows, own: str, wanted: str, values: list[str]
) -> None:
    cells = [*values, "NULL"]
    execute(
        port,
        *BEGIN,
        f"CREATE TABLE app.t_1 (id INT PRIMARY KEY, v {own})",
        f"CREATE TABLE merged.t (id INT PRIMARY KEY, v {wanted})",
        *(f"INSERT INTO app.t_1 VALUES ({n}, {v})" for n, v in enumerate(cells)),
        "INSERT INTO merged.t SELECT id, v FROM app.t_1"
        if "BINARY(2)" not in own
        else "INSERT INTO merged.t SELECT id, RPAD(v, 4, X'00') FROM app.t_1",
    )
    table = compared_table(
        target(f"CREATE TABLE t (id INT PRIMARY KEY, v {wanted})"),
        [shard(S1, f"CREATE TABLE t (id INT PRIMARY KEY, v {own})")],
    )
    found = validated(table, servers, ToyLine(port))
    assert told(found) == []
    assert found.table.columns == ("id", "v")
    sides = (table.side, *table.shards)
    assert len(set(servers.range_digests(sides, KeyRange()))) == 1
    execute(port, "UPDATE merged.t SET v = NULL WHERE id = 0")
    differing = validated(table, servers, ToyLine(port))
    assert told(differing) == [("differs", "0", str(S1), "v")]
    repair = repairs.statements(table, differing.differences, servers)
    execute(port, *repair.values())
    assert told(validated(table, servers, ToyLine(port))) == []


def test_mariadb_and_mysql_write_every_type_alike(
    port: int, server_port: Callable[[str], int]
) -> None:
    other = server_port("mariadb1011")
    columns = [(f"c{n}", own, wanted) for n, (own, wanted, _) in enumerate(TYPES)]
    own, merged = (
        f"(id INT PRIMARY KEY, {', '.join(f'{c[0]} {c[side]}' for c in columns)})"
        for side in (1, 2)
    )
    # A target's type would keep digits and trailing spaces that the shard's does not.
    written = [
        [value for value in values if kind != "FLOAT" and not value.endswith(" '")] or ["0.5", "-2"]
        for kind, _, values in TYPES
    ]
    most = max(map(len, written))
    cells = [
        ", ".join([str(n), *(values[n % len(values)] for values in written)]) for n in range(most)
    ]
    execute(port, *BEGIN, f"CREATE TABLE app.t_1 {own}")
    execute(other, *BEGIN, f"CREATE TABLE merged.t {merged}")
    for cell in cells:
        execute(port, f"INSERT INTO app.t_1 VALUES ({cell})")
        execute(other, f"INSERT INTO merged.t VALUES ({cell})")
    servers = ServerRows(pipeline(port, other, maria="target"))
    try:
        table = compared_table(
            target(f"CREATE TABLE t {merged}"), [shard(S1, f"CREATE TABLE t {own}")]
        )
        found = validated(table, servers, ToyLine(port))
        assert (told(found), found.rows) == ([], most)
        execute(other, "UPDATE merged.t SET c5 = 0.2 WHERE id = 1")
        assert told(validated(table, servers, ToyLine(port))) == [("differs", "1", str(S1), "c5")]
    finally:
        servers.close()


def test_a_zero_date_is_what_the_sink_makes_of_it(port: int, servers: ServerRows) -> None:
    own = "(id INT PRIMARY KEY, d DATE, t DATETIME(3), m DATE NOT NULL)"
    execute(
        port,
        *BEGIN,
        *(f"CREATE TABLE {name} {own}" for name in ("app.t_1", "merged.t")),
        "INSERT INTO app.t_1 VALUES (1, 0, 0, 0), (2, '2026-00-10', '2026-01-00', '2026-00-10'),"
        " (3, '2026-01-02', '2026-01-02 03:04:05.678', '0000-05-05')",
        "INSERT INTO merged.t VALUES (1, NULL, NULL, 0), (2, NULL, NULL, 0),"
        " (3, '2026-01-02', '2026-01-02 03:04:05.678', 0)",
    )
    bare = f"CREATE TABLE t {own}"
    table = compared_table(target(bare), [shard(S1, bare)])
    assert told(validated(table, servers, ToyLine(port))) == []


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
