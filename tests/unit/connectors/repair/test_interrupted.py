"""A connector whose stop or resumption got no answer is brought on at the next look."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.repair.source_repair import SourceRepair
from shardmerge.connectors.watchdog import Watchdog
from shardmerge.schemas.model.errors import StackError
from tests.unit.connectors.connect.test_connect_rest import status
from tests.unit.connectors.debezium.test_source_config import PIPELINE
from tests.unit.connectors.worker import Worker

OWN = connector_name(PIPELINE, PIPELINE.sources[0])
PATH = f"/connectors/{OWN}"
RUNNING, STOPPED = (200, status("RUNNING", "RUNNING")), (200, status("STOPPED"))


@pytest.fixture
def impatient(worker: Worker) -> Iterator[ConnectRest]:
    worker.on("GET", "/connectors", (200, [OWN]))
    worker.on("GET", f"{PATH}/config", (200, {"name": OWN}))
    worker.on("GET", f"{PATH}/offsets", (200, {"offsets": []}))
    worker.on("PUT", f"{PATH}/config", (200, {}))
    worker.on("PUT", f"{PATH}/stop", (204, None))
    worker.on("PUT", f"{PATH}/resume", (202, None))
    with closing(ConnectRest(worker.url, patience_s=0.2)) as rest:
        yield rest


@pytest.fixture
def repair(impatient: ConnectRest, monkeypatch: pytest.MonkeyPatch) -> Iterator[SourceRepair]:
    with closing(SourceRepair(PIPELINE, PIPELINE.sources[0], impatient)) as repair:
        monkeypatch.setattr(repair, "see_gtid_mode", lambda: None)
        yield repair


def resumed(worker: Worker) -> int:
    return worker.asked("PUT").count(f"{PATH}/resume")


@pytest.mark.parametrize("later", [STOPPED, RUNNING])
def test_one_that_stops_after_our_patience_is_resumed(
    worker: Worker, impatient: ConnectRest, repair: SourceRepair, later: tuple[int, object]
) -> None:
    worker.on("GET", f"{PATH}/status", RUNNING)
    with pytest.raises(StackError, match="has not stopped"):
        repair.restart()
    watchdog = Watchdog(impatient, [OWN], 1.0, {OWN: repair})
    worker.on("GET", f"{PATH}/status", later, STOPPED)
    watchdog.look(0.0)
    assert resumed(worker) == 1
    watchdog.look(1.0)
    assert resumed(worker) == 1, "a stop that came later is somebody else's"


def test_one_whose_resumption_was_refused_is_resumed(
    worker: Worker, impatient: ConnectRest, repair: SourceRepair
) -> None:
    worker.on("GET", f"{PATH}/status", STOPPED)
    worker.on("PUT", f"{PATH}/resume", (409, {"message": "rebalance"}))
    with pytest.raises(StackError, match="409"):
        repair.restart()
    worker.on("PUT", f"{PATH}/resume", (202, None))
    before = resumed(worker)
    watchdog = Watchdog(impatient, [OWN], 1.0, {OWN: repair})
    for second in range(3):
        watchdog.look(float(second))
    assert resumed(worker) == before + 1


def test_one_that_an_operator_stopped_stays_stopped(
    worker: Worker, impatient: ConnectRest, repair: SourceRepair
) -> None:
    worker.on("GET", f"{PATH}/status", STOPPED)
    Watchdog(impatient, [OWN], 1.0, {OWN: repair}).look(0.0)
    assert worker.asked("PUT") == []
