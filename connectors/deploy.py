"""Brings a pipeline's topics and connectors into being, with exactly-once delivery checked."""

from __future__ import annotations

from shardmerge.schemas import topics
from shardmerge.schemas.pipeline import Pipeline

from .connect_rest import ConnectRest
from .exactly_once import check_connector, check_worker
from .source_config import connector_config, connector_name
from .topics_admin import create_topics


def deploy_connectors(
    pipeline: Pipeline, rest: ConnectRest, timeout_s: float = 120.0
) -> tuple[str, ...]:
    """Make what is missing, update what differs, and wait until every connector runs.

    Safe to call again: an unchanged connector is left alone.

    Args:
        pipeline: What to deploy.
        rest: Its Connect cluster.
        timeout_s: Bound of the wait for each connector.

    Returns:
        Names of the connectors, in the order of the sources.

    Raises:
        StackError: Kafka or Connect cannot be reached, exactly-once delivery is off, or a
            connector does not run.
    """
    # The schema-change topics first: made by Connect they could get more than one partition.
    create_topics(pipeline.kafka.bootstrap_servers, topics.own_topics(pipeline))
    names = []
    for source in pipeline.sources:
        config = connector_config(pipeline, source)
        check_worker(rest, config)
        names.append(connector_name(pipeline, source))
        rest.create_or_update(names[-1], config)
    for name in names:
        rest.wait_running(name, timeout_s)
        check_connector(rest, name)
    return tuple(names)
