"""The sink as a SparkApplication: what its driver may do, and how it is watched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.rendering import CHART, faults, helm, pods, rendered
from tests.chart.spark_pods import CONTAINER, driver_resources
from tests.chart.test_probes import ALIVE

OPERATOR = ("-f", str(CHART / "ci" / "spark-operator.yaml"))
ACCOUNT = "sink.sparkApplication.serviceAccount"
RIGHTS = ("Role", "RoleBinding")


def _of_kind(manifests: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    [found] = [each for each in manifests if each["kind"] == kind]
    return found


def _accounts(manifests: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {e["metadata"]["name"]: e for e in manifests if e["kind"] == "ServiceAccount"}


def test_the_driver_may_make_and_end_executors() -> None:
    """Kubeflow's chart 2.4 gives its account ``spark`` these rights, in the job's namespace."""
    manifests = rendered(*OPERATOR)
    spec = _of_kind(manifests, "SparkApplication")["spec"]
    account = spec["driver"]["serviceAccount"]
    role, binding = (_of_kind(manifests, kind) for kind in RIGHTS)
    assert account in _accounts(manifests)
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": account, "namespace": "default"}
    ]
    assert binding["roleRef"] == {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "Role",
        "name": role["metadata"]["name"],
    }
    [rule] = role["rules"]
    assert rule["apiGroups"] == [""]
    assert set(rule["resources"]) == {"pods", "services", "configmaps", "persistentvolumeclaims"}
    assert {"create", "get", "list", "watch", "delete", "deletecollection"} <= set(rule["verbs"])
    # Else it has no token.
    assert "automountServiceAccountToken" not in _accounts(manifests)[account]


def test_executors_do_not_have_the_rights_of_the_driver() -> None:
    """Without an account of their own, Spark gives them the driver's."""
    spec = _of_kind(rendered(*OPERATOR), "SparkApplication")["spec"]
    assert spec["executor"]["serviceAccount"] == "shop"
    made = rendered(*OPERATOR, "-set", "serviceAccount.create=true")
    executors = _of_kind(made, "SparkApplication")["spec"]["executor"]["serviceAccount"]
    assert _accounts(made)[executors]["automountServiceAccountToken"] is False


def test_an_account_that_is_there_is_used_and_gets_no_rights() -> None:
    manifests = rendered(*OPERATOR, "-set", f"{ACCOUNT}.create=false,{ACCOUNT}.name=spark")
    spec = _of_kind(manifests, "SparkApplication")["spec"]
    assert spec["driver"]["serviceAccount"] == "spark"
    assert not [e for e in manifests if e["kind"] in (*RIGHTS, "ServiceAccount")]


def test_an_account_that_is_there_must_be_named() -> None:
    found = helm(*OPERATOR, "-set", f"{ACCOUNT}.create=false")
    assert found.returncode != 0
    assert f"{ACCOUNT}.name" in found.stderr


def test_an_account_can_have_a_name_and_annotations(tmp_path: Path) -> None:
    """Such as those by which a cloud gives a pod an identity."""
    account = {"name": "2024", "annotations": {"a": "b"}}
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump({"sink": {"sparkApplication": {"serviceAccount": account}}}))
    manifests = rendered(*OPERATOR, "-f", str(values))
    assert faults(manifests) == ""
    assert _accounts(manifests)["2024"]["metadata"]["annotations"] == {"a": "b"}
    assert _of_kind(manifests, "RoleBinding")["subjects"][0]["name"] == "2024"


@pytest.mark.parametrize("values", ["smallest", "strimzi"])
def test_only_a_driver_on_kubernetes_has_rights(values: str) -> None:
    manifests = rendered("-f", str(CHART / "ci" / f"{values}.yaml"))
    assert not [each for each in manifests if each["kind"] in RIGHTS]


def _driver() -> dict[str, Any]:
    driver: dict[str, Any] = _of_kind(rendered(*OPERATOR), "SparkApplication")["spec"]["driver"]
    return driver


def test_a_driver_that_hangs_is_ended_as_the_sink_of_a_deployment_is() -> None:
    """Also where it hangs before it has started."""
    [container] = _driver()["template"]["spec"]["containers"]
    [sink] = [c for pod in pods(rendered("-f", str(CHART / "ci" / "smallest.yaml")))
              for c in pod["spec"]["containers"] if c["name"] == "sink"]  # fmt: skip
    probe, starts = container["livenessProbe"], sink["startupProbe"]
    delay = starts["periodSeconds"] * starts["failureThreshold"]
    assert probe == {
        **sink["livenessProbe"],
        "initialDelaySeconds": delay,
        "httpGet": {"path": ALIVE, "port": 9401},
    }


def test_a_value_of_the_probe_takes_the_place_of_the_charts() -> None:
    given = "sink.livenessProbe.initialDelaySeconds=30"
    spec = _of_kind(rendered(*OPERATOR, "-set", given), "SparkApplication")["spec"]
    [container] = spec["driver"]["template"]["spec"]["containers"]
    assert container["livenessProbe"]["initialDelaySeconds"] == 30


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What Spark makes of the chart's template, by kind."""
    return driver_resources(_driver()["template"], tmp_path_factory.mktemp("template"))


def test_spark_keeps_the_probe_and_what_fails_it_ends_the_pod(
    made: dict[str, dict[str, Any]],
) -> None:
    [container] = made["Pod"]["spec"]["containers"]
    assert container["name"] == CONTAINER
    [given] = _driver()["template"]["spec"]["containers"]
    assert container["livenessProbe"] == given["livenessProbe"]
    # Kubernetes starts it no more, so the operator sees a failed driver, and submits another one.
    assert made["Pod"]["spec"]["restartPolicy"] == "Never"
    restarts = _of_kind(rendered(*OPERATOR), "SparkApplication")["spec"]["restartPolicy"]
    assert restarts["type"] == "Always"


def test_executors_find_a_driver_that_is_not_ready(made: dict[str, dict[str, Any]]) -> None:
    """Spark's Service names ready pods only. The sink waits for its target with Spark running."""
    service = made["Service"]["spec"]
    assert service["clusterIP"] == "None"
    [container] = made["Pod"]["spec"]["containers"]
    # A pod is not ready before its startup probe has succeeded, either.
    delays = {"readinessProbe", "startupProbe"} & container.keys()
    assert service.get("publishNotReadyAddresses") or not delays


def test_the_operator_adds_passwords_and_volumes_to_a_pod_of_a_template() -> None:
    """It gives the label itself where there is no template (2.4.0, ``driverConfOption``)."""
    driver = _driver()
    assert driver["labels"]["sparkoperator.k8s.io/mutated-by-spark-operator"] == "true"
    assert {each["name"] for each in driver["env"]} >= {"SOURCE_PASSWORD", "TARGET_PASSWORD"}
