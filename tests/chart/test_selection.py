"""Which pods Services, budgets, monitors, policies and constraints select; what probes ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.chart.rendering import BY_WATCHDOG, CHART, GIVEN, PARTS, helm, rendered
from tests.chart.workloads import Selector, name_of, selectors, workloads

CONNECTORS = "connectors"
VARIANTS = [*(path.stem for path in GIVEN), CONNECTORS]
ALL_OF_OURS = {
    ("NetworkPolicy shop-shardmerge", ("spec", "podSelector")),
    # Who may ask Connect's REST interface.
    (
        "NetworkPolicy shop-shardmerge-connect",
        ("spec", "ingress", "0", "from", "0", "podSelector"),
    ),
}
OPERATOR = {"matchLabels": {"strimzi.io/kind": "cluster-operator"}}
DRIVER_AND_EXECUTORS = ("spec", "ingress", "1", "from", "0", "podSelector")


@pytest.fixture(params=VARIANTS)
def manifests(request: pytest.FixtureRequest, connectors: Path) -> list[dict[str, Any]]:
    """The resources of a release, for each file of values, and with connectors as resources."""
    if request.param == CONNECTORS:
        strimzi = str(CHART / "ci" / "strimzi.yaml")
        return rendered("-f", strimzi, "-f", str(connectors), *BY_WATCHDOG)
    return rendered("-f", str(CHART / "ci" / f"{request.param}.yaml"))


def _selected(selector: Selector, manifests: list[dict[str, Any]]) -> list[str]:
    return [each.name for each in workloads(manifests) if selector.takes(each.labels)]


def test_a_selector_selects_the_pods_of_one_workload_and_no_others(
    manifests: list[dict[str, Any]],
) -> None:
    found = [
        each
        for each in selectors(manifests)
        if not each.of.startswith("ServiceMonitor") and each.value != OPERATOR
    ]
    assert found
    ours = [each.name for each in workloads(manifests) if each.is_ours]
    for selector in found:
        selected = _selected(selector, manifests)
        if (selector.of, selector.place) in ALL_OF_OURS:
            assert selected == ours, selector
        elif selector.place == DRIVER_AND_EXECUTORS:
            assert [name.split(", ")[1] for name in selected] == ["driver", "executor"]
        else:
            assert len(selected) == 1, (selector, selected)


def test_a_resource_that_names_a_workload_selects_that_one(
    manifests: list[dict[str, Any]],
) -> None:
    """A Service, a budget, a workload's own selector, and where its pods are to run."""
    for selector in selectors(manifests):
        kind, name = selector.of.split()
        if kind in ("KafkaNodePool", "KafkaConnect"):
            assert _selected(selector, manifests) == [selector.of]
        is_of_connect = selector.place == ("spec", "podSelector") and name.endswith("-connect")
        if kind == "PodMonitor" or is_of_connect:
            [selected] = _selected(selector, manifests)
            assert selected.startswith("KafkaConnect ")
        if kind not in (*PARTS, "Service", "PodDisruptionBudget"):
            continue
        [selected] = _selected(selector, manifests)
        assert selected.split(",")[0].split()[1] == name.removesuffix("-pods")


def test_prometheus_reads_each_process_of_ours_once(manifests: list[dict[str, Any]]) -> None:
    monitors = [s for s in selectors(manifests) if s.of.startswith("ServiceMonitor")]
    services = [each for each in manifests if each["kind"] == "Service"]
    for monitor in monitors:
        read = [each for each in services if monitor.takes(each["metadata"]["labels"])]
        assert all(each["spec"]["ports"][0]["name"] == "http" for each in read)
        jobs = [each["metadata"]["labels"]["shardmerge/job"] for each in read]
        of = [s for s in selectors(read) for _ in _selected(s, manifests)]
        executors = [each for each in workloads(manifests) if each.name.endswith("executor")]
        assert len(of) == len([w for w in workloads(manifests) if w.is_ours]) - len(executors)
        assert len(set(jobs)) == len(jobs)


def test_a_budget_lets_every_node_be_drained(manifests: list[dict[str, Any]]) -> None:
    """A pod may always go, and one that is not ready is not waited for."""
    budgets = [each for each in manifests if each["kind"] == "PodDisruptionBudget"]
    for budget in budgets:
        assert "minAvailable" not in budget["spec"]
        assert budget["spec"]["maxUnavailable"] >= 1
        assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
        # Kubernetes, "Specifying a Disruption Budget": without a scale, of which the part that may
        # go is taken, maxUnavailable lets no pod go.
        [selector] = selectors([budget])
        [workload] = _selected(selector, manifests)
        assert workload.split()[0] in PARTS


@pytest.mark.parametrize("value", ["0", "0%"])
def test_a_budget_that_keeps_nodes_from_being_drained_is_refused(value: str) -> None:
    smallest = ("-f", str(CHART / "ci" / "smallest.yaml"))
    found = helm(*smallest, "-set", f"agents.podDisruptionBudget.maxUnavailable={value}")
    assert found.returncode != 0
    assert "could be drained" in found.stderr


def test_copies_are_spread_over_zones_and_nodes_where_that_is_possible(
    manifests: list[dict[str, Any]],
) -> None:
    """Each of these has several pods, or can have them."""
    expected = {"StatefulSet", "KafkaNodePool", "KafkaConnect"}
    spread = {}
    for manifest in manifests:
        template = manifest.get("spec", {}).get("template", {})
        pod = template.get("spec") or template.get("pod") or {}
        if constraints := pod.get("topologySpreadConstraints"):
            spread[name_of(manifest)] = constraints
    for manifest in manifests:
        is_sink = manifest["kind"] == "Deployment" and manifest["metadata"]["name"].endswith(
            "-sink"
        )
        if manifest["kind"] in expected or is_sink:
            constraints = spread.pop(name_of(manifest))
            keys = [each["topologyKey"] for each in constraints]
            assert keys == ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]
            # A cluster of one node runs all of them.
            assert {each["whenUnsatisfiable"] for each in constraints} == {"ScheduleAnyway"}
    assert spread == {}


def test_a_constraint_of_the_values_is_used_as_it_is() -> None:
    given = "agents.topologySpreadConstraints[0]"
    words = [f"{given}.topologyKey=rack", f"{given}.labelSelector.matchLabels.a=b"]
    sets = [word for each in words for word in ("-set", each)]
    smallest = rendered("-f", str(CHART / "ci" / "smallest.yaml"), *sets)
    [agents] = [each for each in smallest if each["kind"] == "StatefulSet"]
    [constraint] = agents["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert constraint == {"topologyKey": "rack", "labelSelector": {"matchLabels": {"a": "b"}}}
