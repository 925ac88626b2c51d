"""``shardmerge source``: a pipeline's sources."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from shardmerge.cli.clients import connect_rest
from shardmerge.cli.endings import ExitCode, telling_errors
from shardmerge.cli.options import json_option, pipeline_option
from shardmerge.cli.parameters import complete_source, read_pipeline
from shardmerge.cli.screen import print_json

from .last_records import delivered_gtids
from .move_shapes import told
from .new_binlog import new_binlog, rows_of
from .new_server import ask, ask_before
from .procedure import Move, Servers, Wishes

_PATIENCE_S = 30.0


@click.group()
def source() -> None:
    """Move a source to another server, such as a replica that took over."""


@source.command()
@click.argument("name", metavar="SOURCE", shell_complete=complete_source)
@pipeline_option
@click.option("--host", required=True, help="Name or address of the new server.")
@click.option("--port", type=int, help="Its port, if it is another one.")
@click.option("--user", help="The connector's user there, if it is another one.")
@click.option("--password", help="That user's password: env:NAME or file:PATH.")
@click.option(
    "--wait",
    default=0.0,
    show_default=True,
    help="Seconds in which the new server may get the transactions that it lacks.",
)
@click.option("--timeout", default=120.0, show_default=True, help="Seconds for the connector.")
@click.option(
    "--abandon",
    is_flag=True,
    help="Give up transactions that only the server before has, and that nobody has read.",
)
@click.option("--dry-run", is_flag=True, help="Compare the servers; change nothing.")
@json_option
def move(
    name: str,
    path: Path,
    *,
    host: str,
    port: int | None,
    user: str | None,
    password: str | None,
    wait: float,
    timeout: float,
    abandon: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Let SOURCE be read from another server, such as a replica that took over.

    Refuses when transactions would be missing, and names their GTIDs. Otherwise it writes the new
    address and the next epoch into the pipeline file, gives the connector its configuration, and
    waits until it runs. A call that was interrupted is repeated.

    Ends with 0; with 1 when the move was refused; with 2 when the call or the pipeline file is
    wrong, or the file cannot be written; with 3 when Kafka, Connect or the new server does not
    answer, or the connector does not run there.
    """
    with telling_errors():
        pipeline = read_pipeline(path)
        found = pipeline.source(name)
        given = {"port": port, "user": user, "password": password}
        values = {key: value for key, value in given.items() if value is not None}
        address = replace(found, host=host, **values)  # type: ignore[arg-type]
        rest = connect_rest(pipeline, _PATIENCE_S)
        try:
            moved = Move(
                path,
                pipeline,
                found,
                address,
                rest=rest,
                servers=Servers(
                    ask, ask_before, partial(delivered_gtids, pipeline), new_binlog, rows_of
                ),
                wishes=Wishes(abandon, wait, timeout, dry_run),
            ).run()
        finally:
            rest.close()
    if as_json:
        print_json(moved)
    else:
        for line in told(moved):
            click.echo(line)
    raise SystemExit(ExitCode.FOUND if moved.outcome == "refused" else ExitCode.GOOD)
