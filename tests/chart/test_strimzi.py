"""The resources of Strimzi's operator: Kafka, Connect and the connectors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.rendering import BY_WATCHDOG, CHART, ROOT, faults, pods, rendered
from tests.chart.workloads import workloads

STRIMZI = ("-f", str(CHART / "ci" / "strimzi.yaml"))
IMAGE = re.compile(r"STRIMZI_IMAGE=quay\.io/strimzi/kafka:([\d.]+)-kafka-([\d.]+)\n")


def test_kafka_is_that_of_the_tests_and_of_the_image() -> None:
    """Strimzi 1.2.0, ``kafka-versions.yaml`` and its operator's Deployment name the image."""
    found = IMAGE.search((ROOT / "docker" / "connect.Dockerfile").read_text())
    assert found is not None
    operator, kafka = found.groups()
    tested = (ROOT / "local" / "install" / "ivy.xml").read_text()
    assert f'name="connect-runtime" rev="{kafka}"' in tested
    values = yaml.safe_load((CHART / "values.yaml").read_text())["strimzi"]
    assert (values["kafka"]["version"], values["connect"]["version"]) == (kafka, kafka)
    # The schemas are those of that operator.
    schemas = (ROOT / "tests" / "chart" / "ivy.xml").read_text()
    assert f'org="io.strimzi" name="api" rev="{operator}"' in schemas
    page = (ROOT / "docs" / "how-to" / "kubernetes.md").read_text()
    assert f"Strimzi {operator} (`kafka.strimzi.io/v1`)" in page
    assert f"Kafka {kafka}" in page
    assert f"`{operator}-kafka-{kafka}`" in page


def test_a_new_version_of_the_chart_restarts_no_broker_and_no_worker() -> None:
    """Strimzi gives a resource's labels to its pods, and restarts pods that are to change."""
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]
    others = [each for each in workloads(rendered(*STRIMZI)) if not each.is_ours]
    assert len(others) == 2
    for each in others:
        assert not [label for label in each.labels.values() if version in label]


@pytest.mark.parametrize(
    ("kind", "key"), [("Kafka", "min.insync.replicas"), ("KafkaConnect", "session.timeout.ms")]
)
def test_a_property_of_the_values_takes_the_place_of_the_charts(kind: str, key: str) -> None:
    part = "kafka" if kind == "Kafka" else "connect"
    name = key.replace(".", r"\.")
    manifests = rendered(*STRIMZI, "-set", f"strimzi.{part}.config.{name}=7")
    [spec] = [each["spec"] for each in manifests if each["kind"] == kind]
    assert spec.get("kafka", spec)["config"][key] == 7


@pytest.mark.parametrize(("brokers", "copies", "in_sync"), [(1, 1, 1), (3, 3, 2), (5, 3, 2)])
def test_a_topic_survives_a_broker_where_there_are_several(
    brokers: int, copies: int, in_sync: int
) -> None:
    manifests = rendered(*STRIMZI, "-set", f"strimzi.kafka.replicas={brokers}")
    [kafka] = [each["spec"]["kafka"] for each in manifests if each["kind"] == "Kafka"]
    [connect] = [each["spec"] for each in manifests if each["kind"] == "KafkaConnect"]
    for config in (kafka["config"], connect["config"]):
        factors = {value for key, value in config.items() if key.endswith("replication.factor")}
        assert factors == {copies}
    assert kafka["config"]["min.insync.replicas"] == in_sync


def test_the_connectors_of_the_command_fit_strimzis_schema(connectors: Path) -> None:
    words = ["-f", str(CHART / "ci" / "strimzi.yaml"), "-f", str(connectors), *BY_WATCHDOG]
    manifests = rendered(*words)
    made = [each for each in manifests if each["kind"] == "KafkaConnector"]
    listed = yaml.safe_load(connectors.read_text())["strimzi"]["connectors"]
    assert [each["spec"]["config"] for each in made] == [each["config"] for each in listed]
    assert faults(manifests) == ""
    [cluster] = [each for each in manifests if each["kind"] == "KafkaConnect"]
    assert cluster["metadata"]["annotations"] == {"strimzi.io/use-connector-resources": "true"}


@pytest.mark.parametrize("given", ["", "9000"])
def test_connect_gives_up_a_dead_worker_soon_unless_the_values_say_otherwise(given: str) -> None:
    name = r"strimzi.connect.config.session\.timeout\.ms"
    more = ["-set", f"{name}={given}"] if given else []
    manifests = rendered("-f", str(CHART / "ci" / "strimzi.yaml"), *more)
    [connect] = [each for each in manifests if each["kind"] == "KafkaConnect"]
    assert connect["spec"]["config"]["session.timeout.ms"] == int(given or 6000)
    assert connect["spec"]["config"]["heartbeat.interval.ms"] == 2000
    assert connect["spec"]["config"]["scheduled.rebalance.max.delay.ms"] == 0


