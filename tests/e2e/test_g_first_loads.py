"""First rows that the sink reads itself: writes, DDL and kills meanwhile, and equal rows after."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pymysql
import pytest
from click.testing import CliRunner

from shardmerge.cli.main import main
from shardmerge.local.line import Line
from shardmerge.local.union import compare, read_table
from shardmerge.schemas.model.origin import Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.policies import RoutePolicies
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Pipeline
from tests.background import Background

from .conftest import ROOT

ROWS = 40_000
SHARDS = {"s1": "t_1", "s2": "t_2"}
ROUTE = RoutingRule(".*", "load_app", r"t_\d", "loaded", "t")
WHOLE_ROWS = 8_000
WHOLE = {"s1": ("k_1", "no_key"), "s2": ("u_1", "unique_too")}
"""Source → a table whose rows must be of one moment, and its target."""
WHOLE_ROUTES = tuple(
    RoutingRule(".*", "load_app", table, "loaded", target) for table, target in WHOLE.values()
)
MARKED_ROWS = 8_000
MARKED = {"s1": "m_1", "s2": "m_2"}
"""Source → a table whose rows the target tells from others."""
MARKED_ROUTE = RoutingRule(
    ".*",
    "load_app",
    r"m_\d",
    "loaded",
    "marked",
    policies=RoutePolicies(
        origin=Origin((OriginColumn(OriginPart.SHARD, "_shard"),), in_keys=True)
    ),
)
LOST_ROWS = 20_000
LOST_ROUTE = RoutingRule(".*", "load_app", "p_1", "loaded", "lost_key")
"""For a table of s1 that loses its primary key while it is loaded."""
PATIENCE_S = 300.0


def loaded_by_the_sink(pipeline: Pipeline) -> Pipeline:
    """So slowly that everything below happens meanwhile."""
    sources = (
        replace(s, snapshot="spark", load_connections=2, load_rows_per_s=2_000)
        for s in pipeline.sources
    )
    return replace(pipeline, sources=tuple(sources))


def prepare(line: Line) -> None:
    columns = {"k_1": "n INT, v VARCHAR(30)", "u_1": "id INT PRIMARY KEY, n INT UNIQUE, v INT"}
    values = {"k_1": "n % 500, CONCAT('ä', n % 3)", "u_1": "n, n, n"}
    for number, (source, table) in enumerate(SHARDS.items()):
        with line.connect(source) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE load_app")
            if source == "s1":
                cursor.execute("CREATE TABLE load_app.p_1 (id INT PRIMARY KEY, v INT)")
                cursor.execute("SET SESSION cte_max_recursion_depth = 1000000")
                cursor.execute(
                    "INSERT INTO load_app.p_1 WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL"
                    f" SELECT n + 1 FROM i WHERE n < {LOST_ROWS}) SELECT n, n FROM i"
                )
            whole, _ = WHOLE[source]
            cursor.execute(f"CREATE TABLE load_app.{whole} ({columns[whole]})")
            cursor.execute("SET SESSION cte_max_recursion_depth = 1000000")
            cursor.execute(
                f"INSERT INTO load_app.{whole} WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT"
                f" n + 1 FROM i WHERE n < {WHOLE_ROWS}) SELECT {values[whole]} FROM i"
            )
            cursor.execute(
                f"CREATE TABLE load_app.{MARKED[source]} (id INT PRIMARY KEY, v VARCHAR(30))"
            )
            cursor.execute(
                f"INSERT INTO load_app.{MARKED[source]} WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL"
                f" SELECT n + 1 FROM i WHERE n < {MARKED_ROWS}) SELECT n, CONCAT('a', n) FROM i"
            )
            # Keys are texts: the server cuts the table.
            cursor.execute(
                f"CREATE TABLE load_app.{table} (id VARCHAR(12) PRIMARY KEY, n INT, v VARCHAR(30),"
                " d DECIMAL(12,3), at DATETIME(3), b VARBINARY(8))"
            )
            cursor.execute("SET SESSION cte_max_recursion_depth = 1000000")
            cursor.execute(
                f"INSERT INTO load_app.{table} WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT"
                f" n + 1 FROM i WHERE n < {ROWS})"
                f" SELECT CONCAT('{number}-', n), n % 97, CONCAT('ä', n), n / 7,"
                " '2024-02-29 00:00:00.125' + INTERVAL n SECOND, UNHEX(HEX(n)) FROM i"
            )


class Traffic(Background):
    """Writes to both shards until it is told to end; a server may be away for a while."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self.written = [0, 0]
        super().__init__(
            *(
                partial(self._write, number, source, table)
                for number, (source, table) in enumerate(SHARDS.items())
            )
        )

    def _write(self, number: int, source: str, table: str) -> None:
        chance = random.Random(number)
        while not self.ends.is_set():
            with (
                suppress(pymysql.Error),
                self._line.connect(source) as connection,
                connection.cursor() as cursor,
            ):
                while not self.ends.wait(0.005):
                    key = f"{number}-{chance.randrange(1, ROWS + 1)}"
                    cursor.execute(self._statement(f"load_app.{table}", key, chance))
                    cursor.execute(_of_whole(WHOLE[source][0], chance))
                    self.written[number] += 1

    def _statement(self, table: str, key: str, chance: random.Random) -> str:
        other = f"{key}x{chance.randrange(9)}"
        return chance.choice(
            (
                f"UPDATE {table} SET n = n + 1, v = 'changed' WHERE id = '{key}'",
                f"DELETE FROM {table} WHERE id = '{key}'",
                f"REPLACE INTO {table} (id, n, v) VALUES ('{key}', 5, NULL)",
                f"UPDATE IGNORE {table} SET id = '{other}' WHERE id = '{key}'",
            )
        )


