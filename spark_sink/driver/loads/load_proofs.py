"""Waits until sources have committed their binlogs; proves that no schema change was missed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial

from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.settings import Source
from shardmerge.spark_sink.barrier.barrier import Barrier
from shardmerge.spark_sink.kafka.intake import Intake
from shardmerge.spark_sink.loading.load_rules import proves
from shardmerge.spark_sink.loading.load_state import Load

from .load_book import LoadBook
from .load_jobs import LoadJobs
from .load_threads import LoadThreads


@dataclass(frozen=True, slots=True)
class _Proof:
    """A mark that came through Kafka, with version and base of each load that it is for."""

    barrier: Barrier
    known_to: SourcePosition
    bases: Mapping[ShardId, tuple[int, int]]


class LoadProofs:
    """Writes marks into the sources' signal tables: for each source one of each kind at a time.

    One mark serves all loads of its source that wait for it when it is written.

    Args:
        sources: Name → source.
        jobs, threads: Write the marks, and wait for them.
        intake: Tells whether all schema changes before a mark are decided.
        book: The loads.
    """

    def __init__(
        self,
        sources: Mapping[str, Source],
        jobs: LoadJobs,
        threads: LoadThreads,
        intake: Intake,
        book: LoadBook,
    ) -> None:
        self._sources, self._jobs, self._threads = sources, jobs, threads
        self._intake, self._book = intake, book
        self._committed: dict[ShardId, int] = {}
        self._committing: set[str] = set()
        self._proving: set[str] = set()
        self._proofs: dict[str, _Proof] = {}

    def has_base(self, load: Load) -> bool:
        """Whether the shard's source has committed everything up to the load's base."""
        return self._committed.get(load.shard) == load.base

    def commit(self, shards: Collection[ShardId]) -> None:
        """Begin to wait until the sources have committed everything up to these loads' bases."""
        waiting: dict[str, dict[ShardId, int]] = {}
        for name in shards:
            load = self._book.latest[name]
            if not self.has_base(load):
                waiting.setdefault(name.source, {})[name] = load.base
        for source, bases in waiting.items():
            if source not in self._committing and not self._book.rests(source):
                self._committing.add(source)
                self._threads.begin(
                    partial(self._jobs.commit_seen, self._sources[source]),
                    partial(self._has_committed, source, bases),
                    partial(self._commit_failed, source),
                )

    def _has_committed(self, source: str, bases: Mapping[ShardId, int], _: None) -> None:
        self._committing.discard(source)
        self._committed.update(bases)
        self._book.goes_on(source)

    def _commit_failed(self, source: str, error: Exception) -> None:
        self._committing.discard(source)
        self._book.failed(source, error)

    def seek_proof(self) -> None:
        """Write marks for the loads whose chunks are all done, and for unsettled shards."""
        waiting: dict[str, dict[ShardId, tuple[int, int]]] = {}
        for name in (*self._book.active, *self._book.unsettled):
            load = self._book.latest[name]
            if name in self._book.unsettled or (load.is_read and not load.is_proven):
                waiting.setdefault(name.source, {})[name] = (load.version, load.base)
        for source, bases in waiting.items():
            if source not in self._proving and not self._book.rests(source):
                self._proving.add(source)
                self._threads.begin(
                    partial(self._jobs.prove, self._sources[source]),
                    partial(self._has_come, source, bases),
                    partial(self._proof_failed, source),
                )

    def _has_come(
        self, source: str, bases: Mapping[ShardId, tuple[int, int]], end: SourcePosition
    ) -> None:
        try:
            self._proofs[source] = _Proof(self._intake.questions.mark_seen(source), end, bases)
        except ShardMergeError:
            self._proving.discard(source)
            raise
        self._book.goes_on(source)

    def _proof_failed(self, source: str, error: Exception) -> None:
        self._proving.discard(source)
        self._book.failed(source, error)

    def prove(self) -> bool:
        """Complete loads for which no schema change came while they were read.

        Unsettled shards are settled: what their chunks include is in Kafka.

        Returns:
            Whether a load was completed, or a shard settled.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target cannot be written now (``retryable``).
        """
        steps, settled = [], []
        for source, proof in list(self._proofs.items()):
            if not self._intake.is_settled(proof.barrier):
                continue
            del self._proofs[source]
            self._proving.discard(source)
            for name, identity in proof.bases.items():
                load = self._book.latest[name]
                if (load.version, load.base) != identity:
                    continue
                if name in self._book.unsettled:
                    settled.append(name)
                elif not load.is_complete and proves(self._book.gates(load), load, proof.known_to):
                    steps.append((load, load.proven()))
        self._book.keep(steps)
        self._book.settle(settled)
        return bool(steps or settled)
