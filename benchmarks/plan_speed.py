"""How long ``shardmerge plan`` takes for a rollout over many shards, without any server.

Usage: ``PYTHONPATH=. python benchmarks/plan_speed.py [--shards 1000] [--steps 20] [--columns 6]
[--orders by-statement,by-shard]``

Shards of one table on four sources; each executes the same ``--steps`` statements: columns come,
are everywhere, change their type, and go. ``by-statement``: every shard executes a statement
before the next one comes; ``by-shard``: every shard executes all statements before the next shard
begins.

Given are the seconds of processor time and of wall time of the whole command, from the rollout file
to the text, in a process of its own.
"""

from __future__ import annotations

import argparse
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


def statements(count: int) -> list[str]:
    """What each shard executes, in order."""
    return [
        f"ALTER TABLE {{table}} {_TURN[number % len(_TURN)].format(number // len(_TURN))}"
        for number in range(count)
    ]


def rollout(shards: int, steps: int, columns: int, order: str) -> str:
    """The rollout file."""
    names = f"s{{1..{SOURCES}}}/shop.tbl{{1..{shards // SOURCES}}}"
    definitions = ", ".join(f"c{number} VARCHAR(40)" for number in range(1, columns))
    lines = [
        "tables:",
        f"  - shards: {names}",
        f"    sql: CREATE TABLE t (id BIGINT PRIMARY KEY, {definitions})",
        "steps:",
        '  - shards: "*"',
        f"    order: {order}",
        "    file: migrations",
    ]
    return "\n".join(lines) + "\n"


def measured(
    folder: Path, shards: int, steps: int, columns: int, order: str
) -> tuple[float, float]:
    """Seconds of processor time and of wall time of one plan."""
    (folder / "pipeline.toml").write_text(
        _PIPELINE + "".join(_SOURCE.format(number=n) for n in range(1, SOURCES + 1)),
        encoding="utf-8",
    )
    (folder / "rollout.yaml").write_text(rollout(shards, steps, columns, order), encoding="utf-8")
    (folder / "migrations").mkdir(exist_ok=True)
    for number, sql in enumerate(statements(steps), 1):
        (folder / "migrations" / f"{number:03}.sql").write_text(f"{sql};\n", encoding="utf-8")
    call = [sys.executable, "-m", "shardmerge.cli.main", "plan", str(folder / "rollout.yaml")]
    call += ["--pipeline", str(folder / "pipeline.toml")]
    before, started = os.times(), time.monotonic()
    done = subprocess.run(call, check=False, capture_output=True, text=True)
    after, seconds = os.times(), time.monotonic() - started
    if done.returncode != 0 or f"{shards * steps:,} steps" not in done.stdout:
        raise AssertionError(done.stdout[-2000:] + done.stderr)
    used = after.children_user - before.children_user
    return used + after.children_system - before.children_system, seconds


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shards", type=int, default=1_000)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--columns", type=int, default=6)
    parser.add_argument("--orders", default="by-statement,by-shard")
    arguments = parser.parse_args()
    print(f"{'order':<14}{'statements':>12}{'processor s':>13}{'wall s':>9}{'ms each':>9}")
    for order in arguments.orders.split(","):
        with tempfile.TemporaryDirectory() as folder:
            processor, wall = measured(
                Path(folder), arguments.shards, arguments.steps, arguments.columns, order
            )
        count = arguments.shards * arguments.steps
        each = 1000 * processor / count
        print(f"{order:<14}{count:>12,}{processor:>13.1f}{wall:>9.1f}{each:>9.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
