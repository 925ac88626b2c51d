"""Compares the tables of an Iceberg target with their decisions, from their metadata alone.

A look loads the metadata of each table, as every batch does. No file of rows is read, and Spark
runs no job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.drift import Difference
from shardmerge.spark_sink.targets.drift_interface import Look
from shardmerge.spark_sink.targets.iceberg.store import IcebergStore
from shardmerge.spark_sink.targets.iceberg.texts.compared_layouts import (
    ComparedLayout,
    compared_layout,
    missing_table,
)

from .drift_store import IcebergDriftStore

MOST_TOGETHER = 50
"""So many tables one look compares; the next look goes on with the others."""


class LayoutComparer:
    """Compares tables of one pipeline with their decisions.

    Args:
        store: The pipeline's, of the thread that calls the methods.
        ignored: A regular expression; see ``compared_layout``.

    Attributes:
        store: The argument.
        kept: The differences that the sink keeps.
    """

    def __init__(self, store: IcebergStore, ignored: str = "") -> None:
        self.store, self._ignored = store, ignored
        self.kept = IcebergDriftStore(store)

    def compare(self, target: TargetTable, kept: Sequence[Difference] = ()) -> ComparedLayout:
        """Compare one table.

        Args:
            target: A table that a sink has made.
            kept: The differences that are known of it.

        Raises:
            TargetError: The catalog is away (``retryable``).
            ContractError: The state in the table's properties is not readable.
        """
        table = self.store.catalog.find(target)
        if table is None:
            return missing_table()
        decided = self.store.state_of(table).decided
        return compared_layout(decided, table.layout, table.history, kept, self._ignored)


class IcebergLooks:
    """See ``interface.TableLooks``."""

    def __init__(self, comparer: LayoutComparer) -> None:
        self._comparer = comparer
        self._left: set[TargetTable] = set()

    def look(self, tables: Mapping[TargetTable, int]) -> Look:
        """See ``interface.TableLooks``."""
        due = sorted(self._left & set(tables)) or sorted(tables)
        now, self._left = due[:MOST_TOGETHER], set(due[MOST_TOGETHER:])
        known = self._comparer.kept.load()
        result: dict[TargetTable, tuple[Difference, ...]] = {}
        failed: dict[TargetTable, Exception] = {}
        for target in now:
            try:
                result[target] = self._comparer.compare(target, known.get(target, ())).differences
            except Exception as error:  # It is told of this table; the others are compared.
                if isinstance(error, TargetError) and error.retryable:
                    self._left = set()
                    raise
                failed[target] = error
        return Look(result, len(self._left), failed=failed)

    def close(self) -> None:
        """See ``interface.TableLooks``: all threads share Spark's JVM."""
