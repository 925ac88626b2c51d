"""The schema of the chart's values: a name that the chart does not know is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.rendering import CHART, GIVEN, ROOT, faults, helm, pods, rendered

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SMALLEST = ("-f", str(CHART / "ci" / "smallest.yaml"))


def _differences(schema: dict[str, Any], values: Any, place: str = "") -> list[str]:
    """Where the schema has other names than the values, or is open beside names."""
    if not isinstance(values, dict) or "properties" not in schema:
        return []
    inner = schema["properties"]
    found = [f"{place}.{name}" for name in inner.keys() ^ values.keys()]
    if schema.get("additionalProperties") is not False:
        found.append(f"{place}: open")
    for name in inner.keys() & values.keys():
        found += _differences(inner[name], values[name], f"{place}.{name}")
    return found


def test_the_schema_knows_each_value_and_no_other() -> None:
    # Helm itself gives every chart the values of the name global.
    assert _differences(SCHEMA, VALUES) == [".global"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("agent.replicas=3", "'agent'"),
        ("agents.replica=3", "'replica'"),
        ("agents.replicas=three", "/agents/replicas"),
        ("sink.image.name=x", "'name'"),
        ("strimzi.connect.metric.enabled=true", "'metric'"),
        ("passwords[0].variable=A", "/passwords/0"),
        ("files[0].parts[0]=connect", "/files/0/parts/0"),
        ("sink.image.tag=7", "/sink/image/tag"),
    ],
)
def test_a_value_that_would_change_nothing_is_refused(given: str, told: str) -> None:
    found = helm(*SMALLEST, "-set", given)
    assert found.returncode != 0
    assert told in found.stderr


@pytest.mark.parametrize(
    "given",
    [
        "agents.podDisruptionBudget.maxUnavailable=50%",
        "agents.resources.limits.cpu=1",
        "sink.sparkApplication.driver.coreLimit=1200m",
        "strimzi.connect.config.a=b",
        "agents.replicas=0",
        "global.x=1",
    ],
)
def test_what_kubernetes_or_an_operator_defines_is_left_to_it(given: str) -> None:
    found = helm(*SMALLEST, "-set", given)
    assert found.returncode == 0, found.stderr


def test_the_values_of_the_page_are_values_of_the_chart(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "kubernetes.md").read_text()
    fences = re.findall(r"^```yaml\n(.+?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(fences) > 1
    for number, fence in enumerate(fences):
        file = tmp_path / f"{number}.yaml"
        file.write_text(fence)
        found = helm(*SMALLEST, "-f", str(file))
        assert found.returncode == 0, found.stderr


def _names(node: Any) -> list[Any]:
    """Every name, and every label's value, of a resource."""
    if isinstance(node, list):
        return [name for each in node for name in _names(each)]
    if not isinstance(node, dict):
        return []
    labels = [v for key in ("labels", "matchLabels") for v in (node.get(key) or {}).values()]
    own = [node["name"]] if "name" in node else []
    return [*labels, *own, *(name for each in node.values() for name in _names(each))]


@pytest.mark.parametrize("values", GIVEN, ids=lambda path: path.stem)
def test_names_of_digits_stay_texts(values: Path, tmp_path: Path) -> None:
    digits = tmp_path / "digits.yaml"
    given = {"strimzi": {"clusterName": "123"}, "serviceMonitor": {"enabled": True}}
    digits.write_text(yaml.safe_dump({**given, "networkPolicy": {"enabled": True}}))
    manifests = rendered("-f", str(values), "-f", str(digits), release="2024")
    assert faults(manifests) == ""
    wrong = [name for name in _names(manifests) if not isinstance(name, str)]
    assert wrong == []


@pytest.mark.parametrize("tag", ["20260729", "1.10"])
@pytest.mark.parametrize("part", ["image", "sink"])
def test_a_tag_that_is_read_as_a_number_is_refused(part: str, tag: str, tmp_path: Path) -> None:
    """The chart would get the number: 2.0260729e+07 and 1.1."""
    image = f"{{image: {{tag: {tag}}}}}" if part == "sink" else f"{{tag: {tag}}}"
    values = tmp_path / "values.yaml"
    values.write_text(f"{part}: {image}\n")
    found = helm(*SMALLEST, "-f", str(values))
    assert found.returncode != 0
    assert "/image/tag" in found.stderr
    values.write_text(f"{part}: {image}\n".replace(tag, f'"{tag}"'))
    images = [each["containers"][0]["image"] for each in _pod_specs("-f", str(values))]
    assert any(image.endswith(f":{tag}") for image in images)


def test_a_large_number_is_written_out(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("validator: {enabled: true, rate: 1000000, pause: 8640000}\n")
    [words] = [
        each["containers"][0]["args"]
        for each in _pod_specs("-f", str(values))
        if each["containers"][0]["name"] == "validator"
    ]
    assert words[words.index("--rate") + 1] == "1000000"
    assert words[words.index("--pause") + 1] == "8640000"


def _pod_specs(*words: str) -> list[dict[str, Any]]:
    return [pod["spec"] for pod in pods(rendered(*SMALLEST, *words))]
