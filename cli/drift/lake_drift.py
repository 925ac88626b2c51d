"""Reads how an Iceberg target's tables differ from what was decided: with a Spark of its own."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.drift import Difference, with_times
from shardmerge.schemas.target.drift_healing import Healing
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.targets.iceberg.ddl.healing_runs import heal, plan_of
from shardmerge.spark_sink.targets.iceberg.target import IcebergTarget
from shardmerge.spark_sink.targets.iceberg.texts.compared_layouts import (
    ComparedLayout,
    unread_layout,
)

from .drift_reader import TargetDrift, compared_or_unread


class LakeDriftReader:
    """See ``drift_reader.DriftReader``.

    Args:
        settings: Of Spark.
        pipeline: Its target's kind is ``iceberg``.
        target: An open target, with its Spark; None to open one.
    """

    def __init__(
        self, settings: SinkSettings, pipeline: Pipeline, target: IcebergTarget | None = None
    ) -> None:
        self._target = target or IcebergTarget(settings, pipeline)
        self._opened = target is None
        self._target.spark.begin()
        self._comparer = self._target.comparer()
        self._known: dict[TargetTable, tuple[Difference, ...]] | None = None

    def close(self) -> None:
        """End this process's Spark, unless the target was given."""
        if self._opened:
            self._target.close()

    def targets(self) -> Sequence[TargetTable]:
        """See ``DriftReader``."""
        return self._comparer.store.made()

    def cut_over(self) -> Collection[TargetTable]:
        """See ``DriftReader``; an Iceberg target cannot be cut over."""
        return ()

    def read(self, target: TargetTable) -> TargetDrift:
        """See ``DriftReader``."""
        known = self._times().get(target, ())
        compared = compared_or_unread(lambda: self._comparer.compare(target, known), unread_layout)
        return _drift(target, compared, known)

    def plan(self, drift: TargetDrift, subjects: Collection[str]) -> tuple[Healing, ...]:
        """See ``DriftReader``."""
        assert isinstance(drift.compared, ComparedLayout)
        steps, _ = plan_of(drift.compared, drift.target, subjects)
        return steps

    def heal(
        self,
        target: TargetTable,
        planned: Sequence[Healing],
        subjects: Collection[str],
        by: str,
    ) -> TargetDrift:
        """See ``DriftReader``."""
        compared = heal(self._comparer, target, planned, subjects, by)
        return _drift(target, compared, self._times().get(target, ()))

    def _times(self) -> dict[TargetTable, tuple[Difference, ...]]:
        if self._known is None:
            self._known = self._comparer.kept.load()
        return self._known


def _drift(
    target: TargetTable, compared: ComparedLayout, known: tuple[Difference, ...]
) -> TargetDrift:
    timed = with_times(compared.differences, known, now_ms=0, clear_ms=0)
    return TargetDrift(target, timed, compared, plan_of(compared, target)[0])
