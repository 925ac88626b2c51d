"""A connector that is stopped for a reading of whole tables is nobody else's."""

from __future__ import annotations

from contextlib import closing

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name, reading_name
from shardmerge.connectors.repair.source_repair import SourceRepair
from shardmerge.connectors.repair.statement_repair import Attended
from tests.unit.connectors.connect.test_connect_rest import status
from tests.unit.connectors.debezium.test_source_config import PIPELINE
from tests.unit.connectors.worker import Worker

SOURCE = PIPELINE.sources[0]
OWN = connector_name(PIPELINE, SOURCE)


def test_while_connect_knows_a_reading_nothing_touches_the_sources_own_connector(
    worker: Worker, rest: ConnectRest
) -> None:
    reading = reading_name(PIPELINE, SOURCE, "0123456789ab")
    worker.on("GET", "/connectors", (200, [OWN, reading]))
    worker.on("GET", f"/connectors/{OWN}/status", (200, status("RUNNING", "FAILED")))
    told = rest.status(OWN)
    assert told is not None
    worker.requests.clear()

    with closing(SourceRepair(PIPELINE, SOURCE, rest)) as repair:
        assert repair.attend(told) is Attended.HELD
        assert not repair.finish(told)
        assert not repair.look_at_gtids()
        assert repair.take_in() == ()
        repair.restart()
        repair.begin_anew()

    assert {request[:2] for request in worker.requests} == {("GET", "/connectors")}


def test_a_connector_that_a_repair_has_stopped_is_neither_set_aside_nor_taken_back(
    worker: Worker, rest: ConnectRest
) -> None:
    worker.on("GET", f"/connectors/{OWN}/config", (200, {"shardmerge.repair": "{}"}))
    worker.on("GET", f"/connectors/{OWN}/status", (200, status("STOPPED")))
    with closing(SourceRepair(PIPELINE, SOURCE, rest)) as repair:
        assert not repair.set_aside()
        repair.take_back()
    assert {request[0] for request in worker.requests} == {"GET"}