def _of_whole(table: str, chance: random.Random) -> str:
    n, m = chance.randrange(WHOLE_ROWS), chance.randrange(WHOLE_ROWS)
    if table == "k_1":
        statements = (
            f"INSERT INTO load_app.k_1 (n, v) VALUES ({n % 500}, 'ä0'), ({n % 500}, 'ä0')",
            f"UPDATE load_app.k_1 SET v = 'b' WHERE n = {n % 500} LIMIT 2",
            f"DELETE FROM load_app.k_1 WHERE n = {n % 500} LIMIT 2",
        )
    else:
        statements = (
            # Unique values move from row to row.
            f"UPDATE load_app.u_1 SET n = NULL, v = v + 1 WHERE n = {n}",
            f"UPDATE IGNORE load_app.u_1 SET n = {n} WHERE id = {m}",
            f"DELETE FROM load_app.u_1 WHERE id = {n}",
        )
    return chance.choice(statements)


def difference(line: Line) -> list[str]:
    found = difference_of(line, "t", SHARDS)
    for source, (table, target) in WHOLE.items():
        found += difference_of(line, target, {source: table})
    return found + difference_of(line, "lost_key", {"s1": "p_1"})


def difference_of(line: Line, target: str, tables: dict[str, str]) -> list[str]:
    try:
        with line.connect_target() as connection:
            merged = read_table(connection, "loaded", target)
        if merged is None:
            return [f"no target {target}"]
        shards = []
        for source, table in tables.items():
            with line.connect(source) as connection:
                shard = read_table(connection, "load_app", table)
                assert shard is not None
                shards.append((f"{source}.{table}", shard))
    except pymysql.Error as error:
        return [str(error)]
    return [text[:500] for text in compare(merged, shards).differences]


def loaded(line: Line, least: int, table: str = "t") -> list[str]:
    """Empty when a target has so many rows."""
    try:
        with line.connect_target() as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT COUNT(*) FROM loaded.{table}")
            ((count,),) = cursor.fetchall()
    except pymysql.Error as error:
        return [str(error)]
    return [] if count >= least else [f"{count} rows are loaded"]


@pytest.fixture
def line() -> Iterator[Line]:
    directory = Path(tempfile.mkdtemp(prefix="e2e-load-", dir=ROOT / ".local"))
    line = Line(
        directory,
        routes=(ROUTE, *WHOLE_ROUTES, MARKED_ROUTE, LOST_ROUTE),
        access=loaded_by_the_sink,
    )
    try:
        line.start(lambda: prepare(line))
        yield line
    finally:
        line.stop()


class MarkedTraffic(Background):
    """Changes rows of one marked shard."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self.written = 0
        super().__init__(self._write)

    def _write(self) -> None:
        chance = random.Random(7)
        with self._line.connect("s1") as connection, connection.cursor() as cursor:
            while not self.ends.wait(0.005):
                key = chance.randrange(1, MARKED_ROWS)
                cursor.execute(f"UPDATE load_app.m_1 SET v = 'changed' WHERE id = {key}")
                cursor.execute(f"DELETE FROM load_app.m_1 WHERE id = {key + 1}")
                cursor.execute(
                    f"UPDATE IGNORE load_app.m_1 SET id = id + 9000 WHERE id = {key + 2}"
                )
                self.written += 1


def marked(line: Line, source: str) -> list[tuple[int, str]]:
    """The target's rows of a marked shard."""
    with line.connect_target() as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, v FROM loaded.marked WHERE _shard = %s ORDER BY id",
            (f"{source}/load_app.{MARKED[source]}",),
        )
        return list(cursor.fetchall())


