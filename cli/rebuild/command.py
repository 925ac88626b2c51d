"""``shardmerge rebuild``."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from shardmerge.cli.endings import ExitCode, telling_errors
from shardmerge.cli.moving.pipeline_text import replace_text
from shardmerge.cli.options import json_option, pipeline_option
from shardmerge.cli.parameters import Target, by_option, login_name, read_pipeline
from shardmerge.cli.screen import print_json
from shardmerge.cli.validation.target_run import Limits
from shardmerge.cli.views.call_shapes import CallReason
from shardmerge.schemas.codes.registry import coded
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.row_conditions import check_condition
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord, Stage
from shardmerge.spark_sink.rebuilding.route_changes import ChangedWhere, is_route_of

from .beginning import Changes
from .rebuild_shapes import RebuildReport
from .rebuilt_target import RebuiltTarget, rebuilt_target
from .renewing import renewal_of
from .route_table import line_of, origin_line, with_origin, with_origin_of, with_where
from .running import Ended, RebuildRun, Wishes


def _settings(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """The values of ``--with``, by the names of settings."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if name not in ("where", "origin") or not equals or name in found:
            raise click.BadParameter("write --with 'where=CONDITION' or --with 'origin={ … }'")
        found[name] = value
    if where := found.get("where"):
        try:
            check_condition(where, "--with where")
        except ConfigError as error:
            raise click.BadParameter(str(error)) from None
    return found


@click.command()
@click.argument("target", type=Target(), metavar="TARGET")
@pipeline_option
@click.option("--master", default="local[2]", show_default=True, help="Spark's master URL.")
@click.option("--prepare", is_flag=True, help="End before the swap; the next call swaps.")
@click.option(
    "--only-source-rows",
    is_flag=True,
    help="The new table need not have rows that only TARGET has: of shards that were removed, or "
    "that a route keeps although the shard deleted them.",
)
@click.option(
    "--with",
    "settings",
    metavar="where=CONDITION|origin=TABLE",
    multiple=True,
    callback=_settings,
    help="Give the route of TARGET another condition (nothing behind `where=`: all rows), or other "
    "origin columns, as TOML as in the pipeline file (nothing behind `origin=`: none). The new "
    "table has them, and the sink and the pipeline file have them from the swap on.",
)
@click.option("--unvalidated", is_flag=True, help="Do not compare the new table with the shards.")
@click.option("--abort", is_flag=True, help="Drop the new table; TARGET stays as it is.")
@click.option("--drop-old", is_flag=True, help="After the swap: drop the table from before.")
@click.option(
    "--rate",
    type=click.IntRange(1),
    help="Most rows a second that the comparison reads, on all servers together.",
)
@click.option(
    "--patience",
    default=120.0,
    show_default=True,
    help="Longest wait, in seconds, for the target to come to rest, and for the new table to have "
    "what the target has.",
)
@click.option("--verbose", is_flag=True, help="Show everything that the new table's sink writes.")
@by_option("stored with the rebuild")
@json_option
def rebuild(
    target: TargetTable,
    path: Path,
    *,
    master: str,
    prepare: bool,
    only_source_rows: bool,
    settings: dict[str, str],
    unvalidated: bool,
    abort: bool,
    drop_old: bool,
    rate: int | None,
    patience: float,
    verbose: bool,
    by: str,
    as_json: bool,
) -> None:
    """Load TARGET (DATABASE.TABLE) anew from its shards while it serves, and swap the tables.

    A second sink loads all rows from the shards into a new table, and applies rows and statements
    to it as they come. When the new table has caught up, it is compared with the shards. Then the
    sink stops changing TARGET for some seconds, and one RENAME TABLE puts the new table in its
    place; an Iceberg table gets the new rows in one commit. The table from before is kept until
    --drop-old. Each call goes on from where an earlier
    one ended, even if that one was killed.

    Ends with 0 when the new table serves, or what was asked for is done; with 1 when something has
    to be done first; with 2 when the call or the pipeline file is wrong; with 3 when a server,
    Kafka or Kafka Connect does not answer, or a server refuses a step.
    """
    if sum((prepare, abort, drop_old)) > 1:
        raise click.UsageError("--prepare, --abort and --drop-old exclude each other")
    with telling_errors():
        pipeline = read_pipeline(path)
        server = rebuilt_target(pipeline, path, target)
        try:
            server.check_sink()
            wishes = Wishes(
                by.strip() or login_name(),
                master,
                only_source_rows,
                _changes(path, target, settings),
                not unvalidated,
                prepare,
                verbose,
                Limits(rate, patience_s=patience),
            )
            with server.held():
                if abort or drop_old:
                    ended = Ended(_end(pipeline, server, target, abort=abort))
                else:
                    pipeline = server.in_force(pipeline)
                    ended = RebuildRun(pipeline, path, target, server, wishes=wishes).run()
            old = "" if ended.record is None else server.swap.old_name(ended.record)
        finally:
            server.close()
    report = _report_of(target, ended, old, file_changed=_write_route(path, ended))
    if as_json:
        print_json(report)
    else:
        for line in lines(report, path):
            click.echo(line)
    raise SystemExit(ExitCode.FOUND if report.reasons else ExitCode.GOOD)


