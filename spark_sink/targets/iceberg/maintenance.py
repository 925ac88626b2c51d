"""Upkeep of Iceberg tables, beside a running sink: fewer files, fewer snapshots.

A merge-on-read MERGE writes delete files, and every batch makes a snapshot. Readers get slower
until the files are compacted. Both commands commit to the table like any other writer. A batch of
the sink that meets such a commit begins anew, and loses nothing, because the sink's state is a
property of the table, not of a snapshot.

Source: Iceberg documentation, "Spark Procedures".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shardmerge.schemas.model.names import TargetTable, quote_identifier
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.process.settings import SinkSettings

from .store import IcebergStore
from .tables import translated
from .target import IcebergTarget


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What was done to a table: Iceberg's name of a count → the count."""

    table: TargetTable
    counts: Mapping[str, int]


class Maintenance:
    """Works on a pipeline's tables; starts a Spark of its own unless it is given an open target.

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
        self._store: IcebergStore = self._target.state

    def compact(self) -> list[Upkeep]:
        """Rewrite small data files, and data files with deleted rows, into larger ones.

        Raises:
            TargetError: The catalog is away, or the sink changed the same files meanwhile
                (retryable).
        """
        options = "map('delete-file-threshold', '1', 'remove-dangling-deletes', 'true')"
        return [
            self._call("rewrite_data_files", table, f"options => {options}")
            for table in self._tables()
        ]

    def expire(self, keep: int, older_than_s: int) -> list[Upkeep]:
        """Remove old snapshots, and the files that only these snapshots use.

        Snapshots that a crash of the sink left staged are removed too.

        Args:
            keep: At least this many snapshots stay.
            older_than_s: Age in seconds from which a snapshot may be removed. It must be higher
                than the duration of a batch, whose staged snapshot must stay.

        Raises:
            TargetError: The catalog is away (retryable).
        """
        age = f"current_timestamp() - make_interval(0, 0, 0, 0, 0, 0, {older_than_s})"
        (row,) = self._session.sql(f"SELECT CAST({age} AS string)").collect()
        return [
            self._call(
                "expire_snapshots", table, f"older_than => TIMESTAMP '{row[0]}Z'",
                f"retain_last => {keep}",
            )
            for table in self._tables()
        ]  # fmt: skip

    def close(self) -> None:
        """Close the target, unless it was given: then its owner still uses it."""
        if self._opened:
            self._target.close()

    @property
    def _session(self) -> Any:
        return self._target.spark.session()

    def _tables(self) -> list[TargetTable]:
        return sorted(self._store.states())

    def _call(self, procedure: str, table: TargetTable, *arguments: str) -> Upkeep:
        name = table.sql.replace("\\", "\\\\").replace("'", "\\'")
        catalog = quote_identifier(self._store.catalog.name)
        given = ", ".join([f"table => '{name}'", *arguments])
        with translated(f"{procedure} of {table}"):
            (row,) = self._session.sql(f"CALL {catalog}.system.{procedure}({given})").collect()
        return Upkeep(table, {key: int(count) for key, count in row.asDict().items() if count})
