"""What tests of the apply path stand on."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from shardmerge.connectors.local.stack import LocalStack
from shardmerge.spark_sink import row_batches
from shardmerge.spark_sink.targets.mysql import bulk

from .contract import ROOT, Contract, IcebergKind
from .rig import Rig


@pytest.fixture
def rig(stack: LocalStack) -> Iterator[Rig]:
    """A target database, control tables and a row topic of one test."""
    rig = Rig.make(stack)
    yield rig
    rig.close()


@pytest.fixture(params=["load data", "statements"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of writing."""
    few = 1 if request.param == "load data" else 10**9
    monkeypatch.setattr(bulk, "LOAD_FROM_ROWS", few)
    monkeypatch.setattr(row_batches, "LINES_FROM_ROWS", few)
    return str(request.param)


# --- of the tests of Iceberg; those of the contract of all targets have a `contract` of their own


@pytest.fixture(scope="module")
def warehouse() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="iceberg-", dir=ROOT / ".local"))
    yield folder / "warehouse"
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def kind(warehouse: Path) -> Iterator[IcebergKind]:
    kind = IcebergKind(warehouse)
    yield kind
    kind.spark.stop()


@pytest.fixture
def contract(kind: IcebergKind, stack: LocalStack) -> Iterator[Contract]:
    contract = Contract(kind, stack)
    contract.topic.make_topic()
    yield contract
    contract.clean()
