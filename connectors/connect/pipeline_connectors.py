"""Asks Kafka Connect for the connectors of a pipeline's sources."""

from __future__ import annotations

from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.formats.connector_status import ConnectorState, connector_state
from shardmerge.schemas.pipeline.settings import Pipeline

from .connect_rest import ConnectRest


def pipeline_connectors(pipeline: Pipeline, rest: ConnectRest) -> tuple[ConnectorState, ...]:
    """The connector of each source, in the order of the sources.

    Raises:
        StackError: Connect does not answer, or does not admit the user.
    """
    told = rest.statuses()
    names = [(source.name, connector_name(pipeline, source)) for source in pipeline.sources]
    return tuple(connector_state(source, name, told.get(name)) for source, name in names)
