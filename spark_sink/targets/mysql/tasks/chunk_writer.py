"""The target's transaction that ends a chunk: its rows, and the mark that it is done."""

from __future__ import annotations

import time
from collections.abc import Callable

from shardmerge.schemas.model.errors import TargetError
from shardmerge.spark_sink.planning.chunk_orders import ChunkResult
from shardmerge.spark_sink.process.failpoints import reach
from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.sources.chunk_task import ChunkTask
from shardmerge.spark_sink.targets.mysql.load_store import LoadStore
from shardmerge.spark_sink.targets.mysql.server_errors import CONFLICTS, LOST

from .bulk import lines_for
from .connection import TaskConnection

_ATTEMPTS = 5


class ChunkWriter:
    """See ``ChunkTarget``; on a connection that its process keeps."""

    def __init__(self, connection: TaskConnection) -> None:
        self._connection = connection
        session = connection.session
        self.lines_of = lines_for(session) if session.can_load else None
        config = connection.config
        self._store = LoadStore(session, config.control_database, config.pipeline)

    def write(self, task: ChunkTask, result: ChunkResult, batch: Batch | None) -> bool:
        """See ``ChunkTarget``. Repeated after a conflict, or when the connection was lost."""
        connection = self._connection
        reach("chunk-read")

        def put() -> None:
            connection.write(task.load.target, [] if batch is None else [batch])
            reach("chunk-written")

        done = self.commit(task, result, put)
        if done:
            reach("chunk-committed")
        return done

    def commit(
        self,
        task: ChunkTask,
        result: ChunkResult,
        put: Callable[[], None],
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> bool:
        """Mark a chunk as done, in one transaction with its rows.

        Repeated after a conflict, or when the connection was lost.

        Args:
            task: The chunk.
            result: What was read.
            put: Writes the rows.
            is_wanted: Asked in the transaction: whether this attempt still counts.

        Returns:
            False, with nothing written, when the chunk is not wanted any more.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target refuses a row, or cannot be written now (``retryable``).
        """
        assert result.read_before is not None
        connection, uncertain = self._connection, False
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                with connection.session.transaction():
                    connection.control.fence(task.writer_epoch, task.load.target)
                    if not is_wanted():
                        return False
                    if uncertain and self._store.is_done(task.load, task.number, task.base):
                        return True
                    if not self._store.finish(
                        task.load,
                        task.number,
                        task.base,
                        rows=result.rows,
                        size=result.size,
                        read_before=result.read_before,
                    ):
                        return False
                    put()
            except TargetError as error:
                if attempt == _ATTEMPTS or error.number not in LOST | CONFLICTS:
                    raise
                # The COMMIT may have been lost, or only its acknowledgement.
                uncertain |= error.number in LOST
                time.sleep(0.05 * attempt)
            else:
                return True
        raise AssertionError  # the last attempt returns or raises
