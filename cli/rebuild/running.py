"""Carries out a rebuild, step after step; each call goes on from where an earlier one ended."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from shardmerge.cli.loads.load import in_words, known_rows, watched
from shardmerge.cli.screen import progress_of
from shardmerge.cli.validation.page_records import PageRecords
from shardmerge.cli.validation.report import shortfalls
from shardmerge.cli.validation.report_shapes import ValidatedTarget
from shardmerge.cli.validation.target_run import Limits
from shardmerge.connectors.clock import now_ms
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Decision, Outcome
from shardmerge.spark_sink.loading.load_estimate import rows_of
from shardmerge.spark_sink.process.failpoints import reach
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord, Stage
from shardmerge.spark_sink.rebuilding.rebuild_rules import Obstacle
from shardmerge.spark_sink.rebuilding.route_changes import routes_in_force

from .beginning import Changes, begin
from .own_decisions import OwnDecisions, own_decisions
from .rebuilt_target import RebuiltTarget
from .renewing import Renewing, picture_of, renewal_of
from .shadow_comparison import compare_shadow
from .shadow_sink import ShadowSink

_LOOK_S = 0.5
_TOLD_S = 10.0
_NEAR = 5_000
"""The shadow has caught up when it lacks no more row events than this: a second's work."""
_NOTICED_S = 2.5
"""The pipeline's sink notices within a second that the target is closed, if it is in no long batch.
It stays closed longer, so that the sink reads its state anew before it does anything. What a long
batch has planned is refused after the swap (``rebuild_swap``)."""
_HINDERED_S = 2.0


@dataclass(frozen=True, slots=True)
class Wishes:
    """The operator's options.

    Attributes:
        by: Who gives the command.
        master: Spark's master URL for the sink of the shadow.
        only_source_rows: See ``RebuildRecord``.
        changes: What the target's route is to have.
        is_compared: Whether the shadow is compared with the shards before the swap.
        is_prepared_only: Whether the call ends before the swap.
        is_verbose: Whether the sink of the shadow logs more than warnings.
        limits: Of the comparison; its patience is also that for the target to come to rest.
    """

    by: str
    master: str
    only_source_rows: bool
    changes: Changes
    is_compared: bool
    is_prepared_only: bool
    is_verbose: bool
    limits: Limits


@dataclass(frozen=True, slots=True)
class Ended:
    """How a call ended.

    Attributes:
        record: The rebuild as it is stored; None when none began.
        reasons: Why the call did not go on.
        rows: Rows that were loaded.
        compared_rows: Rows of the shards that were compared; None without a comparison.
        closed_s: How long the target was closed; None without a swap.
    """

    record: RebuildRecord | None
    reasons: tuple[Obstacle, ...] = ()
    rows: int = 0
    compared_rows: int | None = None
    closed_s: float | None = None


