"""Compares the tables of an Iceberg target with their decisions, from their metadata alone.

A look loads the metadata of each table, as every batch does. No file of rows is read, and Spark
runs no job. A table is compared only if there was a commit, or a statement was begun on it, since
its last comparison.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.drift import Difference
from shardmerge.spark_sink.targets.drift_interface import Look
from shardmerge.spark_sink.targets.iceberg.store import IcebergStore
from shardmerge.spark_sink.targets.iceberg.tables import IcebergTable
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
        return self.compare_reading(self.store.catalog.find(target), kept)

    def compare_reading(
        self, table: IcebergTable | None, kept: Sequence[Difference] = ()
    ) -> ComparedLayout:
        """As ``compare``, for a table that was just read; None for one that is missing."""
        if table is None:
            return missing_table()
        decided = self.store.state_of(table).decided
        return compared_layout(decided, table.layout, table.history, kept, self._ignored)


class IcebergLooks:
    """See ``interface.TableLooks``."""

    def __init__(self, comparer: LayoutComparer) -> None:
        self._comparer = comparer
        self._left: set[TargetTable] = set()
        self._compared: dict[TargetTable, tuple[int, str]] = {}
        """Table → its number, and where its metadata was, when it was last compared."""

    def look(self, tables: Mapping[TargetTable, int]) -> Look:
        """See ``interface.TableLooks``."""
        due = sorted(self._left & set(tables)) or sorted(tables)
        now, self._left = due[:MOST_TOGETHER], set(due[MOST_TOGETHER:])
        known = self._comparer.kept.load()
        result: dict[TargetTable, tuple[Difference, ...]] = {}
        failed: dict[TargetTable, Exception] = {}
        unchanged: set[TargetTable] = set()
        for target in now:
            try:
                table = self._comparer.store.catalog.find(target)
                seen = (tables[target], "" if table is None else table.location)
                if table is not None and self._compared.get(target) == seen:
                    unchanged.add(target)
                    continue
                compared = self._comparer.compare_reading(table, known.get(target, ()))
                result[target], self._compared[target] = compared.differences, seen
            except Exception as error:  # It is told of this table; the others are compared.
                self._compared.pop(target, None)
                if isinstance(error, TargetError) and error.retryable:
                    self._begin_anew()
                    raise
                failed[target] = error
        return Look(result, len(self._left), unchanged, failed)

    def _begin_anew(self) -> None:
        """Forget what was compared: the look that failed tells nothing of it."""
        self._left, self._compared = set(), {}

    def close(self) -> None:
        """See ``interface.TableLooks``: all threads share Spark's JVM."""