def test_connects_rest_interface_is_open_to_the_chart_where_strimzi_would_close_it(
    connectors: Path,
) -> None:
    words = ["-f", str(CHART / "ci" / "strimzi.yaml"), "-f", str(connectors), *BY_WATCHDOG]
    rules = [each["spec"] for each in rendered(*words) if each["kind"] == "NetworkPolicy"]
    [rule] = [each for each in rules if "strimzi.io/kind" in each["podSelector"]["matchLabels"]]
    rest, metrics = rule["ingress"]
    ours, workers, operator = rest["from"]
    for pod in pods(rendered(*words)):
        assert ours["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert rest["ports"] == [{"port": 8083}]
    # What Strimzi 1.2.0 allows, KafkaConnectCluster.java: generateNetworkPolicy().
    assert workers["podSelector"] == rule["podSelector"]
    assert operator["podSelector"] == {"matchLabels": {"strimzi.io/kind": "cluster-operator"}}
    assert operator["namespaceSelector"] == {}
    assert metrics == {"ports": [{"port": 9404}]}


@pytest.mark.parametrize(
    ("watchdog", "restarts"),
    [(("enabled=true", "create=false"), False), (("enabled=false",), True)],
)
def test_either_the_watchdog_restarts_failed_tasks_or_strimzi_does(
    watchdog: tuple[str, ...], restarts: bool, connectors: Path
) -> None:
    sets = [word for each in watchdog for word in ("-set", f"watchdog.{each}")]
    manifests = rendered(*STRIMZI, "-f", str(connectors), *sets)
    made = [each["spec"] for each in manifests if each["kind"] == "KafkaConnector"]
    assert made
    assert all(each["autoRestart"] == {"enabled": restarts} for each in made)
    # None is stopped: Strimzi resumes what the watchdog has stopped for a repair and left so.
    assert not any("state" in each for each in made)
    assert any(pod["spec"]["containers"][0]["name"] == "watchdog" for pod in pods(manifests)) != (
        restarts
    )
    policies = [each["metadata"]["name"] for each in manifests if each["kind"] == "NetworkPolicy"]
    assert "shop-shardmerge-connect" in policies


def test_the_watchdog_reaches_a_connect_that_another_release_has(connectors: Path) -> None:
    """A connector's resource is in the namespace of its KafkaConnect: Strimzi looks there only."""
    smallest = ("-f", str(CHART / "ci" / "smallest.yaml"), "-f", str(connectors), *BY_WATCHDOG)
    manifests = rendered(*smallest, "-set", "strimzi.clusterName=theirs")
    policy = _one(manifests, "NetworkPolicy")["spec"]
    assert policy["podSelector"]["matchLabels"]["strimzi.io/cluster"] == "theirs"


def _one(manifests: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    [found] = [each for each in manifests if each["kind"] == kind]
    return found


def test_prometheus_reads_connects_workers_by_the_rules_of_the_line() -> None:
    manifests = rendered(*STRIMZI)
    config = _one(manifests, "KafkaConnect")["spec"]["metricsConfig"]
    assert config["type"] == "jmxPrometheusExporter"
    of = config["valueFrom"]["configMapKeyRef"]
    maps = {e["metadata"]["name"]: e["data"] for e in manifests if e["kind"] == "ConfigMap"}
    rules = maps[of["name"]][of["key"]]
    assert yaml.safe_load(rules) == yaml.safe_load((ROOT / "docker/jmx/connect.yml").read_text())
    [endpoint] = _one(manifests, "PodMonitor")["spec"]["podMetricsEndpoints"]
    # Strimzi 1.2.0, MetricsModel.java: METRICS_PORT_NAME.
    assert (endpoint["port"], endpoint["path"]) == ("tcp-prometheus", "/metrics")
    scraped = yaml.safe_load((ROOT / "docker/prometheus/prometheus.yml").read_text())
    [job] = [each["replacement"] for each in endpoint["relabelings"]]
    assert job in [each["job_name"] for each in scraped["scrape_configs"]]


def test_the_rules_make_the_series_that_the_reference_names() -> None:
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    section = page.partition("## Kafka Connect and Debezium")[2].partition("<!-- generated")[0]
    named = re.findall(r"`debezium_([a-z]+)`", section)
    assert len(named) > 10
    [debezium] = [rule for rule in yaml.safe_load((ROOT / "docker/jmx/connect.yml").read_text())
                  ["rules"] if rule["name"] == "debezium_$4"]  # fmt: skip
    attributes = debezium["pattern"].rpartition("(")[2].rstrip(")").lower().split("|")
    assert sorted(named) == sorted(attributes)


@pytest.mark.parametrize(
    ("words", "kinds"),
    [
        (("-set", "serviceMonitor.enabled=false"), {"ConfigMap"}),
        (("-set", "strimzi.connect.metrics.enabled=false"), set()),
        (("-set", "strimzi.connect.metricsConfig.type=strimziMetricsReporter"), {"PodMonitor"}),
        (("-set", "strimzi.connect.enabled=false"), set()),
    ],
)
def test_what_reads_connects_metrics_is_there_only_where_something_serves_them(
    words: tuple[str, ...], kinds: set[str]
) -> None:
    manifests = rendered(*STRIMZI, *words)
    found = {each["kind"] for each in manifests if "-connect" in each["metadata"]["name"]}
    assert found == kinds
    configured = [e["spec"].get("metricsConfig") for e in manifests if e["kind"] == "KafkaConnect"]
    assert any(configured) == bool(kinds)
