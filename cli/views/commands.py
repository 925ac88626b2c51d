"""``shardmerge explain``, ``decisions``, ``schema``, ``conflicts``, and how views are printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from shardmerge.agents.holds.conflicts import conflicts as conflicts_of
from shardmerge.cli.endings import ExitCode, telling_errors
from shardmerge.cli.options import json_option, pipeline_option
from shardmerge.cli.parameters import Position, Shard, Target, Time, read_pipeline
from shardmerge.cli.screen import progress_of, show
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.routing import route
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Outcome

from .decisions import Wanted, decision_lines
from .explanation import Asked, explanation
from .picture import Picture
from .reading import read_log, read_picture, read_table
from .schema import joined_schema, shard_schema
from .target_log import AsOf, TargetLog, present_log, target_log


@click.command()
@click.argument("shard", type=Shard(), metavar="SHARD")
@pipeline_option
@click.option("--target", type=Target(), help="By default that of the shard's route.")
@json_option
def explain(shard: ShardId, path: Path, target: TargetTable | None, as_json: bool) -> None:
    """Say why SHARD (SOURCE/DATABASE.TABLE) is held or waits, since when, and for whom.

    Tells how many rows are parked, who waits for this shard in turn, and each way out as a command
    that can be pasted. A command is told only if the coordinator would carry it out now.

    Ends with 0 when nothing stands in the way of the shard's rows, with 1 when something does; with
    2 when the call or the pipeline file is wrong; with 3 when Kafka does not answer.
    """
    with telling_errors():
        pipeline = read_pipeline(path)
        with progress_of("decisions") as progress:
            picture = read_picture(pipeline, progress, servers=True)
        at = target or _target_of(pipeline, shard)
        log = _now(picture, at)
        if shard not in log.state.shards and not _had(picture, at, shard):
            raise ConfigError(
                f"no decision of {at} is about the shard {shard}",
                hint=_known(picture),
                code="SM-5601",
            )
        found = explanation(Asked(picture, log, shard, path))
    show([found], as_json=as_json)
    raise SystemExit(ExitCode.FOUND if found.causes else ExitCode.GOOD)


@click.command()
@pipeline_option
@click.option("--target", type=Target(), help="Only this target's.")
@click.option("--shard", type=Shard(), help="Only those that concern this shard.")
@click.option("--since", type=Time(), help="From this time on (ISO 8601; UTC).")
@click.option("--until", type=Time(), help="Up to this time, itself included.")
@click.option("--from-version", type=click.IntRange(0), help="From this version on.")
@click.option("--to-version", type=click.IntRange(0), help="Up to this version.")
@click.option(
    "--outcome",
    "outcomes",
    multiple=True,
    type=click.Choice([each.value for each in Outcome]),
    help="Only these.",
)
@click.option("--ignored", is_flag=True, help="Also statements that concern no shard.")
@click.option(
    "--last", type=click.IntRange(0), default=50, show_default=True, help="How many; 0 for all."
)
@json_option
def decisions(
    path: Path,
    target: TargetTable | None,
    *,
    shard: ShardId | None,
    since: int | None,
    until: int | None,
    from_version: int | None,
    to_version: int | None,
    outcomes: tuple[str, ...],
    ignored: bool,
    last: int,
    as_json: bool,
) -> None:
    """Show what was decided: each schema change and command with its answer, oldest first.

    `shardmerge replay` shows the same decisions with the states before and after them.

    Ends with 0; with 2 when the call or the pipeline file is wrong; with 3 when Kafka does not
    answer.
    """
    wanted = Wanted(target, shard, since, until, from_version, to_version, outcomes, ignored, last)
    with telling_errors():
        pipeline = read_pipeline(path)
        with progress_of("decisions") as progress:
            picture = read_picture(pipeline, progress)
        found = list(decision_lines(picture, wanted))
    show(found, as_json=as_json)


@click.command()
@click.argument("shard", type=Shard(), metavar="[SHARD]", required=False)
@pipeline_option
@click.option("--target", type=Target(), help="By default that of the shard, or the only one.")
@click.option("--version", type=click.IntRange(0), help="As of this version of the target.")
@click.option("--at", "time_ms", type=Time(), help="As of this time (ISO 8601; UTC).")
@click.option(
    "--position", type=Position(), help="As of this position of the shard's source; needs SHARD."
)
@json_option
def schema(
    shard: ShardId | None,
    path: Path,
    *,
    target: TargetTable | None,
    version: int | None,
    time_ms: int | None,
    position: SourcePosition | None,
    as_json: bool,
) -> None:
    """Show the joined schema of a target, or the schema that SHARD has.

    As of now, or of a version, a time or a position. The time is the one at which a change was
    logged by the tracker.

    Ends with 0; with 2 when the call or the pipeline file is wrong, or there was no such shard or
    target then; with 3 when Kafka does not answer.
    """
    if position is not None and shard is None:
        raise click.UsageError("--position is a place of one source: name the shard")
    with telling_errors():
        pipeline = read_pipeline(path)
        with progress_of("decisions") as progress:
            picture = read_picture(pipeline, progress)
        at = target or (_target_of(pipeline, shard) if shard else _only_target(picture))
        as_of = AsOf(version, time_ms, position)
        log = _now(picture, at) if as_of == AsOf() else _then(pipeline, at, as_of, shard)
        found = shard_schema(log, shard) if shard else joined_schema(log)
        if not log.versions:
            raise ConfigError(
                f"nothing was decided about {at} then", hint=_targets_hint(pipeline), code="SM-5601"
            )
    show([found], as_json=as_json)


@click.command()
@pipeline_option
@click.option("--target", type=Target(), help="Only this target's.")
@json_option
def conflicts(path: Path, target: TargetTable | None, as_json: bool) -> None:
    """Show why shards are held: each reason once, with both sides and the shards on each.

    Ends with 0 when no shard is held, with 1 when one is; with 2 when the call or the pipeline file
    is wrong; with 3 when Kafka does not answer.
    """
    with telling_errors():
        pipeline = read_pipeline(path)
        with progress_of("decisions") as progress:
            picture = read_picture(pipeline, progress)
        targets = [at for at in sorted(picture.joined) if target in (None, at)]
        found = [
            conflict
            for log in _all_now(picture, targets)
            for conflict in conflicts_of(log.state, picture.decided_ms(log.target))
        ]
    show(found, as_json=as_json)
    if not found and not as_json:
        click.echo("no shard is held")
    raise SystemExit(ExitCode.FOUND if found else ExitCode.GOOD)


def _now(picture: Picture, target: TargetTable) -> TargetLog:
    return next(_all_now(picture, [target]))


def _all_now(picture: Picture, targets: Sequence[TargetTable]) -> Iterator[TargetLog]:
    """The targets as of now: from the agents' table, which is read once."""
    if not targets:
        return
    pipeline = picture.pipeline
    with progress_of("the agents' table") as progress:
        rows = read_table(pipeline, progress)
    for target in targets:
        last = max(picture.of_target(target).items(), default=None)
        # A user who may not read the agents' own topic gets no rows. Then the log is folded.
        found = present_log(pipeline, target, rows, last[1].written_ms if last else 0)
        yield found or _then(pipeline, target, AsOf(), None)


