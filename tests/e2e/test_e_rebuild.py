"""``shardmerge rebuild`` on the whole line, with writers, DDL and kills meanwhile."""

from __future__ import annotations

import json
import random
from functools import partial
from typing import Any

import pymysql
import pytest
from click.testing import CliRunner

from shardmerge.cli.main import main
from shardmerge.cli.rebuild.rebuild_shapes import RebuildReport
from shardmerge.local.line import Line
from shardmerge.local.union import compare, read_table
from shardmerge.schemas.records.plain import from_plain
from tests.background import Background
from tests.killed_commands import kill_when_told
from tests.line_sql import execute
from tests.running import wait_for

ROWS = 6_000
KEYED, KEYLESS = "plainnew_merged.t", "plainanew_merged.t"
SHARDS = {
    KEYED: {"s1": "plainnew_app.t_1", "s2": "plainnew_app.t_2"},
    KEYLESS: {"s1": "plainanew_app.t_1"},
}
_NUMBERS = f"WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < {ROWS})"


def make_shards(line: Line) -> None:
    for number, (source, table) in enumerate(SHARDS[KEYED].items()):
        execute(
            line, source, "SET SESSION cte_max_recursion_depth = 100000",
            "CREATE DATABASE plainnew_app",
            f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(20),"
            " CONSTRAINT few CHECK (id < 1000000))",
            f"INSERT INTO {table} {_NUMBERS} SELECT {number * 100_000} + n, CONCAT('a', n) FROM i",
        )  # fmt: skip
    execute(
        line, "s1", "CREATE DATABASE plainanew_app",
        "CREATE TABLE plainanew_app.t_1 (a INT, v VARCHAR(20))",
        "INSERT INTO plainanew_app.t_1 VALUES (1, 'x'), (1, 'x'), (2, NULL)",
    )  # fmt: skip


def in_target(line: Line, *statements: str) -> tuple[tuple[Any, ...], ...]:
    with line.connect_target() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return tuple(cursor.fetchall())


def count(line: Line, target: str) -> int:
    try:
        return int(in_target(line, f"SELECT COUNT(*) FROM {target}")[0][0])
    except pymysql.MySQLError:
        return 0


def difference(line: Line, target: str) -> list[str]:
    with line.connect_target() as connection:
        merged = read_table(connection, *target.split("."))
    shards = []
    for source, name in SHARDS[target].items():
        with line.connect(source) as connection:
            shard = read_table(connection, *name.split("."))
        assert shard is not None
        shards.append((name, shard))
    assert merged is not None
    return [text[:300] for text in compare(merged, shards).differences]


