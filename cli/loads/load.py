"""``shardmerge load``: how far the first loads by the sink are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import click

from shardmerge.cli.endings import telling_errors
from shardmerge.cli.options import json_option, pipeline_option
from shardmerge.cli.parameters import read_pipeline
from shardmerge.cli.screen import print_json, progress_of
from shardmerge.schemas.model.errors import ConfigError, StackError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.loading.load_estimate import (
    LoadedRows,
    LoadEstimate,
    estimate,
    rows_of,
    total_of,
)
from shardmerge.spark_sink.loading.load_state import ChunkState, Load
from shardmerge.spark_sink.sources.table_reader import TableReader
from shardmerge.spark_sink.targets.mysql.load_store import LoadStore
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession

from .load_shapes import LoadProgress, ShownLoad

_LOOK_S = 1.0


@click.command()
@pipeline_option
@click.option("--watch", is_flag=True, help="Show rate and time left until all loads are complete.")
@json_option
def load(path: Path, watch: bool, as_json: bool) -> None:
    """Show how far the first loads of sources with `snapshot = "spark"` are.

    The target says how many rows are loaded. The sources estimate how many rows there are, if they
    answer. `shardmerge command pause` stops the load of a shard, and `resume` lets it go on.

    Ends with 0; with 2 when the call or the pipeline file is wrong; with 3 when the target does not
    answer.
    """
    with telling_errors():
        pipeline = read_pipeline(path)
        if pipeline.target.kind == "iceberg":
            raise ConfigError("an Iceberg target has no first loads", code="SM-5204")
        read = loads_of(pipeline)
        found = read()
        known = known_rows(pipeline, found)
        if as_json:
            for shape in shown(found, known):
                print_json(shape)
            for told in watched(read, known, found) if watch else ():
                print_json(LoadProgress(told.rows, told.total, told.rows_per_s, told.rest_s))
            return
        for line in lines(found, known):
            click.echo(line)
        if watch:
            with progress_of("rows") as progress:
                for told in watched(read, known, found):
                    click.echo(in_words(told))
                    progress(told.rows, told.total)


def loads_of(pipeline: Pipeline) -> Callable[[], Sequence[Load]]:
    """A function that reads each shard's latest load from the target; it raises ``TargetError``."""
    target = pipeline.target
    address = MySqlAddress.of(target)
    session = MySqlSession(address)
    store = LoadStore(session, target.control_database, pipeline.name)

    def read() -> Sequence[Load]:
        if not store.is_prepared():
            return ()
        return tuple({each.shard: each for each in store.loads()}.values())

    return read


def known_rows(pipeline: Pipeline, loads: Sequence[Load]) -> dict[ShardId, int]:
    """Shard → the server's estimate of its rows; without shards of sources that do not answer."""
    found: dict[ShardId, int] = {}
    for source in pipeline.sources:
        of_source = [each for each in loads if each.shard.source == source.name]
        reader = TableReader(source)
        try:
            for each in of_source:
                found[each.shard] = 0 if each.is_complete else reader.statistics(each.shard)[0]
        except StackError as error:
            click.echo(f"warning: {error}", err=True)
        finally:
            reader.close()
    return found


def shown(loads: Sequence[Load], known: Mapping[ShardId, int]) -> Iterator[ShownLoad]:
    """Each load, in the order of shards."""
    for each in sorted(loads, key=lambda one: one.shard):
        rows = rows_of(each)
        done = sum(chunk.state is ChunkState.DONE for chunk in each.chunks)
        yield ShownLoad(
            shard=str(each.shard),
            complete=each.is_complete,
            rows=rows,
            total=rows if each.is_complete else total_of(each, known.get(each.shard, 0)),
            chunks_done=done,
            chunks=len(each.chunks) if each.is_planned else None,
        )


def lines(loads: Sequence[Load], known: Mapping[ShardId, int]) -> Iterator[str]:
    """A line for each load, in the order of shards."""
    if not loads:
        yield "no shard is loaded by the sink"
    for each in shown(loads, known):
        if each.complete:
            yield f"{each.shard}: complete, {each.rows:,} rows"
            continue
        of = ", more to come" if each.chunks is None else f" of {each.chunks}"
        chunks = f"{each.chunks_done}{of}"
        yield f"{each.shard}: {each.rows:,} of about {each.total:,} rows; chunks: {chunks}"


def watched(
    read: Callable[[], Sequence[Load]],
    known: Mapping[ShardId, int],
    loads: Sequence[Load],
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[LoadEstimate]:
    """Estimates until all loads are complete.

    Args:
        read: Reads the loads.
        known: See ``known_rows``.
        loads: As they were read first.
        sleep: Waits for seconds.
        clock: Monotonic seconds.
    """
    history = [LoadedRows(clock(), sum(map(rows_of, loads)))]
    while any(not each.is_complete for each in loads):
        sleep(_LOOK_S)
        loads = read()
        history.append(LoadedRows(clock(), sum(map(rows_of, loads))))
        yield estimate([(one, known.get(one.shard, 0)) for one in loads], history, clock())


def in_words(told: LoadEstimate) -> str:
    """An estimate as a line."""
    rest = "" if told.rest_s is None else f", about {told.rest_s:,.0f} s are left"
    return (
        f"{told.rows:,} of about {told.total:,} rows ({told.share:.0%}), "
        f"{told.rows_per_s:,.0f} rows/s{rest}"
    )
