"""Copies the rows of snapshots into the target, and drops the tables that held them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.names import ShardId
from shardmerge.spark_sink.loading.load_state import Load, LoadKind
from shardmerge.spark_sink.planning.chunk_orders import ChunkFailure, chunk_order, clearing, unfit
from shardmerge.spark_sink.planning.progress import Trouble
from shardmerge.spark_sink.planning.sink_state import SinkState
from shardmerge.spark_sink.targets.load_interface import Loads

from .load_book import LoadBook
from .load_threads import LoadThreads

log = logger(__name__)


class SnapshotCopies:
    """The end of loads that are read as of one position.

    Args:
        target: Has the rows of snapshots beside its tables.
        threads: Run the copies.
        book: The loads.
        epoch: The writer epoch.
    """

    def __init__(self, target: Loads, threads: LoadThreads, book: LoadBook, epoch: int) -> None:
        self._target, self._threads, self._book, self._epoch = target, threads, book, epoch
        self._copying: set[ShardId] = set()
        self._staged: set[ShardId] = set()

    def load(self) -> None:
        """Find the shards whose rows may be beside the target; raises ``TargetError``."""
        self._staged = set(self._target.staged())

    def begin(self, may_write: Mapping[ShardId, Load], state: SinkState) -> None:
        """Begin to copy the snapshots that are read and proven.

        Args:
            may_write: Loads whose target may be written now.
            state: The state from which the round's plan was made.
        """
        for name, load in may_write.items():
            if load.kind is not LoadKind.SNAPSHOT:
                continue
            if load.running:
                self._staged.add(name)
            if not load.is_proven or name in self._copying:
                continue
            self._staged.add(name)
            if load.clears:
                self._clear(load, state)
                continue
            self._copying.add(name)
            order = chunk_order(self._book.decided(load), load, 0, state, 0)
            self._threads.begin(
                partial(self._target.copy, order),
                partial(self._copied, name),
                partial(self._failed, name),
            )

    def _clear(self, load: Load, state: SinkState) -> None:
        """Begin to delete the rows that chunks and the stream have brought before the snapshot.

        Until the snapshot is copied the shard's stream stands, so no other row of it comes. A crash
        before ``_cleared`` deletes again, and nothing of the snapshot is there yet.
        """
        name, target = load.shard, self._book.decided(load)
        statement = clearing(target, load, state)
        if statement is None:
            if trouble := unfit(target, load, state):
                self._book.trouble(name, trouble)
            return
        self._copying.add(name)
        self._threads.begin(
            partial(self._target.clear, self._epoch, load.target, statement),
            partial(self._cleared, name),
            partial(self._failed, name),
        )

    def _cleared(self, name: ShardId, _: None) -> None:
        self._copying.discard(name)
        load = self._book.latest[name]
        self._book.keep([(load, load.cleared())])
        log.info("load_cleared", shard=name, target=load.target)

    def _copied(self, name: ShardId, failure: ChunkFailure | None) -> None:
        self._copying.discard(name)
        if failure is not None:
            if failure.final:
                raise ContractError(failure.message, hint=failure.hint, code=failure.code)
            self._book.rest(name, Trouble(failure.message, failure.hint, failure.code))
            return
        load = self._book.latest[name]
        self._book.keep([(load, load.copied())])

    def _failed(self, name: ShardId, error: Exception) -> None:
        self._copying.discard(name)
        self._book.failed(name, error)

    def tidy(self) -> None:
        """Begin to drop the tables of loads that are complete."""
        over = [
            load
            for name in self._staged
            if (load := self._book.latest.get(name)) is not None
            and load.is_complete
            and not self._book.rests(name)
        ]
        if not over:
            return
        self._staged.difference_update(load.shard for load in over)
        self._threads.begin(
            partial(self._target.forget_staged, over),
            lambda _: None,
            partial(self._not_forgotten, over),
        )

    def _not_forgotten(self, loads: list[Load], error: Exception) -> None:
        """The tables do no harm; it is tried again."""
        for load in loads:
            self._staged.add(load.shard)
            self._book.failed(load.shard, error)