class RebuildRun:
    """One call of the command.

    Args:
        pipeline: The pipeline of the target, with the conditions that are in force.
        path: Its file.
        target: The target.
        server: The target's server.
        wishes: The operator's options.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        path: Path,
        target: TargetTable,
        server: RebuiltTarget,
        *,
        wishes: Wishes,
    ) -> None:
        self._pipeline, self._path, self._target = pipeline, path, target
        self._server, self._wishes = server, wishes
        self._pages = PageRecords(pipeline, ())

    def run(self) -> Ended:
        """Build the new table, and put it in the target's place.

        Raises:
            ShardMergeError: A server, Kafka or Kafka Connect does not answer, or refuses.
        """
        record = self._server.store.latest(self._target)
        if self._server.is_cut_over():
            why = f"{self._target} is cut over, or a cut-over of it has begun"
            return Ended(record, (Obstacle("SM-6506", why, "`cutover --undo` is the way back"),))
        if record is not None and record.is_open and not self._server.store.is_begun(record):
            # The call that began it was killed meanwhile.
            record = self._server.swap.drop_shadow(record)
        if record is None or not record.is_open:
            if record is not None and record.stage is Stage.SWAPPED:
                old = self._server.swap.old_name(record)
                why = f"the table from before rebuild {record.number} is still at {old}"
                hint = "drop it first: run the command with --drop-old"
                return Ended(record, (Obstacle("SM-6507", why, hint),))
            begun = self._begin()
            if isinstance(begun, tuple):
                return Ended(record, begun)
            record = begun
        if (other := self._begun_otherwise(record)) is not None:
            return Ended(record, (other,))
        if record.stage is Stage.SWAPPING:
            renewal = renewal_of(self._pipeline, record) if record.origin is not None else None
            if renewal is not None or self._server.swap.is_exchanged(record):
                self._server.swap.exchange(record)
                record = self._server.swap.take_over(record, renewal)
                self._pages.forget(self._target)
                return Ended(record)
        return self._build(record)

    def _begun_otherwise(self, record: RebuildRecord) -> Obstacle | None:
        """Why an open rebuild is not the one that the operator wants."""
        changes = self._wishes.changes
        hint = "run the command without --with, or give the rebuild up with --abort"
        begun = f"rebuild {record.number} of {self._target} has begun without"
        if changes.where not in (None, record.where):
            return Obstacle("SM-6521", f"{begun} this condition", hint)
        if changes.origin not in (None, record.origin):
            return Obstacle("SM-6523", f"{begun} these origin columns", hint)
        return None

    def _begin(self) -> RebuildRecord | tuple[Obstacle, ...]:
        _say(f"{self._target}: plan the new table")
        return begin(
            self._pipeline,
            self._target,
            self._server,
            lambda: picture_of(self._pipeline),
            by=self._wishes.by,
            only_source_rows=self._wishes.only_source_rows,
            changes=self._wishes.changes,
            patience_s=self._wishes.limits.patience_s,
        )

    def _build(self, record: RebuildRecord) -> Ended:
        compared, renewal, own = None, None, own_decisions(self._pipeline, record)
        renewing, proof = None, None
        if own is not None:
            renewing = Renewing(self._pipeline, self._server, own, self._wishes.by)
        if record.stage is Stage.SWAPPING and (self._wishes.is_prepared_only or renewing):
            record = self._reopened(record)
        with self._sink() as sink:
            self._fill(record, sink)
            lacks = self._follow(record, sink, renewing)
            if lacks is not None:
                return Ended(record, (lacks,), self._loaded(record))
            if self._wishes.is_compared and record.stage is Stage.BUILDING:
                _say(f"{self._target}: compare the new table with the shards")
                report, hindered = self._compare(record, sink, own)
                compared, proof = report.rows, (report, now_ms())
                if not report.is_clean:
                    found = _differs(report, hindered)
                    return Ended(record, (found,), self._loaded(record), compared)
            if self._wishes.is_prepared_only:
                return Ended(record, (), self._loaded(record), compared)
            rows = self._loaded(record)
            _say(f"{self._target}: close it for the swap")
            closed_at = time.monotonic()
            record = replace(record, stage=Stage.SWAPPING)
            self._server.store.keep(record)
            self._server.close_for_swap()
            lacks = self._catch_up(record, sink, renewing)
            if lacks is None and renewing is not None:
                renewal = renewing.renew(record)
                lacks = _refusal(renewal)
            if lacks is not None:
                return Ended(self._reopened(record), (lacks,), rows, compared)
        time.sleep(max(0.0, closed_at + _NOTICED_S - time.monotonic()))
        _say(f"{self._target}: exchange the tables")
        reach("exchange-begun")
        self._server.swap.exchange(record)
        record = self._server.swap.take_over(record, renewal)
        closed_s = time.monotonic() - closed_at
        if proof is None:
            self._pages.forget(self._target)
        else:
            self._tell(*proof, renewal)
        return Ended(record, (), rows, compared, closed_s)

    def _tell(self, report: ValidatedTarget, ended_ms: int, renewal: Decision | None) -> None:
        """Tell the pages that the table that is the target now was compared with the shards."""
        version = report.version if renewal is None else renewal.version
        now = replace(report, target=str(self._target), version=version)
        self._pages.send(now, ended_ms)

    def _sink(self) -> ShadowSink:
        wishes = self._wishes
        return ShadowSink(self._path, self._target, wishes.master, is_verbose=wishes.is_verbose)

    def _reopened(self, record: RebuildRecord) -> RebuildRecord:
        """Let the sink change the target again; returns the stored record."""
        self._server.reopen()
        building = replace(record, stage=Stage.BUILDING)
        self._server.store.keep(building)
        return building

    def _fill(self, record: RebuildRecord, sink: ShadowSink) -> None:
        """Wait until the rows of all shards are loaded."""
        loads = self._server.store.loads(record)
        known = known_rows(self._pipeline, loads)
        _say(f"{self._target}: load about {sum(known.values()):,} rows into {record.shadow.table}")
        told_at = time.monotonic()
        with progress_of("rows") as progress:
            for told in watched(lambda: self._server.store.loads(record), known, loads):
                sink.check()
                progress(told.rows, told.total)
                if time.monotonic() - told_at >= _TOLD_S:
                    told_at = time.monotonic()
                    _say(f"{self._target}: {in_words(told)}")

    def _follow(
        self, record: RebuildRecord, sink: ShadowSink, renewing: Renewing | None
    ) -> Obstacle | None:
        """Wait until the shadow has nearly caught up with the target.

        Returns:
            Why a table with decisions of its own cannot take the target's place, after some time.
        """
        store, told_at, lacks = self._server.store, time.monotonic(), None
        until = told_at + self._wishes.limits.patience_s
        while True:
            statements, events = self._behind_by(record, renewing), store.events_behind(record)
            if not statements and events <= _NEAR:
                if renewing is None or (lacks := renewing.lacks(record)) is None:
                    return None
                if time.monotonic() > until:
                    return lacks
            sink.check()
            if time.monotonic() - told_at >= _TOLD_S:
                told_at = time.monotonic()
                _say(
                    f"{self._target}: the new table lacks {events:,} row events and {statements}"
                    " statements that the target has"
                )
            # Whether both tables are at rest is read from all topics.
            time.sleep(_LOOK_S if lacks is None else _HINDERED_S)

    def _behind_by(self, record: RebuildRecord, renewing: Renewing | None) -> int:
        """How many of the target's statements the shadow lacks; those of its own do not count."""
        return self._server.store.statements_behind(record) if renewing is None else 0

    def _compare(
        self, record: RebuildRecord, sink: ShadowSink, own: OwnDecisions | None
    ) -> tuple[ValidatedTarget, tuple[str, ...]]:
        """Compare all rows; once more if some shards only wait for a while."""
        until = time.monotonic() + self._wishes.limits.patience_s
        while True:
            sink.check()
            report, hindered = compare_shadow(
                self._changed(record), record, self._server, own, self._wishes.limits
            )
            if not hindered or report.differences or time.monotonic() > until:
                return report, hindered
            _say(f"{self._target}: compare once more, because {hindered[0]}")
            time.sleep(_HINDERED_S)

    def _changed(self, record: RebuildRecord) -> Pipeline:
        """The pipeline, with the route that the new table has."""
        routes = routes_in_force(self._pipeline.routes, record.changes)
        return replace(self._pipeline, routes=routes)

    def _catch_up(
        self, record: RebuildRecord, sink: ShadowSink, renewing: Renewing | None
    ) -> Obstacle | None:
        """Wait until the shadow has everything that the closed target has.

        Returns:
            Why it has not, after some time.
        """
        store, until = self._server.store, time.monotonic() + self._wishes.limits.patience_s
        lacks = None
        while True:
            if not (self._behind_by(record, renewing) or store.events_behind(record)):
                lacks = None if renewing is None else renewing.lacks(record)
                if lacks is None or not lacks.passes:
                    return lacks
            sink.check()
            if time.monotonic() > until:
                return lacks or self._behind(record)
            time.sleep(_LOOK_S / 5)

    def _behind(self, record: RebuildRecord) -> Obstacle:
        store = self._server.store
        return Obstacle(
            "SM-6509",
            f"{self._target}: after {self._wishes.limits.patience_s:.0f} s the new table still "
            f"lacks {store.events_behind(record):,} row events and "
            f"{store.statements_behind(record)} statements that the target has",
            "the target is open again, and nothing is lost. Run the command again; the lines of "
            "the new table's sink say what it waits for",
        )

    def _loaded(self, record: RebuildRecord) -> int:
        return sum(map(rows_of, self._server.store.loads(record)))


def _differs(report: ValidatedTarget, hindered: Sequence[str]) -> Obstacle:
    """Why a comparison does not show that the new table is right."""
    told = shortfalls(report, hindered, kinds=True)
    return Obstacle(
        "SM-6508",
        f"the new table was compared with the shards: {told}",
        "run the command again: it compares once more. --abort drops the new table; --unvalidated "
        "swaps without a comparison",
    )


def _refusal(renewal: Decision) -> Obstacle | None:
    """Why the coordinator does not put the new table in the target's place; None if it does."""
    if renewal.outcome is not Outcome.REFUSED:
        return None
    hint = "the target is open again; run the command again"
    return Obstacle(renewal.code, renewal.reason, hint)


def _say(line: str) -> None:
    """Tell people on standard error."""
    click.echo(line, err=True)
