"""The target's transaction that ends a chunk: its rows, and the mark that it is done."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from shardmerge.schemas.model.errors import TargetError
from shardmerge.spark_sink.planning.chunk_orders import ChunkResult
from shardmerge.spark_sink.process.failpoints import reach
from shardmerge.spark_sink.rows.folding.line_maker import LineMaker
from shardmerge.spark_sink.rows.folding.row_batches import LINES_FROM_ROWS, Batch
from shardmerge.spark_sink.rows.values.forms import Form
from shardmerge.spark_sink.sources.chunk_task import ChunkTask, Pack
from shardmerge.spark_sink.sources.packed_rows import PackedRows
from shardmerge.spark_sink.targets.mysql.lines.encoders import (
    can_be_packed,
    has_other_dates,
    packed_lines,
)
from shardmerge.spark_sink.targets.mysql.load_store import LoadStore
from shardmerge.spark_sink.targets.mysql.server_errors import CONFLICTS, LOST

from .bulk import line_maker, load_statement, replaces
from .chunk_load import Lines
from .connection import TaskConnection

_ATTEMPTS = 5


class ChunkWriter:
    """See ``ChunkTarget``; on a connection that its process keeps.

    Attributes:
        maker: Of lines that this server loads; None if it loads none.
    """

    def __init__(self, connection: TaskConnection) -> None:
        self._connection = connection
        session = connection.session
        self.maker = line_maker(session) if session.can_load else None
        config = connection.config
        self._store = LoadStore(session, config.control_database, config.pipeline)

    def maker_for(self, task: ChunkTask) -> LineMaker | None:
        """See ``ChunkTarget``."""
        takes_loads = self._connection.shape(task.load.target).takes_loads
        return self.maker if takes_loads else None

    def pack(self, task: ChunkTask) -> Pack[Lines] | None:
        """See ``ChunkTarget``."""
        rows = task.rows
        if self.maker is None or rows.where or not all(c.target for c in rows.columns):
            return None
        if not self._may_replace(task):
            return None
        columns = zip(task.columns, rows.columns, strict=True)
        if not all(can_be_packed(column, own.reader.form) for column, own in columns):
            return None
        return partial(self._lines, task)

    def _may_replace(self, task: ChunkTask) -> bool:
        """Whether a load may replace the target's rows."""
        shape = self._connection.shape(task.load.target)
        return shape.takes_loads and replaces(shape, task.rows.key)

    def _lines(self, task: ChunkTask, packed: PackedRows) -> Lines | None:
        packed.check()
        # A server that warns may have left something out of a value.
        if packed.rows < LINES_FROM_ROWS or packed.warnings:
            return None
        if has_other_dates(packed, task.columns):
            return None
        assert self.maker is not None
        names = tuple(name for name, _ in task.rows.constants)
        forms = tuple(constant.form for _, constant in task.rows.constants)
        head = ""
        if names:
            values = [[constant.value] for _, constant in task.rows.constants]
            (line,) = self.maker.of_values(forms, values, [v == [None] for v in values])
            head = f"{line.decode()}\t"
        own = [column.reader.form for column in task.rows.columns]
        json_columns = 0 if self._connection.session.is_mariadb else own.count(Form.JSON)
        return Lines(
            (*names, *(column.target for column in task.rows.columns)),
            (*forms, *own),
            packed_lines(packed, head, json_columns=json_columns),
        )

    def write(self, task: ChunkTask, result: ChunkResult, batch: Batch | Lines | None) -> bool:
        """See ``ChunkTarget``. Repeated after a conflict, or when the connection was lost."""
        connection, target = self._connection, task.load.target
        reach("chunk-read")

        def put() -> None:
            if isinstance(batch, Lines):
                sql = load_statement(target, batch.names, batch.forms, replace=True)
                connection.session.load(sql, batch.data)
            elif batch is not None:
                connection.write(target, [batch])
            reach("chunk-written")

        def may_replace() -> bool:
            """The target's shape may have changed since the lines were made."""
            return not isinstance(batch, Lines) or self._may_replace(task)

        done = self.commit(task, result, put, may_replace)
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
                    if uncertain and self._store.is_done(task.load, task.attempt):
                        return True
                    if not self._store.finish(
                        task.load,
                        task.attempt,
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
