"""Reads how the target's tables differ now from what was decided.

Every command that needs the differences uses a reader::

    with open_reader(pipeline, path) as reader:
        for target in reader.targets():
            drift = reader.read(target)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from shardmerge.cli.endings import imported
from shardmerge.schemas.model.errors import ContractError, TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.drift import Difference, needs_somebody
from shardmerge.schemas.target.drift_healing import Healing
from shardmerge.spark_sink.process.settings import settings_from
from shardmerge.spark_sink.targets.drift_interface import TableComparison


@dataclass(frozen=True, slots=True)
class TargetDrift:
    """How one target's table differs now from what was decided.

    Attributes:
        target: The target.
        differences: The present differences, with the times at which the sink first saw them.
        compared: The decided and the found table; None when the table was not compared.
        healings: The statements that heal all differences, in execution order.
    """

    target: TargetTable
    differences: tuple[Difference, ...] = ()
    compared: TableComparison | None = None
    healings: tuple[Healing, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether the table was compared and every difference is harmless."""
        return self.compared is not None and not any(
            needs_somebody(each.kind) for each in self.differences
        )


class DriftReader(Protocol):
    """Compares the tables of one pipeline's target."""

    def targets(self) -> Sequence[TargetTable]:
        """The targets whose table a sink has made, sorted; empty before the first one.

        Raises:
            TargetError: The target does not answer.
            ConfigError: Its control tables are those of an earlier version.
        """
        ...

    def cut_over(self) -> Collection[TargetTable]:
        """The targets that were handed over to applications: these may change the tables.

        Raises:
            TargetError: The target does not answer.
        """
        ...

    def read(self, target: TargetTable) -> TargetDrift:
        """Compare the table of one target.

        If the table or the sink's notes on it cannot be read, that is its only difference
        (``unread``).

        Raises:
            TargetError: The target does not answer, or somebody keeps the table locked.
        """
        ...

    def plan(self, drift: TargetDrift, subjects: Collection[str]) -> tuple[Healing, ...]:
        """The statements that heal only the named differences."""
        ...

    def heal(
        self,
        target: TargetTable,
        planned: Sequence[Healing],
        subjects: Collection[str],
        by: str,
    ) -> TargetDrift:
        """Execute what ``plan`` made.

        Raises:
            TargetError: The table has changed since it was planned, the target refuses a statement,
                or it does not answer.
        """
        ...


C = TypeVar("C")


def compared_or_unread(compare: Callable[[], C], unread: Callable[[str], C]) -> C:
    """What a comparison gives; for a table that cannot be read, what ``unread`` makes of why.

    Raises:
        TargetError: The target does not answer (``retryable``).
    """
    try:
        return compare()
    except (TargetError, ContractError) as error:
        if isinstance(error, TargetError) and error.retryable:
            raise
        return unread(f"the comparison failed: {error.message}")


@contextmanager
def open_reader(pipeline: Pipeline, path: Path) -> Iterator[DriftReader]:
    """A reader while the context is open. An Iceberg target is read by a Spark in this process.

    Args:
        pipeline: The pipeline.
        path: Its file.
    """
    if pipeline.target.catalog is None:
        server = imported("shardmerge.cli.drift.server_drift", "spark")
        reader = server.ServerDriftReader(pipeline)
    else:
        lake = imported("shardmerge.cli.drift.lake_drift", "spark")
        settings = settings_from(["--pipeline", str(path)], os.environ)
        reader = lake.LakeDriftReader(settings, pipeline)
    try:
        yield reader
    finally:
        reader.close()


def drift_of(
    pipeline: Pipeline, targets: Collection[TargetTable] | None = None, path: Path = Path()
) -> tuple[TargetDrift, ...]:
    """How the tables of a pipeline's target differ now, sorted by name.

    Args:
        pipeline: The pipeline.
        targets: Only these; None for all.
        path: Its file; needed for an Iceberg target.

    Raises:
        TargetError: The target does not answer.
        ConfigError: Its control tables are those of an earlier version.
    """
    with open_reader(pipeline, path) as reader:
        known = reader.targets()
        wanted = known if targets is None else sorted(set(known) & set(targets))
        return tuple(reader.read(target) for target in wanted)
