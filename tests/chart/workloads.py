"""The pods that a release will have, and which of them a selector selects. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.chart.rendering import PARTS


@dataclass(frozen=True)
class Workload:
    """Pods with equal labels.

    Attributes:
        name: Kind and name of the resource that makes them.
        labels: Theirs.
        is_ours: Whether the chart makes them, and not Strimzi's operator.
    """

    name: str
    labels: Mapping[str, str]
    is_ours: bool = True


@dataclass(frozen=True)
class Selector:
    """A selector of a resource.

    Attributes:
        of: Kind and name of the resource.
        place: The keys that lead to it.
        value: The labels, or ``matchLabels`` and ``matchExpressions``.
    """

    of: str
    place: tuple[str, ...]
    value: Mapping[str, Any]

    def takes(self, labels: Mapping[str, str]) -> bool:
        """Whether it selects what has these labels."""
        if not self.value.keys() & {"matchLabels", "matchExpressions"}:
            return self.value.items() <= labels.items()
        for each in self.value.get("matchExpressions", ()):
            assert each["operator"] == "Exists", each
            if each["key"] not in labels:
                return False
        equal: Mapping[str, str] = self.value.get("matchLabels", {})
        return equal.items() <= labels.items()


def name_of(manifest: Mapping[str, Any]) -> str:
    """Kind and name."""
    return f"{manifest['kind']} {manifest['metadata']['name']}"


def workloads(manifests: list[dict[str, Any]]) -> list[Workload]:
    """The pods that these resources lead to."""
    return [each for manifest in manifests for each in _workloads_of(manifest)]


def _workloads_of(manifest: Mapping[str, Any]) -> Iterator[Workload]:
    name, kind, spec = name_of(manifest), manifest["kind"], manifest.get("spec", {})
    if kind in PARTS:
        yield Workload(name, spec["template"]["metadata"]["labels"])
    elif kind == "SparkApplication":
        # Spark: "Running on Kubernetes": both have spark-role.
        for role in ("driver", "executor"):
            yield Workload(f"{name}, {role}", {**spec[role]["labels"], "spark-role": role})
    elif kind == "KafkaNodePool":
        cluster = manifest["metadata"]["labels"]["strimzi.io/cluster"]
        yield _of_strimzi(manifest, cluster, "Kafka", "kafka")
    elif kind == "KafkaConnect":
        yield _of_strimzi(manifest, manifest["metadata"]["name"], kind, "connect")


def _of_strimzi(manifest: Mapping[str, Any], cluster: str, kind: str, part: str) -> Workload:
    """Strimzi 1.2.0: ``Labels.java``, ``generateDefaultLabels()`` and ``fromResource()``.

    The labels of the resource are those of the pods, too, but for those of ``app.kubernetes.io``.
    """
    given = manifest["metadata"]["labels"].items()
    inherited = {key: value for key, value in given if not key.startswith("app.kubernetes.io/")}
    labels = {
        "strimzi.io/cluster": cluster,
        "strimzi.io/kind": kind,
        "strimzi.io/name": f"{cluster}-{part}",
        "app.kubernetes.io/name": "kafka" if kind == "Kafka" else "kafka-connect",
        "app.kubernetes.io/instance": cluster,
        "app.kubernetes.io/part-of": f"strimzi-{cluster}",
        "app.kubernetes.io/managed-by": "strimzi-cluster-operator",
    }
    return Workload(name_of(manifest), {**inherited, **labels}, is_ours=False)


def selectors(manifests: list[dict[str, Any]]) -> Iterator[Selector]:
    """Every selector of the resources that selects anything in particular."""
    for manifest in manifests:
        for place, value in _found(manifest, ()):
            if value:
                yield Selector(name_of(manifest), place, value)


def _found(node: Any, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in _children(node):
        if key in ("selector", "podSelector", "labelSelector"):
            yield (*place, key), value
        else:
            yield from _found(value, (*place, key))


def _children(node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, dict):
        yield from node.items()
    elif isinstance(node, list):
        yield from ((str(number), value) for number, value in enumerate(node))
