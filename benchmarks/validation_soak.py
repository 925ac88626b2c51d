"""Compares shards and target again and again beside random writes and random DDL; counts lies.

Usage: ``python -m benchmarks.validation_soak [--seconds 3600] [--seed 1] [--writes 20] [--ddl 20]``

Starts a whole line of its own. Two targets have two shards on each of two sources. One writer for
each shard inserts, changes and deletes rows. Each shard goes its own way through the same plan of
DDL: columns are added, renamed, widened and dropped, on each shard at another time. Meanwhile
``shardmerge validate --continuous`` compares. Nobody changes the target by hand, so each difference
that it reports is a lie.

It ends with 1 if there was one, or if the comparison after the end of all writes is not clean.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pymysql

from shardmerge.local.line import Line
from shardmerge.schemas.model.origin import Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.policies import RenamePolicy, RoutePolicies
from shardmerge.schemas.pipeline.first_rows import DEBEZIUM, first_rows_by
from shardmerge.schemas.pipeline.routing import RoutingRule

ROOT = Path(__file__).resolve().parents[1]
ORIGIN = Origin((OriginColumn(OriginPart.SHARD, "_shard"),), in_keys=True)
ROUTES = tuple(
    RoutingRule(
        ".*", "soak", rf"{name}_\d+", "soak_merged", name,
        policies=RoutePolicies(renames=RenamePolicy.MAP, origin=origin),
    )
    for name, origin in (("plain", Origin()), ("told", ORIGIN))
)  # fmt: skip
SHARDS = tuple(
    (source, f"soak.{target}_{number}", (2 * (source == "s2") + number) * 10_000_000)
    for target in ("plain", "told")
    for source in ("s1", "s2")
    for number in (0, 1)
)
"""Source, table, and the first id."""
TYPES = {
    "INT": ("7", "BIGINT"), "VARCHAR(20)": ("'x'", "VARCHAR(60)"), "DOUBLE": ("0.1", "DOUBLE"),
    "DECIMAL(8,2)": ("1.5", "DECIMAL(12,4)"),
    "DATETIME(3)": ("'2020-01-02 03:04:05.678'", "DATETIME(6)"),
    "TIMESTAMP NULL": ("'2020-01-02 03:04:05'", "TIMESTAMP(3) NULL"),
}  # fmt: skip
"""Type of an added column → a value, and the type to which it is widened."""
AHEAD = 3
"""No shard is further ahead of the last one in the plan than this."""


def plan(seed: int) -> list[str]:
    """Clauses of ALTER TABLE; more than any run needs."""
    chance, number = random.Random(seed), 0
    found: list[str] = []
    columns: list[tuple[str, str]] = []
    while len(found) < 5_000:
        kind = chance.choice(("add", "add", "rename", "widen", "drop"))
        if kind == "add" or not columns:
            type_ = chance.choice(list(TYPES))
            number += 1
            columns.append((f"c{number}", type_))
            found.append(f"ADD COLUMN c{number} {type_} DEFAULT {TYPES[type_][0]}")
            continue
        name, type_ = columns.pop(chance.randrange(len(columns)))
        if kind == "rename":
            number += 1
            found.append(f"RENAME COLUMN {name} TO c{number}")
            columns.append((f"c{number}", type_))
        elif kind == "widen":
            wide = TYPES[type_][1] if type_ in TYPES else type_
            found.append(f"MODIFY {name} {wide} DEFAULT NULL")
            columns.append((name, wide))
        elif len(columns) >= 2:
            found.append(f"DROP COLUMN {name}")
        else:
            columns.append((name, type_))
    return found


@dataclass
class Traffic:
    """Writers and DDL, until ``ends``.

    Attributes:
        done: What was executed, by kind.
        refused: What a server refused, by its message.
    """

    line: Line
    seed: int
    writes_per_s: float
    ddl_s: float
    ends: threading.Event = field(default_factory=threading.Event)
    done: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    steps: dict[str, int] = field(default_factory=dict)
    threads: list[threading.Thread] = field(default_factory=list)

    def prepare(self) -> None:
        """Make the shards, with some rows."""
        for source in ("s1", "s2"):
            self._run(source, "CREATE DATABASE soak")
        for source, table, first in SHARDS:
            self._run(source, f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, a VARCHAR(40), b INT)")
            rows = ", ".join(f"({first + n}, 'row {n}', {n})" for n in range(5_000))
            self._run(source, f"INSERT INTO {table} VALUES {rows}")

    def start(self) -> None:
        """Begin."""
        steps = plan(self.seed)
        for number, shard in enumerate(SHARDS):
            for work in (self._write, self._alter):
                chance = random.Random(self.seed * 1_000 + number)
                arguments = (*shard, chance) if work == self._write else (*shard, chance, steps)
                thread = threading.Thread(target=work, args=arguments, daemon=True)
                self.threads.append(thread)
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """End all writes."""
        self.ends.set()
        for thread in self.threads:
            thread.join(60)

    def _write(self, source: str, table: str, first: int, chance: random.Random) -> None:
        latest = first + 5_000
        pause_s = len(SHARDS) / self.writes_per_s
        with self.line.connect(source) as connection, connection.cursor() as cursor:
            while not self.ends.wait(chance.expovariate(1 / pause_s)):
                row = chance.randrange(first, latest)
                kind = chance.choice(("insert", "update", "update", "delete", "key"))
                v = chance.randrange(1_000_000)
                statement = {
                    "insert": f"INSERT INTO {table} (id, a, b) VALUES ({latest}, 'i{v}', {v})",
                    "update": f"UPDATE {table} SET a = 'u{v}', b = {v} WHERE id = {row}",
                    "delete": f"DELETE FROM {table} WHERE id = {row}",
                    "key": f"UPDATE {table} SET id = {latest} WHERE id = {row}",
                }[kind]
                latest += kind in ("insert", "key")
                self._execute(cursor, statement, kind)

    def _alter(
        self, source: str, table: str, _: int, chance: random.Random, steps: list[str]
    ) -> None:
        self.steps[table + source] = 0
        with self.line.connect(source) as connection, connection.cursor() as cursor:
            while not self.ends.wait(chance.uniform(0.5, 1.5) * self.ddl_s):
                step = self.steps[table + source]
                target = table.partition("_")[0]
                others = [n for name, n in self.steps.items() if name.startswith(target)]
                if step - min(others) < AHEAD:
                    self._execute(cursor, f"ALTER TABLE {table} {steps[step]}", "ALTER")
                    self.steps[table + source] = step + 1

    def _execute(self, cursor: Any, statement: str, kind: str) -> None:
        try:
            cursor.execute(statement)
            self.done[kind] += 1
        except pymysql.MySQLError as error:
            self.refused[f"{kind}: {error.args[1]}"[:80]] += 1

    def _run(self, source: str, statement: str) -> None:
        with self.line.connect(source) as connection, connection.cursor() as cursor:
            cursor.execute(statement)


def validate(line: Line, *words: str) -> list[str]:
    """The command line of a comparison."""
    command = [sys.executable, "-m", "shardmerge.cli.main", "validate", "--json", *words]
    return [*command, "--patience", "180", "--pipeline", str(line.pipeline_path)]


def main() -> int:
    """Run it; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--writes", type=float, default=20.0, help="a second, on all shards")
    parser.add_argument("--ddl", type=float, default=20.0, help="seconds between two of a shard")
    options = parser.parse_args()
    (ROOT / ".local").mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="soak-", dir=ROOT / ".local"))
    line = Line(directory, routes=ROUTES, access=partial(first_rows_by, DEBEZIUM))
    traffic = Traffic(line, options.seed, options.writes, options.ddl)
    reports: list[dict[str, Any]] = []
    try:
        line.start(prepare=traffic.prepare)
        traffic.start()
        with subprocess.Popen(
            validate(line, "--continuous", "--pause", "2"), stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            reader = threading.Thread(
                target=lambda out: reports.extend(map(json.loads, out)), args=(process.stdout,)
            )
            reader.start()
            until = time.monotonic() + options.seconds
            while time.monotonic() < until:
                time.sleep(min(60.0, until - time.monotonic()) + 0.01)
                print(told(reports, traffic), flush=True)
            process.terminate()
            reader.join()
        traffic.stop()
        last = subprocess.run(validate(line), stdout=subprocess.PIPE, text=True, check=False)
        print(told(reports, traffic))
        print(f"after the end: exit code {last.returncode}")
        found = [*reports, *map(json.loads, last.stdout.splitlines())]
        lies = [(each["target"], row) for each in found for row in each["differences"]]
        for lie in lies[:20]:
            print("reported as different:", lie)
        return 1 if lies or last.returncode else 0
    finally:
        traffic.ends.set()
        line.stop()
        shutil.rmtree(directory, ignore_errors=True)


def told(reports: list[dict[str, Any]], traffic: Traffic) -> str:
    """What was compared so far."""
    complete = sum(each["complete"] for each in reports)
    rows = sum(each["rows"] for each in reports)
    differences = sum(len(each["differences"]) for each in reports)
    stopped = Counter(each["stopped"][:60] for each in reports if each["stopped"])
    unsettled = sum(len(each["unsettled"]) for each in reports)
    done = ", ".join(f"{kind} {count}" for kind, count in sorted(traffic.done.items()))
    return (
        f"comparisons {len(reports)}, complete {complete}, rows {rows:,},"
        f" differences {differences}, unsettled {unsettled}; {done}"
        + (f"; stopped {dict(stopped)}" if stopped else "")
        + (f"; refused {dict(traffic.refused)}" if traffic.refused else "")
    )


if __name__ == "__main__":
    sys.exit(main())
