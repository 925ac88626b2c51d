"""A broker for the session; per test a pipeline of its own on it, fed as Debezium feeds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from shardmerge.local.servers.stack import LocalStack

from .line import Line, broker_alone

ROOT = Path(__file__).resolve().parents[3]
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def broker() -> Iterator[LocalStack]:
    """The embedded stack with nothing but Kafka running."""
    with broker_alone("agents-") as stack:
        yield stack


@pytest.fixture
def line(broker: LocalStack, request: pytest.FixtureRequest) -> Iterator[Line]:
    """A pipeline with two sources of names that no other test uses.

    Of a record format that the test names indirectly, ``avro`` otherwise.
    """
    made = Line(broker, next(_numbers), record_format=getattr(request, "param", "avro"))
    try:
        yield made
    finally:
        made.close()
