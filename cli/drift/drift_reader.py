"""Reads how the target's tables differ now from what was decided.

Every command that needs the differences uses this reader::

    with DriftReader(pipeline) as reader:
        for target in reader.targets():
            drift = reader.read(target)
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from types import TracebackType

from shardmerge.schemas.model.errors import ConfigError, ContractError, TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.drift import Difference, needs_somebody, with_times
from shardmerge.schemas.target.dialects.dialect import Dialect
from shardmerge.schemas.target.dialects.dialects import dialect_of
from shardmerge.schemas.target.drift_healing import Healing, healing
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.ddl.compared_tables import (
    ComparedTable,
    TableComparer,
    unread_table,
)
from shardmerge.spark_sink.targets.mysql.ddl.drift_store import MySqlDriftStore
from shardmerge.spark_sink.targets.mysql.ddl.healing_runs import heal
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession

_NO_TABLE, _NO_DATABASE, _NO_COLUMN = 1146, 1049, 1054


@dataclass(frozen=True, slots=True)
class TargetDrift:
    """How one target's table differs now from what was decided.

    Attributes:
        target: The target.
        differences: The present differences, with the times at which the sink first saw them.
        compared: The decided and the found table; None for a kind of target whose tables are not
            compared.
        healings: The statements that heal all differences, in execution order.
    """

    target: TargetTable
    differences: tuple[Difference, ...] = ()
    compared: ComparedTable | None = None
    healings: tuple[Healing, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether the table was compared and every difference is harmless."""
        return self.compared is not None and not any(
            needs_somebody(each.kind) for each in self.differences
        )


def has_looks(pipeline: Pipeline) -> bool:
    """Whether shardmerge compares the tables of the pipeline's kind of target."""
    return pipeline.target.catalog is None


class DriftReader:
    """Compares tables in a session with the target of a pipeline.

    Args:
        pipeline: Its target has a server (``has_looks``).
    """

    def __init__(self, pipeline: Pipeline) -> None:
        target = pipeline.target
        address = MySqlAddress.of(target)
        self._session = MySqlSession(address)
        self._pipeline = pipeline.name
        self._dialect: Dialect = dialect_of(target.kind, target.version)
        control = ControlStore(self._session, target.control_database, pipeline.name)
        self._store = MySqlDriftStore(self._session, control, pipeline.name)
        self._comparer = TableComparer(
            self._session, control.table("ddl_journal"), pipeline.name, pipeline.sink.drift_ignore
        )
        self._known: dict[TargetTable, tuple[Difference, ...]] | None = None

    def __enter__(self) -> DriftReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._session.close()

    def targets(self) -> Sequence[TargetTable]:
        """The targets whose table a sink has made, sorted; empty before the first one.

        Raises:
            TargetError: The target does not answer.
            ConfigError: Its control tables are those of an earlier version.
        """
        try:
            self._times()
            return self._comparer.entries.targets(self._pipeline)
        except TargetError as error:
            if error.number == _NO_DATABASE:
                return ()
            if error.number in (_NO_TABLE, _NO_COLUMN):
                raise ConfigError(
                    "the target has no control tables of this version",
                    hint="start the sink of this version once: it makes them",
                    code="SM-5601",
                ) from error
            raise

    def read(self, target: TargetTable) -> TargetDrift:
        """Compare the table of one target.

        If the server refuses to show this table, or its journal cannot be read, that is its only
        difference (``unread``).

        Raises:
            TargetError: The target does not answer, or somebody keeps the table locked.
        """
        try:
            compared = self._comparer.compare(target)
        except (TargetError, ContractError) as error:
            if isinstance(error, TargetError) and error.retryable:
                raise
            compared = unread_table(f"the comparison failed: {error.message}")
        timed = with_times(
            compared.differences, self._times().get(target, ()), now_ms=0, clear_ms=0
        )
        return TargetDrift(target, timed, compared, self._plan(target, compared, None))

    def plan(self, drift: TargetDrift, subjects: Collection[str]) -> tuple[Healing, ...]:
        """The statements that heal only the named differences."""
        assert drift.compared is not None
        return self._plan(drift.target, drift.compared, subjects)

    def heal(
        self,
        target: TargetTable,
        planned: Sequence[Healing],
        subjects: Collection[str],
        by: str,
    ) -> TargetDrift:
        """Execute what ``plan`` made; raises ``TargetError`` as ``healing_runs.heal`` does."""

        def plan(compared: ComparedTable) -> Sequence[Healing]:
            return self._plan(target, compared, subjects)

        compared = heal(self._comparer, target, plan, planned, by)
        healings = self._plan(target, compared, None)
        return TargetDrift(target, compared.differences, compared, healings)

    def _plan(
        self, target: TargetTable, compared: ComparedTable, subjects: Collection[str] | None
    ) -> tuple[Healing, ...]:
        wanted = [
            each for each in compared.differences if subjects is None or each.subject in subjects
        ]
        return healing(wanted, compared.expected, compared.found, target, self._dialect)

    def _times(self) -> dict[TargetTable, tuple[Difference, ...]]:
        if self._known is None:
            self._known = self._store.load()
        return self._known


def drift_of(
    pipeline: Pipeline, targets: Collection[TargetTable] | None = None
) -> tuple[TargetDrift, ...]:
    """How the tables of a pipeline's target differ now, sorted by name.

    Args:
        pipeline: Any. For a kind of target whose tables are not compared, ``targets`` must name the
            targets.
        targets: Only these; None for all.

    Raises:
        TargetError: The target does not answer.
        ConfigError: Its control tables are those of an earlier version.
    """
    if not has_looks(pipeline):
        return tuple(TargetDrift(target) for target in sorted(targets or ()))
    with DriftReader(pipeline) as reader:
        known = reader.targets()
        wanted = known if targets is None else sorted(set(known) & set(targets))
        return tuple(reader.read(target) for target in wanted)
