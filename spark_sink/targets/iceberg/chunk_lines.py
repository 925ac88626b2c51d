"""Reads a chunk of a first load, and hands on lines: in a Spark worker, or in the driver.

As the tasks of batches (``fold``) it writes nothing. But a chunk that is read twice shows the table
at two moments. So its lines, and the head that tells their moment, stay together: see ``loads``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from shardmerge.schemas.model.errors import ContractError, ShardMergeError
from shardmerge.schemas.pipeline.settings import Source
from shardmerge.spark_sink.planning.chunk_orders import ChunkFailure, ChunkOrder, ChunkResult
from shardmerge.spark_sink.sources.chunk_task import ChunkSource, chunk_task, read_chunk
from shardmerge.spark_sink.sources.idle_readers import idle_reader
from shardmerge.spark_sink.targets.iceberg.texts.encoders import Unwritable
from shardmerge.spark_sink.targets.iceberg.texts.lines import Columns, lines_of

from .heads import head_of


@dataclass(frozen=True, slots=True)
class ReadChunk:
    """The outcome of a chunk's task.

    Attributes:
        result: The chunk's result once its lines are committed.
        key: The table's columns that are the key of the lines.
        count: Number of lines.
    """

    result: ChunkResult
    key: tuple[str, ...]
    count: int


def chunk_lines(orders: Iterable[ChunkOrder], source: Source, columns: Columns) -> Iterator[str]:
    """The lines of each chunk, then a head with its outcome: the function for ``mapPartitions``.

    Args:
        orders: Chunks of one source.
        source: Of their shards.
        columns: Of the target's table.
    """
    for order in orders:
        try:
            with idle_reader(source) as reader:
                read, lines = lines_of_chunk(order, reader, columns)
        except Unwritable as error:
            yield head_of(_failure(order, error.reason, error.hint, error.code))
        except ShardMergeError as error:
            final = isinstance(error, ContractError)
            yield head_of(_failure(order, error.message, error.hint, error.code, final=final))
        else:
            yield from lines
            yield head_of(read)


def lines_of_chunk(
    order: ChunkOrder, source: ChunkSource, columns: Columns
) -> tuple[ReadChunk, list[str]]:
    """The outcome and the lines of a chunk.

    Raises:
        Unwritable: A value does not fit its column.
        UnsupportedDDL: No row of the shard can be written.
        UnfitValue: A value is not one of its column's type.
        StackError: The source does not answer.
    """
    task = chunk_task(order)
    result, rows = read_chunk(task, source)
    batch = task.rows.batch(rows)
    lines = [] if batch is None else list(lines_of(0, 0, batch, columns))
    return ReadChunk(result, task.rows.key, len(lines)), lines


def _failure(
    order: ChunkOrder, message: str, hint: str, code: str, *, final: bool = False
) -> ChunkFailure:
    return ChunkFailure(order.load.shard, order.chunk.number, message, hint, final, code)
