"""DDL statements per second on one core: parsed, and parsed and applied; beside sqlglot.

Every statement of a file is applied on its own to the tables of a fixture. The reference is
``sqlglot.parse_one`` (MySQL dialect) over the same statements in the same run: it parses only, and
what it does not know it keeps as text or refuses. Rates are per second of CPU time; the median
and the best of the rounds are told, which take turns so that a busy machine slows both.

    python -m benchmarks.ddl_speed [FILE] [--fixture FILE] [--rounds 7]
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import sqlglot
from sqlglot import expressions
from sqlglot.errors import SqlglotError

from shardmerge.cli.ddl import statements
from shardmerge.schemas.ddl.apply.server_tables import Catalog
from shardmerge.schemas.ddl.changes import Irrelevant, Statement
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.errors import UnparsableDDL, UnsupportedDDL

ROOT = Path(__file__).resolve().parents[1]
CASES = Path(os.environ.get("SHARDMERGE_CASES", ROOT.parent / "shared" / "cases"))
OWN = ROOT / "tests" / "golden" / "parse" / "statements.sql"
SERVER = ServerContext(version=(8, 0), default_database="c")

Case: TypeAlias = tuple[str, ServerContext]
Round: TypeAlias = Callable[[list[Case]], Counter[str]]


def read(path: Path) -> list[Case]:
    """The statements of a file, each with the server it is for."""
    return [(w.sql, w.context(SERVER)) for w in statements(path.read_text(encoding="utf-8"))]


def parsed(sql: str, context: ServerContext, counts: Counter[str]) -> Statement | None:
    """Parse one statement and count what became of it."""
    try:
        statement = parse(sql, context)
    except UnparsableDDL:
        counts["failed"] += 1
        return None
    counts["ignored" if isinstance(statement, Irrelevant) else "parsed"] += 1
    return statement


def parse_all(cases: list[Case]) -> Counter[str]:
    """Our grammar alone."""
    counts: Counter[str] = Counter()
    for sql, context in cases:
        parsed(sql, context, counts)
    return counts


def apply_all(base: Catalog) -> Round:
    """Our grammar, and what each statement makes of the fixture's tables."""

    def run(cases: list[Case]) -> Counter[str]:
        counts: Counter[str] = Counter()
        for sql, context in cases:
            statement = parsed(sql, context, counts)
            if statement is None or isinstance(statement, Irrelevant):
                continue
            try:
                base.copy().execute(statement, context)
            except UnsupportedDDL:
                counts["refused"] += 1
            else:
                counts["applied"] += 1
        return counts

    return run


def reference(cases: list[Case]) -> Counter[str]:
    """The parser of sqlglot."""
    counts: Counter[str] = Counter()
    for sql, _ in cases:
        try:
            found = sqlglot.parse_one(sql, dialect="mysql")
        except SqlglotError:
            counts["failed"] += 1
        else:
            counts["kept as text" if isinstance(found, expressions.Command) else "parsed"] += 1
    return counts


def rate(run: Round, cases: list[Case]) -> tuple[float, Counter[str]]:
    """Statements per second of CPU time in one round."""
    gc.collect()
    begin = time.process_time()
    counts = run(cases)
    return len(cases) / (time.process_time() - begin), counts


def main() -> None:
    """Measure and print a table."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("file", type=Path, nargs="?", help="statements that end with ;;")
    options.add_argument("--fixture", type=Path, help="statements that make the tables")
    options.add_argument("--rounds", type=int, default=7)
    given = options.parse_args()
    file, fixture = given.file, given.fixture
    if file is None:
        shared = CASES / "ddl_corpus.sql"
        file, fixture = (shared, CASES / "ddl_fixture.sql") if shared.exists() else (OWN, fixture)
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    base = Catalog()
    for sql, context in read(fixture) if fixture is not None else ():
        base.execute(parse(sql, context), context)
    cases = read(file)
    runs: dict[str, Round] = {
        "shardmerge: parse": parse_all,
        "shardmerge: parse and apply": apply_all(base),
        "sqlglot.parse_one": reference,
    }
    for run in runs.values():
        run(cases)
    rates: dict[str, list[float]] = {what: [] for what in runs}
    counts: dict[str, Counter[str]] = {}
    for _ in range(given.rounds):
        for what, run in runs.items():
            found, counts[what] = rate(run, cases)
            rates[what].append(found)
    print(f"{len(cases)} statements of {file.name}, {given.rounds} rounds, one core")
    print(f"{'':<28} {'median/s':>9} {'best/s':>9}")
    for what, values in rates.items():
        told = ", ".join(f"{number} {kind}" for kind, number in sorted(counts[what].items()))
        print(f"{what:<28} {statistics.median(values):>9,.0f} {max(values):>9,.0f}  {told}")
    ours, theirs = (
        statistics.median(rates[what])
        for what in ("shardmerge: parse and apply", "sqlglot.parse_one")
    )
    print(f"parsed and applied here : parsed by sqlglot = {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
