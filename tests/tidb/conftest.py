"""One TiDB for all tests of this folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from shardmerge.local.servers.stack import LocalStack, Ports
from shardmerge.schemas.pipeline.settings import Pipeline, Target
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress
from tests.integration.mysql.compared_line import pipeline
from tests.integration.spark.conftest import way
from tests.integration.spark.rig import Rig

from .running import GIVEN, ROOT, address_of, running_tidb, tidb_target

__all__ = ["way"]


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


@pytest.fixture(scope="session")
def stack() -> Iterator[LocalStack]:
    """Kafka alone: the target is the TiDB."""
    directory = Path(tempfile.mkdtemp(prefix="tidb-kafka-", dir=ROOT / ".local"))
    stack = LocalStack(directory, Ports.free(), cache=ROOT / ".local" / "cache")
    stack.start("kafka")
    try:
        yield stack
    finally:
        stack.clean()


@pytest.fixture
def tidb_server(tidb: MySqlAddress) -> Target:
    """``[target]`` of a pipeline that merges into it."""
    return tidb_target(f"{tidb.user}:{tidb.password}@{tidb.host}:{tidb.port}")


@pytest.fixture
def tidb_pipeline(tidb_server: Target) -> Pipeline:
    """A pipeline that merges into it, without sources that answer."""
    return replace(pipeline(1, 1), target=tidb_server)


@pytest.fixture
def rig(stack: LocalStack, tidb: MySqlAddress) -> Iterator[Rig]:
    """What the tests of the apply path stand on, with the TiDB as its target."""
    rig = Rig.make(stack, tidb)
    yield rig
    rig.close()


@pytest.fixture
def server() -> str:
    """What the tests of every kind of server ask for."""
    return "tidb"


@pytest.fixture
def server_port(tidb: MySqlAddress) -> Callable[[str], MySqlAddress]:
    """Where it is."""
    return lambda _: tidb
