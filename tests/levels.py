"""Run test levels and close with one line: ``N passed, N failed``.

Usage: ``PYTHONPATH=. python -m tests.levels check docs wheel agents connect integration e2e``

Theory of operation:

1. The levels of ``BESIDE`` wait in one queue, in the order given. Two of them run at a time. Beside
   them the other levels run, one after the other. So there are never more than three at a time.
   When the first level of ``LINES`` begins, the queue gives up one of its two lanes, as soon as the
   level in it ends: a whole line needs more than other levels, and has time limits. The queue has
   two lanes again when the other levels have ended.
2. The levels of ``GENTLE`` need processors and nothing else. They run one after the other, from the
   start to the end, beside all others. They use the processor time that the others leave.
3. What a level of the queue or a gentle one prints is printed whole when it ends.
4. A level that fails does not stop the next ones: one run tells everything. Each level has a time
   limit.
5. When a level ends, nothing that it started is left (``level_processes``). When the run is
   interrupted, nothing of any level is left: processes get SIGINT, so that tests clean up, and then
   SIGKILL.

Standard library only.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.cluster.machines import NoNamespaces, in_namespace
from tests.level_lanes import Lanes
from tests.level_processes import ROOT, counting, gently, in_one_piece, interrupt, run, say
from tests.level_results import MEASURED, PYTHON, REPORTS, Result, pytest
from tests.whole import IS_WHOLE

GIVEN_CASES = ROOT / (os.environ.get("CASES") or "../shared/cases/scenarios")
"""A folder of further scenarios: that of ``make test CASES=…``, else cases beside the checkout."""
AGENTS, CONNECT, MYSQL, SECURE = (
    f"tests/integration/{room}" for room in ("agents", "connect", "mysql", "secure")
)
TARGETS = tuple(
    str(path.relative_to(ROOT))
    for name in ("iceberg_*", "server_contract", "target_contract")
    for path in sorted((ROOT / "tests/integration/spark").glob(f"test_{name}.py"))
)
LOADS = "tests/e2e/test_g_first_loads.py"
MOVES = "tests/e2e/test_h_moved_source.py"


def check() -> Result:
    """Lint, types, import direction: one check, passed or failed."""
    code = run(["make", "--no-print-directory", "check"], minutes=30, quiet=True)
    return Result(passed=1) if code == 0 else Result(failed=1, broken=f"make check: exit {code}")


def docs() -> Result:
    """The documents as a site, without a warning: one check, passed or failed."""
    code = run(["make", "--no-print-directory", "docs"], minutes=30, quiet=True)
    return Result(passed=1) if code == 0 else Result(failed=1, broken=f"make docs: exit {code}")


def wheel() -> Result:
    """Unit and golden tests against the wheel, in a clean environment.

    When everything runs, their coverage is measured, which takes more than the tests themselves.
    """
    place = ROOT / "build" / "wheel"
    shutil.rmtree(place, ignore_errors=True)
    python = place / "venv" / "bin" / "python"
    # The packages of requirements.lock are those of the project's environment, without the project.
    steps = (
        [str(PYTHON), "-m", "build", "--wheel", "--outdir", str(place), str(ROOT)],
        [str(PYTHON), "-m", "venv", "--without-pip", str(place / "venv")],
    )
    for step in steps:
        if code := run(step, minutes=20, quiet=True):
            return Result(broken=f"{' '.join(step[1:4])}: exit {code}")
    link_packages(place / "venv")
    wheels = sorted(place.glob("*.whl"))
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
               "--no-deps", *map(str, wheels)]  # fmt: skip
    # The second step checks that what the wheel requires is there, in a version that it takes.
    for step in (install, [str(python), "-m", "pip", "--disable-pip-version-check", "check"]):
        if code := run(step, minutes=5):
            return Result(broken=f"{' '.join(step[1:])}: exit {code}")
    places = ["tests/unit", "tests/golden"]
    found = pytest("wheel", places, minutes=55, python=python, measured=IS_WHOLE)
    if not IS_WHOLE or found.failed:
        return found
    floor = [str(python), "-m", "coverage", "report", "--skip-covered"]
    if run(floor, minutes=2, log=REPORTS / "coverage.txt", more=MEASURED):
        broken = f"coverage is below the floor of pyproject.toml: {REPORTS / 'coverage.txt'}"
        found = replace(found, broken=found.broken or broken)
    return found


def link_packages(environment: Path) -> None:
    """Give an environment the packages of the project's own, as links, without the project itself.

    To install them again would take as long as all unit tests.
    """
    (ours,) = PYTHON.parent.parent.glob("lib/python*/site-packages")
    there = environment / ours.relative_to(PYTHON.parent.parent)
    project = shutil.ignore_patterns("shardmerge*", "__editable__*shardmerge*")
    shutil.copytree(ours, there, copy_function=_linked, ignore=project, dirs_exist_ok=True)


def _linked(source: str, to: str) -> None:
    try:
        os.link(source, to)
    except OSError:  # not on one file system, or it has no links
        shutil.copy2(source, to)


def laws() -> Result:
    """The laws and the state machines: long histories. Each of them takes one processor."""
    return pytest("laws", ["tests/properties"], minutes=40)


def chart() -> Result:
    """The Helm chart against the resources' schemas. It needs Go, which builds Helm."""
    if code := run(["make", "--no-print-directory", "build/chart/.ready"], minutes=30):
        return Result(broken=f"make build/chart/.ready: exit {code}")
    return pytest("chart", ["tests/chart"], minutes=10)


