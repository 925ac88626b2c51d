"""Rows per second into a TiDB, by each way of writing them: which one the sink should take.

A table of 12 columns with a primary key. Every way writes the same rows, sorted by key, first into
an empty table and then once more over the same keys. Connections are processes that write a part of
the keys each.

    python benchmarks/tidb_load.py --tidb USER:PASSWORD@HOST:PORT [--rows 200000] [--rounds 1]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

# Scripts of one folder: it is not on the path by itself, see PYTHONSAFEPATH in the Makefile.
sys.path.insert(0, str(Path(__file__).parent))
from bench_measures import tidb_address

from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession

DATABASE = "shardmerge_bench"
TABLE = f"{DATABASE}.t"
CREATE = f"""CREATE TABLE {TABLE} (
    id BIGINT NOT NULL PRIMARY KEY, customer INT NOT NULL, status VARCHAR(8) NOT NULL,
    amount DECIMAL(12,2) NOT NULL, quantity INT NOT NULL, email VARCHAR(80), note VARCHAR(120),
    created DATETIME NOT NULL, changed TIMESTAMP(3) NOT NULL, due DATE, score DOUBLE, flag TINYINT
)"""
COLUMNS = [
    "id",
    "customer",
    "status",
    "amount",
    "quantity",
    "email",
    "note",
    "created",
    "changed",
    "due",
    "score",
    "flag",
]
STATEMENT_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class Part:
    """Keys that one connection writes: from, to, and in how large transactions."""

    address: MySqlAddress
    start: int
    end: int
    transaction: int


def row(key: int) -> tuple[str, ...]:
    """The values of a row as text."""
    return (
        str(key), str(key % 9_973), ("new", "paid")[key % 2], f"{key % 100_000}.{key % 90:02d}",
        str(key % 17), f"user{key}@example.com", f"note of {key} " * 3, "2026-01-02 03:04:05",
        "2026-01-02 03:04:05.678", "2026-02-03", str(key / 7), str(key % 2),
    )  # fmt: skip


def load(session: MySqlSession, rows: Sequence[tuple[str, ...]]) -> None:
    """LOAD DATA LOCAL REPLACE."""
    data = ("\n".join(map("\t".join, rows)) + "\n").encode()
    session.load(
        f"LOAD DATA LOCAL INFILE '{{path}}' REPLACE INTO TABLE {TABLE} CHARACTER SET utf8mb4"
        f" FIELDS TERMINATED BY '\\t' LINES TERMINATED BY '\\n' ({', '.join(COLUMNS)})",
        data,
    )


def statements(
    session: MySqlSession, rows: Sequence[tuple[str, ...]], verb: str, end: str = ""
) -> None:
    """Statements of many rows each."""
    head = f"{verb} INTO {TABLE} ({', '.join(COLUMNS)}) VALUES "
    for start in range(0, len(rows), STATEMENT_ROWS):
        some = rows[start : start + STATEMENT_ROWS]
        text = ", ".join("('" + "','".join(values) + "')" for values in some)
        session.execute(f"{head}{text}{end}")


_UPSERT = " ON DUPLICATE KEY UPDATE " + ", ".join(f"{c}=VALUES({c})" for c in COLUMNS[1:])
WAYS: dict[str, Callable[[MySqlSession, Sequence[tuple[str, ...]]], None]] = {
    "LOAD DATA LOCAL REPLACE": load,
    "REPLACE of 1,000 rows": partial(statements, verb="REPLACE"),
    "INSERT … ON DUPLICATE KEY UPDATE": partial(statements, verb="INSERT", end=_UPSERT),
}


def write(way: str, part: Part) -> None:
    """Write a part of the keys, in transactions."""
    session = MySqlSession(part.address)
    for start in range(part.start, part.end, part.transaction):
        rows = [row(key) for key in range(start, min(start + part.transaction, part.end))]
        with session.transaction():
            WAYS[way](session, rows)
    session.close()


def seconds_of(
    pool: ProcessPoolExecutor, way: str, connections: int, whole: Part, empty: MySqlSession
) -> tuple[float, float]:
    """Seconds into an empty table, and over the same keys again."""
    empty.execute(f"DROP TABLE IF EXISTS {TABLE}")
    empty.execute(CREATE)
    size = -(-whole.end // connections)
    parts = [
        Part(whole.address, start, min(start + size, whole.end), whole.transaction)
        for start in range(0, whole.end, size)
    ]
    found = []
    for _ in range(2):
        began = time.monotonic()
        list(pool.map(partial(write, way), parts))
        found.append(time.monotonic() - began)
    ((count,),) = empty.query(f"SELECT COUNT(*) FROM {TABLE}")
    assert count == whole.end
    return found[0], found[1]


def main(arguments: list[str]) -> int:
    """Print a table: seconds and rows per second, medians of the rounds."""
    parser = argparse.ArgumentParser(prog="tidb_load")
    parser.add_argument("--tidb", required=True)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args(arguments)
    address = tidb_address(options.tidb)
    session = MySqlSession(address)
    session.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
    print(f"{options.rows:,} rows of {len(COLUMNS)} columns, {session.facts.version_text}")
    print(f"{'way':<34}{'connections':>12}{'transaction':>13}{'new':>9}{'again':>9}{'rows/s':>10}")
    with ProcessPoolExecutor(8) as pool:
        for way in WAYS:
            for connections, transaction in (
                (1, 50_000),
                (1, 5_000),
                (2, 5_000),
                (4, 5_000),
                (8, 5_000),
                (4, 1_000),
            ):
                whole = Part(address, 0, options.rows, transaction)
                runs = [
                    seconds_of(pool, way, connections, whole, session)
                    for _ in range(options.rounds)
                ]
                new, again = (statistics.median(times) for times in zip(*runs, strict=True))
                print(
                    f"{way:<34}{connections:>12}{transaction:>13,}{new:>8.1f}s{again:>8.1f}s"
                    f"{options.rows / new:>10,.0f}",
                    flush=True,
                )
    session.execute(f"DROP DATABASE {DATABASE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
