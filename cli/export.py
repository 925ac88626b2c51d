"""``shardmerge export``: writes what a pipeline decided into one file."""

from __future__ import annotations

from pathlib import Path

import click

from shardmerge.agents.replay.bundle import Manifest
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline

from .bundles import exported_topics, write_from_kafka
from .options import FILE, json_option, pipeline_option
from .parameters import read_pipeline
from .screen import print_json
from .views.call_shapes import Exported, ExportedPart


@click.command()
@pipeline_option
@click.option("--output", type=FILE, required=True, help="The file to write; it must not exist.")
@json_option
def export(path: Path, output: Path, as_json: bool) -> None:
    """Write everything that a pipeline decided, and from what, into one file.

    The bundle holds the records of schema-log, ddl, joined-schemas, sink-progress, commands and the
    sources' schema changes, byte for byte, and the pipeline file without its passwords. It holds no
    rows. `shardmerge replay --file` reads it on any machine.
    """
    if output.exists():
        raise click.UsageError(f"{output} exists: choose another name, or remove it")
    try:
        manifest = _write(read_pipeline(path), output)
    except (ShardMergeError, OSError, UnicodeDecodeError) as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        print_json(_shape(manifest, output))
        return
    for topic in dict.fromkeys(part.topic for part in manifest.parts):
        parts = [part for part in manifest.parts if part.topic == topic]
        ends = ", ".join(f"{part.begin} to {part.end}" for part in parts)
        click.echo(f"{topic}: {sum(part.records for part in parts)} records, offsets {ends}")
    for topic in manifest.missing:
        click.echo(f"{topic}: does not exist, so the bundle lacks it", err=True)
    click.echo(f"{output}: {output.stat().st_size:,} bytes")


def _shape(manifest: Manifest, output: Path) -> Exported:
    parts = tuple(
        ExportedPart(part.topic, part.partition, part.begin, part.end, part.records)
        for part in manifest.parts
    )
    return Exported(str(output), output.stat().st_size, parts, manifest.missing)


def _write(pipeline: Pipeline, output: Path) -> Manifest:
    """Write under a temporary name, so that an unfinished bundle never has the wanted name."""
    unfinished = output.with_name(f".{output.name}.unfinished")
    try:
        with unfinished.open("wb") as file:
            required = [topics.schema_log(pipeline).name]
            manifest = write_from_kafka(
                pipeline, exported_topics(pipeline), file, required=required
            )
        unfinished.replace(output)
    finally:
        unfinished.unlink(missing_ok=True)
    return manifest
