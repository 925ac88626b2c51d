"""``shardmerge load``: how far the first loads by the sink are, and one shard once more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import click

from shardmerge.cli.command import give, print_given
from shardmerge.cli.endings import ExitCode, telling_errors
from shardmerge.cli.options import ShowGroup, json_option, pipeline_option, wait_option
from shardmerge.cli.parameters import Shard, by_option, login_name, read_pipeline
from shardmerge.cli.screen import print_json, progress_of
from shardmerge.schemas.model.errors import StackError
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

from .again import command_for
from .load_shapes import LoadProgress, ShownLoad
from .stored_loads import ReadLoads, stored_loads

_LOOK_S = 1.0


@click.group(cls=ShowGroup)
def load() -> None:
    """Show how far the loads of sources with `snapshot = "spark"` are; load a shard again.

    `shardmerge load --pipeline FILE` is short for `shardmerge load show --pipeline FILE`.
    """


@load.command()
@pipeline_option
@click.option("--watch", is_flag=True, help="Show rate and time left until all loads are complete.")
@json_option
def show(path: Path, watch: bool, as_json: bool) -> None:
    """Show how far the first loads of sources with `snapshot = "spark"` are.

    The target says how many rows are loaded; an Iceberg target is read by a Spark that is started
    for it. The sources estimate how many rows there are, if they
    answer. `shardmerge command pause` stops the load of a shard, and `resume` lets it go on.

    Ends with 0; with 2 when the call or the pipeline file is wrong; with 3 when the target does not
    answer.
    """
    with telling_errors():
        pipeline = read_pipeline(path)
        with stored_loads(pipeline, path) as read:
            _show(pipeline, read, watch=watch, as_json=as_json)


def _show(pipeline: Pipeline, read: ReadLoads, *, watch: bool, as_json: bool) -> None:
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


@load.command()
@click.argument("shard", type=Shard(), metavar="SHARD")
@pipeline_option
@by_option("the record keeps it")
@wait_option
@json_option
def again(shard: ShardId, path: Path, *, by: str, wait: float, as_json: bool) -> None:
    """Take the rows of SHARD (SOURCE/DATABASE.TABLE) out of the target, and load them again.

    The sink deletes the shard's rows from the target. Then it reads the shard's table as for a
    first load, while the shard's changes wait in Kafka. Rows of other shards are not touched. If
    the target cannot tell the shard's rows from others, the command is refused: `shardmerge
    rebuild` loads the whole target anew. The command is recorded and can be replayed, as every
    command is. `shardmerge load --watch` shows how far the load is.

    Ends with 0 when the load is ordered; with 1 when the command is refused, or is not answered in
    time; with 2 when the call or the pipeline file is wrong; with 3 when Kafka does not answer.
    """
    with telling_errors():
        pipeline = read_pipeline(path)
        said = command_for(pipeline, shard, by=by.strip() or login_name())
        given = give(pipeline, said, wait)
        is_ordered = print_given(given, said, wait, as_json=as_json)
    raise SystemExit(ExitCode.GOOD if is_ordered else ExitCode.FOUND)


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
