"""``shardmerge target``: upkeep of an Iceberg target's tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shardmerge.schemas.model.errors import ConfigError, ShardMergeError
from shardmerge.spark_sink.process.settings import settings_from

from .endings import imported
from .options import FILE, json_option
from .parameters import read_pipeline
from .screen import print_json
from .views.call_shapes import TableUpkeep

if TYPE_CHECKING:
    from shardmerge.spark_sink.targets.iceberg.maintenance import Maintenance, Upkeep

_PIPELINE = click.option(
    "--pipeline", "path", type=FILE, required=True,
    help="The pipeline file; its target's kind is iceberg.",
)  # fmt: skip


@click.group()
def target() -> None:
    """Keep the tables of an Iceberg target small, also while the sink runs."""


@target.command()
@_PIPELINE
@json_option
def compact(path: Path, as_json: bool) -> None:
    """Rewrite small data files, and files with deleted rows, as fewer large ones."""
    _maintain(path, lambda maintenance: maintenance.compact(), as_json=as_json)


@target.command()
@_PIPELINE
@click.option(
    "--keep",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="Number of newest snapshots to keep.",
)
@click.option(
    "--older-than",
    "hours",
    type=click.FloatRange(1),
    default=24.0,
    show_default=True,
    help="Age in hours; younger snapshots are kept in any case.",
)
@json_option
def expire(path: Path, keep: int, hours: float, as_json: bool) -> None:
    """Remove old snapshots and the files that only they use."""
    seconds = round(hours * 3600)
    _maintain(path, lambda maintenance: maintenance.expire(keep, seconds), as_json=as_json)


def _maintain(
    path: Path, work: Callable[[Maintenance], Sequence[Upkeep]], *, as_json: bool
) -> None:
    try:
        pipeline = read_pipeline(path)
        if pipeline.target.kind != "iceberg":
            raise ConfigError(
                f"the target's kind is {pipeline.target.kind}, which needs no such upkeep",
                code="SM-5601",
            )
        settings = settings_from(["--pipeline", str(path)], os.environ)
        module = imported("shardmerge.spark_sink.targets.iceberg.maintenance", "spark")
        maintenance = module.Maintenance(settings, pipeline)
        try:
            for done in work(maintenance):
                if as_json:
                    print_json(TableUpkeep(str(done.table), done.counts))
                    continue
                counts = ", ".join(f"{name} {count}" for name, count in done.counts.items())
                click.echo(f"{done.table}: {counts or 'nothing to do'}")
        finally:
            maintenance.close()
    except (OSError, ShardMergeError) as error:
        click.echo(f"error: {error}", err=True)
        raise SystemExit(1) from None
