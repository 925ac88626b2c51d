"""The ``shardmerge`` command."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import click

from shardmerge.cli.checks.findings import Finding
from shardmerge.cli.checks.password_rules import password_findings
from shardmerge.cli.checks.topic_rules import topic_findings
from shardmerge.connectors.connect.exact_values import check_values
from shardmerge.connectors.connect.exactly_once import check_connector, check_worker
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.debezium.source_config import connector_config
from shardmerge.connectors.event_log import FORMS, LOG_FORMAT, form_of, set_up
from shardmerge.connectors.kafka.topics_admin import describe_topics
from shardmerge.local.demo import Demo
from shardmerge.local.line import Line, end_on_sigterm
from shardmerge.schemas.model.errors import ConfigError, ShardMergeError
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Pipeline, Source, Target
from shardmerge.schemas.records.plain import to_plain

from .clients import connect_rest
from .command import command
from .ddl import ddl
from .deployment.connect import connect
from .deployment.init import init
from .deployment.parts import agents, sink
from .deployment.run import run
from .explain_code import explain_code
from .export import export
from .parameters import json_option, pipeline_option, read_pipeline
from .planning.command import plan
from .replay import replay
from .servers import server_findings
from .status import status
from .target import target as upkeep
from .validation.validate import validate
from .views.call_shapes import Checked, CheckFinding
from .views.commands import conflicts, decisions, explain, schema

DEMO_ROUTES = (RoutingRule(".*", "app", r"tbl\d+", "merged", "tbl"),)
_FOLDER = click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".local/demo"),
    show_default=True,
    help="Folder with the data, logs and pid files of the local stack.",
)


_FREE_PORTS = click.option(
    "--free-ports", is_flag=True, help="Use ports that are free now instead of the fixed ones."
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--log-format",
    type=click.Choice(FORMS),
    help=f"Form of the log lines on standard error, also of the processes that the command "
    f"starts: plain (default) or json ({LOG_FORMAT}).",
)
def main(log_format: str | None) -> None:
    """Merge many MySQL shards into one table; each shard changes its schema at its own time."""
    try:
        form = form_of(log_format, os.environ)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    if log_format is not None:
        os.environ[LOG_FORMAT] = form
    set_up("cli", "WARNING", form)
    end_on_sigterm()


for each in (
    agents, command, conflicts, connect, ddl, decisions, explain, explain_code, export, init,
    plan, replay, run, schema, sink, status, upkeep, validate,
):  # fmt: skip
    main.add_command(each)


@main.command()
@_FOLDER
@click.option("--keep", is_flag=True, help="Leave the local stack running at the end.")
@click.option("--chaos", is_flag=True, help="End each part with kill -9 on the way.")
@_FREE_PORTS
def demo(directory: Path, keep: bool, chaos: bool, free_ports: bool) -> None:
    """Run the demo: three shards, six DDL statements, on a local stack of its own."""
    started = time.monotonic()
    line = _fresh(directory, free_ports)
    player = Demo(line)
    good = False
    try:
        line.start(prepare=player.prepare, say=_say, outlive=keep)
        _say(f"Started in {time.monotonic() - started:.0f} s. Status pages: {line.web_url}/")
        report = player.play(chaos=chaos)
        good = report.good
        _tell_where(line, running=keep)
    except ShardMergeError as error:
        _fail(error, directory)
    finally:
        if keep and good:
            line.leave()
        else:
            line.stop()
    _say(f"The demo took {time.monotonic() - started:.0f} s.")
    if not good:
        raise SystemExit(1)


@main.command()
@_FOLDER
@_FREE_PORTS
def up(directory: Path, free_ports: bool) -> None:
    """Start the local stack with the demo's shards, without rows."""
    line = _fresh(directory, free_ports)
    try:
        line.start(prepare=lambda: _empty_shards(line), say=_say, outlive=True)
    except ShardMergeError as error:
        _fail(error, directory)
    _tell_where(line, running=True)
    line.leave()