def _changes(path: Path, target: TargetTable, settings: dict[str, str]) -> Changes:
    """What the target's route is to have; the pipeline file is checked as if it had it.

    Raises:
        ConfigError: A route cannot have this, or not exactly one leads to the target.
    """
    origin = None
    if "origin" in settings:
        text = with_origin_of(path.read_text(encoding="utf-8"), target, settings["origin"])
        routes = parse_pipeline(text, os.environ).routes
        rule = next(rule for rule in routes if is_route_of(rule, target))
        origin = rule.policies.origin
    return Changes(settings.get("where"), origin)


def _end(
    pipeline: Pipeline, server: RebuiltTarget, target: TargetTable, *, abort: bool
) -> RebuildRecord:
    """Abort an open rebuild, or drop the old table.

    Raises:
        ConfigError: There is nothing to abort or to drop.
    """
    record = server.store.latest(target)
    if abort:
        if record is None or not record.is_open:
            raise ConfigError(f"no rebuild of {target} is under way", code="SM-6501")
        is_decided = (
            record.stage is Stage.SWAPPING
            and record.origin is not None
            and renewal_of(pipeline, record) is not None
        )
        if is_decided or server.swap.is_exchanged(record):
            raise ConfigError(
                f"the new table of {target} is in its place already, or this is decided",
                hint="run the command without --abort: it completes the swap",
                code="SM-6514",
            )
        return server.swap.drop_shadow(record)
    if record is None or record.stage is not Stage.SWAPPED:
        raise ConfigError(
            f"there is no table from before a rebuild of {target}",
            hint="--drop-old comes after a swap",
            code="SM-6501",
        )
    return server.swap.drop_old(record)


def _write_route(path: Path, ended: Ended) -> bool:
    """Write what a swapped table's route has into the pipeline file.

    Returns:
        Whether the file was changed. If it cannot be, the operator is told what to write.
    """
    record = ended.record
    if record is None or record.stage is not Stage.SWAPPED or ended.reasons:
        return False
    try:
        text = edited = path.read_text(encoding="utf-8")
        for change in record.changes:
            if isinstance(change, ChangedWhere):
                edited = with_where(edited, record.target, change.after)
            else:
                edited = with_origin(edited, record.target, change.after)
        if edited == text:
            return False
        replace_text(path, edited)
    except (OSError, ConfigError) as error:
        click.echo(f"warning: {error}", err=True)
        for line in _lines_of_route(record):
            click.echo(f"  write into the route of {record.target}: {line}", err=True)
        return False
    return True


def _lines_of_route(record: RebuildRecord) -> Iterator[str]:
    """What a rebuild has changed in a route, as lines of the pipeline file."""
    for change in record.changes:
        if isinstance(change, ChangedWhere):
            yield line_of(change.after)
        else:
            yield origin_line(change.after)


def _report_of(target: TargetTable, ended: Ended, old: str, *, file_changed: bool) -> RebuildReport:
    record = ended.record
    reasons = tuple(CallReason(r.code, r.text, r.hint) for r in ended.reasons)
    if record is None:
        return RebuildReport(
            str(target), 0, "", "", "", "", "", 0, None, None, None, None, file_changed, reasons
        )
    return RebuildReport(
        str(target),
        record.number,
        record.stage.value,
        record.by,
        record.begun,
        str(record.shadow.table),
        old,
        ended.rows,
        ended.compared_rows,
        None if ended.closed_s is None else round(ended.closed_s * 1000),
        record.where,
        None if record.origin in (None, record.origin_before) else str(record.origin),
        file_changed,
        reasons,
    )


def lines(report: RebuildReport, path: Path) -> Iterator[str]:
    """The report as lines for people."""
    for reason in report.reasons:
        yield coded(reason.code, reason.text)
        if reason.hint:
            yield f"  {reason.hint}"
    if not report.stage:
        return
    again = ["shardmerge", "rebuild", report.target, "--pipeline", str(path)]
    match Stage(report.stage):
        case Stage.BUILDING | Stage.SWAPPING:
            yield f"{report.target}: {report.rows:,} rows are loaded into {report.new_table}"
            yield f"go on: {shlex.join(again)}"
            yield f"give up: {shlex.join([*again, '--abort'])}"
        case Stage.SWAPPED:
            ms = report.closed_ms
            closed = "" if ms is None else f"; it was closed for {ms / 1000:.1f} s"
            yield f"{report.target}: the new table serves{closed}"
            if report.file_changed:
                yield f"what its route has now is written into {path}"
            if report.origin is not None:
                yield "restart the agents with this file: until then they warn (SM-1707)"
            yield f"the table from before is {report.old_table}; drop it: " + shlex.join(
                [*again, "--drop-old"]
            )
        case Stage.ENDED:
            yield f"{report.target}: the table from before is dropped"
        case Stage.ABORTED:
            yield f"{report.target}: the new table is dropped; the target is as it was"
