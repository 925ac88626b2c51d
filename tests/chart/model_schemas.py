"""JSON schemas of resources from the Python classes that their operators' projects publish.

Usage, by a Python that sees the packages of ``models.txt``: ``model_schemas.py FOLDER``
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from cloudcoil.models.prometheus_operator.v1 import PodMonitor, ServiceMonitor
from kubeflow_spark_api.models.spark_v1beta2_spark_application import SparkV1beta2SparkApplication

KINDS = {
    "podmonitor-monitoring-v1": PodMonitor,
    "servicemonitor-monitoring-v1": ServiceMonitor,
    "sparkapplication-sparkoperator-v1beta2": SparkV1beta2SparkApplication,
}
_ANY_SCALAR = (
    "IoK8sApimachineryPkgApiResourceQuantity",
    "IoK8sApimachineryPkgUtilIntstrIntOrString",
)
"""Written as numbers or as text; the classes say that they are objects."""


def strict(node: Any) -> Any:
    """The schema without room for fields that no class has."""
    if isinstance(node, dict):
        if node.get("type") == "object" and "properties" in node:
            node.setdefault("additionalProperties", False)
        for value in node.values():
            strict(value)
    elif isinstance(node, list):
        for value in node:
            strict(value)
    return node


def main(folder: Path) -> None:
    """Write a file for each kind."""
    for name, model in KINDS.items():
        schema = strict(model.model_json_schema(by_alias=True))
        for each in _ANY_SCALAR:
            if each in schema["$defs"]:
                schema["$defs"][each] = {"type": ["string", "number"]}
        (folder / f"{name}.json").write_text(json.dumps(schema), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
