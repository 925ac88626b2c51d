"""Compares ways of writing rows into a TiDB: which one the sink should take.

Every way writes the same rows, in the order of their primary key: first into an empty table, then
over the rows that are there. Each connection is a process of its own, and writes one range of keys.
Printed are the seconds of both, and rows per second into the empty table; with several rounds the
median of each.

    python -m benchmarks.tidb_load --tidb USER:PASSWORD@HOST:PORT [--rows 200000] [--rounds 1]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from benchmarks.bench_measures import tidb_address
from shardmerge.schemas.model.errors import TargetError
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession

DATABASE = "shardmerge_bench"
TABLE = f"{DATABASE}.t"
COLUMNS = {
    "id": "BIGINT NOT NULL PRIMARY KEY",
    "customer": "INT NOT NULL",
    "status": "VARCHAR(8) NOT NULL",
    "amount": "DECIMAL(12,2) NOT NULL",
    "quantity": "INT NOT NULL",
    "email": "VARCHAR(80)",
    "note": "VARCHAR(120)",
    "created": "DATETIME NOT NULL",
    "changed": "TIMESTAMP(3) NOT NULL",
    "due": "DATE",
    "score": "DOUBLE",
    "flag": "TINYINT",
}
"""The columns of the table: name → definition."""
NAMES = ", ".join(COLUMNS)
ROWS_PER_STATEMENT = 1_000

Row: TypeAlias = tuple[str, ...]
Way: TypeAlias = Callable[[MySqlSession, Sequence[Row]], None]


@dataclass(frozen=True, slots=True)
class Shape:
    """How the rows are divided: over so many connections, so many rows to a transaction."""

    connections: int
    transaction_rows: int


SHAPES = (
    Shape(1, 50_000), Shape(1, 5_000), Shape(2, 5_000), Shape(4, 5_000), Shape(8, 5_000),
    Shape(4, 1_000),
)  # fmt: skip


def row(key: int) -> Row:
    """The row of a key, its values as text in the order of ``COLUMNS``."""
    return (
        str(key), str(key % 9_973), ("new", "paid")[key % 2], f"{key % 100_000}.{key % 90:02d}",
        str(key % 17), f"user{key}@example.com", f"note of {key} " * 3, "2026-01-02 03:04:05",
        "2026-01-02 03:04:05.678", "2026-02-03", str(key / 7), str(key % 2),
    )  # fmt: skip


def load(session: MySqlSession, rows: Sequence[Row]) -> None:
    """Write rows by one LOAD DATA LOCAL REPLACE."""
    data = ("\n".join(map("\t".join, rows)) + "\n").encode()
    session.load(
        f"LOAD DATA LOCAL INFILE '{{path}}' REPLACE INTO TABLE {TABLE} CHARACTER SET utf8mb4"
        f" FIELDS TERMINATED BY '\\t' LINES TERMINATED BY '\\n' ({NAMES})",
        data,
    )


def statements(session: MySqlSession, rows: Sequence[Row], verb: str, end: str = "") -> None:
    """Write rows by statements of ``ROWS_PER_STATEMENT`` rows: ``verb INTO … VALUES … end``."""
    for start in range(0, len(rows), ROWS_PER_STATEMENT):
        some = rows[start : start + ROWS_PER_STATEMENT]
        values = ", ".join("('" + "','".join(of_row) + "')" for of_row in some)
        session.execute(f"{verb} INTO {TABLE} ({NAMES}) VALUES {values}{end}")


_ASSIGNMENTS = ", ".join(f"{name}=VALUES({name})" for name in list(COLUMNS)[1:])
WAYS: dict[str, Way] = {
    "LOAD DATA LOCAL REPLACE": load,
    "REPLACE of 1,000 rows": partial(statements, verb="REPLACE"),
    "INSERT … ON DUPLICATE KEY UPDATE": partial(
        statements, verb="INSERT", end=f" ON DUPLICATE KEY UPDATE {_ASSIGNMENTS}"
    ),
}


def chunks(keys: range, size: int) -> Iterator[range]:
    """The keys in ranges of at most ``size``."""
    for start in range(keys.start, keys.stop, size):
        yield range(start, min(start + size, keys.stop))


def write(address: MySqlAddress, way: str, transaction_rows: int, keys: range) -> None:
    """Write the rows of these keys over one connection."""
    session = MySqlSession(address)
    for chunk in chunks(keys, transaction_rows):
        rows = [row(key) for key in chunk]
        with session.transaction():
            WAYS[way](session, rows)
    session.close()


def seconds_of(
    pool: ProcessPoolExecutor, session: MySqlSession, way: str, shape: Shape, count: int
) -> tuple[float, float]:
    """Measure one way.

    Args:
        pool: Its processes write.
        session: Makes the table, and counts its rows.
        way: A name of ``WAYS``.
        shape: How the rows are divided.
        count: How many rows are written.

    Returns:
        Seconds into the empty table, and over the rows that are there.

    Raises:
        TargetError: The table has another number of rows in the end.
    """
    session.execute(f"DROP TABLE IF EXISTS {TABLE}")
    columns = ", ".join(f"{name} {definition}" for name, definition in COLUMNS.items())
    session.execute(f"CREATE TABLE {TABLE} ({columns})")
    parts = list(chunks(range(count), -(-count // shape.connections)))
    work = partial(write, session.address, way, shape.transaction_rows)
    found = []
    for _ in range(2):
        began = time.monotonic()
        list(pool.map(work, parts))
        found.append(time.monotonic() - began)
    ((rows,),) = session.query(f"SELECT COUNT(*) FROM {TABLE}")
    if rows != count:
        raise TargetError(f"{way} has written {rows} of {count} rows")
    return found[0], found[1]


def main(arguments: list[str]) -> int:
    """Print a line for each way and shape."""
    parser = argparse.ArgumentParser(prog="tidb_load", description=__doc__.splitlines()[0])
    parser.add_argument("--tidb", required=True, help="USER:PASSWORD@HOST:PORT")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args(arguments)
    session = MySqlSession(tidb_address(options.tidb))
    session.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
    print(f"{options.rows:,} rows of {len(COLUMNS)} columns, {session.facts.version_text}")
    print(f"{'way':<34}{'connections':>12}{'transaction':>13}{'new':>9}{'again':>9}{'rows/s':>10}")
    with ProcessPoolExecutor(max(shape.connections for shape in SHAPES)) as pool:
        for way in WAYS:
            for shape in SHAPES:
                rounds = [
                    seconds_of(pool, session, way, shape, options.rows)
                    for _ in range(options.rounds)
                ]
                new, again = (statistics.median(times) for times in zip(*rounds, strict=True))
                print(
                    f"{way:<34}{shape.connections:>12}{shape.transaction_rows:>13,}"
                    f"{new:>8.1f}s{again:>8.1f}s{options.rows / new:>10,.0f}",
                    flush=True,
                )
    session.execute(f"DROP DATABASE {DATABASE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
