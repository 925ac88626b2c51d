"""Connectors as resources of Strimzi, the operator of Kafka on Kubernetes. Pure.

Source of the form: Strimzi 1.2, "KafkaConnectorSpec schema reference": ``class`` and ``tasksMax``
are fields of their own, every other property of the connector is in ``config``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline.secrets import lies_readable
from shardmerge.schemas.pipeline.settings import Pipeline, Source

from .connector_names import connector_name
from .source_config import connector_config

API_VERSION = "kafka.strimzi.io/v1"
CLUSTER_LABEL = "strimzi.io/cluster"
"""The label that names the KafkaConnect resource of a KafkaConnector."""
_MAX_NAME = 253
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""A name of a resource: Kubernetes, "Object Names and IDs", DNS subdomain names."""


@dataclass(frozen=True, slots=True)
class ConnectorResource:
    """A connector, as Strimzi's KafkaConnector has it.

    Attributes:
        source: The source that it reads.
        name: Its name, in Kubernetes and in Kafka Connect.
        connector_class: Java's class.
        tasks_max: How many tasks it may have.
        config: Its other properties.
    """

    source: str
    name: str
    connector_class: str
    tasks_max: int
    config: Mapping[str, str]


def connector_resource(pipeline: Pipeline, source: Source) -> ConnectorResource:
    """The configuration of a source's connector, in Strimzi's form.

    Raises:
        ConfigError: Kubernetes does not take the name, or a password would be readable in the
            resource, or the connector cannot be configured.
    """
    name = connector_name(pipeline, source)
    if len(name) > _MAX_NAME or not _NAME.fullmatch(name):
        raise ConfigError(
            f"Kubernetes takes no resource of the name {name}",
            hint="names of pipeline and sources: small letters, digits, and - between them; or let "
            "the watchdog make the connectors (connect watch --create)",
            code="SM-7101",
        )
    config = connector_config(pipeline, source)
    readable = sorted(
        key for key, value in config.items() if "password" in key and lies_readable(value)
    )
    if readable:
        raise ConfigError(
            f"source {source.name}: {', '.join(readable)} would be readable in the resource",
            hint="write env:NAME or file:PATH instead of the password",
            code="SM-7102",
        )
    connector_class, tasks = config.pop("connector.class"), int(config.pop("tasks.max"))
    return ConnectorResource(
        source.name, name, connector_class, tasks, dict(sorted(config.items()))
    )


def helm_values(resources: tuple[ConnectorResource, ...]) -> dict[str, Any]:
    """The connectors as values of the chart in ``docker/chart``."""
    return {"strimzi": {"connectors": [{"name": r.name, **_spec(r)} for r in resources]}}


def manifests(resources: tuple[ConnectorResource, ...], cluster: str) -> list[dict[str, Any]]:
    """The connectors as resources for ``kubectl apply``.

    Args:
        resources: The connectors.
        cluster: Name of the KafkaConnect resource that runs them.
    """
    return [
        {
            "apiVersion": API_VERSION,
            "kind": "KafkaConnector",
            "metadata": {"name": r.name, "labels": {CLUSTER_LABEL: cluster}},
            "spec": _spec(r),
        }
        for r in resources
    ]


def _spec(resource: ConnectorResource) -> dict[str, Any]:
    return {
        "class": resource.connector_class,
        "tasksMax": resource.tasks_max,
        "config": dict(resource.config),
    }
