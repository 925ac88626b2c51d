"""``shardmerge replay``: shows what happened step by step, or verifies it."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from shardmerge.agents.replay.bundle import Bundle
from shardmerge.agents.replay.facts import step_facts, verification_facts
from shardmerge.agents.replay.log import in_time
from shardmerge.agents.replay.steps import Stepper, Wanted
from shardmerge.agents.replay.text import SchemaText, step_text, verification_text
from shardmerge.agents.replay.verify import verify as verify_records
from shardmerge.connectors.formats.stored_record import StoredRecord
from shardmerge.schemas.model.errors import ContractError, ShardMergeError
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.file import parse_pipeline

from .bundles import folded_topics, replayed_topics, write_from_kafka
from .options import FILE
from .parameters import Time


@click.command()
@click.option("--pipeline", "pipeline_path", type=FILE, help="Read the topics of this pipeline.")
@click.option("--file", "bundle_path", type=FILE, help="Read a bundle of `shardmerge export`.")
@click.option(
    "--target", "targets", multiple=True, metavar="DB.TABLE", help="Show the steps of this target."
)
@click.option(
    "--shard",
    "shards",
    multiple=True,
    metavar="SOURCE/DB.TABLE",
    help="Show the changes of this shard, and what releases it.",
)
@click.option("--since", type=Time(), help="Show changes from this time on (ISO 8601; UTC).")
@click.option("--until", type=Time(), help="Show changes up to this time, itself included.")
@click.option("--step", "number", type=click.IntRange(1), help="Show the step of this number.")
@click.option("--from-version", type=click.IntRange(0), help="Show decisions from this version on.")
@click.option("--to-version", type=click.IntRange(0), help="Show decisions up to this version.")
@click.option(
    "--schema",
    type=click.Choice([each.value for each in SchemaText]),
    default=SchemaText.DIFF.value,
    show_default=True,
    help="How to show the target's schema: what changed, or CREATE TABLE before and after.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@click.option("--pause", is_flag=True, help="Wait for Enter after each step.")
@click.option(
    "--from-sources",
    is_flag=True,
    help="Begin with the sources' DDL statements: also shows those that concern no shard; with "
    "--verify also compares the schema-log.",
)
@click.option(
    "--verify", is_flag=True, help="Show no steps; compare the repeated decisions with the topics."
)
def replay(
    pipeline_path: Path | None,
    bundle_path: Path | None,
    *,
    targets: tuple[str, ...],
    shards: tuple[str, ...],
    since: int | None,
    until: int | None,
    number: int | None,
    from_version: int | None,
    to_version: int | None,
    schema: str,
    as_json: bool,
    pause: bool,
    from_sources: bool,
    verify: bool,
) -> None:
    """Repeat a pipeline's decisions and show each step: what came, what was decided and why.

    Steps come in the order of their records' timestamps, and within a target in the order of the
    schema-log. The options choose what is shown; every decision is repeated. Nothing is written.

    The exit code is 0; 1 when --verify finds a difference; 2 when the call or the input is wrong.
    """
    wanted = Wanted(
        frozenset(targets), frozenset(shards), since, until, number, from_version, to_version
    )
    _check_call(pipeline_path, bundle_path, wanted, verify=verify, pause=pause, as_json=as_json)
    try:
        with _opened(
            pipeline_path, bundle_path, verify=verify, from_sources=from_sources
        ) as bundle:
            # At the same time, the tracker's input comes before the records that it causes.
            names = folded_topics(bundle.pipeline, from_sources=from_sources)[::-1]
            _check_whole(bundle, names)
            if verify:
                equal = _verify(bundle, from_sources=from_sources, as_json=as_json)
            else:
                _show(bundle, names, wanted, SchemaText(schema), as_json=as_json, pause=pause)
                equal = True
    except BrokenPipeError:
        raise  # the reader of the output went away: click ends quietly
    except (ShardMergeError, OSError, UnicodeDecodeError) as error:
        raise click.UsageError(str(error)) from error
    raise SystemExit(0 if equal else 1)


def _check_call(
    pipeline_path: Path | None,
    bundle_path: Path | None,
    wanted: Wanted,
    *,
    verify: bool,
    pause: bool,
    as_json: bool,
) -> None:
    if (pipeline_path is None) == (bundle_path is None):
        raise click.UsageError("give one of --pipeline and --file: where the records are")
    if verify and wanted != Wanted():
        raise click.UsageError("--verify compares everything: it takes no filter")
    if pause and (verify or as_json):
        raise click.UsageError("--pause is for steps as text")


@contextmanager
def _opened(
    pipeline_path: Path | None, bundle_path: Path | None, *, verify: bool, from_sources: bool
) -> Iterator[Bundle]:
    """The bundle; for a pipeline a temporary one, so that every replay reads a bundle."""
    if bundle_path is not None:
        with bundle_path.open("rb") as file:
            yield Bundle(file, str(bundle_path))
        return
    assert pipeline_path is not None
    pipeline = parse_pipeline(pipeline_path.read_text(encoding="utf-8"), os.environ)
    names = replayed_topics(pipeline, verify=verify, from_sources=from_sources)
    with tempfile.TemporaryFile() as file:
        write_from_kafka(pipeline, names, file, required=names)
        yield Bundle(file, f"Kafka at {pipeline.kafka.bootstrap_servers}")


def _records(bundle: Bundle, topic: str) -> Iterator[StoredRecord]:
    for part in bundle.partitions(topic):
        yield from bundle.records(part)


def _merged(bundle: Bundle, names: Sequence[str]) -> Iterator[StoredRecord]:
    """The records of topics that are folded, in the order of time."""
    return in_time(bundle.records(part) for name in names for part in bundle.partitions(name))


def _check_whole(bundle: Bundle, names: Sequence[str]) -> None:
    """A fold needs all records from the first one on."""
    for part in (part for name in names for part in bundle.partitions(name)):
        if part.begin > 0:
            raise ContractError(
                f"{part.topic}/{part.partition} begins at offset {part.begin}: the records before "
                "it were deleted, and a fold needs them all",
                hint="replay a bundle that was exported before; the topic's retention must be -1",
                code="SM-2118",
            )


def _verify(bundle: Bundle, *, from_sources: bool, as_json: bool) -> bool:
    found = verify_records(
        bundle.pipeline,
        _merged(bundle, [topics.schema_log(bundle.pipeline).name]),
        lambda topic: _records(bundle, topic),
        from_sources=from_sources,
    )
    if as_json:
        for fact in verification_facts(found):
            click.echo(json.dumps(fact, ensure_ascii=False, sort_keys=True))
    else:
        click.echo(verification_text(found), nl=False)
    return not found.differences


def _show(
    bundle: Bundle,
    names: Sequence[str],
    wanted: Wanted,
    schema: SchemaText,
    *,
    as_json: bool,
    pause: bool,
) -> None:
    stepper = Stepper(bundle.pipeline, wanted)
    shown = 0
    for step in stepper.steps(_merged(bundle, names)):
        if as_json:
            click.echo(json.dumps(step_facts(step), ensure_ascii=False, sort_keys=True))
        else:
            click.echo(("\n" if shown else "") + step_text(step, schema), nl=False)
        shown += 1
        if pause and click.prompt("", "", prompt_suffix="Enter goes on, q ends> ") == "q":
            return
    known = ", ".join(sorted(stepper.targets)) or "none"
    click.echo(
        f"Steps shown: {shown}; records of the schema-log read: {stepper.folded}; targets: {known}",
        err=True,
    )