def marked_difference(line: Line, source: str) -> list[str]:
    with line.connect(source) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT id, v FROM load_app.{MARKED[source]} ORDER BY id")
        wanted = list(cursor.fetchall())
    return [str(row) for row in sorted({*wanted} ^ {*marked(line, source)})[:5]]


def load_again(line: Line) -> None:
    """One shard's rows are replaced, while it is written to and the sink dies; others stay."""
    assert line.poll(lambda: marked_difference(line, "s1"), PATIENCE_S) == []
    assert line.poll(lambda: marked_difference(line, "s2"), PATIENCE_S) == []
    one, other = (f"{source}/load_app.{table}" for source, table in MARKED.items())
    with line.connect_target() as connection, connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM loaded.marked WHERE id < 3000 AND _shard = '{one}'")
        cursor.execute(f"UPDATE loaded.marked SET v = 'wrong' WHERE _shard = '{one}'")
        cursor.execute(f"INSERT INTO loaded.marked (id, v, _shard) VALUES (-1, 'stray', '{one}')")
        cursor.execute(
            f"UPDATE loaded.marked SET v = 'by hand' WHERE id = 5 AND _shard = '{other}'"
        )
        connection.commit()
    others = marked(line, "s2")
    with MarkedTraffic(line) as traffic:
        words = ["load", "again", one, "--pipeline", str(line.pipeline_path), "--by", "olga"]
        given = CliRunner().invoke(main, words)
        assert given.exit_code == 0, given.output
        assert "the rows that the target has of it go" in given.output
        # They are out, and a part of them has come again.
        assert line.poll(lambda: [] if (-1, "stray") not in marked(line, "s1") else ["it is there"],
                         PATIENCE_S) == []  # fmt: skip
        assert line.poll(lambda: [] if marked(line, "s1") else ["no row"], PATIENCE_S) == []
        line.kill("sink")
        assert line.poll(
            lambda: [] if len(marked(line, "s1")) > 3_000 else ["few rows"], PATIENCE_S
        ) == []  # fmt: skip
        assert traffic.written > 20
    assert line.poll(lambda: marked_difference(line, "s1"), PATIENCE_S) == []
    assert marked(line, "s2") == others
    # Where the target cannot tell a shard's rows from others, nothing is done.
    words[2] = f"s1/load_app.{SHARDS['s1']}"
    refused = CliRunner().invoke(main, words)
    assert (refused.exit_code, "SM-1641" in refused.output) == (1, True), refused.output


def lose_key(line: Line) -> None:
    """A part of the table is loaded; from here on it has equal rows."""
    assert line.poll(lambda: loaded(line, 1, "lost_key"), PATIENCE_S) == []
    with line.connect("s1") as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE load_app.p_1 SET v = 0 WHERE id % 7 = 0")
        cursor.execute("ALTER TABLE load_app.p_1 DROP PRIMARY KEY")
        cursor.execute("INSERT INTO load_app.p_1 SELECT * FROM load_app.p_1 WHERE id % 5 = 0")
        cursor.execute("DELETE FROM load_app.p_1 WHERE id % 10 = 0 LIMIT 1000")
    assert loaded(line, LOST_ROWS, "lost_key") != [], "the table is loaded already"


def alter(line: Line, source: str, action: str) -> None:
    with line.connect(source) as connection, connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE load_app.{SHARDS[source]} {action}")


@pytest.mark.timeout(1200)
def test_a_load_is_right_whatever_happens_meanwhile(line: Line) -> None:
    with Traffic(line) as traffic:
        lose_key(line)
        assert line.poll(lambda: loaded(line, 1), PATIENCE_S) == []
        alter(line, "s1", "ADD COLUMN more INT NOT NULL DEFAULT 7")
        line.kill("sink")
        # The killed sink's snapshot does not have this column.
        with line.connect("s1") as connection, connection.cursor() as cursor:
            cursor.execute("ALTER TABLE load_app.k_1 ADD COLUMN more INT")
        assert line.poll(lambda: loaded(line, 15_000), PATIENCE_S) == []
        alter(line, "s2", "MODIFY n BIGINT")
        line.kill_server("target")
        line.kill_server("s2")
        assert line.poll(lambda: loaded(line, 60_000), PATIENCE_S) == []
        assert min(traffic.written) > 100
    assert line.poll(lambda: difference(line), PATIENCE_S, pause=2.0) == []
    assert line.in_log("sink", "load_completed") == []
    assert line.in_log("sink", "load_moved") == []
    assert line.in_log("sink", "load_cleared shard=s1/load_app.p_1") == []
    # No row came by Debezium's snapshot.
    for source in line.pipeline.sources:
        assert source.connector_snapshot_mode == "no_data"
    load_again(line)
