"""A broker for the session; per test a pipeline of its own on it, fed as Debezium feeds."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from shardmerge.connectors.local.stack import LocalStack, Ports

from .line import Line

ROOT = Path(__file__).resolve().parents[3]
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def broker() -> Iterator[LocalStack]:
    """The embedded stack with nothing but Kafka running."""
    (ROOT / ".local").mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="agents-", dir=ROOT / ".local"))
    stack = LocalStack(directory, Ports.free(), cache=ROOT / ".local" / "cache")
    stack.start("kafka")
    try:
        yield stack
    finally:
        stack.clean()


@pytest.fixture
def line(broker: LocalStack) -> Iterator[Line]:
    """A pipeline with two sources of names that no other test uses."""
    made = Line(broker, next(_numbers))
    try:
        yield made
    finally:
        made.close()
