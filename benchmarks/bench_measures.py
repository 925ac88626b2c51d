"""What benchmarks measure beside seconds: CPU and memory of each part, time of each stage."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch
from urllib.parse import unquote, urlsplit

from shardmerge.local.servers.processes import Supervisor
from shardmerge.local.servers.stack import LocalStack
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress


class Use(NamedTuple):
    """CPU time so far of processes of one kind, and the peak memory of the greatest of them."""

    cpu_s: float = 0.0
    peak_mb: float = 0.0


class Round(NamedTuple):
    """Seconds and use: of what is measured, of the reference, of a bound; None without one."""

    measured: tuple[float, Mapping[str, Use]]
    reference: tuple[float, Mapping[str, Use]]
    bound: tuple[float, Mapping[str, Use]] | None = None

    def ratio(self) -> float:
        """Of their speeds."""
        return self.reference[0] / self.measured[0]


def usage(stack: LocalStack) -> dict[int, tuple[str, Use]]:
    """The part to which a process belongs and what that has used so far, by process id.

    Nothing where there is no /proc.
    """
    names = {pid: name for name, pid in stack.status().items() if pid}
    names |= {pid: "target" for pid in [Supervisor(beside(stack)).pid("server")] if pid}
    stats: dict[int, tuple[int, str, Use]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it may end meanwhile
            head, _, tail = (path / "stat").read_text().rpartition(")")
            peak = re.search(r"VmHWM:\s+(\d+)", (path / "status").read_text())
            parts = tail.split()
            cpu_s = sum(map(int, parts[11:13])) / os.sysconf("SC_CLK_TCK")
            use = Use(cpu_s, int(peak[1]) / 1024 if peak else 0.0)
            stats[int(path.name)] = int(parts[1]), head.partition("(")[2], use
    found: dict[int, tuple[str, Use]] = {}
    for pid, (_, command, use) in stats.items():
        above = pid
        while above in stats and above not in names and above != os.getpid():
            above = stats[above][0]
        if above in names or above == os.getpid() != pid:
            own = "Spark's JVM" if command == "java" else "Python workers"
            found[pid] = names.get(above, own), use
    return found


def part_of(pid: int, name: str) -> str:
    """The part of a process of ``usage``: the sink's driver, JVM and workers told apart."""
    if name.startswith("source"):
        return "sources"
    if name != "sink":
        return name
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if words[0].endswith(b"java"):
            return "sink's JVM"
        return "sink's driver" if any(b"spark_sink.job" in word for word in words) else "workers"
    return "workers"


def between(
    before: Mapping[int, tuple[str, Use]], after: Mapping[int, tuple[str, Use]]
) -> dict[str, Use]:
    """What each part used between two answers of ``usage``, and its peak memory.

    Each process is compared with itself. One that ended meanwhile is left out: Spark ends workers
    that were idle for a minute, and what these had used before would be taken from the sum.
    """
    used: dict[str, Use] = {}
    for pid, (name, use) in after.items():
        known = used.get(name, Use())
        earlier = before[pid][1].cpu_s if pid in before else 0.0
        used[name] = Use(known.cpu_s + use.cpu_s - earlier, max(known.peak_mb, use.peak_mb))
    return used


def beside(stack: LocalStack) -> Path:
    """Where a server that is not the stack's has its files."""
    return stack.directory / "server"


@contextmanager
def measuring(stack: LocalStack) -> Iterator[tuple[list[float], dict[str, Use]]]:
    """Filled at the end: the seconds that it took, and what every part used (``between``)."""
    seconds: list[float] = []
    used: dict[str, Use] = {}
    before, started = usage(stack), time.perf_counter()
    yield seconds, used
    seconds.append(time.perf_counter() - started)
    used |= between(before, usage(stack))


def pin(pid: int, core: int) -> None:
    """Let a process, its threads and its descendants run on that core only."""
    os.sched_setaffinity(pid, {core})
    for path in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # it may end meanwhile
            os.sched_setaffinity(int(path.name), {core})
            for child in (path / "children").read_text().split():
                pin(int(child), core)


def tidb_address(text: str) -> MySqlAddress:
    """The address in ``USER:PASSWORD@HOST:PORT``."""
    url = urlsplit(f"mysql://{text}")
    user, password = unquote(url.username or "root"), unquote(url.password or "")
    return MySqlAddress(url.hostname or "127.0.0.1", url.port or 4000, user, password)


class StageClock:
    """Sums up wall time and own CPU time of functions that do not call each other."""

    def __init__(self) -> None:
        self.wall: dict[str, float] = {}
        self.own: dict[str, float] = {}
        self._patches = ExitStack()

    def watch(self, stage: str, owner: Any, real: Callable[..., Any], only: str = "") -> None:
        """Measure a function of a module or class, or only calls whose second argument is ``only``.

        It is given itself and not by its name, so that a type checker sees whether it is there.
        """
        self.wall[stage] = self.own[stage] = 0.0

        @wraps(real)
        def measured(*arguments: Any, **more: Any) -> Any:
            if only and arguments[1] != only:
                return real(*arguments, **more)
            wall, own = time.perf_counter(), time.thread_time()
            try:
                return real(*arguments, **more)
            finally:
                self.wall[stage] += time.perf_counter() - wall
                self.own[stage] += time.thread_time() - own

        self._patches.enter_context(patch.object(owner, real.__name__, measured))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Measure the whole; then the functions are as they were."""
        wall, own = time.perf_counter(), time.thread_time()
        with self._patches:
            yield
        wall, own = time.perf_counter() - wall, time.thread_time() - own
        self.wall["all else"] = wall - sum(self.wall.values())
        self.own["all else"] = own - sum(self.own.values())


def print_ways(events: int, *ways: tuple[str, float, Mapping[str, Use]]) -> None:
    """Name, seconds and use of each way to apply so many events; the first is the reference."""
    print(f"{'way':<46}{'seconds':>9}{'events/s':>11}{'ratio':>8}")
    for way, seconds, uses in ways:
        print(f"{way:<46}{seconds:>9.2f}{events / seconds:>11,.0f}{ways[0][1] / seconds:>8.2f}")
        for name, (cpu_s, mb) in sorted(uses.items()):
            each = cpu_s / events * 1e6
            print(f"  CPU of {name:<37}{cpu_s:>9.2f}{each:>8.1f} µs, peak {mb:.0f} MB")


def print_rounds(
    events: int, rounds: Sequence[Round], measured: str, reference: str, bound: str = ""
) -> None:
    """The median round's ways by name, and every round's ratio; of two the better is shown."""
    shown = sorted(rounds, key=Round.ratio)[len(rounds) // 2]
    bounds = [(bound, *shown.bound)] if shown.bound else []
    print_ways(events, (reference, *shown.reference), (measured, *shown.measured), *bounds)
    told = (f"{r.ratio():.2f} ({r.measured[0]:.1f} s, {r.reference[0]:.1f} s)" for r in rounds)
    print(f"the rounds' ratios: {', '.join(told)}")
    if bounds:
        of_bound = (r.reference[0] / r.bound[0] for r in rounds if r.bound)
        print(f"{bound}: {', '.join(f'{ratio:.2f}' for ratio in of_bound)}")
