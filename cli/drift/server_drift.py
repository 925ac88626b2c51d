"""Reads how the tables of a MySQL, MariaDB or TiDB target differ from what was decided."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from shardmerge.schemas.model.errors import ConfigError, TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.drift import Difference, with_times
from shardmerge.schemas.target.dialects.dialect import Dialect
from shardmerge.schemas.target.dialects.dialects import dialect_of
from shardmerge.schemas.target.drift_healing import Healing, healing
from shardmerge.spark_sink.barrier.closing import Closing
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.ddl.compared_tables import (
    ComparedTable,
    TableComparer,
    unread_table,
)
from shardmerge.spark_sink.targets.mysql.ddl.drift_store import MySqlDriftStore
from shardmerge.spark_sink.targets.mysql.ddl.healing_runs import heal
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession

from .drift_reader import TargetDrift, compared_or_unread

_NO_TABLE, _NO_DATABASE, _NO_COLUMN = 1146, 1049, 1054


class ServerDriftReader:
    """See ``drift_reader.DriftReader``.

    Args:
        pipeline: Its target has a server.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        target = pipeline.target
        address = MySqlAddress.of(target)
        self._session = MySqlSession(address)
        self._pipeline = pipeline.name
        self._dialect: Dialect = dialect_of(target.kind, target.version)
        control = ControlStore(self._session, target.control_database, pipeline.name)
        self._control = control
        self._store = MySqlDriftStore(self._session, control, pipeline.name)
        self._comparer = TableComparer(
            self._session, control.table("ddl_journal"), pipeline.name, pipeline.sink.drift_ignore
        )
        self._known: dict[TargetTable, tuple[Difference, ...]] | None = None

    def close(self) -> None:
        """End the session."""
        self._session.close()

    def targets(self) -> Sequence[TargetTable]:
        """See ``DriftReader``."""
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

    def cut_over(self) -> Collection[TargetTable]:
        """See ``DriftReader``."""
        closed = self._control.closed_targets()
        return [target for target, why in closed.items() if why is Closing.CUT_OVER]

    def read(self, target: TargetTable) -> TargetDrift:
        """See ``DriftReader``."""
        compared = compared_or_unread(lambda: self._comparer.compare(target), unread_table)
        timed = with_times(
            compared.differences, self._times().get(target, ()), now_ms=0, clear_ms=0
        )
        return TargetDrift(target, timed, compared, self._plan(target, compared, None))

    def plan(self, drift: TargetDrift, subjects: Collection[str]) -> tuple[Healing, ...]:
        """See ``DriftReader``."""
        assert isinstance(drift.compared, ComparedTable)
        return self._plan(drift.target, drift.compared, subjects)

    def heal(
        self,
        target: TargetTable,
        planned: Sequence[Healing],
        subjects: Collection[str],
        by: str,
    ) -> TargetDrift:
        """See ``DriftReader``."""

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
