"""An attempt's table beside the target: it is filled, and then copied into the target.

Theory of operation of the copying. When all rows of a snapshot are in the attempt's table, and no
schema change of the shard came between, they are copied in pieces, each in one transaction. It
checks the writer epoch, copies the rows behind the last copied one, and notes how far it came. So a
crash loses no piece and repeats none, and no transaction is as large as the table. The shard's
stream waits until all pieces are there.

The copy is by SQL: no value leaves the server. Columns of the attempt's table are called by their
place in the shard's table, so it does not matter if the target has renamed its own meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.mysql_text import string_literal
from shardmerge.schemas.model.names import ShardId, TargetTable, quote_identifier
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.spark_sink.loading.load_state import Load
from shardmerge.spark_sink.planning.chunk_orders import ChunkResult
from shardmerge.spark_sink.process.failpoints import reach
from shardmerge.spark_sink.rows.folding.keyless import KeylessBatch
from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.rows.values.constant_values import ConstantValue
from shardmerge.spark_sink.sources.chunk_task import ChunkTask
from shardmerge.spark_sink.targets.mysql.lines.encoders import literals
from shardmerge.spark_sink.targets.mysql.server_errors import NO_TABLE
from shardmerge.spark_sink.targets.mysql.session import MySqlSession
from shardmerge.spark_sink.targets.mysql.stage_store import ROW, StageStore

from .bulk import replaces, write_keyless
from .chunk_writer import ChunkWriter
from .connection import TaskConnection


class StageWriter(ChunkWriter):
    """See ``Stage``; on a connection that its process keeps."""

    def __init__(self, connection: TaskConnection) -> None:
        super().__init__(connection)
        config = connection.config
        self._stages = StageStore(connection.session, config.control_database, config.pipeline)
        self._name = ""

    def begin(self, task: ChunkTask) -> bool:
        """See ``Stage``."""
        session, shard = self._connection.session, task.load.shard
        name = self._name = self._stages.new_name(shard)
        with session.transaction():
            self._connection.control.fence(task.writer_epoch, task.load.target)
            if not self._is_wanted(task):
                return False
            self._stages.register(task.load, name)
            others = self._stages.others(shard, name)
        # Whoever goes on late from here leaves the tables of attempts that have begun meanwhile.
        self._stages.drop(others)
        kinds = column_types(session, task.load.target)
        self._stages.make(name, [(staged, kinds[target]) for staged, target in task.staged])
        return True

    def add(self, task: ChunkTask, batch: Batch) -> bool:
        """See ``Stage``."""
        table = TargetTable(self._connection.config.control_database, self._name)
        try:
            for block in batch.upserts:
                write_keyless(self._connection.session, table, KeylessBatch(None, (), (), block))
        except TargetError as error:
            # The next attempt drops the table when it begins.
            if error.number != NO_TABLE or self._is_wanted(task):
                raise
            return False
        reach("rows-staged")
        if self._is_wanted(task):
            return True
        self._stages.drop([self._name])
        return False

    def _is_wanted(self, task: ChunkTask) -> bool:
        return self._store.is_given_out(task.load, task.attempt)

    def finish(self, task: ChunkTask, result: ChunkResult) -> bool:
        """See ``Stage``."""

        def is_current() -> bool:
            current = self._stages.current(task.load)
            return current is not None and current[0] == self._name

        done = self.commit(task, result, lambda: None, is_current)
        if not done:
            # The next attempt did not find the table if it was made after that one had begun.
            self._stages.drop([self._name])
        return done


def column_types(session: MySqlSession, table: TargetTable) -> dict[str, str]:
    """The types of a table's columns, as SQL."""
    found = {}
    for name, kind, charset, collation in session.query(
        "SELECT COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME"
        " FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
        (table.database, table.table),
    ):
        text = f" CHARACTER SET {charset} COLLATE {collation}" if charset else ""
        found[str(name)] = f"{kind}{text}"
    return found


