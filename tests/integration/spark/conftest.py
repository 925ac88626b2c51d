"""What tests of the apply path stand on."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from shardmerge.local.servers.other_versions import running_server
from shardmerge.local.servers.stack import LocalStack, Ports
from shardmerge.spark_sink.rows.folding import row_batches
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress
from shardmerge.spark_sink.targets.mysql.tasks import bulk

from .contract import ROOT, TIDB, Contract, IcebergKind, Kind, MySqlKind
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


# --- targets: the tests of Iceberg take this `kind`, those of every target's contract their own


@pytest.fixture(scope="module")
def kind_of(stack: LocalStack) -> Iterator[Callable[[str], Kind]]:
    """The kind of that name, started at the first call."""
    kinds: dict[str, Kind] = {}
    folder = Path(tempfile.mkdtemp(prefix="contract-", dir=ROOT / ".local"))
    with ExitStack() as running:
        running.callback(shutil.rmtree, folder, ignore_errors=True)

        def start(name: str) -> Kind:
            if name == "mysql80":
                return MySqlKind(stack.ports.target)
            if name == "tidb":
                url = urlsplit(f"mysql://{TIDB}")
                address = MySqlAddress(
                    url.hostname or "", url.port or 4000, url.username or "", url.password or ""
                )
                return MySqlKind(0, "tidb", url.path.strip("/"), address)
            if name == "iceberg":
                iceberg = IcebergKind(folder / "warehouse")
                running.callback(iceberg.spark.stop)
                return iceberg
            server = running.enter_context(
                running_server(
                    name, folder / name, Ports.free().target, cache=ROOT / ".local" / "cache"
                )
            )
            kind, version = ("mariadb", "10.11") if "mariadb" in name else ("mysql", "9.7")
            return MySqlKind(server.port, kind, version)

        def kind(name: str) -> Kind:
            if name not in kinds:
                kinds[name] = start(name)
            return kinds[name]

        yield kind


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
def contract(kind: Kind, stack: LocalStack) -> Iterator[Contract]:
    contract = Contract(kind, stack)
    contract.topic.make_topic()
    yield contract
    contract.clean()
