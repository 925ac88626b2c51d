"""Two releases in one namespace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.rendering import BY_WATCHDOG, CHART, helm, rendered
from tests.chart.workloads import name_of, selectors, workloads

STRIMZI = ("-f", str(CHART / "ci" / "strimzi.yaml"))


def _of_other_pipeline(connectors: Path) -> Path:
    """The same connectors under the names of another pipeline."""
    values = yaml.safe_load(connectors.read_text())
    for each in values["strimzi"]["connectors"]:
        each["name"] = f"other-{each['name']}"
    other = connectors.with_name("other.yaml")
    other.write_text(yaml.safe_dump(values))
    return other


def _shared_names(manifests: list[dict[str, Any]]) -> set[str]:
    """What KafkaConnect resources name in Kafka."""
    keys = ("groupId", "configStorageTopic", "offsetStorageTopic", "statusStorageTopic")
    found = [each["spec"] for each in manifests if each["kind"] == "KafkaConnect"]
    return {spec[key] for spec in found for key in keys}


@pytest.mark.parametrize("names", [("shop", "orders"), ("shardmerge-a", "shardmerge-b")])
def test_two_releases_have_no_resource_and_no_pod_in_common(
    names: tuple[str, str], connectors: Path
) -> None:
    files = (connectors, _of_other_pipeline(connectors))
    ours, others = (
        rendered(*STRIMZI, "-f", str(file), *BY_WATCHDOG, release=name)
        for name, file in zip(names, files, strict=True)
    )
    assert set(map(name_of, ours)) & set(map(name_of, others)) == set()
    assert _shared_names(ours) & _shared_names(others) == set()
    for mine, theirs in ((ours, others), (others, ours)):
        for selector in selectors(mine):
            # A release's monitor selects Services, by labels that pods of the release have, too.
            assert not any(selector.takes(each.labels) for each in workloads(theirs)), selector
            services = [each for each in theirs if each["kind"] == "Service"]
            assert not any(selector.takes(each["metadata"]["labels"]) for each in services)


def test_a_connector_is_of_the_connect_cluster_of_its_release(connectors: Path) -> None:
    manifests = rendered(*STRIMZI, "-f", str(connectors), *BY_WATCHDOG)
    [connect] = [each for each in manifests if each["kind"] == "KafkaConnect"]
    of = {
        each["metadata"]["labels"]["strimzi.io/cluster"]
        for each in manifests
        if each["kind"] in ("KafkaConnector", "KafkaNodePool")
    }
    assert of == {connect["metadata"]["name"]} == {"shop-shardmerge"}
    bootstrap = connect["spec"]["bootstrapServers"]
    assert bootstrap == "shop-shardmerge-kafka-bootstrap:9092"


def test_a_cluster_that_was_named_keeps_its_name_and_its_workers_their_group() -> None:
    manifests = rendered(*STRIMZI, "-set", "strimzi.clusterName=shardmerge")
    [connect] = [each for each in manifests if each["kind"] == "KafkaConnect"]
    assert connect["metadata"]["name"] == "shardmerge"
    assert connect["spec"]["groupId"] == "shardmerge-connect"
    [kafka] = [each for each in manifests if each["kind"] == "Kafka"]
    assert kafka["metadata"]["name"] == "shardmerge"


def test_connectors_of_a_cluster_that_nobody_names_are_refused(connectors: Path) -> None:
    given = ("-f", str(CHART / "ci" / "smallest.yaml"), "-f", str(connectors), *BY_WATCHDOG)
    found = helm(*given)
    assert found.returncode != 0
    assert "strimzi.clusterName" in found.stderr
    named = rendered(*given, "-set", "strimzi.clusterName=ours")
    labels = [e["metadata"]["labels"] for e in named if e["kind"] == "KafkaConnector"]
    assert {each["strimzi.io/cluster"] for each in labels} == {"ours"}


def test_two_releases_with_spark_applications_share_what_their_values_name_only() -> None:
    given = ("-f", str(CHART / "ci" / "spark-operator.yaml"))
    ours, others = (rendered(*given, release=name) for name in ("shop", "orders"))
    assert set(map(name_of, ours)) & set(map(name_of, others)) == set()
    assert not [
        selector
        for selector in selectors(ours)
        if any(selector.takes(each.labels) for each in workloads(others))
    ]
