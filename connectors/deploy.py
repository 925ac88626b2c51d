"""Brings a pipeline's topics, connectors and signal tables into being, and checks what they need.

Exactly-once delivery is checked for each connector, and the right to write its signal table. Each
source's server is compared with what the pipeline file says of it, before its connector is made.
"""

from __future__ import annotations

from enum import StrEnum

from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.connect.exact_values import check_values
from shardmerge.connectors.connect.exactly_once import check_connector, check_worker
from shardmerge.connectors.connect.shared_topics import check_shared_topics
from shardmerge.connectors.debezium.connector_names import connector_name, readings_among
from shardmerge.connectors.debezium.source_config import (
    connector_config,
    epoch_of,
    keeping_snapshot,
)
from shardmerge.connectors.debezium.unread_types import refuse_compressed_binlog, refuse_unread
from shardmerge.connectors.formats.connector_status import ConnectorStatus
from shardmerge.connectors.kafka.topics_admin import create_topics
from shardmerge.connectors.repair.marked_config import MARK
from shardmerge.connectors.repair.schema_history.left_out import leaving_out, left_out_of
from shardmerge.connectors.sources.signal_table import (
    compresses,
    prepare_signal_table,
    reading_settings,
    unread_by_debezium,
)
from shardmerge.schemas.model.errors import ConfigError, StackError
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


class Done(StrEnum):
    """What was done for a source's connector."""

    MADE = "made"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    LEFT = "left to its repair"


def prepare_cluster(pipeline: Pipeline, rest: ConnectRest) -> None:
    """Make the pipeline's topics, and check that the workers have what its connectors need.

    The topics come before any connector: made by Connect, the schema-change topics could get more
    than one partition.

    Raises:
        StackError: Kafka or Connect cannot be reached, Kafka refuses a topic, or the workers lack
            the converter of exact values, or a version of Debezium that can write shared topics.
    """
    check_values(rest, pipeline)
    check_shared_topics(rest, pipeline)
    create_topics(pipeline.kafka, topics.own_topics(pipeline))


def make_or_change(pipeline: Pipeline, source: Source, rest: ConnectRest) -> Done:
    """Make a source's connector if it is missing, or give it what the pipeline file says.

    It waits for nothing. While a repair is at work, or was interrupted, the connector's
    configuration has the repair's mark, and stays as it is: whoever goes on with the repair needs
    the mark, and what was changed with it. An unchanged connector is left alone, too.

    Args:
        pipeline: Its topics are there (``prepare_cluster``).
        source: One of its sources.
        rest: The Connect cluster.

    Raises:
        StackError: Connect or the source cannot be reached, exactly-once delivery is off, Connect
            refuses the configuration, the user may not write the signal table, the source
            compresses its binlog, or a connector is to be made and the source has tables that
            Debezium cannot read.
        ConfigError: The source's server is of another flavour or version, or has other SQL modes,
            than the pipeline file says; or see ``configuration``.
    """
    name = connector_name(pipeline, source)
    before = rest.config(name)
    if MARK in (before or {}):
        return Done.LEFT
    _check_server(pipeline, source)
    config = configuration(pipeline, source, rest)
    check_worker(rest, config)
    if before is None:
        refuse_unread(source, unread_by_debezium(pipeline, source))
        # The connector's first snapshot must find the signal table. A table that is made while
        # the snapshot begins can be before its position, and yet not be read by it.
        prepare_signal_table(pipeline, source)
    changed = rest.create_or_update(name, config)
    if before is None:
        return Done.MADE
    return Done.CHANGED if changed else Done.UNCHANGED


def deploy_connectors(
    pipeline: Pipeline, rest: ConnectRest, timeout_s: float = 120.0
) -> tuple[str, ...]:
    """Make what is missing, update what differs, and wait until every connector runs.

    Safe to call again: an unchanged connector is left alone. So is one that is being repaired.

    Args:
        pipeline: What to deploy.
        rest: Its Connect cluster.
        timeout_s: Bound of the wait for each connector.

    Returns:
        Names of the connectors, in the order of the sources.

    Raises:
        StackError: See ``prepare_cluster`` and ``make_or_change``; or a connector does not run; or
            one is being repaired, and all others were deployed.
        ConfigError: See ``make_or_change``.
    """
    prepare_cluster(pipeline, rest)
    known = set(rest.connectors())
    past: dict[str, ConnectorStatus | None] = {}
    left: list[str] = []
    own: list[tuple[Source, str]] = []
    for source in pipeline.sources:
        name = connector_name(pipeline, source)
        before = rest.status(name)
        done = make_or_change(pipeline, source, rest)
        if done is Done.LEFT:
            left.append(name)
            continue
        own.append((source, name))
        if done is not Done.UNCHANGED:
            past[name] = before
    for _, name in own:
        # While tables of its source are read as a whole the connector is stopped.
        if not readings_among(known, name):
            rest.wait_running(name, timeout_s, past=past.get(name))
        check_connector(rest, name)
    for source, name in own:
        if name in known:
            # A connector that was made without a signal table takes no second snapshot, and ignored
            # the table's database until now. So it must see the CREATE TABLE in the binlog.
            prepare_signal_table(pipeline, source)
    if left:
        raise StackError(
            f"the watchdog repairs {', '.join(left)}, or was ended while it did: what the pipeline "
            "file says was not put into effect there",
            hint="see that the watchdog runs, wait until its log says that the repair has ended, "
            "then repeat the call",
            code="SM-4312",
        )
    return tuple(name for _, name in own)


def prepare_sources(pipeline: Pipeline) -> None:
    """Make what connectors need that are made elsewhere: topics, and each source's signal table.

    Safe to call again, while the connectors run, too.

    Raises:
        StackError: Kafka or a source cannot be reached, its user may not write its signal table, it
            compresses its binlog, or it has tables that Debezium cannot read.
        ConfigError: A source's server is of another flavour or version, or has other SQL modes,
            than the pipeline file says.
    """
    create_topics(pipeline.kafka, topics.own_topics(pipeline))
    for source in pipeline.sources:
        _check_server(pipeline, source)
        refuse_unread(source, unread_by_debezium(pipeline, source))
        prepare_signal_table(pipeline, source)


def _check_server(pipeline: Pipeline, source: Source) -> None:
    """Refuse a server that is not as the pipeline file says, or whose binlog would be passed over.

    Raises:
        StackError, ConfigError: As ``make_or_change``.
    """
    real = reading_settings(pipeline, source)
    refuse_differences(f"source {source.name}", source_differences(source, *real))
    refuse_compressed_binlog(source, is_compressed=compresses(pipeline, source))
