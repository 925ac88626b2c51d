"""Brings a pipeline's topics, connectors and signal tables into being, and checks what they need.

Exactly-once delivery is checked for each connector, and the right to write its signal table. Each
source's server is compared with what the pipeline file says of it, before its connector is made.
"""

from __future__ import annotations

from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.connect.exact_values import check_values
from shardmerge.connectors.connect.exactly_once import check_connector, check_worker
from shardmerge.connectors.debezium.connector_names import connector_name, readings_among
from shardmerge.connectors.debezium.source_config import (
    connector_config,
    epoch_of,
    keeping_snapshot,
)
from shardmerge.connectors.debezium.unread_types import refuse_unread
from shardmerge.connectors.kafka.topics_admin import create_topics
from shardmerge.connectors.repair.schema_history.left_out import leaving_out, left_out_of
from shardmerge.connectors.sources.signal_table import (
    prepare_signal_table,
    unread_by_debezium,
    version_and_mode,
)
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.server_differences import refuse_differences, source_differences
from shardmerge.schemas.pipeline.settings import Pipeline, Source


def configuration(pipeline: Pipeline, source: Source, rest: ConnectRest) -> dict[str, str]:
    """What a source's connector is to be given, without the tables that Debezium does not know yet.

    A first snapshot that is under way goes on as it began.

    Raises:
        StackError: Connect does not answer.
        ConfigError: See ``connector_config``; or the connector is in a later epoch than the file's.
            In the earlier one it would write rows and DDL that count as older than those that came.
    """
    name = connector_name(pipeline, source)
    before = rest.config(name) or {}
    if (epoch := epoch_of(before)) > source.epoch:
        raise ConfigError(
            f"connector {name} reads {before.get('database.hostname')} in epoch {epoch}, and the "
            f"pipeline file has source {source.name} at {source.host} in epoch {source.epoch}",
            hint="use the file that `shardmerge source move` wrote; start again what reads a copy "
            "of the file from before",
            code="SM-6611",
        )
    config = leaving_out(connector_config(pipeline, source), left_out_of(before))
    if not before or not SourceOffset(rest.offset(name) or {}).is_snapshot:
        return config
    return keeping_snapshot(config, before)


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
        StackError: Kafka, Connect or a source cannot be reached, exactly-once delivery is off, a
            connector does not run, its user may not write its signal table, the workers lack the
            converter of exact values, or a source has tables that Debezium cannot read.
        ConfigError: A source's server is of another flavour or version, or has other SQL modes,
            than the pipeline file says; or see ``configuration``.
    """
    check_values(rest, pipeline)
    # The schema-change topics first: made by Connect they could get more than one partition.
    create_topics(pipeline.kafka, topics.own_topics(pipeline))
    names, past = [], {}
    known = set(rest.connectors())
    for source in pipeline.sources:
        version, mode = version_and_mode(pipeline, source)
        refuse_differences(f"source {source.name}", source_differences(source, version, mode))
        names.append(connector_name(pipeline, source))
        config = configuration(pipeline, source, rest)
        check_worker(rest, config)
        if names[-1] not in known:
            refuse_unread(source, unread_by_debezium(pipeline, source))
            # The connector's first snapshot must find the signal table. A table that is made while
            # the snapshot begins can be before its position, and yet not be read by it.
            prepare_signal_table(pipeline, source)
        before = rest.status(names[-1])
        if rest.create_or_update(names[-1], config):
            past[names[-1]] = before
    for name in names:
        # While tables of its source are read as a whole the connector is stopped.
        if not readings_among(known, name):
            rest.wait_running(name, timeout_s, past=past.get(name))
        check_connector(rest, name)
    for name, source in zip(names, pipeline.sources, strict=True):
        if name in known:
            # A connector that was made without a signal table takes no second snapshot, and ignored
            # the table's database until now. So it must see the CREATE TABLE in the binlog.
            prepare_signal_table(pipeline, source)
    return tuple(names)


def prepare_sources(pipeline: Pipeline) -> None:
    """Make what connectors need that are made elsewhere: topics, and each source's signal table.

    Safe to call again, while the connectors run, too.

    Raises:
        StackError: Kafka or a source cannot be reached, its user may not write its signal table, or
            it has tables that Debezium cannot read.
        ConfigError: A source's server is of another flavour or version, or has other SQL modes,
            than the pipeline file says.
    """
    create_topics(pipeline.kafka, topics.own_topics(pipeline))
    for source in pipeline.sources:
        version, mode = version_and_mode(pipeline, source)
        refuse_differences(f"source {source.name}", source_differences(source, version, mode))
        refuse_unread(source, unread_by_debezium(pipeline, source))
        prepare_signal_table(pipeline, source)
