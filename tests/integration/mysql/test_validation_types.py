"""Every type on real servers: equal values are written alike on both sides of a comparison."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shardmerge.cli.validation import repairs
from shardmerge.cli.validation.inputs.server_rows import ServerRows
from shardmerge.spark_sink.loading.chunk_ranges import KeyRange
from shardmerge.spark_sink.validation.compared_table import compared_table
from tests.unit.spark_sink.validation.facts import shard, target

from .compared_line import S1, ToyLine, execute, pipeline, told, validated
from .compared_types import TYPES
from .divergent_shards import BEGIN


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
