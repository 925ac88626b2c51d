"""Keeps the differences of a MySQL target's tables, with their times, in a control table."""

from __future__ import annotations

from collections.abc import Sequence

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.drift import Difference, DriftKind
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.session import MySqlSession


class MySqlDriftStore:
    """See ``interface.DriftStore``.

    Args:
        session: The session of the driver's thread.
        control: The control tables, on the same session.
        pipeline: The pipeline's name.
    """

    def __init__(self, session: MySqlSession, control: ControlStore, pipeline: str) -> None:
        self._session, self._control, self._pipeline = session, control, pipeline
        self._table = control.table("drift")

    def load(self) -> dict[TargetTable, tuple[Difference, ...]]:
        """See ``interface.DriftStore``."""
        found: dict[TargetTable, list[Difference]] = {}
        rows = self._session.query(
            "SELECT target_database, target_table, subject, kind, expected, found, since_ms,"
            f" clear_ms FROM {self._table} WHERE pipeline = %s ORDER BY subject",
            (self._pipeline,),
        )
        for database, table, subject, kind, expected, there, since, clear in rows:
            each = Difference(subject, DriftKind(kind), expected, there, int(since), int(clear))
            found.setdefault(TargetTable(database, table), []).append(each)
        return {target: tuple(each) for target, each in found.items()}

    def keep(self, epoch: int, target: TargetTable, differences: Sequence[Difference]) -> None:
        """See ``interface.DriftStore``."""
        with self._session.transaction():
            self._control.fence(epoch)
            self._session.execute(
                f"DELETE FROM {self._table} WHERE pipeline = %s AND target_database = %s"
                " AND target_table = %s",
                (self._pipeline, target.database, target.table),
            )
            for each in differences:
                self._session.execute(
                    f"INSERT INTO {self._table} (pipeline, target_database, target_table, subject,"
                    " kind, expected, found, since_ms, clear_ms)"
                    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
                    (
                        self._pipeline, target.database, target.table, each.subject,
                        each.kind.value, each.expected, each.found, each.since_ms, each.clear_ms,
                    ),
                )  # fmt: skip