def agents() -> Result:
    """The integration tests of the agents. They wait most; their broker is their own."""
    return pytest("agents", [AGENTS], minutes=40)


def connect() -> Result:
    """The integration tests that wait for connectors; their stacks are their own."""
    return pytest("connect", [CONNECT], minutes=60)


def mysql() -> Result:
    """The integration tests that need nothing but MySQL servers of their own."""
    return pytest("mysql", [MYSQL], minutes=60)


def secure() -> Result:
    """The integration tests on a line whose connections are all secured."""
    return pytest("secure", [SECURE], minutes=40)


def sources() -> Result:
    """The contract of servers as sources; its stack and its servers are its own."""
    return pytest("sources", ["tests/sources"], minutes=60)


def cluster() -> Result:
    """A line of its own on machines that are killed and cut off; the sink on a Spark cluster."""
    try:
        within = in_namespace()
    except NoNamespaces as error:
        return Result(broken=str(error))
    return pytest("cluster", ["tests/cluster"], minutes=40, within=within)


def targets() -> Result:
    """The tests in ``integration/spark`` of kinds of targets; their stack is their own."""
    return pytest("targets", list(TARGETS), minutes=60)


def loads() -> Result:
    """The first load by the sink. Its line is its own, and it waits much."""
    return pytest("loads", [LOADS], minutes=40)


def moves() -> Result:
    """A source that moves to its replica. Its line is its own."""
    return pytest("moves", [MOVES], minutes=20)


def integration() -> Result:
    """The other integration tests, with one real system per test."""
    others = [f"--ignore={place}" for place in (AGENTS, CONNECT, MYSQL, SECURE, *TARGETS)]
    return pytest("integration", ["tests/integration", *others], minutes=60)


def e2e() -> Result:
    """The whole line, with faults, and the project's own scenarios."""
    others = [f"--ignore={place}" for place in (LOADS, MOVES)]
    return pytest("e2e", ["tests/e2e", *others], minutes=60)


def scenarios() -> Result:
    """The scenarios that were given beside the project, when they are there."""
    if not GIVEN_CASES.is_dir():
        said = f"no {os.path.relpath(GIVEN_CASES, ROOT)}: only our own scenarios were played"
        print(said, flush=True)
        return Result(broken=said if os.environ.get("CASES") else "")
    log = REPORTS / "scenarios.txt"
    command = [
        "make",
        "--no-print-directory",
        "scenarios",
        f"DIR={os.path.relpath(GIVEN_CASES, ROOT)}",
    ]
    code = run(command, minutes=25, log=log)
    found = re.findall(
        r"^(\d+) passed, (\d+) failed", log.read_text(encoding="utf-8"), re.MULTILINE
    )
    if not found:
        return Result(broken=f"make scenarios: exit {code} without a closing line")
    passed, failed = map(int, found[-1])
    broken = "" if (code == 0) == (failed == 0) else f"make scenarios: exit {code}"
    failures = re.findall(r"^FAILED +(.*)$", log.read_text(encoding="utf-8"), re.MULTILINE)
    return Result(passed, failed, broken, tuple(failures))


def older_spark(version: str) -> Result:
    """The sink's tests that start Spark, under a version of ``tests/sparks``."""
    place = Path("build") / f"spark-{version}"
    if code := run(["make", "--no-print-directory", f"{place}/.installed"], minutes=10):
        return Result(broken=f"make {place}/.installed: exit {code}")
    path = {"PYTHONPATH": str(ROOT / place)}
    look = f"import pyspark, sys; sys.exit(pyspark.__version__ != {version!r})"
    if code := run([str(PYTHON), "-c", look], minutes=1, more=path):
        return Result(broken=f"{place} is not what is imported: exit {code}")
    tests = [f"tests/integration/spark/test_{name}.py" for name in _STARTING_SPARK]
    chosen = "in_spark or (enough_for_a_job and mysql80)"
    return pytest(f"spark-{version}", [*tests, "-k", chosen], minutes=10, more=path)


def pages() -> Result:
    """The pages in a real browser, and the server against its OpenAPI document. Needs chromium."""
    return _in_browser("pages", "build/pages-api/.installed")


