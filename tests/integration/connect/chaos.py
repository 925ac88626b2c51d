"""One source under everything that stops Debezium for good: how long it stands, what it loses.

Usage: ``PYTHONPATH=. python -m tests.integration.connect.chaos [--cases url --times 20]``

On a stack of its own (a source, Kafka, Connect, the watchdog as the process that it is; no agents,
no sink), with traffic on other tables, each case of ``chaos_cases`` is played. Printed is, for
each, the longest that a row committed after the damage took to be readable, and what was lost,
doubled, wrong, out of order, or readable too early: of rows, compared with what the writers
committed; of schema changes, as the tracker reads them, compared with the server.

A source that does not go on within the bound counts as stopped. Rows that it has not read are not
lost, but unread, unless it passed them over. The next play gets a new source.
"""

from __future__ import annotations

import argparse
import fnmatch
import random
import signal
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

import pymysql

from shardmerge.local.servers.other_versions import NAMES
from shardmerge.local.servers.source_servers import source_spec
from shardmerge.local.servers.stack import LocalStack, Ports

from .chaos_cases import MOMENTS, WORDS, Case, Scene, cases
from .chaos_findings import findings
from .chaos_line import ChaosLine
from .chaos_rows import Tally

ROOT = Path(__file__).resolve().parents[3]
_SYNTAX = 1064


@dataclass(slots=True)
class Result:
    """What came of a case's plays.

    Attributes:
        seconds: Of each play after which the source went on.
        stopped: Plays after which it did not.
        tally: Of the plays; after those after which it stopped, of rows only.
        refused: What the server said to the case's statement, if it does not take it.
    """

    case: str
    gtid: bool
    seconds: list[float] = field(default_factory=list)
    stopped: int = 0
    tally: Tally = field(default_factory=Tally)
    refused: str = ""

    @property
    def is_right(self) -> bool:
        """Whether every play ended as it must."""
        return bool(self.seconds or self.refused) and not self.stopped and not self.tally


class Chaos:
    """Plays cases on one server.

    Args:
        stack: Has Kafka and Connect.
        server: Name of the server's process.
        port: Of the server.
        gtid: Whether its transactions have GTIDs.
        options: See ``arguments``.
    """

    def __init__(
        self, stack: LocalStack, server: str, port: int, gtid: bool, options: argparse.Namespace
    ) -> None:
        self._stack, self._server, self._port, self._gtid = stack, server, port, gtid
        self._options = options
        self._chance = random.Random(options.seed)
        self._line: ChaosLine | None = None
        self._number = 0

    def play(self, case: Case, times: int) -> Result:
        """Play a case so many times."""
        result = Result(case.name, self._gtid)
        for _ in range(times):
            self._play(case, result)
            if result.refused:
                break
        return result

    def close(self) -> None:
        """Stop the source's connector, watchdog and writers."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def _play(self, case: Case, result: Result) -> None:
        line = self._line or self._new_line()
        if case.flavours and line.context.flavour not in case.flavours:
            result.refused = f"{line.context.flavour} has no such thing"
            return
        self._number += 1
        options = self._options
        scene = Scene(
            line, f"t{self._number}", self._chance, options.behind, options.bound, options.moment
        )
        try:
            case.play(scene)
        except pymysql.MySQLError as error:
            if error.args[0] != _SYNTAX:
                raise
            result.refused = f"the server refuses it: {error.args[1]}"
            self.close()
            return
        went_on = line.wait_read(options.bound)
        scene.end()
        with scene.all_paused():
            went_on = line.wait_read(options.bound if went_on else 1.0)
            waited = [line.longest_wait(moment) for moment in scene.moments]
            tally, told, _ = line.judge()
        seconds = [moment for moment in waited if moment is not None]
        if not went_on or len(seconds) < len(waited):
            result.stopped += 1
            tally, told = line.judge_rows()
            result.tally.add(tally)
            self._tell(case, "stopped", told)
        else:
            result.seconds.append(max(seconds))
            result.tally.add(tally)
            self._tell(case, f"{max(seconds):.1f} s", told if tally else [])
            if not tally:
                return
        self.close()

    def _new_line(self) -> ChaosLine:
        number = len(list(self._stack.directory.glob("pipeline*.toml"))) + 1
        seed, pause = self._options.seed + 100 * number, self._options.pause
        self._line = ChaosLine(
            self._stack, self._server, self._port, number, seed=seed, pause_s=pause
        )
        return self._line

    def _tell(self, case: Case, outcome: str, told: Sequence[str]) -> None:
        print(f"{case.name}, GTIDs {'on' if self._gtid else 'off'}: {outcome}", flush=True)
        for text in told[:20]:
            print(f"    {text}", flush=True)
        assert self._line is not None
        if self._options.findings and (told or outcome == "stopped"):
            with open(self._options.findings, "a", encoding="utf-8") as file:
                print(findings(self._line, case.name, self._gtid, outcome, told), file=file)


def start_server(stack: LocalStack, server: str, gtid: bool) -> tuple[str, int]:
    """Start a source's server in a stack, beside its own; its process name and its port."""
    process = f"{server}-{'gtid' if gtid else 'plain'}"
    port = Ports.free().source1
    spec = source_spec(
        server, process, stack.directory / process, port, 111 + gtid, gtid=gtid,
        cache=ROOT / ".local" / "cache", say=print,
    )  # fmt: skip
    stack.add(spec)
    return process, port


