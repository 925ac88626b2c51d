"""How far the rebuild of a target is, as it is stored in the target's control database. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.decisions import TargetStatement

from .changed_where import ChangedWhere
from .shadow import Shadow


class Stage(StrEnum):
    """How far a rebuild is."""

    BUILDING = "building"
    """The shadow is filled, and follows the shards. The old table serves."""
    SWAPPING = "swapping"
    """The sink may not change the target, and the two tables change places."""
    SWAPPED = "swapped"
    """The new table serves. The old one is kept."""
    ENDED = "ended"
    """The old table is dropped."""
    ABORTED = "aborted"
    """The shadow is dropped. The old table serves."""


@dataclass(frozen=True, slots=True)
class RebuildRecord:
    """One rebuild.

    Attributes:
        number: Counts the rebuilds of the pipeline from 1.
        version: See ``Shadow``.
        creation: See ``Shadow``.
        control_database: Its name is the beginning of the databases' names.
        by: Who ordered the rebuild.
        begun: When it began, as ISO 8601.
        only_source_rows: Whether the new table may lack rows that no shard has.
        where: The condition of the target's route for the new table; None if it is not changed.
        where_before: The condition that was in force when the rebuild began.
    """

    number: int
    target: TargetTable
    stage: Stage
    version: int
    creation: tuple[TargetStatement, ...]
    control_database: str
    by: str
    begun: str
    only_source_rows: bool = False
    where: str | None = None
    where_before: str = ""

    @property
    def is_open(self) -> bool:
        """Whether the shadow is neither in the target's place nor dropped."""
        return self.stage in (Stage.BUILDING, Stage.SWAPPING)

    @property
    def shadow(self) -> Shadow:
        """The shadow."""
        table = shadow_table(self.control_database, self.number, self.target)
        return Shadow(self.target, table, self.version, self.creation)

    @property
    def changed_where(self) -> ChangedWhere | None:
        """The changed condition; None if it stays."""
        if self.where is None:
            return None
        return ChangedWhere(self.target, self.where_before, self.where)

    @property
    def old(self) -> TargetTable:
        """Where the old table is after the swap."""
        return TargetTable(f"{self.control_database}_old_{self.number}", self.target.table)

    def sink_name(self, pipeline: str) -> str:
        """The name under which the shadow's sink keeps its state in the control tables."""
        return f"{pipeline}~{self.number}"


def shadow_table(control_database: str, number: int, target: TargetTable) -> TargetTable:
    """Where the shadow of a target is."""
    return TargetTable(f"{control_database}_new_{number}", target.table)
