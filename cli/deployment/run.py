"""``shardmerge run``: watchdog, agents and sink of one pipeline on one machine."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import click

from shardmerge.cli.endings import ExitCode, telling_errors
from shardmerge.cli.options import pipeline_option
from shardmerge.cli.parameters import read_pipeline
from shardmerge.connectors.log_lines import form_of, set_up
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
@click.option(
    "--web-host", default="127.0.0.1", show_default=True, help="Address of the status pages."
)
@click.option("--web-port", default=6066, show_default=True, help="Port of the status pages.")
@click.option("--master", default="local[2]", show_default=True, help="Spark's master URL.")
@click.option(
    "--metrics-host",
    default="127.0.0.1",
    show_default=True,
    help="Address of the metrics of sink and watchdog.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65_534),
    default=0,
    show_default=True,
    help="Port of the sink's metrics; the watchdog's are at the next port. 0 for none.",
)
@click.option("--metrics-per-shard", is_flag=True, help="Serve metrics of every shard, too.")
@click.option(
    "--standby", is_flag=True, help="The sink waits while another sink of the pipeline writes."
)
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
    metrics_host: str,
    metrics_port: int,
    metrics_per_shard: bool,
    standby: bool,
    without: tuple[str, ...],
    limit: int,
) -> None:
    """Run watchdog, agents and sink of one pipeline on this machine.

    The watchdog makes topics and connectors. A part that ends is started again, after pauses that
    grow from 1 to 30 seconds. TERM or INT stops the sink, then the agents, then the watchdog, and
    waits until each has completed what it does. What the parts write comes out with the part's
    name before each line.

    On a second machine run it with `--standby --without watchdog`: its agents share the work, and
    its sink takes over when the one that writes ends.

    The agents serve their metrics beside the status pages; the sink and the watchdog serve theirs
    when `--metrics-port` is given.

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
            for part in parts(
                path,
                directory,
                Address(web_host, web_port),
                master,
                Address(metrics_host, metrics_port),
                per_shard=metrics_per_shard,
                standby=standby,
            )
            if part.name not in without
        ]
        supervision = Supervision(directory.absolute(), wanted, limit)
        try:
            supervision.run(stop)
        except StackError as error:
            click.echo(f"error: {error.code}: {error.message}\n  {error.hint}", err=True)
            raise SystemExit(ExitCode.FOUND) from None


class Address(NamedTuple):
    """Where something is served."""

    host: str
    port: int

    def options(self, of: str, further: int = 0) -> tuple[str, ...]:
        """``--OF-host`` and ``--OF-port``; ``further`` is added to the port."""
        return (f"--{of}-host", self.host, f"--{of}-port", str(self.port + further))


def parts(
    path: Path,
    directory: Path,
    web: Address,
    master: str,
    metrics: Address,
    *,
    per_shard: bool = False,
    standby: bool = False,
) -> tuple[PartSpec, ...]:
    """The parts in the order of their start.

    Args:
        path: Of the pipeline file.
        directory: Where the agents keep their tables.
        web: Of the status pages.
        master: Of Spark.
        metrics: Of the sink; the watchdog has the next port. With port 0 there are none.
        per_shard: Whether there are metrics of every shard, too.
        standby: Whether the sink waits while another one writes.
    """
    file = ("--pipeline", str(path.absolute()))
    tables = ("--datadir", str(directory.absolute() / "tables"))
    of_sink = metrics.options("metrics") if metrics.port else ()
    of_watchdog = metrics.options("metrics", 1) if metrics.port else ()
    flags = {"--metrics-per-shard": per_shard, "--standby": standby}
    more = tuple(name for name, given in flags.items() if given)
    return (
        PartSpec(WATCHDOG, ("connect", "watch", *file, "--create", *of_watchdog)),
        PartSpec(AGENTS, ("agents", *file, *tables, *web.options("web"))),
        PartSpec(
            SINK,
            ("sink", *file, "--master", master, *of_sink, *more),
            {"PYSPARK_PYTHON": sys.executable},
        ),
    )
