"""One chunk of a first load: read in a transaction of the source, written in one of the target.

For loads of the kind ``CHUNKS``. The rows are read as ``sources.chunk_task`` says. Then one
transaction of the target checks the writer epoch, marks the chunk as done, and writes the rows. If
the chunk is not wanted any more, nothing is written.

When the acknowledgement of a COMMIT is lost, the chunk may be done; the next attempt then finds
that it is not wanted. So the driver reads the state before it gives a refused chunk out again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from shardmerge.spark_sink.planning.chunk_orders import ChunkEnd, ChunkResult
from shardmerge.spark_sink.rows.folding.line_maker import LineMaker
from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.rows.values.forms import Form
from shardmerge.spark_sink.sources.chunk_task import ChunkSource, ChunkTask, Pack, read_chunk


@dataclass(frozen=True, slots=True)
class Lines:
    """The rows of a chunk, at least one, as LOAD DATA reads them.

    Attributes:
        names: Target columns; ``forms`` follows their order.
        data: The lines.
    """

    names: tuple[str, ...]
    forms: tuple[Form, ...]
    data: bytearray


class ChunkTarget(Protocol):
    """The target's transaction of a chunk."""

    def maker_for(self, task: ChunkTask) -> LineMaker | None:
        """What makes lines of a chunk's many rows; None if the target does not load them."""
        ...

    def pack(self, task: ChunkTask) -> Pack[Lines] | None:
        """What makes lines of a chunk's rows as they were sent; None if the target cannot."""
        ...

    def write(self, task: ChunkTask, result: ChunkResult, batch: Batch | Lines | None) -> bool:
        """Check the epoch, mark the chunk as done, and write its rows, in one transaction.

        Returns:
            False, with nothing written, when the chunk is not wanted any more.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target refuses a row, or cannot be written now (``retryable``).
        """
        ...


def load_chunk(task: ChunkTask, source: ChunkSource, target: ChunkTarget) -> ChunkResult:
    """Read a chunk and write it.

    Raises:
        StackError: The source does not answer, or refuses the chunk's transaction.
        UnfitValue: A value is not one of its column's type.
        TargetError: See ``ChunkTarget.write``.
    """
    result, rows = read_chunk(task, source, target.pack(task))
    if result.end is not ChunkEnd.DONE:
        return result
    batch = rows if isinstance(rows, Lines) else task.rows.batch(rows, target.maker_for(task))
    if not target.write(task, result, batch):
        return ChunkResult(result.shard, result.number, ChunkEnd.REFUSED)
    return result
