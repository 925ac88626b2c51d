"""Rows per second that validation compares, beside a plain SELECT of both sides in the same run.

Makes a table of 12 columns and its equal target on one MySQL 8.0.15, reads both by ``SELECT *``
through an unbuffered cursor of the same client, and then compares them. Both are done in turn,
several times; the table shows each round, and the median ratio.

    python -m benchmarks.validation_speed [--rows 1000000] [--rounds 3] [--range 20000] [--keys 9]

At the end it compares as many single rows as ``--keys`` says, as a cut-over does with rows that
have changed.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from pathlib import Path

import pymysql
from pymysql.cursors import SSCursor

from shardmerge.cli.validation.inputs.server_rows import ServerRows
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.other_versions import running_server
from shardmerge.local.servers.stack import Ports
from shardmerge.spark_sink.validation.compared_table import compared_table
from shardmerge.spark_sink.validation.table_validation import TableValidation
from tests.integration.mysql.compared_line import S1, ToyLine, execute, pipeline
from tests.unit.spark_sink.validation.facts import shard, target

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = (
    "(id BIGINT PRIMARY KEY, a INT NOT NULL, b BIGINT, c VARCHAR(40) NOT NULL, d VARCHAR(80),"
    " e DECIMAL(12,2), f DATETIME NOT NULL, g TIMESTAMP(3) NULL, h DOUBLE, i TINYINT(1),"
    " j CHAR(12), k DATE)"
)
ROW = (
    "SELECT n, n % 1000, n * 7919, CONCAT('name ', n), REPEAT('x', n % 60), n / 7,"
    " '2026-01-01' + INTERVAL n SECOND, '2026-01-01' + INTERVAL n SECOND, n / 3, n % 2,"
    " CONCAT('k', n % 99), '2026-01-01' FROM"
)
DIGITS = " UNION ALL ".join(f"SELECT {n} AS d" for n in range(10))


def fill(port: int, rows: int) -> None:
    """Two equal tables."""
    execute(
        port,
        *(f"DROP DATABASE IF EXISTS {name}" for name in ("app", "merged")),
        *(f"CREATE DATABASE {name}" for name in ("app", "merged")),
        *(f"CREATE TABLE {name} {COLUMNS}" for name in ("app.t_1", "merged.t")),
        f"CREATE TABLE app.digits AS SELECT d FROM ({DIGITS}) AS some",
    )
    step = 100_000
    low = ", ".join(f"app.digits AS d{n}" for n in range(5))
    number = "+".join(f"d{n}.d*{10**n}" for n in range(5))
    for first in range(0, rows, step):
        inner = f"(SELECT {first} + {number} AS n FROM {low}) AS numbers WHERE n < {rows}"
        execute(port, f"INSERT INTO app.t_1 {ROW} {inner} ORDER BY n")
    execute(port, "INSERT INTO merged.t SELECT * FROM app.t_1", "ANALYZE TABLE app.t_1, merged.t")


def read(port: int) -> float:
    """Seconds to read both tables whole."""
    began = time.monotonic()
    for table in ("app.t_1", "merged.t"):
        connection = pymysql.connect(
            host="127.0.0.1", port=port, user=USER, password=PASSWORD, cursorclass=SSCursor,
            conv={}, autocommit=None, ssl_disabled=True,
        )  # fmt: skip
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {table}")
            while cursor.fetchmany(10_000):
                pass
        connection.close()
    return time.monotonic() - began


def compare(port: int, rows: int, rows_a_range: int) -> float:
    """Seconds to compare them."""
    own = f"CREATE TABLE t {COLUMNS}"
    servers, line = ServerRows(pipeline(port, port)), ToyLine(port)
    table = compared_table(target(own), [shard(S1, own)])
    began = time.monotonic()
    found = TableValidation(table, servers, line, rows_a_range)
    while not found.is_compared:
        found.compare_next()
    assert (found.rows, found.doubts) == (rows, {}), "the tables are equal"
    taken = time.monotonic() - began
    servers.close()
    return taken


def compare_keys(port: int, rows: int, keys: int) -> float:
    """Seconds to compare rows whose keys are known, all over the table."""
    own = f"CREATE TABLE t {COLUMNS}"
    servers, line = ServerRows(pipeline(port, port)), ToyLine(port)
    table = compared_table(target(own), [shard(S1, own)])
    wanted = sorted((str(n),) for n in random.Random(1).sample(range(rows), keys))
    began = time.monotonic()
    found = TableValidation(table, servers, line)
    found.compare_keys(wanted)
    assert (found.rows, found.doubts) == (keys, {}), "the tables are equal"
    taken = time.monotonic() - began
    servers.close()
    return taken


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--range", type=int, default=20_000)
    parser.add_argument("--keys", type=int, default=1_000)
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="validation-", dir=ROOT / ".local") as directory,
        running_server(
            "mysql80", Path(directory), Ports.free().target, cache=ROOT / ".local" / "cache",
            say=print,
        ) as server,
    ):  # fmt: skip
        fill(server.port, arguments.rows)
        ratios = []
        print("round  SELECT rows/s  compared rows/s  ratio")
        for number in range(1, arguments.rounds + 1):
            plain = read(server.port)
            compared = compare(server.port, arguments.rows, arguments.range)
            ratios.append(plain / compared)
            print(
                f"{number:5}  {arguments.rows / plain:13,.0f}  {arguments.rows / compared:15,.0f}"
                f"  {ratios[-1]:5.2f}",
                flush=True,
            )
        print(f"median ratio {statistics.median(ratios):.2f}")
        seconds = compare_keys(server.port, arguments.rows, arguments.keys)
        print(f"{arguments.keys:,} single rows: {seconds:.1f} s")


if __name__ == "__main__":
    main()
