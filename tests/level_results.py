"""What a test level found, and how it is read from pytest's report. Standard library only."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.level_processes import ROOT, run

REPORTS = ROOT / "build" / "reports"
PYTHON = ROOT / ".venv" / "bin" / "python"
MEASURED = {"COVERAGE_FILE": str(REPORTS / "coverage")}
_ERROR = re.compile(r"[\s|]*([\w.]*(?:Error|Warning|Exception\w*): .*)")


@dataclass(frozen=True, slots=True)
class Result:
    """What a level found; ``broken`` says why it could not finish ("" if it could)."""

    passed: int = 0
    failed: int = 0
    broken: str = ""
    failures: tuple[str, ...] = ()  # a line each: which test, and what it said
    seconds: float = 0.0
    processor_seconds: float = 0.0  # of all processes that it started, on all processors


def pytest(
    level: str,
    arguments: list[str],
    minutes: float,
    python: Path = PYTHON,
    more: Mapping[str, str] | None = None,
    *,
    measured: bool = False,
    within: Sequence[str] = (),
) -> Result:
    """Run pytest and count from its report; a run without a test is broken.

    ``measured``: coverage is measured into the file of ``MEASURED``. ``within``: the words of a
    command that runs the one behind it.
    """
    report = REPORTS / f"{level}.xml"
    report.unlink(missing_ok=True)
    runner = ["coverage", "run", "-m", "pytest"] if measured else ["pytest"]
    command = [*within, str(python), "-m", *runner, f"--junitxml={report}", *arguments]
    log = REPORTS / f"{level}.txt"
    code = run(command, minutes=minutes, log=log, more=MEASURED if measured else more)
    if not report.exists():
        return Result(broken=f"pytest: exit {code} without a report")
    suite = next(ET.parse(report).getroot().iter("testsuite"))
    total, failed, skipped = (
        sum(int(suite.get(name, "0")) for name in names)
        for names in (("tests",), ("failures", "errors"), ("skipped",))
    )
    broken = ""
    if code not in (0, 1) or (code == 1 and failed == 0):
        broken = ": ".join((f"pytest: exit {code}", *_raised(log)))
    return Result(total - failed - skipped, failed, broken, tuple(_failures(suite)))


def _failures(suite: ET.Element) -> Iterator[str]:
    for case in suite.iter("testcase"):
        for found in (*case.iter("failure"), *case.iter("error")):
            said = " ".join((found.get("message") or "").split())
            yield f"{case.get('classname')}::{case.get('name')}: {said[:300]}"


def _raised(log: Path) -> Sequence[str]:
    """The last error in the output: pytest raises it when no test is left to fail by it."""
    lines = log.read_text(encoding="utf-8").splitlines()
    found = [match[1][:300] for line in lines if (match := _ERROR.match(line))]
    return found[-1:]
