"""Nanoseconds of a value from Debezium's form to the text for LOAD DATA, by type.

Beside DECIMAL, TIMESTAMP and DATETIME(3) stands the form that they might have instead: Decimal
objects, and microseconds (``spark_sink.rows.values.forms``). No server is needed.

    python -m benchmarks.row_values [--rounds 200]
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.rows.values.readers import reader
from shardmerge.spark_sink.rows.values.times import datetime_texts_us
from shardmerge.spark_sink.targets.mysql.lines.encoders import cells_of

ROWS = 150
"""Rows that are converted at once (``row_batches.SETTLED_ROWS``)."""
EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


def _values() -> dict[str, tuple[ColumnType, list[Any]]]:
    chance = random.Random(1)
    moments = [1_600_000_000_000 + chance.randrange(10**10) for _ in range(ROWS)]
    texts = [f"{EPOCH + timedelta(milliseconds=m):%Y-%m-%dT%H:%M:%S.%f}Z" for m in moments]
    return {
        "bigint": (ColumnType("bigint"), [chance.randrange(10**9) for _ in range(ROWS)]),
        "decimal": (
            ColumnType("decimal", 12, 2),
            [f"{chance.randrange(10**6) / 100:.2f}" for _ in range(ROWS)],
        ),
        "double": (ColumnType("double"), [chance.random() for _ in range(ROWS)]),
        "date": (ColumnType("date"), [18_000 + chance.randrange(900) for _ in range(ROWS)]),
        "time(6)": (
            ColumnType("time", fsp=6),
            [chance.randrange(86_400_000_000) for _ in range(ROWS)],
        ),
        "datetime(3)": (ColumnType("datetime", fsp=3), moments),
        "datetime(6)": (ColumnType("datetime", fsp=6), [m * 1_000 + 7 for m in moments]),
        "timestamp(6)": (ColumnType("timestamp", fsp=6), texts),
        "varchar": (ColumnType("varchar", 90, charset="utf8mb4"), ["user@example.org"] * ROWS),
    }


def _own(kind: ColumnType, values: Sequence[Any]) -> Callable[[], object]:
    column = reader(kind)
    return lambda: cells_of(column.form, column.read(values), False)


def _as_decimals(values: Sequence[str]) -> object:
    return [*map(str, [*map(Decimal, values)])]


def _ms_as_microseconds(values: Sequence[int]) -> object:
    return datetime_texts_us([v * 1_000 for v in values], nulls=False)


def _timestamps_as_microseconds(values: Sequence[str]) -> object:
    moments = [(datetime.fromisoformat(v) - EPOCH) // MICROSECOND for v in values]
    return datetime_texts_us(moments, nulls=False)


def _ns(work: Callable[[], object], rounds: int) -> float:
    """The least CPU time of a value."""
    least = float("inf")
    for _ in range(rounds):
        started = time.process_time_ns()
        for _ in range(10):
            work()
        least = min(least, (time.process_time_ns() - started) / 10 / ROWS)
    return least


def main() -> None:
    """Print one line per type."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    values = _values()
    others: dict[str, tuple[str, Callable[[Sequence[Any]], object]]] = {
        "decimal": ("Decimal", _as_decimals),
        "datetime(3)": ("microseconds", _ms_as_microseconds),
        "timestamp(6)": ("microseconds", _timestamps_as_microseconds),
    }
    for name, (kind, some) in values.items():
        line = f"{name:14}{_ns(_own(kind, some), rounds):8.0f} ns"
        if name in others:
            form, convert = others[name]
            line += f"   as {form}: {_ns(partial(convert, some), rounds):.0f} ns"
        print(line)


if __name__ == "__main__":
    main()
