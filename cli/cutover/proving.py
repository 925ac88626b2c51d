"""Compares a target for its cut-over: all rows, or only those that an earlier proof leaves open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import click

from shardmerge.cli.clients import topic_reader
from shardmerge.cli.validation.inputs.applied_offsets import control_offsets, reached
from shardmerge.cli.validation.inputs.server_rows import ServerRows
from shardmerge.cli.validation.inputs.topic_facts import TopicFacts
from shardmerge.cli.validation.report_shapes import ValidatedTarget
from shardmerge.cli.validation.saved_state import StateFile
from shardmerge.cli.validation.target_run import Limits, TargetRun
from shardmerge.cli.validation.whole_target import compare_target
from shardmerge.connectors.binlog.binlog_changes import BinlogEnd
from shardmerge.connectors.sources.row_changes import BinlogUnreadable, RowChanges
from shardmerge.schemas.ddl.changes import TableName
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.topics import RowTopics
from shardmerge.spark_sink.kafka.changed_rows import changed_keys
from shardmerge.spark_sink.validation.compared_table import ComparedTable
from shardmerge.spark_sink.validation.doubts import Key
from shardmerge.spark_sink.validation.proofs import (
    Compared,
    Place,
    Proof,
    proof_of,
    reason_to_compare_all,
    reason_to_prove_nothing,
)
from shardmerge.spark_sink.validation.record_keys import NamesNoKey
from shardmerge.spark_sink.validation.target_changes import TargetKeys, changed_in_target

from .foreseen import Proved

_FEW_ROWS = 1_000
"""So few changed rows are compared within a second."""
_ROUNDS = 5


@dataclass
class _Basis:
    """What is known before rows are compared.

    Attributes:
        offsets: What the sink has stored.
        what: What is compared.
        keys: The rows to compare; None for all.
        why: Why all of them.
        end: Where the binlog of the target's server ended; None if it does not tell the rows.
    """

    offsets: dict[Place, int]
    what: Compared
    end: BinlogEnd | None = None
    keys: Sequence[Key] | None = None
    why: str = ""


class Proving:
    """Comparisons of one target.

    Args:
        pipeline: Of the target.
        target: The target.
        facts: What the topics say.
        limits: Of comparisons.
        pass_commits: Waits until everything is committed that the target's binlog has.
        bounded: Whether the changed rows are enough, although nothing tells which rows of the
            target somebody has changed by hand.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        target: TargetTable,
        facts: TopicFacts,
        limits: Limits,
        *,
        pass_commits: Callable[[], None],
        bounded: bool = False,
    ) -> None:
        self._pipeline, self._target = pipeline, target
        self._facts, self._limits = facts, limits
        self._pass_commits, self._bounded = pass_commits, bounded
        self._changes = RowChanges(pipeline.target)
        self._unreadable = ""

    def under_traffic(self, proof: Proof) -> tuple[ValidatedTarget, Proved]:
        """Compare until few rows are left that changed meanwhile.

        Args:
            proof: Of an earlier comparison.

        Returns:
            The first report with a difference, or the last one; and what is proved now.

        Raises:
            ShardMergeError: A server, Kafka or Kafka Connect does not answer.
        """
        report, proved = self.compare(proof)
        before = report.rows
        for _ in range(_ROUNDS):
            if not report.is_clean or not proved.proof:
                break
            if not (self._bounded or proved.proof.target_end):
                break  # at the end all rows are compared anyway
            report, proved = self.compare(proved.proof)
            if report.rows < _FEW_ROWS or report.rows >= before:
                break
            before = report.rows
        return report, proved

    def compare(self, proof: Proof, *, still: bool = False) -> tuple[ValidatedTarget, Proved]:
        """Compare the rows that a proof leaves open; all rows if there is no usable proof.

        Args:
            proof: Of an earlier comparison.
            still: Whether nobody writes to the shards, and the target has applied everything.

        Raises:
            ShardMergeError: A server, Kafka or Kafka Connect does not answer.
        """
        servers = ServerRows(self._pipeline)
        try:
            return self._compare(servers, proof, still=still)
        finally:
            servers.close()

    def _compare(
        self, servers: ServerRows, proof: Proof, *, still: bool
    ) -> tuple[ValidatedTarget, Proved]:
        basis: _Basis | None = None

        def before(run: TargetRun) -> Sequence[Key] | None:
            nonlocal basis
            basis = self._basis(run, proof, still=still)
            table = run.validation.table
            if basis.keys is not None and still and table.other_keys:
                target, *shards = servers.row_counts((table.side, *table.shards))
                if target != sum(shards):
                    basis.keys, basis.why = None, f"{target} rows in the target, not {sum(shards)}"
            if basis.why and proof:
                click.echo(f"{self._target}: all rows are compared: {basis.why}", err=True)
            return basis.keys

        run, seconds = compare_target(
            self._pipeline,
            self._target,
            self._facts,
            servers,
            limits=self._limits,
            state=StateFile(None, self._pipeline.name, ()),
            before=before,
        )
        report = run.report(seconds)
        table = run.validation.table
        assert basis is not None
        what, unprovable = self._what(run), reason_to_prove_nothing(table)
        if not report.is_clean or basis.what != what or unprovable:
            return report, Proved(report.rows, unprovable=unprovable)
        found = proof_of(basis.offsets, what, basis.end)
        return report, Proved(report.rows, found, changed_only=basis.keys is not None)

    def _basis(self, run: TargetRun, proof: Proof, *, still: bool) -> _Basis:
        table, what = run.validation.table, self._what(run)
        shards = [side.shard for side in table.shards if side.shard is not None]
        routed = RowTopics(self._pipeline.routes)
        topics = sorted({routed.topic_of(shard) for shard in shards})
        # First the ends: a row that changes later is named behind them.
        end = self._target_end()
        stored = reached(control_offsets(self._pipeline)(), shards, routed)
        with topic_reader(self._pipeline) as reader:
            extents = reader.extents(topics)
        places = [(each.topic, each.partition) for each in extents]
        offsets = {place: stored.get(place, 0) for place in places}
        begins = dict(zip(places, (each.begin for each in extents), strict=True))
        why = reason_to_compare_all(proof, what, begins)
        if why:
            return _Basis(offsets, what, end, None, why)
        try:
            keys = changed_keys(self._pipeline, table, proof.places, extents)
            by_hand = self._changed_in_target(table, proof)
        except NamesNoKey as reason:
            return _Basis(offsets, what, end, None, str(reason))
        if by_hand is not None:
            return _Basis(offsets, what, end, sorted({*keys, *by_hand}))
        if self._bounded or (end is None and not still):
            return _Basis(offsets, what, None, keys)
        why = (
            "changes by hand in the target cannot be seen: "
            f"{self._unreadable or 'they could not when it was last compared'}. With --bounded "
            "only the rows that have changed in the shards are compared"
        )
        return _Basis(offsets, what, end, None, why)

    def _target_end(self) -> BinlogEnd | None:
        if self._pipeline.target.kind == "tidb":
            self._unreadable = "TiDB writes no binlog"
            return None
        try:
            end = self._changes.end()
        except BinlogUnreadable as reason:
            self._unreadable = str(reason)
            return None
        # What the binlog has may be visible only a moment later, after the comparison's reading.
        self._pass_commits()
        return end

    def _changed_in_target(self, table: ComparedTable, proof: Proof) -> set[Key] | None:
        """The keys that the target's binlog names since the proof; None if it cannot tell.

        Raises:
            NamesNoKey: The binlog has changes without keys.
        """
        if proof.target_end is None:
            return None
        at = TableName(self._target.database, self._target.table)
        try:
            keys = TargetKeys(table.side.key, self._changes.columns(at))
            changes = self._changes.since(proof.target_end, at)
            return changed_in_target(self._target, keys, changes)
        except BinlogUnreadable as reason:
            self._unreadable = str(reason)
            return None

    def _what(self, run: TargetRun) -> Compared:
        epochs = {source.name: source.epoch for source in self._pipeline.sources}
        return Compared(run.known.version, run.validation.table, epochs)
