"""``shardmerge check``: what is wrong with a pipeline file, its servers, Connect and topics."""

from __future__ import annotations

from pathlib import Path

import click

from shardmerge.cli.checks.findings import Finding
from shardmerge.cli.checks.password_rules import password_findings
from shardmerge.cli.checks.topic_rules import topic_findings
from shardmerge.cli.loads.load_findings import debezium_findings
from shardmerge.connectors.connect.exact_values import check_values
from shardmerge.connectors.connect.exactly_once import check_connector, check_worker
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.debezium.source_config import connector_config
from shardmerge.connectors.kafka.topics_admin import describe_topics
from shardmerge.schemas.model.errors import ConfigError, ShardMergeError
from shardmerge.schemas.pipeline.settings import Pipeline

from .clients import connect_rest
from .options import json_option, pipeline_option
from .parameters import read_pipeline
from .screen import print_json
from .servers import server_findings
from .views.call_shapes import Checked, CheckFinding


@click.command()
@pipeline_option
@click.option("--offline", is_flag=True, help="Read the file only; connect to nothing.")
@json_option
def check(path: Path, offline: bool, as_json: bool) -> None:
    """Check a pipeline file, its servers and shards, Connect's exactly-once support, and topics.

    Ends with 0; with 1 when there is a fault.
    """
    try:
        pipeline = read_pipeline(path)
    except (OSError, ConfigError) as error:
        if as_json:
            found = CheckFinding("pipeline file", str(error), fault=True, code=_code(error))
            print_json(Checked("", (found,)))
        else:
            click.echo(f"FAULT  {error}")
        raise SystemExit(1) from None
    if not as_json:
        click.echo(
            f"ok     pipeline {pipeline.name}: {len(pipeline.sources)} sources, "
            f"{len(pipeline.routes)} routing rules"
        )
    findings = [*password_findings(pipeline), *debezium_findings(pipeline)]
    if not offline:
        findings += [*server_findings(pipeline), *_topic_findings(pipeline), *_connect(pipeline)]
    faults = [finding for finding in findings if finding.fault]
    warnings = [finding for finding in findings if not finding.fault]
    if as_json:
        shapes = (CheckFinding(f.where, f.text, f.fault, f.code) for f in (*faults, *warnings))
        print_json(Checked(pipeline.name, tuple(shapes)))
        raise SystemExit(1 if faults else 0)
    for finding in faults:
        click.echo(f"FAULT  {finding.line}")
    for finding in warnings:
        click.echo(f"warn   {finding.line}")
    if not faults and not offline:
        servers = "sources and target" if pipeline.target.catalog is None else "sources"
        made = not any(warning.where == "topics" for warning in warnings)
        topics_too = "; topics are as they must be" if made else ""
        click.echo(f"ok     {servers}; Kafka Connect supports exactly-once sources{topics_too}")
    raise SystemExit(1 if faults else 0)


def _connect(pipeline: Pipeline) -> list[Finding]:
    """What keeps Kafka Connect from exactly-once delivery, and from exact values."""
    try:
        rest = connect_rest(pipeline)
    except ConfigError as error:
        return [_of_error("Kafka Connect", error)]
    faults = []
    try:
        check_values(rest, pipeline)
    except ShardMergeError as error:
        faults.append(_of_error("Kafka Connect", error))
    for source in pipeline.sources:
        try:
            check_worker(rest, connector_config(pipeline, source))
            name = connector_name(pipeline, source)
            if name in rest.connectors():
                check_connector(rest, name)
        except ShardMergeError as error:
            faults.append(_of_error(f"source {source.name}", error))
    return faults


def _of_error(where: str, error: ShardMergeError) -> Finding:
    hint = f" ({error.hint})" if error.hint else ""
    return Finding(where, f"{error.message}{hint}", code=error.code)


def _code(error: Exception) -> str:
    return error.code if isinstance(error, ShardMergeError) else ""


def _topic_findings(pipeline: Pipeline) -> list[Finding]:
    """Topics that are missing or differ from what they must be."""
    try:
        found = describe_topics(pipeline.kafka, timeout_s=10)
    except ShardMergeError as error:
        return [_of_error("topics", error)]
    return topic_findings(pipeline, found)
