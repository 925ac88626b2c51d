"""The secured line, started and played once for the tests of this folder."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from shardmerge.local.demo import Demo, Report

from .accounts import CANARY
from .process_lists import ProcessLists
from .secured_line import SecuredLine

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Played:
    """The secured line behind the demo.

    Attributes:
        report: What the demo found.
        told: Command lines that held a password, at any time of the start and the demo.
    """

    secured: SecuredLine
    report: Report
    told: frozenset[str]


@pytest.fixture(scope="package")
def played() -> Iterator[Played]:
    """The line with everything on, which has played the demo and runs on."""
    before = dict(os.environ)
    directory = Path(tempfile.mkdtemp(prefix="secure-", dir=ROOT / ".local"))
    secured = SecuredLine(directory)
    demo = Demo(secured.line, say=lambda _: None)
    try:
        with ProcessLists(CANARY) as lists:
            secured.start(demo.prepare)
            report = demo.play()
        yield Played(secured, report, frozenset(lists.found))
    finally:
        secured.stop()
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(directory)
