from __future__ import annotations

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.connect.pipeline_connectors import pipeline_connectors
from tests.example_pages import pipeline
from tests.unit.connectors.connect.test_connect_rest import status
from tests.unit.connectors.worker import Worker


def test_each_source_has_its_connector_also_one_that_connect_does_not_know(
    worker: Worker, rest: ConnectRest
) -> None:
    told = {"shop.s2": {"status": status("RUNNING", "RUNNING")}}
    worker.on("GET", "/connectors?expand=status", (200, told))
    found = pipeline_connectors(pipeline(), rest)
    assert [(each.source, each.name, each.state) for each in found] == [
        ("s1", "shop.s1", "missing"),
        ("s2", "shop.s2", "RUNNING"),
    ]
