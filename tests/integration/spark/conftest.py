"""What tests of the apply path stand on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shardmerge.connectors.local.stack import LocalStack

from .rig import Rig


@pytest.fixture
def rig(stack: LocalStack) -> Iterator[Rig]:
    """A target database, control tables and a row topic of one test."""
    rig = Rig.make(stack)
    yield rig
    rig.close()
