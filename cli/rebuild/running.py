"""Carries out a rebuild, step after step; each call goes on from where an earlier one ended."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from shardmerge.cli.loads.load import in_words, known_rows, watched
from shardmerge.cli.screen import progress_of
from shardmerge.cli.validation.report import shortfalls
from shardmerge.cli.validation.report_shapes import ValidatedTarget
from shardmerge.cli.validation.target_run import Limits
from shardmerge.cli.views.reading import read_picture
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.loading.load_estimate import rows_of
from shardmerge.spark_sink.rebuilding.changed_where import routes_in_force
from shardmerge.spark_sink.rebuilding.rebuild_record import RebuildRecord, Stage
from shardmerge.spark_sink.rebuilding.rebuild_rules import Obstacle

from .beginning import begin
from .rebuild_server import RebuildServer
from .shadow_comparison import compare_shadow
from .shadow_sink import ShadowSink

_LOOK_S = 0.5
_TOLD_S = 10.0
_NEAR = 5_000
"""The shadow has caught up when it lacks no more row events than this: a second's work."""
_NOTICED_S = 2.5
"""The pipeline's sink notices within a second that the target is closed. It stays closed longer, so
that the sink reads its state anew before it does anything."""
_HINDERED_S = 2.0


@dataclass(frozen=True, slots=True)
class Wishes:
    """The operator's options.

    Attributes:
        by: Who gives the command.
        master: Spark's master URL for the sink of the shadow.
        only_source_rows: See ``RebuildRecord``.
        where: The condition that the target's route is to have; None to leave it as it is.
        is_compared: Whether the shadow is compared with the shards before the swap.
        is_prepared_only: Whether the call ends before the swap.
        is_verbose: Whether the sink of the shadow logs more than warnings.
        limits: Of the comparison; its patience is also that for the target to come to rest.
    """

    by: str
    master: str
    only_source_rows: bool
    where: str | None
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
        server: RebuildServer,
        *,
        wishes: Wishes,
    ) -> None:
        self._pipeline, self._path, self._target = pipeline, path, target
        self._server, self._wishes = server, wishes

    def run(self) -> Ended:
        """Build the new table, and put it in the target's place.

        Raises:
            ShardMergeError: A server, Kafka or Kafka Connect does not answer, or refuses.
        """
        record = self._server.store.latest(self._target)
        if self._server.is_cut_over():
            why = f"{self._target} is cut over, or a cut-over of it has begun"
            return Ended(record, (Obstacle("SM-6506", why, "`cutover --undo` is the way back"),))
        if record is None or not record.is_open:
            if record is not None and record.stage is Stage.SWAPPED:
                why = f"the table from before rebuild {record.number} is still at {record.old}"
                hint = "drop it first: run the command with --drop-old"
                return Ended(record, (Obstacle("SM-6507", why, hint),))
            begun = self._begin()
            if isinstance(begun, tuple):
                return Ended(record, begun)
            record = begun
        if self._wishes.where not in (None, record.where):
            why = f"rebuild {record.number} of {self._target} has begun without this condition"
            hint = "run the command without --with, or give the rebuild up with --abort"
            return Ended(record, (Obstacle("SM-6521", why, hint),))
        if record.stage is Stage.SWAPPING and self._server.swap.is_exchanged(record):
            return Ended(self._server.swap.take_over(record))
        return self._build(record)

    def _begin(self) -> RebuildRecord | tuple[Obstacle, ...]:
        _say(f"{self._target}: plan the new table")
        return begin(
            self._pipeline,
            self._target,
            self._server,
            lambda: read_picture(self._pipeline, lambda done, whole: None),
            by=self._wishes.by,
            only_source_rows=self._wishes.only_source_rows,
            where=self._wishes.where,
            patience_s=self._wishes.limits.patience_s,
        )

    def _build(self, record: RebuildRecord) -> Ended:
        compared = None
        if record.stage is Stage.SWAPPING and self._wishes.is_prepared_only:
            record = self._reopened(record)
        with self._sink() as sink:
            self._fill(record, sink)
            self._follow(record, sink)
            if self._wishes.is_compared and record.stage is Stage.BUILDING:
                _say(f"{self._target}: compare the new table with the shards")
                report, hindered = self._compare(record, sink)
                compared = report.rows
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
            self._server.marks.close_for_swap()
            if not self._catch_up(record, sink):
                record = self._reopened(record)
                return Ended(record, (self._behind(record),), rows, compared)
        time.sleep(max(0.0, closed_at + _NOTICED_S - time.monotonic()))
        _say(f"{self._target}: exchange the tables")
        self._server.swap.exchange(record)
        record = self._server.swap.take_over(record)
        return Ended(record, (), rows, compared, time.monotonic() - closed_at)

    def _sink(self) -> ShadowSink:
        wishes = self._wishes
        return ShadowSink(self._path, self._target, wishes.master, is_verbose=wishes.is_verbose)

    def _reopened(self, record: RebuildRecord) -> RebuildRecord:
        """Let the sink change the target again; returns the stored record."""
        self._server.marks.reopen()
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

    def _follow(self, record: RebuildRecord, sink: ShadowSink) -> None:
        """Wait until the shadow has nearly caught up with the target."""
        store, told_at = self._server.store, time.monotonic()
        while True:
            statements, events = store.statements_behind(record), store.events_behind(record)
            if not statements and events <= _NEAR:
                return
            sink.check()
            if time.monotonic() - told_at >= _TOLD_S:
                told_at = time.monotonic()
                _say(
                    f"{self._target}: the new table lacks {events:,} row events and {statements}"
                    " statements that the target has"
                )
            time.sleep(_LOOK_S)

    def _compare(
        self, record: RebuildRecord, sink: ShadowSink
    ) -> tuple[ValidatedTarget, tuple[str, ...]]:
        """Compare all rows; once more if some shards only wait for a while."""
        until = time.monotonic() + self._wishes.limits.patience_s
        while True:
            sink.check()
            report, hindered = compare_shadow(
                self._changed(record), record, self._server, self._wishes.limits
            )
            if not hindered or report.differences or time.monotonic() > until:
                return report, hindered
            _say(f"{self._target}: compare once more, because {hindered[0]}")
            time.sleep(_HINDERED_S)

    def _changed(self, record: RebuildRecord) -> Pipeline:
        """The pipeline, with the condition that the new table has."""
        changes = [] if record.changed_where is None else [record.changed_where]
        routes = routes_in_force(self._pipeline.routes, changes)
        return replace(self._pipeline, routes=routes)

    def _catch_up(self, record: RebuildRecord, sink: ShadowSink) -> bool:
        """Wait until the shadow has everything that the closed target has."""
        store, until = self._server.store, time.monotonic() + self._wishes.limits.patience_s
        while store.statements_behind(record) or store.events_behind(record):
            sink.check()
            if time.monotonic() > until:
                return False
            time.sleep(_LOOK_S / 5)
        return True

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


def _say(line: str) -> None:
    """Tell people on standard error."""
    click.echo(line, err=True)