def proxy() -> Result:
    """The pages behind a real OIDC proxy, in a real browser. Needs chromium, and Go."""
    return _in_browser("proxy", "build/proxy/.ready")


def _in_browser(level: str, also: str) -> Result:
    if shutil.which("chromium") is None:
        return Result(broken="no chromium on the path: install Debian's package chromium")
    if code := run(["make", "--no-print-directory", "build/pages/.installed", also], minutes=20):
        return Result(broken=f"make build/pages/.installed {also}: exit {code}")
    path = {"PYTHONPATH": str(ROOT / "build" / "pages")}
    return pytest(level, [f"tests/{level}"], minutes=40, more=path)


_STARTING_SPARK = ("driver", "target_contract")

LEVELS: dict[str, Callable[[], Result]] = {
    "check": check, "chart": chart, "docs": docs, "laws": laws, "wheel": wheel, "agents": agents,
    "connect": connect, "mysql": mysql, "secure": secure, "sources": sources,
    "targets": targets, "loads": loads, "moves": moves, "cluster": cluster, "pages": pages,
    "proxy": proxy, "integration": integration, "e2e": e2e, "scenarios": scenarios,
} | {
    f"spark-{lock.stem}": partial(older_spark, lock.stem)
    for lock in sorted((ROOT / "tests" / "sparks").glob("*.txt"))
}  # fmt: skip

BESIDE = (
    "agents",
    "connect",
    "mysql",
    "secure",
    "sources",
    "targets",
    "loads",
    "moves",
    "cluster",
    "pages",
    "proxy",
    *[name for name in LEVELS if name.startswith("spark-")],
)
"""Levels that leave enough of two processors to two others. They start nothing that others use."""
GENTLE = ("check", "chart", "docs", "laws", "wheel")
"""Levels that start no server and wait for nothing. Their time limits allow for busy processors."""
LINES = ("e2e", "scenarios")
"""Levels that run a whole line. Alone they would leave a third of two processors unused."""


def main(names: list[str]) -> int:
    """Run the levels named; 0 only if every one passed with at least one test, 130 interrupted."""
    unknown = [name for name in names if name not in LEVELS]
    if unknown or not names:
        print(f"usage: python -m tests.levels {' '.join(LEVELS)}", file=sys.stderr)
        return 2
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    REPORTS.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    results = dict.fromkeys(names, Result())
    here = [name for name in names if name not in (*BESIDE, *GENTLE)] or names[-1:]
    lanes = Lanes(2)
    with ThreadPoolExecutor(max_workers=2) as queue, ThreadPoolExecutor(max_workers=1) as rest:
        try:
            gentle = {
                name: rest.submit(in_one_piece, partial(gently, partial(played, name)))
                for name in names
                if name in GENTLE and name not in here
            }
            beside = {
                name: queue.submit(in_one_piece, partial(queued, name, lanes))
                for name in names
                if name in BESIDE and name not in here
            }
            narrow = next((name for name in here if name in LINES), None)
            for name in here:
                if name == narrow:
                    lanes.narrow()
                results[name] = played(name)
            if narrow is not None:
                lanes.widen()
            results.update({name: level.result() for name, level in (beside | gentle).items()})
        except BaseException as error:
            # Levels that wait in the queue do not begin any more: ``run`` returns at once.
            interrupt()
            if not isinstance(error, KeyboardInterrupt):
                raise
            return 130
    print()
    for name, result in results.items():
        counts = f"{name:12} {result.passed:5} passed {result.failed:5} failed {_length(result)}"
        print(f"{counts}   {result.broken}".rstrip())
        for failure in result.failures:
            print(f"    {failure}")
    spent = sum(r.processor_seconds for r in results.values())
    whole = Result(seconds=time.monotonic() - started, processor_seconds=spent)
    print(f"{'in all':39} {_length(whole)}")
    passed = sum(r.passed for r in results.values())
    # A level that could not finish counts as a failure even when every test it ran passed.
    failed = sum(max(r.failed, 1 if r.broken else 0) for r in results.values())
    print(f"{passed} passed, {failed} failed", flush=True)
    return 0 if failed == 0 and passed > 0 else 1


def queued(name: str, lanes: Lanes) -> Result:
    """A level's result, as soon as one of the queue's lanes is free."""
    with lanes.one():
        return played(name)


def played(name: str) -> Result:
    """A level's result; says how long it took."""
    say(f"\n=== {name}\n")
    started = time.monotonic()
    with counting() as spent:
        result = LEVELS[name]()
    result = replace(result, seconds=time.monotonic() - started, processor_seconds=sum(spent))
    say(f"=== {name}: {_length(result)}\n")
    return result


def _length(result: Result) -> str:
    """How long it took, and how much of the processors: where both differ, it waited."""
    return f"{result.seconds:5.0f} s, {result.processor_seconds:5.0f} s of processors"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