def copy_rows(
    task: ChunkTask,
    place: SourcePosition,
    connection: TaskConnection,
    is_stopped: Callable[[], bool],
) -> bool:
    """Copy the rows of a snapshot into the target, piece by piece.

    Args:
        task: The load's chunk, which is done.
        place: The position of the snapshot.
        connection: Of this process.
        is_stopped: Asked before each piece: whether the others are left for later.

    Returns:
        Whether all rows are in the target.

    Raises:
        WriterReplaced: Another writer took over.
        TargetError: The target refuses a row, or cannot be written now (``retryable``).
    """
    session, config, load = connection.session, connection.config, task.load
    stages = StageStore(session, config.control_database, config.pipeline)
    while not is_stopped():
        with session.transaction():
            connection.control.fence(task.writer_epoch, load.target)
            current = stages.current(load)
            if current is None:
                raise _rows_are_gone(load)
            stage, copied_to = stages.table(current[0]), current[1]
            end = _end_of_piece(session, load, stage, copied_to, connection.round_records)
            if end is None:
                return True
            copying = Copying(task, place, stage, (copied_to, end))
            shape = connection.shape(load.target)
            replace = bool(task.key) and replaces(shape, task.target_key)
            for sql in copying.statements(replace=replace, is_mariadb=session.is_mariadb):
                session.execute_strictly(sql)
            stages.advance(load, end)
            reach("snapshot-copied")
    return False


def _end_of_piece(
    session: MySqlSession, load: Load, stage: str, copied_to: int, most: int
) -> int | None:
    """The number of the last row of the next piece; None when all rows are copied."""
    try:
        ((end,),) = session.query(
            f"SELECT MAX({ROW}) FROM (SELECT {ROW} FROM {stage} WHERE {ROW} > {copied_to}"
            f" ORDER BY {ROW} LIMIT {most}) AS piece"
        )
    except TargetError as error:
        if error.number != NO_TABLE:
            raise
        raise _rows_are_gone(load) from error
    return None if end is None else int(end)


def _rows_are_gone(load: Load) -> TargetError:
    return TargetError(
        f"the rows of the snapshot of {load.shard} are not beside the target any more",
        hint="let Debezium read the shard, see SM-1616",
        code="SM-1627",
    )


class Copying:
    """The SQL that copies a piece. Pure.

    Args:
        task: The load's chunk.
        place: The position of the snapshot.
        stage: The quoted name of the attempt's table.
        piece: The number of the last row before the piece, and of its last row.
    """

    def __init__(
        self, task: ChunkTask, place: SourcePosition, stage: str, piece: tuple[int, int]
    ) -> None:
        self._task, self._place, self._stage, self._piece = task, place, stage, piece

    def statements(self, *, replace: bool, is_mariadb: bool) -> Iterator[str]:
        """The statements, in order.

        Args:
            replace: Whether REPLACE touches no rows but those with the same key (``replaces``).
            is_mariadb: Whether the target is MariaDB.
        """
        task, (after, to) = self._task, self._piece
        values = dict(self._values(is_mariadb=is_mariadb))
        rows = f"FROM {self._stage} AS s WHERE s.{ROW} > {after} AND s.{ROW} <= {to}"
        table = task.load.target.sql
        if task.key and not replace:
            # With an alias of the table the server asks for a current database.
            same = " AND ".join(
                f"{table}.{quote_identifier(k)} = {values[k]}" for k in task.target_key
            )
            yield (
                f"DELETE {table} FROM {table} INNER JOIN {self._stage} AS s ON {same}"
                f" WHERE s.{ROW} > {after} AND s.{ROW} <= {to}"
            )
        names = ", ".join(map(quote_identifier, values))
        verb = "REPLACE" if replace else "INSERT"
        yield f"{verb} INTO {table} ({names}) SELECT {', '.join(values.values())} {rows}"

    def _values(self, *, is_mariadb: bool) -> Iterator[tuple[str, str]]:
        """The target's columns, each with the SQL of its values."""
        task = self._task
        for staged, target in task.staged:
            yield target, f"s.{quote_identifier(staged)}"
        for name, constant in task.constants:
            yield name, _literal(constant, is_mariadb=is_mariadb)
        if task.position:
            before = string_literal(f"{place_before(task.load.shard, self._place)}:")
            yield task.position, f"CONCAT({before}, s.{ROW})"


def _literal(constant: ConstantValue, *, is_mariadb: bool) -> str:
    return next(iter(literals(constant.form, [constant.value], is_mariadb=is_mariadb)))


def place_before(shard: ShardId, place: SourcePosition) -> str:
    """What the places of all rows of a snapshot begin with; see ``keyless.place_of``."""
    return f"{shard.source}/{place} {shard.database}.{shard.table}"


def forget_stages(loads: Iterable[Load], connection: TaskConnection) -> None:
    """Drop the tables of loads that are complete."""
    config = connection.config
    stages = StageStore(connection.session, config.control_database, config.pipeline)
    for load in loads:
        stages.forget(load)
