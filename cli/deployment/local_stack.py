"""``shardmerge demo``, ``up`` and ``down``: the local stack, for first steps."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from shardmerge.cli.options import json_option
from shardmerge.cli.screen import print_json
from shardmerge.cli.views.call_shapes import StackServer, StartedStack
from shardmerge.local.demo import Demo
from shardmerge.local.line import Line
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Source, Target

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


@click.command()
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


@click.command()
@_FOLDER
@_FREE_PORTS
@json_option
def up(directory: Path, free_ports: bool, as_json: bool) -> None:
    """Start the local stack with the demo's shards, without rows."""
    line = _fresh(directory, free_ports)
    say = _say_aside if as_json else _say
    try:
        line.start(prepare=lambda: _empty_shards(line), say=say, outlive=True)
    except ShardMergeError as error:
        _fail(error, directory)
    if as_json:
        print_json(_started(line))
    else:
        _tell_where(line, running=True)
    line.leave()


@click.command()
@_FOLDER
def down(directory: Path) -> None:
    """Stop the local stack."""
    line = Line(directory)
    line.stop()
    _say("The local stack is stopped.")


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


def _started(line: Line) -> StartedStack:
    pipeline = line.pipeline
    named = [(source.name, source) for source in pipeline.sources] + [("target", pipeline.target)]
    return StartedStack(
        directory=str(line.directory),
        pipeline_file=str(line.pipeline_path),
        status_pages=f"{line.web_url}/",
        kafka=pipeline.kafka.bootstrap_servers,
        connect=pipeline.connect.url,
        servers=tuple(
            StackServer(name, server.host, server.port, server.user, server.password)
            for name, server in named
        ),
    )


def _client(server: Source | Target) -> str:
    return f"mysql -h {server.host} -P {server.port} -u {server.user} -p{server.password}"


def _say(text: str) -> None:
    click.echo(text)
    sys.stdout.flush()


def _say_aside(text: str) -> None:
    """Tell people what goes on, where stdout is for machines."""
    click.echo(text, err=True)


def _fail(error: ShardMergeError, directory: Path) -> None:
    click.echo(f"{error.code}: {error.message}", err=True)
    if error.hint:
        click.echo(f"  {error.hint}", err=True)
    click.echo(f"  Logs: {directory}", err=True)
    raise SystemExit(1) from None