def _then(pipeline: Pipeline, target: TargetTable, as_of: AsOf, shard: ShardId | None) -> TargetLog:
    with progress_of(f"schema log of {target}") as progress:
        records = read_log(pipeline, target, progress)
    return target_log(pipeline, target, records, as_of, shard)


def _had(picture: Picture, target: TargetTable, shard: ShardId) -> bool:
    """Whether a shard that is none any more was one of the target."""
    return any(d.decision.shard == shard for d in picture.of_target(target).values())


def _target_of(pipeline: Pipeline, shard: ShardId) -> TargetTable:
    found = route(pipeline.routes, shard)
    if len(found) != 1:
        many = ", ".join(map(str, found)) or "none"
        raise ConfigError(
            f"the routes lead {shard} to {many}", hint="name one with --target", code="SM-5601"
        )
    return found[0]


def _only_target(picture: Picture) -> TargetTable:
    targets = sorted(picture.joined)
    if len(targets) != 1:
        known = ", ".join(map(str, targets)) or "none"
        raise ConfigError(
            "name the target with --target, or a shard", hint=f"targets: {known}", code="SM-5601"
        )
    return targets[0]


def _targets_hint(pipeline: Pipeline) -> str:
    with progress_of("decisions") as progress:
        return _known(read_picture(pipeline, progress))


def _known(picture: Picture) -> str:
    views = picture.views()
    shards = [str(shard.shard) for view in views for shard in view.shards]
    targets = ", ".join(str(view.target) for view in views) or "none"
    return f"targets: {targets}; shards: {', '.join(shards[:10]) or 'none'}"
