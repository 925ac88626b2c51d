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
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.plain import from_plain
from tests.background import Background
from tests.breadth import further
from tests.killed_commands import kill_at_place, kill_when_told
from tests.line_sql import execute
from tests.running import wait_for

ROWS = 6_000
KEYED, KEYLESS = "plainnew_merged.t", "plainanew_merged.t"
ANEW = "renewed_merged.t"
EXCHANGE = "exchange-begun:1"
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


def call_to_the_end(line: Line, target: str) -> RebuildReport:
    """Call it once more as it says when a row changed each time that it was read."""
    report = call(line, target)
    for _ in range(5):
        if [reason.code for reason in report.reasons] != ["SM-6508"]:
            break
        report = call(line, target)
    return report


def until_pages_show(line: Line, target: str, state: str) -> None:
    """Wait until the pages show this state of a target's comparisons."""
    shown = partial(line.status, TargetTable(*target.split(".")))
    wait_for(lambda: shown()["validation"]["state"] == state, f"{state!r} on the pages")


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
    offered(line, "s1/plainanew_app.t_1", KEYLESS, "SM-3108")


def offered(line: Line, shard: str, target: str, code: str) -> None:
    """Wait until a rebuild is offered as a way out of what has this code."""
    ask = ["explain", shard, "--json", "--pipeline", str(line.pipeline_path)]

    def ways() -> list[str]:
        told = json.loads(CliRunner().invoke(main, ask).stdout)
        causes = (cause for cause in told["causes"] if cause["code"] == code)
        return [way["command"] for cause in causes for way in cause["ways"]]

    wait_for(lambda: any(f"rebuild {target}" in way for way in ways()), "a way out by a rebuild")


@further
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
    compared = CliRunner().invoke(main, ["validate", KEYED, "--pipeline", str(line.pipeline_path)])
    assert compared.exit_code == 1, compared.output
    until_pages_show(line, KEYED, "differs")
    with Writers(line) as writers:
        kill_when_told(words(line, KEYED), "compare the new table")
        leaves_nothing(line, call(line, KEYED, "--abort"))
        execute(line, "s1", "ALTER TABLE plainnew_app.t_1 ADD COLUMN n INT NOT NULL DEFAULT 5")
        prepared = call(line, KEYED, "--prepare")
        assert (prepared.reasons, prepared.stage) == ((), "building")
        execute(line, "s2", "ALTER TABLE plainnew_app.t_2 ADD COLUMN n INT NOT NULL DEFAULT 5")
        kill_at_place(words(line, KEYED), EXCHANGE)
        swapped = call_to_the_end(line, KEYED)
        assert (swapped.reasons, swapped.stage, swapped.by) == ((), "swapped", "olga")
        # The call that compared the new table is gone.
        until_pages_show(line, KEYED, "never")
        assert writers.written > 100
        execute(line, "s2", "ALTER TABLE plainnew_app.t_2 ADD COLUMN m INT")
        hold_keyless(line)
        keyless = call_to_the_end(line, KEYLESS)
        assert (keyless.reasons, keyless.stage) == ((), "swapped")
        until_pages_show(line, KEYLESS, "equal")
    wait_for(lambda: not difference(line, KEYED), "equal rows")
    wait_for(lambda: not difference(line, KEYLESS), "equal rows without a key")
    assert call(line, KEYED, "--drop-old").stage == "ended"
    assert in_target(line, "SHOW DATABASES LIKE 'shardmerge\\_%\\_%'") == (
        (keyless.old_table.split(".")[0],),
    )


