"""A worker whose Debezium writes a default in place of NULL is refused for shared topics."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.connect.shared_topics import check_shared_topics
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Pipeline
from tests.unit.connectors.debezium.test_source_config import PIPELINE
from tests.unit.connectors.worker import Worker

PLUGINS = "/connector-plugins?connectorsOnly=false"
OWN = RoutingRule(".*", "app", r"t_\d+", "m", "t")
SHARED = replace(OWN, row_topic="m.t")


def pipeline(*routes: RoutingRule) -> Pipeline:
    return replace(PIPELINE, routes=routes)


def router(version: str | None) -> dict[str, str | None]:
    name = "io.debezium.transforms.ByLogicalTableRouter"
    return {"class": name, "type": "transformation", "version": version}


@pytest.mark.parametrize(
    "versions", [["3.5.0.Final"], ["3.4.2.Final", "3.5.1.Final"], ["2.7.4.Final"]]
)
def test_a_version_that_loses_nulls_is_refused(
    worker: Worker, rest: ConnectRest, versions: list[str]
) -> None:
    worker.on("GET", PLUGINS, (200, [router(version) for version in versions]))
    with pytest.raises(StackError, match="is too old for shared row topics") as refused:
        check_shared_topics(rest, pipeline(OWN, SHARED))
    assert refused.value.code == "SM-4314"
    assert versions[-1] in str(refused.value)
    assert "MySQL connector" in refused.value.hint


@pytest.mark.parametrize(
    "versions", [["3.6.1.Final"], ["3.5.0.Final", "3.6.1.Final"], ["3.10.0.Final"], [None], []]
)
def test_a_newer_version_counts_since_connect_takes_the_newest(
    worker: Worker, rest: ConnectRest, versions: list[str | None]
) -> None:
    worker.on("GET", PLUGINS, (200, [router(version) for version in versions]))
    check_shared_topics(rest, pipeline(SHARED))


def test_a_pipeline_without_shared_topics_needs_nothing(worker: Worker, rest: ConnectRest) -> None:
    check_shared_topics(rest, pipeline(OWN))
    assert worker.asked("GET") == []