class Writers(Background):
    """Change rows of all shards while the context lasts."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self.written = 0
        sources = enumerate(SHARDS[KEYED])
        super().__init__(*(partial(self._write, number, source) for number, source in sources))

    def _write(self, number: int, source: str) -> None:
        chance, table = random.Random(number), SHARDS[KEYED][source]
        with self._line.connect(source) as connection, connection.cursor() as cursor:
            while not self.ends.wait(0.01):
                key = number * 100_000 + chance.randrange(1, ROWS * 2)
                for statement in (
                    f"REPLACE INTO {table} (id, v) VALUES ({key}, 'new{key}')",
                    f"DELETE FROM {table} WHERE id = {key + 1}",
                    f"UPDATE IGNORE {table} SET id = id + 50000 WHERE id = {key + 2}",
                ):
                    cursor.execute(statement)
                    self.written += 1
                if source == "s1" and not chance.randrange(5):
                    cursor.execute("INSERT INTO plainanew_app.t_1 VALUES (3, 'y'), (3, 'y')")
                    cursor.execute("DELETE FROM plainanew_app.t_1 WHERE a = 3 LIMIT 1")


def words(line: Line, target: str, *more: str) -> list[str]:
    return ["rebuild", target, "--pipeline", str(line.pipeline_path), "--by", "olga", *more]


def call(line: Line, target: str, *more: str) -> RebuildReport:
    result = CliRunner().invoke(main, words(line, target, "--json", *more))
    assert result.exit_code in (0, 1), result.output
    report = from_plain(RebuildReport, json.loads(result.stdout))
    assert (result.exit_code == 1) == bool(report.reasons)
    return report


def kill_at(line: Line, target: str, text: str) -> None:
    """Kill the command when it says that it begins a step."""
    kill_when_told(words(line, target), text)


def leaves_nothing(line: Line, aborted: RebuildReport) -> None:
    assert (aborted.stage, aborted.reasons) == ("aborted", ())
    assert in_target(line, f"SHOW DATABASES LIKE '{aborted.new_table.split('.')[0]}'") == ()
    for table in ("offsets", "ddl_journal", "loads", "load_chunks"):
        left = in_target(line, f"SELECT COUNT(*) FROM shardmerge.{table} WHERE pipeline LIKE '%~%'")
        assert left == ((0,),), table


def hold_keyless(line: Line) -> None:
    """The shard deletes a row that somebody has deleted in the target, and waits there."""
    in_target(line, f"DELETE FROM {KEYLESS} WHERE a = 2")
    execute(
        line, "s1", "DELETE FROM plainanew_app.t_1 WHERE a = 2",
        "INSERT INTO plainanew_app.t_1 VALUES (7, 'behind it')",
    )  # fmt: skip
    ask = ["explain", "s1/plainanew_app.t_1", "--json", "--pipeline", str(line.pipeline_path)]

    def ways() -> list[str]:
        told = json.loads(CliRunner().invoke(main, ask).stdout)
        return [
            way["command"]
            for cause in told["causes"]
            for way in cause["ways"]
            if cause["code"] == "SM-3108"
        ]

    wait_for(lambda: any(f"rebuild {KEYLESS}" in way for way in ways()), "a way out by a rebuild")


@pytest.mark.timeout(900)
def test_a_damaged_target_is_rebuilt_while_it_serves(line: Line) -> None:
    make_shards(line)
    wait_for(lambda: count(line, KEYED) == 2 * ROWS and count(line, KEYLESS) == 3, "the first rows")
    # Nobody knows any more what is wrong: rows changed, deleted and added by hand.
    in_target(
        line, f"UPDATE {KEYED} SET v = 'by hand' WHERE id % 7 = 0",
        f"DELETE FROM {KEYED} WHERE id % 11 = 0", f"INSERT INTO {KEYED} VALUES (999999, 'nobody')",
        f"INSERT INTO {KEYLESS} VALUES (1, 'x')",
    )  # fmt: skip
    with Writers(line) as writers:
        kill_at(line, KEYED, "compare the new table")
        leaves_nothing(line, call(line, KEYED, "--abort"))
        execute(line, "s1", "ALTER TABLE plainnew_app.t_1 ADD COLUMN n INT NOT NULL DEFAULT 5")
        prepared = call(line, KEYED, "--prepare")
        assert (prepared.reasons, prepared.stage) == ((), "building")
        execute(line, "s2", "ALTER TABLE plainnew_app.t_2 ADD COLUMN n INT NOT NULL DEFAULT 5")
        kill_at(line, KEYED, "exchange the tables")
        swapped = call(line, KEYED)
        assert (swapped.reasons, swapped.stage, swapped.by) == ((), "swapped", "olga")
        assert writers.written > 100
        execute(line, "s2", "ALTER TABLE plainnew_app.t_2 ADD COLUMN m INT")
        hold_keyless(line)
        keyless = call(line, KEYLESS)
        assert (keyless.reasons, keyless.stage) == ((), "swapped")
    wait_for(lambda: not difference(line, KEYED), "equal rows")
    wait_for(lambda: not difference(line, KEYLESS), "equal rows without a key")
    assert call(line, KEYED, "--drop-old").stage == "ended"
    assert in_target(line, "SHOW DATABASES LIKE 'shardmerge\\_%\\_%'") == (
        (keyless.old_table.split(".")[0],),
    )
