"""Rows per second that clients read of a table in chunks, as a first load does.

Each client asks the same server for the same chunks by primary key, and gives Python what the next
step of a load needs: a text or bytes for each value. A client that is not installed is left out;
none but PyMySQL is needed for anything else. The ratio is the one to PyMySQL with its own
conversions of values, as every program has it that asks for nothing else.

    python -m benchmarks.load_reader [--rows 200000] [--chunks 5000,20000,50000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pymysql
from pymysql.cursors import SSCursor

from benchmarks.bench_events import COLUMNS
from shardmerge.connectors.access.row_pieces import row_pieces
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.other_versions import running_server
from shardmerge.local.servers.stack import Ports
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.rows.values.server_values import server_reader
from shardmerge.spark_sink.sources.packed_rows import PackedRows
from shardmerge.spark_sink.targets.mysql.lines.encoders import load_lines, packed_lines

ROOT = Path(__file__).resolve().parents[1]
FILL = """
    INSERT INTO bench.t WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < {})
    SELECT n, n % 99991, ELT(1 + n % 4, 'new', 'paid', 'sent', 'back'), n / 7, n % 1000,
      CONCAT('customer', n, '@example.com'), IF(n % 5, REPEAT('a note of some length ', 3), NULL),
      '2024-01-01 00:00:00.125' + INTERVAL n SECOND,
      '2024-01-01 00:00:00.000125' + INTERVAL n SECOND,
      '2024-01-01' + INTERVAL n % 999 DAY, n / 3, n % 2 FROM i
"""
KINDS = (
    "bigint", "int", "enum", "decimal", "smallint", "varchar", "varchar", "datetime", "timestamp",
    "date", "double", "tinyint",
)  # fmt: skip
PACKED = "the same connection, packets with marks"
Read: TypeAlias = Callable[[str], Any]


def packed_rows(connection: Any, sql: str) -> PackedRows:
    """The rows of a query, as a first load into a server of the MySQL family reads them."""
    found = PackedRows(len(KINDS))
    for piece in row_pieces(connection, sql):
        if found.add(piece) is not None:
            found.check()
            break
    return found


def clients(port: int) -> Iterator[tuple[str, Read]]:
    """Name of a client, and what reads the rows of a query."""
    login: dict[str, Any] = {"host": "127.0.0.1", "port": port, "user": USER, "password": PASSWORD}

    def with_cursor(connection: Any, **options: Any) -> Read:
        def read(sql: str) -> Any:
            with connection.cursor(**options) as cursor:
                cursor.execute(sql)
                return cursor.fetchall()

        return read

    yield "PyMySQL", with_cursor(pymysql.connect(**login))
    yield "PyMySQL, SSCursor", with_cursor(pymysql.connect(**login, cursorclass=SSCursor))
    yield (
        "PyMySQL without conversions",
        with_cursor(pymysql.connect(**login, conv={}, autocommit=None)),
    )
    plain = pymysql.connect(**login, conv={}, autocommit=None, charset="utf8mb4")
    yield PACKED, partial(packed_rows, plain)
    with suppress(ImportError):
        connector = importlib.import_module("mysql.connector")
        connection = connector.connect(**login, use_pure=False)
        yield "mysql-connector-python (C), raw", with_cursor(connection, raw=True)
    with suppress(ImportError):
        connectorx = importlib.import_module("connectorx")
        url = f"mysql://{USER}:{PASSWORD}@127.0.0.1:{port}/bench"

        def columnar(sql: str) -> Any:
            table = connectorx.read_sql(url, sql, return_type="arrow")
            return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

        yield "connectorx (Arrow), as Python values", columnar
        yield (
            "connectorx (Arrow), columns only",
            lambda sql: connectorx.read_sql(url, sql, return_type="arrow"),
        )


def seconds_of(read: Read, rows: int, chunk: int) -> tuple[float, float]:
    """Seconds, and seconds of this process's CPU, for the whole table."""
    started, cpu = time.monotonic(), time.process_time()
    for low in range(0, rows, chunk):
        read(f"SELECT * FROM bench.t WHERE id > {low} AND id <= {low + chunk} ORDER BY id")
    return time.monotonic() - started, time.process_time() - cpu


def encoding_s(rows: list[tuple[Any, ...]]) -> float:
    """Seconds in which the rows become lines for LOAD DATA."""
    readers = [server_reader(Column("c", ColumnType(kind))) for kind in KINDS]
    started = time.monotonic()
    found = [r.read_column(list(v)) for r, v in zip(readers, zip(*rows, strict=True), strict=True)]
    values = [column for column, _ in found]
    load_lines([r.form for r in readers], values, [None in some for some in values])
    return time.monotonic() - started


def packing_s(rows: PackedRows) -> float:
    """The same for rows that are packed."""
    started = time.monotonic()
    packed_lines(rows, "")
    return time.monotonic() - started


def measure(port: int, rows: int, chunks: list[int], rounds: int) -> None:
    """Fill the table, read it in every way, print the medians."""
    login: dict[str, Any] = {"host": "127.0.0.1", "port": port, "user": USER, "password": PASSWORD}
    with pymysql.connect(**login, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE bench")
        cursor.execute(f"CREATE TABLE bench.t ({COLUMNS})")
        cursor.execute("SET SESSION cte_max_recursion_depth = 100000000, sql_mode = ''")
        cursor.execute(FILL.format(rows))
    print(f"| client | rows a chunk | rows/s | µs of CPU a row | ratio |\n|{'---|' * 5}")
    known = dict(clients(port))
    for chunk in chunks:
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in known}
        for _ in range(rounds):
            for name, read in known.items():
                times[name].append(seconds_of(read, rows, chunk))
        median = {n: tuple(map(statistics.median, zip(*t, strict=True))) for n, t in times.items()}
        for name, (wall, cpu) in median.items():
            ratio = median["PyMySQL"][0] / wall
            speed, each = rows / wall, cpu / rows * 1e6
            print(f"| {name} | {chunk:,} | {speed:,.0f} | {each:.1f} | {ratio:.2f} |", flush=True)
    sql = "SELECT * FROM bench.t ORDER BY id LIMIT 50000"
    some, packed = known["PyMySQL without conversions"](sql), known[PACKED](sql)
    took = statistics.median(encoding_s(list(some)) for _ in range(rounds))
    print(f"\nThen making lines of the values: {took / len(some) * 1e6:.1f} µs a row")
    took = statistics.median(packing_s(packed) for _ in range(rounds))
    print(f"Making lines of packets with marks: {took / packed.rows * 1e6:.1f} µs a row")


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--chunks", default="5000,20000,50000")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    (ROOT / ".local").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="load-reader-", dir=ROOT / ".local") as directory:
        port = Ports.free().source1
        with running_server("mysql80", Path(directory), port):
            chunks = [int(text) for text in options.chunks.split(",")]
            measure(port, options.rows, chunks, options.rounds)


if __name__ == "__main__":
    main()
