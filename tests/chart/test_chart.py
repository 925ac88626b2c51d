"""The Helm chart, rendered by Helm's packages; kubeconform holds it against the schemas."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from shardmerge.spark_sink.process.settings import settings_from
from tests.chart.rendering import (
    CHART,
    GIVEN,
    PARTS,
    ROOT,
    helm,
    pods,
    rendered,
)
from tests.unit.test_docker import read_by_the_command


@pytest.mark.parametrize("values", GIVEN, ids=lambda path: path.stem)
def test_no_container_is_root_or_writes_into_its_image(values: Path) -> None:
    for pod in pods(rendered("-f", str(values))):
        of_all = pod["spec"]["securityContext"]
        assert (of_all["runAsNonRoot"], of_all["runAsUser"]) == (True, 10001)
        assert of_all["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert pod["spec"]["enableServiceLinks"] is False
        for container in pod["spec"]["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            # What it may write: its working directory is a volume.
            mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
            assert container["workingDir"] in mounted
            assert "/tmp" in mounted
            # A node's disk is not filled, and the scheduler knows what a pod needs.
            [tmp] = [each for each in pod["spec"]["volumes"] if each["name"] == "tmp"]
            assert tmp["emptyDir"].keys() == {"sizeLimit"}
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}
            assert "memory" in container["resources"]["limits"]


@pytest.mark.parametrize("values", GIVEN, ids=lambda path: path.stem)
def test_each_part_is_a_call_of_the_command(values: Path, tmp_path: Path) -> None:
    called = {
        read_by_the_command(container["args"], tmp_path)
        for pod in pods(rendered("-f", str(values)))
        for container in pod["spec"]["containers"]
    }
    sink = {"shardmerge sink"} if values.stem != "spark-operator" else set()
    validator = {"shardmerge validate"} if values.stem == "strimzi" else set()
    assert called == {"shardmerge agents", "shardmerge connect watch", *sink, *validator}


@pytest.mark.parametrize("values", GIVEN, ids=lambda path: path.stem)
def test_a_probe_and_a_service_ask_the_port_that_the_command_serves(values: Path) -> None:
    manifests = rendered("-f", str(values))
    served = {
        container["name"]: container["ports"][0]["containerPort"]
        for pod in pods(manifests)
        for container in pod["spec"]["containers"]
        if str(container["ports"][0]["containerPort"]) in container["args"]
    }
    parts = [each for each in manifests if each["kind"] in PARTS]
    assert len(served) == len(parts)
    for service in (each for each in manifests if each["kind"] == "Service"):
        part = service["spec"]["selector"]["app.kubernetes.io/component"]
        assert service["spec"]["ports"][0]["targetPort"] == served.get(part, 9401)


def test_a_password_is_where_it_is_used_and_nowhere_else() -> None:
    manifests = rendered("-f", str(CHART / "ci" / "strimzi.yaml"))
    used = {
        container["name"]: {
            each["name"] for each in container["env"] if "secretKeyRef" in each.get("valueFrom", {})
        }
        for pod in pods(manifests)
        for container in pod["spec"]["containers"]
    }
    # The sink reads first rows from the sources.
    of_sink = {"SOURCE_PASSWORD", "TARGET_PASSWORD"}
    assert used == {
        "agents": set(),
        "watchdog": {"SOURCE_PASSWORD"},
        "sink": of_sink,
        "validator": of_sink,
    }
    [connect] = [each for each in manifests if each["kind"] == "KafkaConnect"]
    [given] = connect["spec"]["template"]["connectContainer"]["env"]
    assert given["name"] == "SOURCE_PASSWORD"
    # Beside what the values say of the template.
    assert connect["spec"]["template"]["pod"]["terminationGracePeriodSeconds"] == 60


def test_the_validator_of_an_iceberg_target_has_the_image_with_spark() -> None:
    for more, image in (("false", "example.com/shardmerge@"), ("true", "shardmerge-sink:")):
        words = ["-f", str(CHART / "ci" / "strimzi.yaml"), "-set", f"validator.onSpark={more}"]
        containers = [c for pod in pods(rendered(*words)) for c in pod["spec"]["containers"]]
        [validator] = [each for each in containers if each["name"] == "validator"]
        assert image in validator["image"]
        assert validator["args"][-4:] == ["--rate", "500", "--pause", "3600"]


def test_what_runs_spark_keeps_fetched_jars_in_a_folder_that_it_may_write() -> None:
    """The home that Java finds is in the image, which nobody may write."""
    words = ["-f", str(CHART / "ci" / "strimzi.yaml"), "-set", "validator.onSpark=true"]
    containers = [c for pod in pods(rendered(*words)) for c in pod["spec"]["containers"]]
    kept = {}
    for container in containers:
        given = {each["name"]: each.get("value", "") for each in container["env"]}
        kept[container["name"]] = settings_from(["--pipeline", "p.toml"], given).ivy
    assert kept == {"agents": "", "watchdog": "", "sink": "/tmp/ivy", "validator": "/tmp/ivy"}


@pytest.mark.parametrize(
    ("given", "images"),
    [
        (("image.tag=v2",), {"agents": "shardmerge:v2", "watchdog": "shardmerge:v2"}),
        (
            ("image.tag=v2", "watchdog.image.tag=v1"),
            {"agents": "shardmerge:v2", "watchdog": "shardmerge:v1"},
        ),
        (
            ("image.digest=sha256:b", "watchdog.image.digest=sha256:a"),
            {"agents": "shardmerge@sha256:b", "watchdog": "shardmerge@sha256:a"},
        ),
        (
            ("image.digest=sha256:b", "watchdog.image.tag=v1"),
            {"agents": "shardmerge@sha256:b", "watchdog": "shardmerge:v1"},
        ),
        (
            ("image.digest=sha256:b", "watchdog.image.repository=other"),
            {"agents": "shardmerge@sha256:b", "watchdog": "other@sha256:b"},
        ),
    ],
)
def test_the_watchdog_can_stay_behind_at_an_upgrade(
    given: tuple[str, ...], images: dict[str, str]
) -> None:
    words = [word for value in given for word in ("-set", value)]
    found = {
        container["name"]: container["image"]
        for pod in pods(rendered("-f", str(CHART / "ci" / "smallest.yaml"), *words))
        for container in pod["spec"]["containers"]
    }
    del found["sink"]
    assert found == images


def test_sinks_stand_by_for_one_another_and_are_ready_before_the_old_one_ends() -> None:
    manifests = rendered("-f", str(CHART / "ci" / "strimzi.yaml"))
    [sink] = [each for each in manifests if each["metadata"]["name"].endswith("-sink")
              and each["kind"] == "Deployment"]  # fmt: skip
    assert sink["spec"]["replicas"] == 2
    assert sink["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    [container] = sink["spec"]["template"]["spec"]["containers"]
    assert settings_from(container["args"][1:], {}).standby
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"


def test_a_spark_application_has_the_settings_of_the_page(tmp_path: Path) -> None:
    words = ["-f", str(CHART / "ci" / "spark-operator.yaml")]
    before, after = (
        next(each["spec"] for each in rendered(*words, *more) if each["kind"] == "SparkApplication")
        for more in ([], ["-set", "pipeline=changed"])
    )
    page = (ROOT / "docs" / "how-to" / "spark-cluster.md").read_text()
    told = dict(re.findall(r"^(spark\.(?:network|executor\.heartbeat)\S+) +(\S+)$", page, re.M))
    assert len(told) == 3
    assert told.items() <= before["sparkConf"].items()
    settings = settings_from(before["arguments"], {})
    assert (settings.standby, settings.metrics_port) == (True, 9401)
    # Up to 1 GB of Python for each core.
    assert before["executor"]["memoryOverhead"] == f"{before['executor']['cores']}g"
    for role in ("driver", "executor"):
        old, new = (spec[role]["annotations"] for spec in (before, after))
        assert old != new
        assert old["example.com/team"] == "data"


def test_what_a_cluster_runs_of_a_spark_application_is_what_the_chart_renders() -> None:
    """The level ``cluster`` runs what the file says, since it has no renderer."""
    (found,) = (
        each["spec"]
        for each in rendered("-f", str(CHART / "ci" / "spark-operator.yaml"))
        if each["kind"] == "SparkApplication"
    )
    kept = json.loads((ROOT / "tests" / "cluster" / "spark_application.json").read_text())
    assert {name: found[name] for name in kept} == kept
    assert {"mode", "mainApplicationFile", "arguments", "sparkConf"} <= kept.keys()


def test_another_pipeline_file_gives_new_pods() -> None:
    smallest = ["-f", str(CHART / "ci" / "smallest.yaml")]
    before, after = (
        [pod["metadata"]["annotations"] for pod in pods(rendered(*smallest, *more))]
        for more in ([], ["-set", "pipeline=changed"])
    )
    assert len(before) == len(after) == 3
    assert all(old != new for old, new in zip(before, after, strict=True))


def _iceberg_on_spark(line: str) -> tuple[str, ...]:
    return ("-set", f"pipeline={line}", "-set", "sink.kind=sparkApplication")


def _closed(master: str) -> tuple[str, ...]:
    """A sink whose pods only Prometheus reaches."""
    values = ("pipeline=x", f"sink.master={master}", "networkPolicy.enabled=true")
    return tuple(word for value in values for word in ("-set", value))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "--set-file pipeline=FILE"),
        (("-set", "pipeline=x", "-set", "sink.kind=job"), "sink.kind"),
        (("-set", "pipeline=password = 'x'"), "in the line of password"),
        (("-set", 'pipeline=s = {key_password= "x"}'), "in the line of key_password"),
        (("-set", 'pipeline="sasl.password" = "x"'), "in the line of sasl.password"),
        (("-set", 'pipeline="sasl.oauthbearer.client.secret" = "x"'), "client.secret"),
        (("-set", 'pipeline="s3.secret-access-key" = "x"'), "s3.secret-access-key"),
        (("-set", 'pipeline="s3.session-token" = "x"'), "s3.session-token"),
        (("-set", 'pipeline=credential = "id:x"'), "in the line of credential"),
        (("-set", 'pipeline=api_key = "x"'), "in the line of api_key"),
        (("-set", 'pipeline=password = """x"""'), "in the line of password"),
        (("-set", "pipeline=password = '''\nx'''"), "in the line of password"),
        (_iceberg_on_spark('kind = "iceberg"'), "no Iceberg targets"),
        (_iceberg_on_spark("kind = 'iceberg'"), "no Iceberg targets"),
        (_iceberg_on_spark('target.kind="iceberg"'), "no Iceberg targets"),
        (_closed("spark://m:7077"), "executors of sink.master"),
        (_closed("k8s://https://kubernetes.default.svc:443"), "executors of sink.master"),
        (("-set", "pipeline=x", "-set", "strimzi.connect.enabled=true"), "--target strimzi"),
        (("-set", "pipeline=x", "-set", "strimzi.connectors[0].name=a"), "watchdog.create"),
    ],
)
def test_values_that_give_no_line_are_refused(words: tuple[str, ...], told: str) -> None:
    found = helm(*words)
    assert found.returncode != 0
    assert told in found.stderr


def test_the_chart_has_the_spark_of_the_project() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    spark = values["sink"]["sparkApplication"]["sparkVersion"]
    assert f"\npyspark=={spark} " in (ROOT / "requirements.lock").read_text()


@pytest.mark.parametrize(
    "line", ['password = "env:A"', "password = 'file:/a'", 'password = ""', '# password = "x"',
             'connect_password = "${vault:secret/s1:password}"', '"s3.session-token" = "env:T"',
             '"sasl.oauthbearer.token.endpoint.url" = "https://login/token"', 'commands = "token"',
             '"token-refresh-enabled" = "false"', '"client.credentials-provider" = "a.b.C"']
)  # fmt: skip
def test_a_reference_to_a_password_is_no_password(line: str, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump({"pipeline": f"[[source]]\n{line}\n"}))
    [config] = [each["data"] for each in rendered("-f", str(values)) if each["kind"] == "ConfigMap"]
    assert line in config["pipeline.toml"]


@pytest.mark.parametrize("values", GIVEN, ids=lambda path: path.stem)
def test_no_pod_asks_for_more_memory_than_it_may_have(values: Path) -> None:
    """Values are merged: a request of the values stands beside a limit of the chart."""
    sizes = {"Mi": 1, "Gi": 1024}
    found = []
    for manifest in rendered("-f", str(values)):
        spec = manifest.get("spec", {})
        pod = spec.get("template", {}).get("spec", {})
        holders = [*pod.get("containers", []), spec]
        found += [each["resources"] for each in holders if each.get("resources")]
    assert found
    for each in found:
        amounts = [each.get(kind, {}).get("memory") for kind in ("requests", "limits")]
        if all(amounts):
            wanted, most = (int(amount[:-2]) * sizes[amount[-2:]] for amount in amounts)
            assert wanted <= most


def test_what_the_values_say_of_nodes_and_priority_is_said_of_the_pods() -> None:
    """Of the agents' pods, and of both roles of a SparkApplication."""
    found = []
    for name, kind in (("strimzi", "StatefulSet"), ("spark-operator", "SparkApplication")):
        manifests = rendered("-f", str(CHART / "ci" / f"{name}.yaml"))
        [spec] = [each["spec"] for each in manifests if each["kind"] == kind]
        found += (
            [spec["template"]["spec"]] if "template" in spec else [spec["driver"], spec["executor"]]
        )
    assert len(found) == 3
    for pod in found:
        assert pod["nodeSelector"] == {"example.com/disk": "fast"}
        assert pod["tolerations"] == [{"key": "data", "operator": "Exists"}]
        assert pod["priorityClassName"] == "important"


def test_a_sink_that_has_its_executors_within_may_be_closed() -> None:
    assert rendered(*_closed("local[4]"))
