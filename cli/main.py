"""The ``shardmerge`` command."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import click

from shardmerge.cli.checks.findings import Finding
from shardmerge.cli.checks.password_rules import password_findings
from shardmerge.cli.checks.topic_rules import topic_findings
from shardmerge.connectors.connect.connect_rest import ConnectRest
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
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Pipeline, Source, Target

from .command import command
from .ddl import ddl
from .explain_code import explain_code
from .export import export
from .replay import replay
from .servers import server_findings
from .status import lines, read_facts
from .target import target as upkeep

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


main.add_command(command)
main.add_command(ddl)
main.add_command(explain_code)
main.add_command(export)
main.add_command(replay)
main.add_command(upkeep)


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
@_FOLDER
def status(directory: Path) -> None:
    """Show what runs, and what each target and shard is doing."""
    line = Line(directory)
    try:
        line.attach()
        faults = line.faults()
        for fault in faults:
            _say(f"not up: {fault}")
        for told in lines(*read_facts(line.pipeline)):
            _say(told)
    except ShardMergeError as error:
        _fail(error, directory)
    finally:
        line.leave()
    raise SystemExit(1 if faults else 0)


@main.command()
@click.option(
    "--pipeline",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The pipeline file.",
)
@click.option("--offline", is_flag=True, help="Read the file only; connect to nothing.")
def check(path: Path, offline: bool) -> None:
    """Check a pipeline file, its servers and shards, Connect's exactly-once support, and topics."""
    try:
        pipeline = parse_pipeline(path.read_text(encoding="utf-8"), os.environ)
    except (OSError, ConfigError) as error:
        _say(f"FAULT  {error}")
        raise SystemExit(1) from None
    _say(
        f"ok     pipeline {pipeline.name}: {len(pipeline.sources)} sources, "
        f"{len(pipeline.routes)} routing rules"
    )
    findings = password_findings(pipeline)
    if not offline:
        findings += [*server_findings(pipeline), *_topic_findings(pipeline)]
    faults = [finding.line for finding in findings if finding.fault]
    faults += [] if offline else _connect_faults(pipeline)
    for fault in faults:
        _say(f"FAULT  {fault}")
    for finding in findings:
        if not finding.fault:
            _say(f"warn   {finding.line}")
    if not faults and not offline:
        servers = "sources and target" if pipeline.target.catalog is None else "sources"
        _say(
            f"ok     {servers}; Kafka Connect supports exactly-once sources; topics are as they "
            "must be"
        )
    raise SystemExit(1 if faults else 0)


def _connect_faults(pipeline: Pipeline) -> list[str]:
    """What keeps Kafka Connect from exactly-once delivery, and from exact values."""
    faults = []
    try:
        rest = ConnectRest.of(pipeline.connect, patience_s=5.0)
    except ConfigError as error:
        return [str(error)]
    try:
        check_values(rest, pipeline)
    except ShardMergeError as error:
        faults.append(str(error))
    for source in pipeline.sources:
        try:
            check_worker(rest, connector_config(pipeline, source))
            name = connector_name(pipeline, source)
            if name in rest.connectors():
                check_connector(rest, name)
        except ShardMergeError as error:
            faults.append(f"source {source.name}: {error}")
    return faults


def _topic_findings(pipeline: Pipeline) -> list[Finding]:
    """Topics that are missing or differ from what they must be."""
    try:
        found = describe_topics(pipeline.kafka, timeout_s=10)
    except ShardMergeError as error:
        return [Finding("topics", f"{error.message} ({error.hint})", code=error.code)]
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
