"""Renders the Helm chart, by Helm's packages, and holds it against the resources' schemas."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.chart.schemas import KUBERNETES

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "docker" / "chart"
BUILT = ROOT / "build" / "chart"
GIVEN = sorted((CHART / "ci").glob("*.yaml"))
PARTS = ("Deployment", "StatefulSet")
BY_WATCHDOG = ("-set", "watchdog.create=false")


@cache
def helm(
    *words: str, release: str = "shop", chart: str = str(CHART), kubernetes: str = KUBERNETES
) -> subprocess.CompletedProcess[str]:
    """What Helm's packages make of the chart (``tools/render``). The files must not change."""
    command = [str(BUILT / "bin" / "render"), "-kube-version", kubernetes, *words]
    command += [release, chart]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def rendered(
    *words: str, release: str = "shop", kubernetes: str = KUBERNETES
) -> list[dict[str, Any]]:
    """The resources of a release."""
    found = helm(*words, release=release, kubernetes=kubernetes)
    assert found.returncode == 0, found.stderr
    return [each for each in yaml.safe_load_all(found.stdout) if each]


def faults(manifests: list[dict[str, Any]], kubernetes: str = KUBERNETES) -> str:
    """What kubeconform finds; "" when every resource has a schema and fits."""
    command = [str(BUILT / "bin" / "kubeconform"), "-strict"]
    place = "{{.ResourceKind}}{{.KindSuffix}}.json"
    command += ["-schema-location", str(BUILT / "schemas" / kubernetes / place)]
    found = subprocess.run(
        command, input=yaml.safe_dump_all(manifests), capture_output=True, text=True, check=False
    )
    return "" if found.returncode == 0 else found.stdout + found.stderr


def pods(manifests: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The templates of the chart's own pods; not those that operators make."""
    for each in manifests:
        if each["kind"] in PARTS:
            yield each["spec"]["template"]
