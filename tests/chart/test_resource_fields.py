"""Every resource fits its schema, and kubeconform would find a wrong field of any of them."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.rendering import BY_WATCHDOG, CHART, GIVEN, faults, helm, rendered
from tests.chart.schemas import KUBERNETES, OLDEST

STRIMZI, SPARK = "strimzi", "spark-operator"


@pytest.mark.parametrize("kubernetes", [KUBERNETES, OLDEST])
@pytest.mark.parametrize("values", GIVEN, ids=lambda path: path.stem)
def test_what_the_chart_renders_fits_the_schemas(values: Path, kubernetes: str) -> None:
    manifests = rendered("-f", str(values), kubernetes=kubernetes)
    assert faults(manifests, kubernetes) == ""


def test_the_oldest_kubernetes_is_that_of_the_chart() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["kubeVersion"] == f">={OLDEST.removeprefix('v')}-0"
    found = helm("-f", str(CHART / "ci" / "smallest.yaml"), kubernetes="v1.26.9")
    assert "wants Kubernetes" in found.stderr


def test_a_field_that_is_younger_than_the_oldest_kubernetes_would_be_found() -> None:
    """Kubernetes 1.32 gave pods ``resources`` of their own."""
    manifests = rendered("-f", str(CHART / "ci" / "smallest.yaml"))
    [agents] = [each for each in manifests if each["kind"] == "StatefulSet"]
    agents["spec"]["template"]["spec"]["resources"] = {}
    assert faults(manifests) == ""
    assert "resources" in faults(manifests, OLDEST)


def _place(node: Any, path: str) -> dict[str, Any]:
    for key in path.split("."):
        node = node[int(key) if key.isdigit() else key]
    assert isinstance(node, dict)
    return node


CONTAINER = "spec.template.spec.containers.0"
WORKER = "spec.template.connectContainer"
WRONG = [
    (STRIMZI, "ConfigMap", "metadata", "label"),
    (STRIMZI, "Deployment", "spec.template.spec", "serviceAcountName"),
    (STRIMZI, "Deployment", f"{CONTAINER}.livenessProbe.httpGet", "ports"),
    (STRIMZI, "Kafka", "spec.kafka", "replicas"),
    (STRIMZI, "KafkaConnect", "spec", "externalConfiguration"),
    (STRIMZI, "KafkaConnect", "spec.resources", "request"),
    (
        STRIMZI,
        "KafkaConnect",
        "spec.template.connectContainer.env.0.valueFrom.secretKeyRef",
        "path",
    ),
    (STRIMZI, "KafkaConnect", "spec.template.pod.topologySpreadConstraints.0", "maxSkews"),
    (STRIMZI, "KafkaConnector", "spec", "pause"),
    (STRIMZI, "KafkaConnector", "spec.autoRestart", "enable"),
    (STRIMZI, "KafkaNodePool", "spec", "role"),
    (STRIMZI, "KafkaNodePool", "spec.template.pod.topologySpreadConstraints.0", "selector"),
    (STRIMZI, "NetworkPolicy", "spec", "ingres"),
    (STRIMZI, "PodDisruptionBudget", "spec", "maxAvailable"),
    (STRIMZI, "PodMonitor", "spec", "podMetricsEndpoint"),
    (STRIMZI, "Service", "spec.ports.0", "containerPort"),
    (STRIMZI, "ServiceAccount", "metadata", "label"),
    (STRIMZI, "ServiceMonitor", "spec", "endpoint"),
    (STRIMZI, "StatefulSet", "spec", "replica"),
    (SPARK, "Role", "rules.0", "resource"),
    (SPARK, "RoleBinding", "subjects.0", "names"),
    (SPARK, "SparkApplication", "spec", "mainApplication"),
    (SPARK, "SparkApplication", "spec.driver", "serviceAccountName"),
    (SPARK, "SparkApplication", "spec.driver.template.spec.containers.0.livenessProbe", "delay"),
    (SPARK, "SparkApplication", "spec.executor.volumeMounts.0", "path"),
]


def _manifests(name: str, connectors: Path) -> list[dict[str, Any]]:
    more = ("-f", str(connectors), *BY_WATCHDOG) if name == STRIMZI else ()
    return rendered("-f", str(CHART / "ci" / f"{name}.yaml"), *more)


@pytest.fixture(scope="module")
def found(connectors: Path) -> list[str]:
    """What kubeconform finds of a resource for each wrong field, in one call."""
    wrong = []
    for number, (name, kind, path, key) in enumerate(WRONG):
        each = deepcopy(next(e for e in _manifests(name, connectors) if e["kind"] == kind))
        each["metadata"]["name"] = f"wrong-{number}"
        _place(each, path)[key] = 1
        wrong.append(each)
    return faults(wrong).splitlines()


@pytest.mark.parametrize("number", range(len(WRONG)), ids=lambda at: " ".join(WRONG[at][1:]))
def test_a_field_that_no_resource_has_is_found(number: int, found: list[str]) -> None:
    """``kafka.replicas`` and ``externalConfiguration`` were fields of Strimzi's older versions."""
    _, kind, _, key = WRONG[number]
    [told] = [line for line in found if f" {kind} wrong-{number} " in line]
    assert f"'{key}' not allowed" in told


def test_a_wrong_field_of_every_kind_is_looked_for(connectors: Path) -> None:
    made = {each["kind"] for name in (STRIMZI, SPARK) for each in _manifests(name, connectors)}
    assert made == {kind for _, kind, _, _ in WRONG}