def table(results: Sequence[Result]) -> str:
    """The results as a table."""
    names = [field.name.replace("_", " ") for field in fields(Tally)]
    heads = ["case", "GTIDs", "times", "p50 s", "max s", "stopped", *names]
    rows = [heads]
    for result in results:
        seconds = sorted(result.seconds)
        times = str(len(seconds) + result.stopped)
        row = [result.case, "on" if result.gtid else "off", times]
        if result.refused:
            rows.append([*row[:2], result.refused])
            continue
        row += [f"{statistics.median(seconds):.1f}", f"{seconds[-1]:.1f}"] if seconds else ["-"] * 2
        row += [str(result.stopped)]
        row += [str(getattr(result.tally, field.name)) for field in fields(Tally)]
        rows.append(row)
    widths = [max(len(row[at]) for row in rows if len(row) > 3) for at in range(len(heads))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip()
        for row in rows
    )


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line's options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", default="*", help="patterns of names, separated by commas")
    parser.add_argument("--times", type=int, default=20, help="plays of a case with random moments")
    parser.add_argument("--server", choices=NAMES, default="mysql80")
    parser.add_argument("--gtid", choices=("on", "off", "both"), default="both")
    parser.add_argument("--words", default=",".join(WORDS), help="column names of case 1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bound", type=float, default=90.0, help="seconds; more is stopped")
    parser.add_argument("--behind", type=float, default=0.3, help="right behind: seconds at most")
    parser.add_argument("--pause", type=float, default=0.1, help="between rows: seconds at most")
    parser.add_argument("--moment", choices=MOMENTS, help="of a kill; any by default")
    parser.add_argument("--findings", default="", help="file for the facts about each failure")
    parser.add_argument("--list", action="store_true", help="print the cases")
    return parser.parse_args(given)


def chosen(options: argparse.Namespace) -> list[Case]:
    """The cases that were asked for."""
    patterns = options.cases.split(",")
    return [
        case
        for case in cases(options.words.split(","))
        if any(fnmatch.fnmatchcase(case.name, pattern) for pattern in patterns)
    ]


def main() -> int:
    """Play the cases and print the table; 1 when one of them did not end as it must."""
    options = arguments()
    if options.list:
        print("\n".join(case.name for case in chosen(options)))
        return 0
    # The stack is stopped however the run ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    (ROOT / ".local").mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="chaos-connect-", dir=ROOT / ".local"))
    stack = LocalStack(directory, Ports.free(), cache=ROOT / ".local" / "cache")
    modes = {"on": (True,), "off": (False,), "both": (True, False)}[options.gtid]
    if options.server.startswith("mariadb"):
        modes = (True,)  # its transactions always have GTIDs
    results = []
    try:
        stack.start("kafka")
        stack.start("connect")
        for gtid in modes:
            process, port = start_server(stack, options.server, gtid)
            chaos = Chaos(stack, process, port, gtid, options)
            try:
                for case in chosen(options):
                    results.append(chaos.play(case, options.times if case.many else 1))
            finally:
                chaos.close()
            stack.stop(process)
    finally:
        stack.clean()
        print(table(results))
    return 0 if all(result.is_right for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
