"""``shardmerge validate``."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import click

from shardmerge.cli.endings import ExitCode, imported, telling_errors
from shardmerge.cli.options import FILE, json_option, pipeline_option
from shardmerge.cli.parameters import Shard, Target, read_pipeline
from shardmerge.connectors.clock import now_ms
from shardmerge.connectors.metrics.endpoint import serve
from shardmerge.local.sigterm import end_on_sigterm
from shardmerge.schemas.model.errors import ConfigError, StackError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline.routing import route
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.plain import to_plain
from shardmerge.spark_sink.process.settings import settings_from

from . import repairs
from .inputs.applied_offsets import Applied, control_offsets
from .inputs.server_rows import ServerRows
from .inputs.table_facts import is_cut_over, targets_of
from .inputs.topic_facts import TopicFacts
from .page_records import PageRecords
from .report import lines
from .report_shapes import ValidatedTarget
from .rounds import Round, keep_comparing
from .saved_state import StateFile
from .target_run import Limits, TargetRun
from .validation_meter import ValidationMeter
from .whole_target import compare_target

_END_S = 10.0
"""Seconds from SIGTERM to the end of a continuous comparison, whichever server does not answer."""


@dataclass(frozen=True, slots=True)
class _Call:
    pipeline: Pipeline
    only: tuple[ShardId, ...]
    limits: Limits
    state: StateFile
    repair: str | None
    as_json: bool
    path: Path
    pages: PageRecords
    dated: Callable[[ValidatedTarget], ValidatedTarget] = lambda report: report


@click.command()
@click.argument("target", type=Target(), metavar="[TARGET]", required=False)
@pipeline_option
@click.option("--shard", "shards", type=Shard(), multiple=True, help="Only this shard; repeatable.")
@click.option(
    "--rate",
    type=click.IntRange(1),
    help="Rows a second at most, counted on all servers together; by default no limit.",
)
@click.option(
    "--resume",
    type=FILE,
    help="Keep the state in this file; if it exists, go on from there. Removed at the end; with "
    "--continuous, at the end of each round.",
)
@click.option(
    "--repair",
    type=click.Choice(["sql", "reread"]),
    help="sql: print a statement for each difference. reread: have exactly these rows read again.",
)
@click.option(
    "--patience",
    default=120.0,
    show_default=True,
    help="Seconds to wait for the target to apply what a source has written.",
)
@click.option(
    "--most",
    default=10_000,
    show_default=True,
    type=click.IntRange(1),
    help="End the comparison of a target when more rows than this differ or are in doubt.",
)
@click.option(
    "--continuous",
    is_flag=True,
    help="Compare again and again, until you end the process. Set --rate, too, so that the servers "
    "can serve the sink meanwhile.",
)
@click.option(
    "--pause",
    "pause_s",
    default=3600.0,
    show_default=True,
    type=click.FloatRange(0),
    help="With --continuous: seconds between two comparisons of everything.",
)
@click.option(
    "--metrics-port",
    default=0,
    type=click.IntRange(0, 65_535),
    show_default="none",
    help="With --continuous: port where Prometheus reads metrics, at /metrics.",
)
@click.option(
    "--metrics-host", default="127.0.0.1", show_default=True, help="Address of that port."
)
@json_option
def validate(
    target: TargetTable | None,
    path: Path,
    *,
    shards: tuple[ShardId, ...],
    rate: int | None,
    resume: Path | None,
    repair: str | None,
    patience: float,
    most: int,
    continuous: bool,
    pause_s: float,
    metrics_port: int,
    metrics_host: str,
    as_json: bool,
) -> None:
    """Compare TARGET (DATABASE.TABLE; by default every target) with its shards.

    Traffic may go on: a row that looks different is looked at again when the target has applied
    what its shard had written before. Only SELECTs are run, one at a time on each server.

    The pages and `shardmerge status` show what the latest comparison of each target found.

    If a server does not answer, the command tells what it has found until then in the targets that
    need it, with the error's code, and compares the others. With --continuous the command compares
    for ever, and these targets again in the next round.

    Ends with 0 when everything was compared and is equal; with 1 when there is a difference, or a
    row or a shard could not be compared; with 2 when the call or the pipeline file is wrong; with 3
    when a server, Kafka or Kafka Connect does not answer. Where 1 and 3 are both true, it ends with
    3.
    """
    with telling_errors():
        pipeline = read_pipeline(path)
        _check(pipeline, target, shards)
        state = StateFile(resume, pipeline.name, tuple(map(str, shards)))
        call = _Call(
            pipeline,
            shards,
            Limits(rate, most, patience),
            state,
            repair,
            as_json,
            path,
            PageRecords(pipeline, shards),
        )
        if continuous:
            _check_continuous(repair)
            _keep_comparing(call, target, pause_s, metrics_host, metrics_port)
        found = _compared(call, target)
        if all(each.complete for each in found):
            state.end_run()
    raise SystemExit(_ending(found))


def _ending(found: Sequence[ValidatedTarget]) -> ExitCode:
    if any(each.code for each in found):
        return ExitCode.UNANSWERED
    return ExitCode.GOOD if all(each.is_clean for each in found) else ExitCode.FOUND


@contextmanager
def _round(
    call: _Call, target: TargetTable | None, *, only_merged: bool = False
) -> Iterator[Round]:
    """One comparison of every wanted target.

    Args:
        call: The call.
        target: The wanted target; None for all of them.
        only_merged: Whether all of them leaves out those that were cut over, because applications
            change them.
    """
    facts = TopicFacts(call.pipeline)
    picture = facts.picture()
    wanted = targets_of(picture, target)
    if target is None and only_merged:
        wanted = [each for each in wanted if not is_cut_over(picture, each)]
    if target is None and call.only:
        routed = {each for shard in call.only for each in route(call.pipeline.routes, shard)}
        wanted = [each for each in wanted if each in routed]
    lake = None
    if call.pipeline.target.catalog is not None:
        module = imported("shardmerge.cli.validation.inputs.lake_server", "spark")
        settings = settings_from(["--pipeline", str(call.path)], os.environ)
        lake = module.lake_server(settings, call.pipeline)
    servers = ServerRows(call.pipeline, lake)
    applied = control_offsets(call.pipeline) if lake is None else lake.offsets
    try:
        yield Round(
            wanted,
            lambda each: _validated(call, each, facts, servers, applied),
            lambda report: _tell(call, report),
        )
    finally:
        servers.close()


def _compared(call: _Call, target: TargetTable | None) -> list[ValidatedTarget]:
    """The report of each wanted target; each is told as soon as it is compared."""
    with _round(call, target) as this:
        return [this.report(each) for each in this.targets]


def _check_continuous(repair: str | None) -> None:
    if repair is not None:
        raise ConfigError(
            "--continuous does not take --repair",
            hint="correct what differs with a call of its own, without --continuous",
            code="SM-5601",
        )


def _keep_comparing(
    call: _Call, target: TargetTable | None, pause_s: float, host: str, port: int
) -> NoReturn:
    end_on_sigterm(within_s=_END_S)
    meter = ValidationMeter.of(call.state.known)

    def dated(report: ValidatedTarget) -> ValidatedTarget:
        found = meter.dated(report, time.time())
        call.state.keep_known(meter.known)
        return found

    dating = replace(call, dated=dated)
    stop = serve(meter.samples, host, port) if port else None
    try:
        keep_comparing(
            lambda: _round(dating, target, only_merged=True),
            meter,
            pause_s,
            ended=call.state.end_run,
        )
    finally:
        if stop is not None:
            stop()


def _check(pipeline: Pipeline, target: TargetTable | None, shards: Sequence[ShardId]) -> None:
    for shard in shards:
        routed = route(pipeline.routes, shard)
        if not routed or (target is not None and target not in routed):
            raise ConfigError(
                f"no route leads from {shard} to {target or 'a target'}", code="SM-5601"
            )


def _validated(
    call: _Call, target: TargetTable, facts: TopicFacts, servers: ServerRows, applied: Applied
) -> ValidatedTarget:
    begun: list[TargetRun] = []
    began = time.monotonic()
    try:
        run, seconds = compare_target(
            call.pipeline,
            target,
            facts,
            servers,
            limits=call.limits,
            state=call.state,
            only=call.only,
            applied=applied,
            before=begun.append,
        )
    except StackError:
        if not begun or not begun[0].validation.rows:
            raise
        report = call.dated(begun[0].report(time.monotonic() - began))
        _tell(call, report)
        return report
    ended_ms = now_ms()
    validation = run.validation
    table, found = validation.table, validation.differences
    rows, told = {}, {}
    try:
        rows = repairs.samples(table, found, servers)
        if call.repair == "sql":
            told = repairs.statements(table, found, servers, rows)
    except StackError as error:
        # What was found is told all the same.
        click.echo(f"{target}: rows that differ could not be read: {error}", err=True)
    report = call.dated(run.report(seconds, told, rows))
    _print(report, as_json=call.as_json)
    if call.repair == "sql":
        for note in repairs.counted_notes(found, told):
            click.echo(f"{target}: {note}", err=True)
    number = 0
    try:
        if call.repair == "reread":
            conditions, notes = repairs.requests(table, found)
            number = repairs.ask(call.pipeline, conditions) if conditions else 0
            for note in (f"asked for {number} readings of single rows", *notes):
                click.echo(f"{target}: {note}", err=True)
    finally:
        call.pages.send(report, ended_ms, number)
    return report


def _tell(call: _Call, report: ValidatedTarget) -> None:
    """Print a report, and send it to the pages."""
    _print(report, as_json=call.as_json)
    call.pages.send(report, now_ms())


def _print(report: ValidatedTarget, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(to_plain(report), ensure_ascii=False))
        return
    for line in lines(report):
        click.echo(line)
