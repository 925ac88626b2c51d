"""``shardmerge connect``: the pipeline's connectors in Kafka Connect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import yaml

from shardmerge.cli.clients import connect_rest
from shardmerge.cli.endings import ExitCode, telling_errors
from shardmerge.cli.options import json_option, pipeline_option
from shardmerge.cli.parameters import complete_source, read_pipeline
from shardmerge.cli.screen import print_json, show
from shardmerge.cli.views.call_shapes import ConnectorAction
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name, readings_among
from shardmerge.connectors.debezium.connector_resources import (
    connector_resource,
    helm_values,
    manifests,
)
from shardmerge.connectors.deploy import deploy_connectors, prepare_sources
from shardmerge.connectors.formats.connector_status import ConnectorState, connector_state
from shardmerge.connectors.watchdog import main as watch_connectors
from shardmerge.schemas.pipeline.settings import Pipeline, Source

_sources = click.argument(
    "sources", nargs=-1, metavar="[SOURCE]...", shell_complete=complete_source
)
_PATIENCE_S = 30.0


@click.group()
def connect() -> None:
    """Make, see, print, restart, delete and watch the pipeline's connectors in Kafka Connect.

    Without SOURCE a command is about the connectors of all sources of the pipeline file.
    """


@connect.command()
@pipeline_option
@json_option
@click.option("--timeout", default=120.0, show_default=True, help="Seconds for each connector.")
def apply(path: Path, as_json: bool, timeout: float) -> None:
    """Make the topics, and make or change the connectors as the pipeline file says.

    An unchanged connector is left alone, and so is one that is being repaired. Waits until each of
    the others runs.

    Ends with 0; with 2 when the call or the pipeline file is wrong; with 3 when Kafka, Connect or a
    source does not answer, Connect refuses a connector, or one is being repaired.
    """
    with telling_errors(), _opened(path) as (pipeline, rest):
        names = deploy_connectors(pipeline, rest, timeout)
    pairs = zip(pipeline.sources, names, strict=True)
    show([ConnectorState(source.name, name, "RUNNING") for source, name in pairs], as_json=as_json)


@connect.command()
@_sources
@pipeline_option
@json_option
def status(sources: tuple[str, ...], path: Path, as_json: bool) -> None:
    """Show the state of each connector, and why one failed.

    Ends with 0 when all run, with 1 when one does not; with 2 when the call or the pipeline file is
    wrong; with 3 when Connect does not answer.
    """
    with telling_errors(), _opened(path) as (pipeline, rest):
        found = [
            connector_state(source.name, name, rest.status(name))
            for source, name in _chosen(pipeline, sources)
        ]
    show(found, as_json=as_json)
    bad = any(connector.state != "RUNNING" for connector in found)
    raise SystemExit(ExitCode.FOUND if bad else ExitCode.GOOD)


@connect.command()
@_sources
@pipeline_option
@json_option
@click.option("--failed", is_flag=True, help="Only what failed of them.")
def restart(sources: tuple[str, ...], path: Path, as_json: bool, failed: bool) -> None:
    """Restart connectors with their tasks; each goes on where it stopped.

    Ends with 0; with 2 when the call or the pipeline file is wrong; with 3 when Connect does not
    answer.
    """
    with telling_errors(), _opened(path) as (pipeline, rest):
        for source, name in _chosen(pipeline, sources):
            (rest.restart_failed if failed else rest.restart)(name)
            _say(ConnectorAction(source.name, name, "restarted"), as_json=as_json)


@connect.command()
@_sources
@pipeline_option
@json_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(sources: tuple[str, ...], path: Path, as_json: bool, yes: bool) -> None:
    """Delete connectors. Their topics and offsets stay, so `connect apply` goes on from there.

    Ends with 0; with 1 when the question was answered with no; with 2 when the call or the pipeline
    file is wrong; with 3 when Connect does not answer.
    """
    with telling_errors(), _opened(path) as (pipeline, rest):
        chosen = _chosen(pipeline, sources)
        if not yes:
            names = ", ".join(name for _, name in chosen)
            # JSON alone goes to stdout: a script reads it.
            click.confirm(f"delete {names} at {rest.url}?", abort=True, err=as_json)
        known = rest.connectors()
        for source, name in chosen:
            for each in (*readings_among(known, name), name):
                if each in known:
                    rest.delete(each)
                done = "deleted" if each in known else "there was none"
                _say(ConnectorAction(source.name, each, done), as_json=as_json)


@connect.command()
@_sources
@pipeline_option
@json_option
@click.option(
    "--form",
    type=click.Choice(["values", "resources"]),
    default="values",
    show_default=True,
    help="Values of the Helm chart, or resources for kubectl.",
)
@click.option("--cluster", help="Name of the KafkaConnect resource, for --form resources.")
def render(
    sources: tuple[str, ...], path: Path, *, as_json: bool, form: str, cluster: str | None
) -> None:
    """Print the connectors as Strimzi's KafkaConnector resources have them, as YAML.

    Asks no server. Passwords must be references (env:NAME or file:PATH).

    Ends with 0; with 2 when the call or the pipeline file is wrong.
    """
    if (form == "resources") != (cluster is not None):
        raise click.UsageError("--cluster and --form resources need each other")
    with telling_errors():
        pipeline = read_pipeline(path)
        found = tuple(
            connector_resource(pipeline, source) for source, _ in _chosen(pipeline, sources)
        )
    if as_json:
        for resource in found:
            print_json(resource)
    elif cluster is not None:
        click.echo(yaml.safe_dump_all(manifests(found, cluster), sort_keys=False), nl=False)
    else:
        click.echo(yaml.safe_dump(helm_values(found), sort_keys=False), nl=False)


@connect.command()
@pipeline_option
@json_option
def prepare(path: Path, as_json: bool) -> None:
    """Make the topics and the signal tables that connectors need, and no connector.

    For connectors that somebody else makes, such as Strimzi. Safe to call again.

    Ends with 0; with 2 when the call or the pipeline file is wrong; with 3 when Kafka or a source
    does not answer.
    """
    with telling_errors():
        pipeline = read_pipeline(path)
        prepare_sources(pipeline)
    for source, name in _chosen(pipeline, ()):
        _say(ConnectorAction(source.name, name, "prepared"), as_json=as_json)


@connect.command()
@pipeline_option
@click.option("--interval", default=3.0, show_default=True, help="Seconds between two looks.")
@click.option("--create", is_flag=True, help="Make topics and connectors, too.")
@click.option(
    "--metrics-host", default="127.0.0.1", show_default=True, help="Address of the metrics."
)
@click.option(
    "--metrics-port", default=0, show_default=True, help="Port of the metrics; 0 for none."
)
def watch(
    path: Path, *, interval: float, create: bool, metrics_host: str, metrics_port: int
) -> None:
    """Run the watchdog: restart and repair connectors until TERM.

    Kafka Connect itself never restarts a task that failed.

    With `--create` it makes the topics, and makes or changes each source's connector as the
    pipeline file says. If a source is away or a connector is refused, the log says why, it is tried
    again, and the others are made and watched.

    When the pipeline file has a source in a higher epoch (`source move`), it begins anew with the
    file as it is then.

    Ends with 0 when it was told to stop; with 1 when Kafka does not admit it, or a password is not
    where the file says. With 2 when the pipeline file is wrong.
    """
    arguments = ["--pipeline", str(path), "--interval", str(interval)]
    arguments += ["--metrics-host", metrics_host, "--metrics-port", str(metrics_port)]
    raise SystemExit(watch_connectors([*arguments, *(["--create"] if create else ())]))


def _say(action: ConnectorAction, *, as_json: bool) -> None:
    if as_json:
        print_json(action)
    else:
        click.echo(f"{action.name}: {action.done}")


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Pipeline, ConnectRest]]:
    pipeline = read_pipeline(path)
    rest = connect_rest(pipeline, _PATIENCE_S)
    try:
        yield pipeline, rest
    finally:
        rest.close()


def _chosen(pipeline: Pipeline, names: tuple[str, ...]) -> list[tuple[Source, str]]:
    """The sources of these names, all without names, each with its connector's name.

    Raises:
        ConfigError: There is no such source.
    """
    found = [pipeline.source(name) for name in names] or list(pipeline.sources)
    return [(source, connector_name(pipeline, source)) for source in found]
