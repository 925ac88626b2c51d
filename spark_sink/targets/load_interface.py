"""What the sink asks of a target for the first loads of shards."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline.settings import Source
from shardmerge.schemas.records.decisions import TargetStatement
from shardmerge.spark_sink.loading.load_state import Load
from shardmerge.spark_sink.planning.chunk_orders import ChunkFailure, ChunkOrder, ChunkResult


class Loads(Protocol):
    """The first loads of a pipeline's shards.

    Any thread may call ``run``, ``clear``, ``copy`` and ``forget_staged``; the others are the
    driver's.
    """

    @property
    def chunk_rows(self) -> int:
        """How many rows a chunk has at a source without limits; each chunk is one transaction."""
        ...

    def prepare(self) -> None:
        """Make the tables for the state where they are missing; raises ``TargetError``."""
        ...

    def loads(self) -> Sequence[Load]:
        """All loads, those that are complete included; by shard and version.

        Raises:
            TargetError: The target does not answer (``retryable``).
        """
        ...

    def keep(self, epoch: int, steps: Sequence[tuple[Load | None, Load]]) -> None:
        """Store steps of loads in one transaction.

        Args:
            epoch: Of this writer.
            steps: Each load as it was stored, None for a new one, and as it is now.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target cannot be written now (``retryable``).
        """
        ...

    def has_other_unique_key(self, target: TargetTable) -> bool:
        """Whether a table has a unique key besides its primary key.

        Raises:
            TargetError: The target does not answer (``retryable``).
        """
        ...

    def run(self, order: ChunkOrder, source: Source, *, small: bool) -> ChunkResult | ChunkFailure:
        """Read a chunk and write it, in one transaction with the mark that it is done.

        The rows of a snapshot are only brought beside the target's table.

        Args:
            order: The chunk.
            source: Where its shard is.
            small: Whether it is not worth a Spark job.
        """
        ...

    def clear(self, epoch: int, target: TargetTable, statement: TargetStatement) -> None:
        """Delete the rows of a shard, before its snapshot is copied (``Load.clears``).

        Args:
            epoch: Of this writer.
            target: Where the shard's rows go.
            statement: Deletes them; it is repeated for a part of the rows at a time.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target refuses it, or cannot execute it now (``retryable``).
        """
        ...

    def copy(self, order: ChunkOrder) -> ChunkFailure | None:
        """Copy a snapshot's rows into the target; None when all of them are there.

        It ends early when ``stop`` is called.

        Args:
            order: For the chunk that is the whole snapshot, and is done.
        """
        ...

    def staged(self) -> Collection[ShardId]:
        """The shards that may have rows beside the target; raises ``TargetError``."""
        ...

    def forget_staged(self, loads: Collection[Load]) -> None:
        """Drop the rows beside the target of loads that are complete; raises ``TargetError``."""
        ...

    def stop(self) -> None:
        """End what would take long: snapshots that are being read, or copied into the target."""
        ...
