"""``shardmerge cutover``."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from shardmerge.cli.endings import ExitCode, telling_errors
from shardmerge.cli.options import json_option, pipeline_option
from shardmerge.cli.parameters import Target, by_option, login_name, read_pipeline
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
    help="Make the sources refuse writes: set super_read_only, on MariaDB read_only.",
)
@click.option(
    "--stopped", is_flag=True, help="Nobody writes to the shards any more: you stopped them."
)
@click.option(
    "--drop",
    multiple=True,
    type=click.Choice([DEFAULTS, ORIGIN]),
    help="Drop what only the merging needed. defaults: those that no shard gave a column. origin: "
    "the origin columns; then there is no way back.",
)
@click.option(
    "--undo",
    is_flag=True,
    help="Go back to the shards, as long as no application wrote to TARGET.",
)
@click.option(
    "--yes",
    is_flag=True,
    help="Answer yes to what the command would ask: writes for other targets may stop, there may "
    "be no way back, and --undo may make a source writable that another cut-over needs read-only.",
)
@click.option(
    "--unproven",
    is_flag=True,
    help="With --undo: do not compare, because you know that no application wrote to TARGET.",
)
@click.option(
    "--bounded",
    is_flag=True,
    help="While the writes stand, compare only rows that have changed in the shards, even if the "
    "target's binlog cannot tell which rows somebody changed in TARGET by hand.",
)
@click.option(
    "--max-lag",
    default=10_000,
    show_default=True,
    type=click.IntRange(0),
    help="Most rows that may wait in Kafka before the writes stop.",
)
@click.option(
    "--rate",
    type=click.IntRange(1),
    help="Most rows a second that a comparison reads, on all servers together.",
)
@click.option(
    "--patience",
    default=120.0,
    show_default=True,
    help="Longest wait, in seconds, until the target has applied what the sources wrote.",
)
@by_option("stored with the cut-over")
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
    bounded: bool,
    max_lag: int,
    rate: int | None,
    patience: float,
    by: str,
    as_json: bool,
) -> None:
    """Move the applications from the shards to TARGET (DATABASE.TABLE), or back with --undo.

    The command proves that TARGET has every row of its shards, and that no shard got a row
    afterwards. Each call goes on from where an earlier one ended, even if that one was killed. The
    command names each step on standard error before it begins.

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
        wishes = Wishes(
            read_only=read_only,
            stopped=stopped,
            confirmed=yes,
            unproven=unproven,
            bounded=bounded,
        )
        server = TargetServer(pipeline, target)
        try:
            server.check_sink()
            server.check_no_rebuild()
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
            hint="cutover closes the target to the sink. It can do so for the kinds mysql, mariadb "
            "and tidb. `shardmerge validate` compares the target with its shards",
            code="SM-6715",
        )


def _tell(report: CutoverReport, path: Path, *, as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    undo = shlex.join(["shardmerge", "cutover", report.target, "--pipeline", str(path), "--undo"])
    for line in lines(report, undo):
        click.echo(line)