@main.command()
@_FOLDER
def down(directory: Path) -> None:
    """Stop the local stack."""
    line = Line(directory)
    line.stop()
    _say("The local stack is stopped.")


@main.command()
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
            _say_json(Checked("", (found,)))
        else:
            _say(f"FAULT  {error}")
        raise SystemExit(1) from None
    if not as_json:
        _say(
            f"ok     pipeline {pipeline.name}: {len(pipeline.sources)} sources, "
            f"{len(pipeline.routes)} routing rules"
        )
    findings = password_findings(pipeline)
    if not offline:
        findings += [*server_findings(pipeline), *_topic_findings(pipeline), *_connect(pipeline)]
    faults = [finding for finding in findings if finding.fault]
    warnings = [finding for finding in findings if not finding.fault]
    if as_json:
        shapes = (CheckFinding(f.where, f.text, f.fault, f.code) for f in (*faults, *warnings))
        _say_json(Checked(pipeline.name, tuple(shapes)))
        raise SystemExit(1 if faults else 0)
    for finding in faults:
        _say(f"FAULT  {finding.line}")
    for finding in warnings:
        _say(f"warn   {finding.line}")
    if not faults and not offline:
        servers = "sources and target" if pipeline.target.catalog is None else "sources"
        made = not any(warning.where == "topics" for warning in warnings)
        topics_too = "; topics are as they must be" if made else ""
        _say(f"ok     {servers}; Kafka Connect supports exactly-once sources{topics_too}")
    raise SystemExit(1 if faults else 0)


def _say_json(shape: Checked) -> None:
    _say(json.dumps(to_plain(shape), ensure_ascii=False))


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


def _fresh(directory: Path, free_ports: bool) -> Line:
    """A new line in an emptied directory; refuses a directory whose line runs."""
    line = Line(directory, routes=DEMO_ROUTES, fixed_ports=not free_ports)
    if line.is_running():
        _say(f"A local stack already runs in {directory}. Stop it with `make down`.")
        raise SystemExit(1)
    line.clear()
    return line


def _empty_shards(line: Line) -> None:
    for source, tables in (("s1", ("tbl00", "tbl01")), ("s2", ("tbl02",))):
        with line.connect(source) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE app")
            for table in tables:
                cursor.execute(
                    f"CREATE TABLE app.{table} (ID INT PRIMARY KEY, NAME VARCHAR(40) NOT NULL)"
                )


def _tell_where(line: Line, running: bool) -> None:
    pipeline = line.pipeline
    if not running:
        _say(f"Topics: {', '.join(t.name for t in topics.own_topics(pipeline))}")
        _say(f"Logs: {line.directory}. `make demo KEEP=1` leaves everything running.")
        return
    _say("")
    _say(f"Status pages    {line.web_url}/   (JSON: {line.web_url}/api/status)")
    for source in pipeline.sources:
        _say(f"Source {source.name:<8} {_client(source)}")
    _say(f"Target          {_client(pipeline.target)}")
    _say(f"Kafka           {pipeline.kafka.bootstrap_servers}; Connect {pipeline.connect.url}")
    _say(f"Topics          {', '.join(t.name for t in topics.own_topics(pipeline))}")
    _say(f"Pipeline file   {line.pipeline_path}")
    _say(f"Logs            {line.directory}")
    _say("Stop it with    make down")


def _client(server: Source | Target) -> str:
    return f"mysql -h {server.host} -P {server.port} -u {server.user} -p{server.password}"


def _say(text: str) -> None:
    click.echo(text)
    sys.stdout.flush()


def _fail(error: ShardMergeError, directory: Path) -> None:
    click.echo(f"{error.code}: {error.message}", err=True)
    if error.hint:
        click.echo(f"  {error.hint}", err=True)
    click.echo(f"  Logs: {directory}", err=True)
    raise SystemExit(1) from None


if __name__ == "__main__":
    main()
