"""``shardmerge cutover``."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from shardmerge.cli.endings import ExitCode, telling_errors
from shardmerge.cli.options import json_option, pipeline_option
from shardmerge.cli.parameters import Target, login_name, read_pipeline
from shardmerge.cli.screen import print_json
from shardmerge.cli.validation.target_run import Limits
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.settings import Pipeline

from .cutover_shapes import CutoverReport
from .looks import Bounds, Looks
from .report import lines, progress_line, report_of
from .running import CutoverRun
from .seen import Wishes
from .target_server import TargetServer
from .tidying import DEFAULTS, ORIGIN


@click.command()
@click.argument("target", type=Target(), metavar="TARGET")
@pipeline_option
@click.option("--rehearse", is_flag=True, help="Show each step with its SQL; change nothing.")
@click.option(
    "--read-only",
    "read_only",
    is_flag=True,
    help="Let the sources take no more writes: super_read_only, on MariaDB read_only.",
)
@click.option("--stopped", is_flag=True, help="You say that nobody writes to the shards any more.")
@click.option(
    "--drop",
    multiple=True,
    type=click.Choice([DEFAULTS, ORIGIN]),
    help="defaults: those that no shard gave a column. origin: the origin columns; then there is "
    "no way back.",
)
@click.option("--undo", is_flag=True, help="Go back, as long as no application wrote to TARGET.")
@click.option(
    "--yes",
    is_flag=True,
    help="Other targets of the sources may be stopped, too, and there may be no way back.",
)
@click.option(
    "--unproven",
    is_flag=True,
    help="With --undo: you say that no application wrote to TARGET; nothing is compared.",
)
@click.option(
    "--max-lag",
    default=10_000,
    show_default=True,
    type=click.IntRange(0),
    help="Rows that may wait in Kafka before writes are stopped.",
)
@click.option(
    "--rate",
    type=click.IntRange(1),
    help="Rows a second at most that are compared, counted on all servers together.",
)
@click.option(
    "--patience",
    default=120.0,
    show_default=True,
    help="Seconds to wait for the target to apply what the sources have written.",
)
@click.option(
    "--by",
    default=login_name,
    show_default="your login name",
    help="Who gives the command; the record keeps it.",
)
@json_option
def cutover(
    target: TargetTable,
    path: Path,
    *,
    rehearse: bool,
    read_only: bool,
    stopped: bool,
    drop: tuple[str, ...],
    undo: bool,
    yes: bool,
    unproven: bool,
    max_lag: int,
    rate: int | None,
    patience: float,
    by: str,
    as_json: bool,
) -> None:
    """Hand TARGET (DATABASE.TABLE) over to the applications, or take it back with --undo.

    The command proves that TARGET has every row of its shards, at a moment after which nobody
    writes to them. It goes on with each call from where an earlier one ended, also a killed one.
    Each step is told on standard error.

    Ends with 0 when applications may write to TARGET, when the way back is complete, or when a
    rehearsal found nothing to do first; with 1 when something has to be done first; with 2 when the
    call or the pipeline file is wrong; with 3 when a server, Kafka or Kafka Connect does not
    answer, or a server refuses a step.
    """
    if read_only and stopped:
        raise click.UsageError("--read-only and --stopped exclude each other")
    if unproven and not undo:
        raise click.UsageError("--unproven is for --undo")
    with telling_errors():
        pipeline = read_pipeline(path)
        _check(pipeline)
        wishes = Wishes(read_only=read_only, stopped=stopped, confirmed=yes, unproven=unproven)
        server = TargetServer(pipeline, target)
        try:
            server.check_sink()
            looks = Looks(pipeline, target, server, wishes, Bounds(drop, max_lag))
            run = CutoverRun(
                pipeline,
                target,
                server,
                looks,
                wishes=wishes,
                limits=Limits(rate, patience_s=patience),
                by=by.strip() or login_name(),
                say=lambda step: click.echo(progress_line(str(target), step), err=True),
            )
            if read_only:
                looks.sources.note_privileged()
            if rehearse:
                ended = run.rehearse(back=undo)
            else:
                with server.store.held():
                    ended = run.run(back=undo)
        finally:
            server.close()
    report = report_of(
        str(target),
        ended.seen.record,
        ended.steps,
        ended.reasons,
        looks.notes,
        rehearsed=rehearse,
        back=undo,
    )
    _tell(report, path, as_json=as_json)
    raise SystemExit(ExitCode.FOUND if report.reasons else ExitCode.GOOD)


def _check(pipeline: Pipeline) -> None:
    if pipeline.target.catalog is not None:
        raise ConfigError(
            f"a target of the kind {pipeline.target.kind} cannot be cut over",
            hint="cutover compares target and shards, which is possible for targets of the kinds "
            "mysql, mariadb and tidb",
            code="SM-6715",
        )


def _tell(report: CutoverReport, path: Path, *, as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    undo = shlex.join(["shardmerge", "cutover", report.target, "--pipeline", str(path), "--undo"])
    for line in lines(report, undo):
        click.echo(line)
