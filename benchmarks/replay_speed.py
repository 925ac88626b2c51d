"""Schema changes per second of processor time that a replay folds, from a bundle.

Usage: ``python -m benchmarks.replay_speed [--changes 10000] [--shards 10,100,1000]
[--columns 6] [--ways verify,text]``

Shards of one table on two sources; then each in turn adds a column or drops the oldest that it
added, until the log has that many changes. The bundle holds them, the sources' statements and what
the agents answered.

Given are the bundle's size, and changes per second: ``agents``, folded and encoded the first time,
tracker and coordinator; ``verify``; ``sources``, verified from the sources, which folds the tracker
as well; every step as ``text`` and as ``json``; and ``none`` shown, all folded and read.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from click.testing import CliRunner

from shardmerge.cli.main import main as shardmerge
from tests.recorded import Recorded

_KINDS = ("int", "varchar(40)", "decimal(12,2)", "datetime(3)", "varchar(200) not null")
KEPT = 3
"""Columns that a shard has added and not dropped again, at most."""
WAYS = {
    "verify": ["--verify"],
    "sources": ["--verify", "--from-sources"],
    "text": [],
    "json": ["--json"],
    "none": ["--from-version", "1000000"],
}


def recorded(changes: int, shards: int, columns: int) -> Recorded:
    """A log of so many changes."""
    made = Recorded()
    names = ", ".join(f"c{i} {_KINDS[i % len(_KINDS)]}" for i in range(1, columns))
    places = [(f"s{1 + n % 2}", f"tbl{n}") for n in range(shards)]
    for source, table in places:
        ddl = f"CREATE TABLE {table} (id bigint PRIMARY KEY, {names})"
        made.execute(source, ddl, snapshot=True)
    for number in range(changes - shards):
        source, table = places[number % shards]
        turn = number // shards
        # Shards follow each other, so that columns come, are everywhere, and go.
        if turn % 2 == 0:
            ddl = f"ADD COLUMN n{turn // 2} {_KINDS[turn // 2 % len(_KINDS)]}"
        elif turn // 2 >= KEPT:
            ddl = f"DROP COLUMN n{turn // 2 - KEPT}"
        else:
            ddl = f"ALTER COLUMN c{turn // 2 + 1} DROP DEFAULT"
        made.execute(source, f"ALTER TABLE {table} {ddl}")
    return made


def seconds(bundle: Path, options: list[str]) -> float:
    """Processor time of one replay."""
    started = time.process_time()
    found = CliRunner().invoke(shardmerge, ["replay", "--file", str(bundle), *options])
    assert found.exit_code == 0, found.output[-2000:]
    return time.process_time() - started


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--shards", default="10,100,1000")
    parser.add_argument("--columns", type=int, default=6)
    parser.add_argument("--ways", default=",".join(WAYS))
    arguments = parser.parse_args()
    changes, ways = arguments.changes, arguments.ways.split(",")
    print(f"{changes:,} changes, {arguments.columns} columns; changes/s of processor time")
    print("".join(f"{name:>14}" for name in ("shards", "bundle, bytes", "agents", *ways)))
    with tempfile.TemporaryDirectory() as folder:
        for shards in map(int, arguments.shards.split(",")):
            started = time.process_time()
            made = recorded(changes, shards, arguments.columns)
            figures = [changes / (time.process_time() - started)]
            bundle = made.write(Path(folder) / f"{shards}.zip")
            print(f"{shards:>14,}{bundle.stat().st_size:>14,}", end="", flush=True)
            figures += (changes / seconds(bundle, WAYS[way]) for way in ways)
            print("".join(f"{figure:>14,.0f}" for figure in figures), flush=True)


if __name__ == "__main__":
    main()
