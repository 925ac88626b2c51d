"""How long ``shardmerge plan`` takes for a rollout over many shards, without any server.

Usage: ``python -m benchmarks.plan_speed [--shards 1000] [--steps 20] [--columns 6]
[--orders by-statement,by-shard] [--stops none,holds,conflict]``

Shards of one table on four sources; each executes the same ``--steps`` statements: columns come,
are everywhere, change their type, and go. ``by-statement``: every shard executes a statement
before the next one comes; ``by-shard``: every shard executes all statements before the next shard
begins.

What ``--stops`` names:

* ``none``: no statement stops a shard;
* ``holds``: each shard drops a column and adds it again with another type, among its statements.
  By shard, all shards but the last are held until the last one has dropped the column;
* ``conflict``: before all others the first shard adds a column with another type than they do. It
  never drops it. So every shard that adds the column is held, and stays held.

A plan that stops shards also looks for a safe order, as the command does by default.

Given are the seconds of processor time and of wall time of the whole command, from the rollout file
to the text, in a process of its own.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCES = 4
_PIPELINE = """
[pipeline]
name = "p"
[kafka]
bootstrap_servers = "kafka:9092"
[connect]
url = "http://connect:8083"
[target]
host = "target"
port = 1
user = "u"
password = "-"
[[routes]]
database = "shop"
table = 'tbl\\d+'
target = "merged.tbl"
"""
_SOURCE = """
[[sources]]
name = "s{number}"
host = "h"
port = 1
user = "u"
password = "-"
server_id = {number}
"""
_TURN = ("ADD COLUMN n{} INT", "ADD INDEX k{0} (n{0})", "MODIFY n{} BIGINT", "DROP COLUMN n{}")

_OTHER_TYPE = ("  - shard: s1/shop.tbl1", "    sql: ALTER TABLE {table} ADD COLUMN x DATE")
STOPS = ("none", "holds", "conflict")


def statements(count: int, stops: str) -> list[str]:
    """What each shard executes, in order."""
    found = [_TURN[number % len(_TURN)].format(number // len(_TURN)) for number in range(count)]
    middle = count // 2
    if stops == "holds":
        found[middle : middle + 2] = ["DROP COLUMN c1", "ADD COLUMN c1 DATE"]
    elif stops == "conflict":
        found[middle] = "ADD COLUMN x INT"
    return [f"ALTER TABLE {{table}} {action}" for action in found]


def rollout(shards: int, steps: int, columns: int, order: str, stops: str) -> str:
    """The rollout file."""
    names = f"s{{1..{SOURCES}}}/shop.tbl{{1..{shards // SOURCES}}}"
    definitions = ", ".join(f"c{number} VARCHAR(40)" for number in range(1, columns))
    lines = [
        "tables:",
        f"  - shards: {names}",
        f"    sql: CREATE TABLE t (id BIGINT PRIMARY KEY, {definitions})",
        "steps:",
        *(_OTHER_TYPE if stops == "conflict" else ()),
        '  - shards: "*"',
        f"    order: {order}",
        "    file: migrations",
    ]
    return "\n".join(lines) + "\n"


def measured(
    folder: Path, shards: int, steps: int, columns: int, *, order: str, stops: str
) -> tuple[float, float, int]:
    """Seconds of processor time and of wall time of one plan, and how many holds it shows."""
    (folder / "pipeline.toml").write_text(
        _PIPELINE + "".join(_SOURCE.format(number=n) for n in range(1, SOURCES + 1)),
        encoding="utf-8",
    )
    (folder / "rollout.yaml").write_text(
        rollout(shards, steps, columns, order, stops), encoding="utf-8"
    )
    (folder / "migrations").mkdir(exist_ok=True)
    for number, sql in enumerate(statements(steps, stops), 1):
        (folder / "migrations" / f"{number:03}.sql").write_text(f"{sql};\n", encoding="utf-8")
    call = [sys.executable, "-m", "shardmerge.cli.main", "plan", str(folder / "rollout.yaml")]
    call += ["--pipeline", str(folder / "pipeline.toml")]
    before, started = os.times(), time.monotonic()
    done = subprocess.run(call, check=False, capture_output=True, text=True)
    after, seconds = os.times(), time.monotonic() - started
    holds = done.stdout.count("\n    HOLD ")
    count = shards * steps + (stops == "conflict")
    if done.returncode not in (0, 1) or f"{count:,} steps" not in done.stdout:
        raise AssertionError(done.stdout[-2000:] + done.stderr)
    if stops == "none" and holds:
        raise AssertionError(done.stdout[:2000])
    used = after.children_user - before.children_user
    return used + after.children_system - before.children_system, seconds, holds


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shards", type=int, default=1_000)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--columns", type=int, default=6)
    parser.add_argument("--orders", default="by-statement,by-shard")
    parser.add_argument("--stops", default="none,holds,conflict")
    arguments = parser.parse_args()
    heads = f"{'order':<14}{'stops':<10}{'statements':>12}{'holds':>8}"
    print(f"{heads}{'processor s':>13}{'wall s':>9}{'ms each':>9}")
    ways = itertools.product(arguments.orders.split(","), arguments.stops.split(","))
    for order, stops in ways:
        size = (arguments.shards, arguments.steps, arguments.columns)
        with tempfile.TemporaryDirectory() as folder:
            processor, wall, holds = measured(Path(folder), *size, order=order, stops=stops)
        count = arguments.shards * arguments.steps
        each = 1000 * processor / count
        told = f"{order:<14}{stops:<10}{count:>12,}{holds:>8,}"
        print(f"{told}{processor:>13.1f}{wall:>9.1f}{each:>9.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
