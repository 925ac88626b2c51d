"""Random DDL on the tracker and on a real server: after each accepted statement they are equal.

::

    python -m tests.integration.mysql.fuzz --server mysql97 --statements 2000 --seed 7

It stops at the first difference and prints a reproduction that is made as small as it can be.
The statements come in rounds of their own tables and their own seed, so that one round can be
played again: ``--seed 7 --first-round 12``.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pymysql

from shardmerge.local.servers.other_versions import NAMES, running_server
from shardmerge.local.servers.stack import Ports

from .known_differences import known_reason
from .random_ddl import statement
from .random_definitions import PARENT_SQL
from .random_types import Dialect
from .shrink import Reproduction, outcome, shrink
from .twin import HOME, ServerEnded, Twin

ROUND = 100
"""Accepted statements after which new tables begin."""
_ROOM_BYTES = 2 << 30
_PATIENCE = 60
"""Refused statements in a row after which a round ends: its tables have grown into a corner."""


@dataclass(slots=True)
class Tally:
    """What a run counted.

    Attributes:
        rounds: The number of the next round.
        known: Differences that are known, by reason.
        found: Other differences, each as text.
    """

    accepted: int = 0
    refused: int = 0
    rounds: int = 0
    known: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        known = f" ({self.known.total()} known ones apart)" if self.known else ""
        return (
            f"{self.accepted} accepted, {self.refused} refused, "
            f"{len(self.found)} differences{known}"
        )


def fuzz(
    twin: Twin, seed: int, accepted: int, tally: Tally, *, most_found: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> None:  # fmt: skip
    """Execute random statements until so many were accepted.

    Args:
        twin: The two sides; its tables are thrown away.
        seed: The same seed gives the same statements on the same server.
        accepted: How many the server must have taken in all.
        tally: Counts, and says with which round to begin; changed.
        most_found: Stop after so many differences that are not known.
        say: Called with a line of progress.

    Raises:
        ServerEnded: The server died; the tally's next round is the one behind it.
    """
    while tally.accepted < accepted and len(tally.found) < most_found:
        told = len(tally.found)
        number, tally.rounds = tally.rounds, tally.rounds + 1
        _round(twin, f"{seed}/{number}", min(ROUND, accepted - tally.accepted), most_found, tally)
        for text in tally.found[told:]:
            say(text)
        if tally.rounds % 5 == 0:
            say(f"round {tally.rounds}: {tally}")


def _round(twin: Twin, seed: str, accepted: int, most_found: int, tally: Tally) -> None:
    chance = Random(seed)
    dialect = Dialect(twin.context.flavour, twin.context.version)
    twin.reset([PARENT_SQL])
    end = tally.accepted + accepted
    in_a_row = 0
    while tally.accepted < end and in_a_row < _PATIENCE and len(tally.found) < most_found:
        tables = {name: schema for (_, name), schema in twin.tracked.items()}
        sql = statement(chance, dialect, tables)
        before = {key: shown for key, shown in twin.last_shown.items() if key[0] == HOME}
        try:
            taken, wrong = outcome(twin, sql)
        except pymysql.MySQLError as error:
            # The server cannot open a table that it has altered itself: nothing to compare with.
            tally.known[f"the server's own tables are broken: {error.args[0]}"] += 1
            return
        if not taken:
            tally.refused += 1
            in_a_row += 1
            continue
        tally.accepted += 1
        in_a_row = 0
        if not wrong:
            continue
        reason = known_reason(twin.context, wrong)
        if reason:
            tally.known[reason] += 1
        else:
            start = Reproduction(tuple(before.values()), sql)
            small, small_wrong = shrink(twin, start, wrong)
            reason = known_reason(twin.context, small_wrong)
            if reason:
                tally.known[reason] += 1
            else:
                parts = [f"-- seed {seed}", str(small), *(f"    {line}" for line in small_wrong)]
                tally.found.append("\n".join(parts))
            if not _resume(twin, start):
                return
        twin.adopt()


def _resume(twin: Twin, place: Reproduction) -> bool:
    """Bring back the tables that the round had; False when the statements do not do that."""
    twin.reset([])
    return all(twin.is_taken(sql) for sql in (*place.setup, place.sql))


def data_directory(otherwise: Path) -> Path:
    """A new folder for a server's data: in memory where there is room, or below ``otherwise``."""
    memory = Path("/dev/shm")
    has_room = memory.is_dir() and shutil.disk_usage(memory).free > _ROOM_BYTES
    return Path(tempfile.mkdtemp(prefix="ddl-", dir=memory if has_room else otherwise))


def free_port() -> int:
    """A port of 127.0.0.1 that nothing uses, and that no client's connection gets meanwhile."""
    return Ports.free().web


def main() -> int:
    """Run as a program; 1 when a difference was found."""
    parser = argparse.ArgumentParser(description="Random DDL: the tracker against a real server.")
    parser.add_argument("--server", choices=NAMES, default="mysql80")
    parser.add_argument("--statements", type=int, default=1000, help="accepted ones")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first-round", type=int, default=0)
    parser.add_argument("--differences", type=int, default=1, help="stop after so many")
    parser.add_argument("--directory", type=Path, default=Path(".local"))
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    tally = Tally(rounds=options.first_round)
    while tally.accepted < options.statements and len(tally.found) < options.differences:
        directory = data_directory(options.directory)
        try:
            with running_server(options.server, directory, free_port(), say=_say) as server:
                twin = Twin(server.port)
                fuzz(
                    twin, options.seed, options.statements, tally,
                    most_found=options.differences, say=_say,
                )  # fmt: skip
                twin.close()
        except ServerEnded as error:
            _say(str(error))
            tally.known["the server died"] += 1
        finally:
            shutil.rmtree(directory, ignore_errors=True)
    for reason, count in tally.known.most_common():
        _say(f"known, {count} times: {reason}")
    _say(f"{options.server}, seed {options.seed}, {time.monotonic() - started:.0f} s")
    _say(str(tally))
    return 1 if tally.found else 0


def _say(text: str) -> None:
    print(re.sub(r"\s+$", "", text), flush=True)


if __name__ == "__main__":
    sys.exit(main())
