"""``shardmerge run``: watchdog, agents and sink of one pipeline on one machine."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import click

from shardmerge.cli.endings import ExitCode, telling_errors
from shardmerge.cli.parameters import pipeline_option, read_pipeline
from shardmerge.connectors.event_log import form_of, set_up
from shardmerge.schemas.model.errors import StackError

from .supervision import PartSpec, Supervision

WATCHDOG, AGENTS, SINK = "watchdog", "agents", "sink"


@click.command()
@pipeline_option
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("shardmerge-run"),
    show_default=True,
    help="The agents' tables, and pid files.",
)
@click.option("--web-host", default="127.0.0.1", show_default=True, help="Of the status pages.")
@click.option("--web-port", default=6066, show_default=True, help="Of the status pages.")
@click.option("--master", default="local[2]", show_default=True, help="Spark's master URL.")
@click.option(
    "--without",
    multiple=True,
    type=click.Choice([WATCHDOG, AGENTS, SINK]),
    help="A part that runs elsewhere.",
)
@click.option(
    "--give-up-after",
    "limit",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Ends in a row, each within a minute, after which everything is stopped.",
)
def run(
    path: Path,
    *,
    directory: Path,
    web_host: str,
    web_port: int,
    master: str,
    without: tuple[str, ...],
    limit: int,
) -> None:
    """Run watchdog, agents and sink of one pipeline on this machine.

    Topics and connectors are made first. A part that ends is started again, after pauses that grow
    from 1 to 30 seconds. TERM or INT stops the sink, then the agents, then the watchdog, and waits
    until each has completed what it does. What the parts write comes out with the part's name
    before each line.

    Ends with 0 when it was told to stop; with 1 when a part ended again and again; with 2 when the
    call or the pipeline file is wrong.
    """
    set_up("cli", "INFO", form_of(None, os.environ))
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with telling_errors():
        read_pipeline(path)
        wanted = [
            part
            for part in parts(path, directory, web_host, web_port, master)
            if part.name not in without
        ]
        supervision = Supervision(directory.absolute(), wanted, limit)
        try:
            supervision.run(stop)
        except StackError as error:
            click.echo(f"error: {error.code}: {error.message}\n  {error.hint}", err=True)
            raise SystemExit(ExitCode.FOUND) from None


def parts(
    path: Path, directory: Path, web_host: str, web_port: int, master: str
) -> tuple[PartSpec, ...]:
    """The parts in the order of their start.

    Args:
        path: Of the pipeline file.
        directory: Where the agents keep their tables.
        web_host: Of the status pages.
        web_port: Likewise.
        master: Of Spark.
    """
    file = ("--pipeline", str(path.absolute()))
    web = ("--web-host", web_host, "--web-port", str(web_port))
    tables = ("--datadir", str(directory.absolute() / "tables"))
    return (
        PartSpec(WATCHDOG, ("connect", "watch", *file, "--create")),
        PartSpec(AGENTS, ("agents", *file, *tables, *web)),
        PartSpec(SINK, ("sink", *file, "--master", master), {"PYSPARK_PYTHON": sys.executable}),
    )
