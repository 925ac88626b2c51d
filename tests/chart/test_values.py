"""The schema of the chart's values: a name that the chart does not know is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.rendering import CHART, ROOT, helm

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
    ],
)
def test_a_value_that_would_change_nothing_is_refused(given: str, told: str) -> None:
    found = helm(*SMALLEST, "-set", given)
    assert found.returncode != 0
    assert told in found.stderr


@pytest.mark.parametrize(
    "given",
    [
        "sink.image.tag=7",
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
