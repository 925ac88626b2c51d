"""Keys that only the collation calls equal, and rows without a key, over several partitions."""

from __future__ import annotations

import random
import threading

import pytest

from shardmerge.local.line import Line
from shardmerge.local.union import compare, read_table
from shardmerge.schemas.model.names import TargetTable

STATEMENTS = 1_500
KEYS, KEYLESS, PLACED = "plain_keys_app", "plain_keyless_app", "placed_app"
TARGETS = {
    KEYS: TargetTable("plain_keys_merged", "t"),
    KEYLESS: TargetTable("plain_keyless_merged", "t"),
    PLACED: TargetTable("placed_merged", "t"),
}
TABLES = {
    KEYS: "id VARCHAR(20) PRIMARY KEY, u INT NULL UNIQUE, v INT",
    KEYLESS: "a VARCHAR(20), v INT",
    PLACED: "a VARCHAR(20), v INT",
}
SOURCES = ("s1", "s2")


def spell(chance: random.Random, source: str) -> str:
    """One of few keys of a source, written in one of many ways."""
    key = f"{source}key{chance.randrange(15)}"
    return "".join(chance.choice((c, c.upper())) for c in key) + " " * chance.randrange(2)


def churn(line: Line, source: str, failures: list[str]) -> None:
    """Rows that come, go, and take one another's keys and unique values."""
    chance, first = random.Random(source), SOURCES.index(source) * 1_000
    try:
        with line.connect(source) as connection, connection.cursor() as cursor:
            for number in range(STATEMENTS):
                one, two = spell(chance, source), spell(chance, source)
                unique = first + chance.randrange(10)
                cursor.execute(f"UPDATE {KEYS}.t_1 SET u = NULL WHERE u = %s", (unique,))
                cursor.execute(
                    f"REPLACE INTO {KEYS}.t_1 VALUES (%s, %s, %s)", (one, unique, number)
                )
                if number % 3 == 0:
                    cursor.execute(f"UPDATE {KEYS}.t_1 SET id = %s WHERE id = %s", (two, two))
                if number % 4 == 0:
                    cursor.execute(f"DELETE FROM {KEYS}.t_1 WHERE id = %s", (two,))
                row = (chance.choice("xyz"), chance.randrange(3))
                if source == "s1" and number % 40 == 0:
                    cursor.execute(f"DELETE FROM {PLACED}.t_0 LIMIT 1")
                for database in (KEYLESS, PLACED):
                    cursor.execute(f"INSERT INTO {database}.t_1 VALUES (%s, %s)", row)
                    if number % 2:
                        cursor.execute(
                            f"DELETE FROM {database}.t_1 WHERE a = %s AND v = %s LIMIT 1", row
                        )
                    if number % 5 == 0:
                        cursor.execute(f"UPDATE {database}.t_1 SET v = 9 WHERE a = 'x' LIMIT 2")
    except Exception as error:
        failures.append(f"{source}: {error}")
        raise


def difference(line: Line) -> list[str]:
    found = []
    for database, target in TARGETS.items():
        with line.connect_target() as connection:
            merged = read_table(connection, target.database, target.table)
        if merged is None:
            return [f"no target {target}"]
        shards = []
        for source in SOURCES:
            with line.connect(source) as connection:
                found_here = [read_table(connection, database, name) for name in ("t_0", "t_1")]
            shards += [(source, shard) for shard in found_here if shard is not None]
        place = "_place" if database == PLACED else ""
        if place and merged.key != (place,):
            return [f"{target}: its key is {merged.key}"]
        differences = compare(merged, shards, position_column=place).differences
        found += [f"{target}: {text}" for text in differences]
    return found


@pytest.mark.timeout(600)
def test_rows_whose_order_counts_over_partitions_end_as_their_shards(line: Line) -> None:
    for source in SOURCES:
        with line.connect(source) as connection, connection.cursor() as cursor:
            for database, columns in TABLES.items():
                cursor.execute(f"CREATE DATABASE IF NOT EXISTS {database}")
                cursor.execute(f"CREATE TABLE {database}.t_1 ({columns})")
    failures: list[str] = []
    threads = [threading.Thread(target=churn, args=(line, s, failures)) for s in SOURCES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []

    assert line.poll(lambda: difference(line), seconds=300) == []
    with line.connect_target() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT _place FROM placed_merged.t WHERE _place LIKE '% placed_app.t_0:%'")
        assert len(cursor.fetchall()) == 50 - len(range(0, STATEMENTS, 40)), "rows of the snapshot"

    log = line.log_path("sink").read_text(encoding="utf-8")
    held = [x for x in log.splitlines() if "shard_held" in x and "plain_key" in x]
    assert held == [], "nothing of it is out of order"
