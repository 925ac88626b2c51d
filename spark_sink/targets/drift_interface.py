"""What is asked of a target to notice drift: comparisons, looks at tables, a store of results."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.drift import Difference
from shardmerge.schemas.target.table_state import TableState


@dataclass(frozen=True, slots=True)
class TableComparison:
    """A table as it was decided, and as the target has it.

    Attributes:
        expected: The table that the executed statements make.
        found: The table that the target shows; without a schema when there is none.
        differences: The differences between the two, sorted by subject, without times.
    """

    expected: TableState
    found: TableState
    differences: tuple[Difference, ...]


class TableLooks(Protocol):
    """Compares tables with what was decided and executed. Belongs to one thread of its own.

    Every method raises ``TargetError``, with ``retryable`` when the target is away.
    """

    def look(self, tables: Mapping[TargetTable, int]) -> Look:
        """Look at tables, and compare those that may have changed since the last call.

        If one table cannot be compared, that is told of it alone: the others are compared.

        Args:
            tables: Table → a number that changes with every statement that is begun on it.
        """
        ...

    def close(self) -> None:
        """End the connection."""
        ...


@dataclass(frozen=True, slots=True)
class Look:
    """One look at tables.

    Attributes:
        compared: Table that was compared → in what it differs, without times.
        left: How many tables still have to be compared: the next look goes on with them.
        unchanged: Tables whose fingerprint is that of their last comparison. Some of them are
            compared all the same.
        failed: Table whose comparison failed → the error. The next look tries it again.
    """

    compared: Mapping[TargetTable, tuple[Difference, ...]]
    left: int = 0
    unchanged: Collection[TargetTable] = ()
    failed: Mapping[TargetTable, Exception] = field(default_factory=dict)


class DriftStore(Protocol):
    """Keeps the differences with their times. Belongs to the driver's thread.

    Every method raises ``TargetError``, with ``retryable`` when the target is away.
    """

    def load(self) -> dict[TargetTable, tuple[Difference, ...]]:
        """Target → its differences; only targets with some."""
        ...

    def keep(self, epoch: int, target: TargetTable, differences: Sequence[Difference]) -> None:
        """Replace the differences of a target.

        Raises:
            WriterReplaced: Another writer took over.
        """
        ...
