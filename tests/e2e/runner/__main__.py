"""Play every scenario of a folder against a line of its own.

Usage: ``python -m tests.e2e.runner [FOLDER] [--random N [--seed S]] [--only PATTERN,…]
[--threads N] [--partitions N] [--keep] [--tidb USER:PASSWORD@HOST:PORT]``

Prints a line for each and closes with ``N passed, N failed``. A file that cannot be read fails by
itself. Scenarios that ``later.yaml`` lists
are played too: one that fails as listed is expected, one that passes is a failure until it leaves
the list. ``policies.yaml`` says whose end is that of another policy of renames than ``map``.

``--random`` plays random rollouts, of N seeds from S on, beside a folder's or alone. One that fails
is written to build/rollouts, a folder to be played like any other.
"""

from __future__ import annotations

import argparse
import fnmatch
import re
import sys
import tempfile
import time
from pathlib import Path

import yaml

from shardmerge.local.line import Line
from shardmerge.local.sigterm import end_on_sigterm
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.model.names import quote_identifier
from shardmerge.schemas.pipeline.settings import Target
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from tests.tidb.running import tidb_target

from .cases import CASE_ROUTES, Result, load_later, play_all, routes_of, with_policies
from .model import ScenarioError, load_all, parse
from .pace import polled_rarely
from .rollouts import rollout

ROOT = Path(__file__).resolve().parents[3]
ROLLOUTS = ROOT / "build" / "rollouts"
TIDB_LATER = ROOT / "tests" / "tidb" / "later.yaml"


def main(arguments: list[str]) -> int:
    """Play; 0 only if nothing failed and something passed."""
    parser = argparse.ArgumentParser(prog="tests.e2e.runner")
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--random", type=int, default=0, help="how many random rollouts to play")
    parser.add_argument("--seed", type=int, default=0, help="the first one's (default 0)")
    parser.add_argument(
        "--only", default="*", help="ids that match one of these patterns, with commas"
    )
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument(
        "--partitions",
        type=int,
        default=1,
        help="of each row topic; tables without a primary key need 1 (default)",
    )
    parser.add_argument("--keep", action="store_true", help="leave the line running")
    parser.add_argument(
        "--tidb", default="", help="USER:PASSWORD@HOST:PORT of a TiDB that is the target"
    )
    options = parser.parse_args(arguments)
    end_on_sigterm()
    paths = sorted(options.folder.glob("*.yaml")) if options.folder else []
    seeds = range(options.seed, options.seed + options.random)
    drawn = {f"random_{seed}": rollout(seed) for seed in seeds}
    if not paths and not drawn:
        print(f"no scenario in {options.folder}")
        print("0 passed, 1 failed")
        return 1
    try:
        read, unreadable = load_all(paths)
        scenarios = with_policies(read)
        scenarios += [parse(document, name) for name, document in drawn.items()]
        later = load_later()
        if options.tidb:
            later += load_later(TIDB_LATER)
    except ScenarioError as error:
        print(error)
        print("0 passed, 1 failed")
        return 1
    scenarios = [
        s for s in scenarios if any(fnmatch.fnmatch(s.id, p) for p in options.only.split(","))
    ]
    unreadable = {
        name: why
        for name, why in unreadable.items()
        if any(fnmatch.fnmatch(name, p) for p in options.only.split(","))
    }
    for name, why in unreadable.items():
        tell(Result(name, passed=False, seconds=0.0, detail=f"cannot be read: {why}"))
    if not scenarios:
        print(f"0 passed, {len(unreadable) or 1} failed")
        return 1
    (ROOT / ".local").mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="scenarios-", dir=ROOT / ".local"))
    started = time.monotonic()
    target = tidb_target(options.tidb) if options.tidb else None
    if target is not None:
        clear(target)
    routes = (*CASE_ROUTES, *routes_of(scenarios))
    line = Line(
        directory, routes=routes, row_partitions=options.partitions, target=target,
        access=polled_rarely,
    )  # fmt: skip
    results: list[Result] = []
    try:
        results = play_all(
            line, scenarios, later, options.threads, report=tell, outlive=options.keep
        )
    except ShardMergeError as error:
        print(f"the line did not start: {error}; logs in {directory}")
    finally:
        if options.keep:
            print(f"left running; stop it with: shardmerge down --directory {directory}")
        else:
            line.stop()
    for result in results:
        if result.counts_as_failed and result.id in drawn:
            ROLLOUTS.mkdir(parents=True, exist_ok=True)
            (ROLLOUTS / f"{result.id}.yaml").write_text(
                yaml.safe_dump(drawn[result.id], sort_keys=False, width=200), encoding="utf-8"
            )
    missing = len(scenarios) - len(results) + len(unreadable)
    passed = sum(r.counts_as_passed for r in results)
    failed = sum(r.counts_as_failed for r in results) + missing
    expected = sum(r.as_listed for r in results)
    print(f"{expected} fail as tests/e2e/later.yaml lists; {time.monotonic() - started:.0f} s")
    print(f"{passed} passed, {failed} failed", flush=True)
    return 0 if passed and not failed else 1


def clear(target: Target) -> None:
    """Drop what an earlier run left on a server that outlives it: cases and control tables."""
    session = MySqlSession(MySqlAddress(target.host, target.port, target.user, target.password))
    for (name,) in session.query("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA"):
        if name == target.control_database or re.fullmatch(r"s[a-z]\d+_(merged|app\d)", name):
            session.execute(f"DROP DATABASE {quote_identifier(name)}")
    session.close()


def tell(result: Result) -> None:
    """One line of a scenario."""
    print(f"{result.word:<10} {result.id:<40} {result.seconds:5.1f} s  {result.detail}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
