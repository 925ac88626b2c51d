"""One TiDB for all tests of this folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shardmerge.spark_sink.targets.mysql.session import MySqlAddress

from .running import GIVEN, ROOT, address_of, running_tidb


@pytest.fixture(scope="session")
def tidb() -> Iterator[MySqlAddress]:
    """The given TiDB, or one that is started."""
    if GIVEN:
        yield address_of(GIVEN)
        return
    folder = Path(tempfile.mkdtemp(prefix="tidb-", dir=ROOT / ".local"))
    try:
        with running_tidb(folder) as address:
            yield address
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def server() -> str:
    """What the tests of every kind of server ask for."""
    return "tidb"


@pytest.fixture
def server_port(tidb: MySqlAddress) -> Callable[[str], MySqlAddress]:
    """Where it is."""
    return lambda _: tidb
