"""Checks that a Connect cluster has the converter of exact values (``connectors/java``).

Kafka Connect lists its plugins, but does not know Debezium's converters. So the jar has a predicate
too, which Connect lists where the jar is. A connector that is told to use the converter fails on a
worker without the jar. A worker that has the jar, but not Debezium's jars beside it, does not list
the predicate either.
"""

from __future__ import annotations

from shardmerge.connectors.debezium.source_config import EXACT_VALUES_PLUGIN
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Pipeline

from .connect_rest import ConnectRest


def check_values(rest: ConnectRest, pipeline: Pipeline) -> None:
    """Raise ``StackError`` when the pipeline asks for the converter and the workers lack it.

    Args:
        rest: The Connect cluster.
        pipeline: Whose connectors are to be made or updated.
    """
    if pipeline.connect.exact_values and EXACT_VALUES_PLUGIN not in rest.plugins():
        raise StackError(
            f"Kafka Connect at {rest.url} lacks the converter of exact values",
            hint="compile it (python -m shardmerge.local.install.exact_values), put the jar "
            "into the folder of Debezium's connector on every worker and start these again (one "
            'that has it and failed with it says "Failed to discover" in its log); or set '
            "exact_values = false under [connect]",
            code="SM-4305",
        )