class Collisions(Background):
    """Write equal keys into two shards while the context lasts."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self.written = 0
        super().__init__(*(partial(self._write, source) for source in ("s1", "s2")))

    def _write(self, source: str) -> None:
        chance, table = random.Random(source), f"renewed_app.t_{source[1:]}"
        with self._line.connect(source) as connection, connection.cursor() as cursor:
            while not self.ends.wait(0.02):
                key = chance.randrange(1, 400)
                cursor.execute(f"DELETE FROM {table} WHERE id = {key + 1}")
                cursor.execute(
                    f"INSERT INTO {table} (id, v) VALUES ({key}, '{source}')"
                    f" ON DUPLICATE KEY UPDATE v = CONCAT(LEFT(v, 9), {key})"
                )
                self.written += 1


def rows_of_both(line: Line, columns: str) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for source in ("s1", "s2"):
        table = f"renewed_app.t_{source[1:]}"
        with line.connect(source) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT {columns}, '{source}/{table}' FROM {table}")
            found += cursor.fetchall()
    return sorted(found, key=repr)


def rows_anew(line: Line, columns: str) -> list[tuple[Any, ...]]:
    return sorted(in_target(line, f"SELECT {columns}, _shard FROM {ANEW}"), key=repr)


def key_of(line: Line, target: str) -> list[str]:
    return [row[4] for row in in_target(line, f"SHOW INDEX FROM {target}") if row[2] == "PRIMARY"]


def give(line: Line, *said: str) -> None:
    file = ["--pipeline", str(line.pipeline_path)]
    result = CliRunner().invoke(main, ["command", *said, *file])
    assert result.exit_code == 0, result.output


@pytest.mark.timeout(600)
def test_shards_with_equal_keys_are_told_apart_and_held_ones_go_on(line: Line) -> None:
    tables = {source: f"renewed_app.t_{source[1:]}" for source in ("s1", "s2")}
    for source, table in tables.items():
        execute(
            line, source, "CREATE DATABASE renewed_app",
            f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(20))",
            f"INSERT INTO {table} VALUES (1, '{source}'), (2, '{source}'), (3, '{source}')",
        )  # fmt: skip
    wait_for(lambda: count(line, ANEW) == 3, "the rows that were written last")
    # Nobody knows the new keys of rows that are there, and they may not be missing for a while.
    give(line, "set-policy", "existing_rows=hold", "--target", ANEW)
    for source, table in tables.items():
        execute(
            line, source, f"ALTER TABLE {table} DROP PRIMARY KEY, ADD UNIQUE w (id),"
            " ADD COLUMN k INT NOT NULL AUTO_INCREMENT PRIMARY KEY",
        )  # fmt: skip
    # The other one is held since the keys differed.
    offered(line, "s2/renewed_app.t_2", ANEW, "SM-1211")
    offered(line, "s1/renewed_app.t_1", ANEW, "SM-1205")
    origin = 'origin={ shard = "_shard", in_keys = true }'

    def alter(action: str) -> None:
        for source, table in tables.items():
            execute(line, source, f"ALTER TABLE {table} {action}")

    def add_column() -> None:
        alter("ADD COLUMN n INT NOT NULL DEFAULT 5")

    with Collisions(line) as writers:
        rebuild = words(line, ANEW, "--with", origin)
        kill_at_place(rebuild, EXCHANGE, {"load about": add_column})
        assert key_of(line, ANEW) == ["id"]
        refused = CliRunner().invoke(main, words(line, ANEW, "--abort"))
        assert (refused.exit_code, "SM-6514" in refused.output) == (2, True), refused.output
        swapped = call_to_the_end(line, ANEW)
        assert (swapped.reasons, swapped.stage, swapped.file_changed) == ((), "swapped", True)
        assert writers.written > 100
    # Beside writers, MySQL can find duplicates that are none (online DDL).
    alter("ADD UNIQUE u (id, n)")
    assert key_of(line, ANEW) == ["k", "_shard"]
    columns = "k, id, v, n"
    wait_for(lambda: rows_anew(line, columns) == rows_of_both(line, columns), "equal rows")
    assert "in_keys = true" in line.pipeline_path.read_text()
    assert call(line, ANEW, "--drop-old").stage == "ended"
