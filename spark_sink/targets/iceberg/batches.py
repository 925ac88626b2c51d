"""Applies batches to Iceberg tables: one MERGE and one commit per target.

Theory of operation, per target:

1. Read the table: its state must be of this writer or an earlier one, and its offsets must be
   where the tasks begin.
2. The tasks read their ranges and hand on lines (``fold``): in Spark's workers when there are
   many records, in this process otherwise. The lines stay in Spark's cache.
3. MERGE stages a snapshot on top of the current one. No reader sees it.
4. One commit makes it the current snapshot, and moves the offsets of every partition. The commit is
   refused if anybody has committed since the table was read. Then the state is read again, and the
   same snapshot is tried again as long as its parent is still the current snapshot.

A crash before step 4 leaves the table as it was before the batch; a crash after it, as it has to be
after the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from uuid import uuid4

from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import ContractError, ShardMergeError, TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.windows.window import Kept
from shardmerge.spark_sink.planning.ranges import (
    RangeResult,
    RangeTask,
    TaskFailure,
    by_reading,
    offsets_in,
)
from shardmerge.spark_sink.process.failpoints import reach
from shardmerge.spark_sink.process.python_workers import in_worker
from shardmerge.spark_sink.process.spark_session import SparkStart
from shardmerge.spark_sink.targets.iceberg.texts.decided import written_columns
from shardmerge.spark_sink.targets.iceberg.texts.lines import Columns
from shardmerge.spark_sink.targets.iceberg.texts.merge import (
    SOURCE,
    changes_sql,
    collisions_sql,
    merge_sql,
)

from .fold import FoldConfig, Folded, FoldTask, close_readers, fold_units
from .heads import MARK_OF_HEADS, line_rows, read_head
from .staging import Wanted, new_id, publish, stage
from .store import IcebergStore
from .tables import Moved, Uncertain, translated
from .turns import TableTurns

log = logger(__name__)
_SLICES_PER_CORE = 2


@dataclass(frozen=True, slots=True)
class _Lines:
    """A batch's lines in Spark's cache, under the name of a view."""

    view: str
    columns: Columns
    folded: Sequence[Folded]


class IcebergBatches:
    """Applies batches; see the module's text.

    Args:
        spark: Iceberg's catalog is configured in it.
        min_records: A batch with fewer records is read in this process.
        turns: Shared with others in this process that write to the same tables.
        stops_spark: Whether ``stop`` stops Spark; False if others use it too.
    """

    def __init__(
        self,
        spark: SparkStart,
        store: IcebergStore,
        config: FoldConfig,
        min_records: int,
        turns: TableTurns,
        *,
        stops_spark: bool = True,
    ) -> None:
        self._spark = spark
        self._store = store
        self._config = config
        self._min_records = min_records
        self._turns = turns
        self._stops_spark = stops_spark

    def start(self) -> None:
        """Begin to start Spark."""
        self._spark.begin()

    @property
    def orders_partitions(self) -> bool:
        """See ``Batches``. False: no other key is unique, and keys are compared by their bytes."""
        return False

    def bound(self, records: int) -> int:
        """All ``records``: also small batches need Spark, so none are applied before it runs."""
        return records

    def expect(self, starts: Mapping[Partition, int], seen: Mapping[Partition, Kept]) -> None:
        """See ``Batches``. Does nothing: a commit takes far longer than the fetch before it."""

    @property
    def read_windows(self) -> None:
        """See ``Batches``. None: each commit has the offsets of all shards anyway."""

    def run(
        self, tasks: Sequence[RangeTask], is_safe: Callable[[], bool]
    ) -> Iterator[RangeResult | TaskFailure]:
        """Apply ranges, target by target; see ``Batches``."""
        if not is_safe():
            return
        by_target: dict[TargetTable, list[RangeTask]] = {}
        for task in tasks:
            by_target.setdefault(task.stream.target, []).append(task)
        for target, of_target in by_target.items():
            try:
                yield from self._apply(target, of_target)
            except ShardMergeError as error:
                final = isinstance(error, ContractError)
                yield TaskFailure(
                    error.message, error.hint, final=final, target=target, code=error.code
                )
            except Moved:
                # Nothing is committed: the next step plans from the stored offsets.
                yield TaskFailure(
                    f"somebody else committed to {target} meanwhile", target=target, code="SM-3113"
                )
            except Uncertain:
                # The stored offsets will show whether it is committed; the next step reads them.
                yield TaskFailure(
                    f"a commit to {target} was not acknowledged", target=target, code="SM-3113"
                )

    def stop(self) -> None:
        """Close this process's consumer, and stop Spark if nobody else uses it."""
        close_readers()
        if self._stops_spark:
            self._spark.stop()

    def _apply(self, target: TargetTable, tasks: Sequence[RangeTask]) -> Iterator[RangeResult]:
        table = self._store.catalog.load(target)
        epoch = tasks[0].writer_epoch
        state = self._store.writable(table, epoch)
        state.advanced(map(_untouched, tasks))
        columns = written_columns(table.layout, state.decided)
        with self._lines(tasks, columns) as lines:
            by_key: dict[tuple[str, ...], list[Folded]] = {}
            for folded in lines.folded:
                by_key.setdefault(folded.key, []).append(folded)
            for key, of_key in by_key.items():
                others = len(by_key) > 1
                yield from self._merge(target, epoch, lines, key, of_key, others=others)

    @contextmanager
    def _lines(self, tasks: Sequence[RangeTask], columns: Columns) -> Iterator[_Lines]:
        """The lines of tasks, in Spark's cache while the context is open.

        Raises:
            ShardMergeError: A task failed.
        """
        session = self._spark.session()
        readings = by_reading(tasks)
        numbers = count()
        wanted = [[FoldTask(next(numbers), task, columns) for task in r] for r in readings]
        if offsets_in(tasks) < self._min_records:
            texts = list(fold_units(wanted, self._config))
            rdd = session.sparkContext.parallelize(texts, 1)
        else:
            slices = min(len(wanted), session.sparkContext.defaultParallelism * _SLICES_PER_CORE)
            spread = [unit for first in range(slices) for unit in wanted[first::slices]]
            rdd = session.sparkContext.parallelize(spread, slices).mapPartitions(
                partial(in_worker, partial(fold_units, config=self._config))
            )
        frame = line_rows(session, rdd).persist()
        view = f"shardmerge_{uuid4().hex}"
        try:
            with translated("reading rows"):
                heads = frame.where(f"startswith({SOURCE}, '{MARK_OF_HEADS}')").collect()
            frame.createOrReplaceTempView(view)
            found = [read_head(row[0]) for row in heads]
            for head in found:
                if isinstance(head, TaskFailure):
                    raise _raised(head)
            yield _Lines(view, columns, [head for head in found if isinstance(head, Folded)])
        finally:
            session.catalog.dropTempView(view)
            frame.unpersist()

    def _merge(
        self,
        target: TargetTable,
        epoch: int,
        lines: _Lines,
        key: tuple[str, ...],
        folded: Sequence[Folded],
        *,
        others: bool,
    ) -> list[RangeResult]:
        results = [f.result for f in folded]
        moved = [r for r in results if r.next_offset != r.start_offset]
        if moved:
            staged_as = new_id()
            reach("rows-read")
            with self._turns.of_batch(target):
                if any(f.count for f in folded):
                    self._stage(target, staged_as, lines, key, folded, others=others)
                    reach("rows-written")
                self._publish(target, epoch, moved, staged_as)
            reach("committed")
        return results

    def _stage(
        self,
        target: TargetTable,
        staged_as: str,
        lines: _Lines,
        key: tuple[str, ...],
        folded: Sequence[Folded],
        *,
        others: bool,
    ) -> None:
        session = self._spark.session()
        streams = {f.result.place.stream for f in folded if f.count}
        distinct = len(streams) > 1 or any(f.groups > 1 for f in folded)
        tasks = [f.number for f in folded] if others else None
        changes = changes_sql(lines.view, lines.columns, key, tasks, distinct=distinct)
        if len(streams) > 1:
            self._count_collisions(target, lines, key)
        name = self._store.catalog.sql_name(target)
        sql = merge_sql(name, lines.columns, key, changes)
        stage(session, staged_as, sql, f"merging into {target}")

    def _count_collisions(self, target: TargetTable, lines: _Lines, key: tuple[str, ...]) -> None:
        sql = collisions_sql(lines.view, lines.columns, key)
        with translated(f"counting keys of {target}"):
            count = self._spark.session().sql(sql).collect()[0][0]
        if count:
            log.error(
                "shards_collided",
                target=target,
                keys=count,
                hint="rows of several shards have one key: the last task's row is kept",
            )

    def _publish(
        self, target: TargetTable, epoch: int, moved: Sequence[RangeResult], staged_as: str
    ) -> None:
        """Make the staged snapshot the current one, and move the offsets, in one commit.

        Raises:
            Moved: The staged snapshot's parent is no longer the current snapshot.
            Uncertain: It is not known whether the commit took effect.
            WriterReplaced: Another writer took over or moved an offset.
        """

        def wanted(uncertain: bool) -> Wanted:
            table = self._store.catalog.load(target)
            state = self._store.state_of(table)
            if uncertain and state.epoch == epoch and state.stands_behind(moved):
                return True
            return table, self._store.properties(self._store.writable(table, epoch).advanced(moved))

        publish(staged_as, wanted)


def _untouched(task: RangeTask) -> RangeResult:
    start = task.stands_at
    return RangeResult(task.topic, task.partition, start, start, None, 0, 0, 0, part=task.part)


def _raised(failure: TaskFailure) -> ShardMergeError:
    if failure.final:
        return ContractError(failure.message, hint=failure.hint, code=failure.code)
    return TargetError(failure.message, retryable=True, hint=failure.hint, code=failure.code)
