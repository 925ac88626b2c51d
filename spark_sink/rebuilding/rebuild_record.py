"""How far the rebuild of a target is, as it is stored in the target's control database. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.origin import NO_ORIGIN, Origin
from shardmerge.schemas.records.decisions import TargetStatement

from .route_changes import ChangedOrigin, ChangedWhere, RouteChange
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
        origin: The origin columns of a table that is made anew from the shards' present schemas,
            and so has decisions of its own; None for a table with the target's decisions.
        origin_before: The origin columns that the route had when the rebuild began.
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
    origin: Origin | None = None
    origin_before: Origin = NO_ORIGIN

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
    def changes(self) -> tuple[RouteChange, ...]:
        """What the rebuild changes in the target's route."""
        found: list[RouteChange] = []
        if self.where is not None:
            found.append(ChangedWhere(self.target, self.where_before, self.where))
        if self.origin not in (None, self.origin_before):
            assert self.origin is not None
            found.append(ChangedOrigin(self.target, self.origin_before, self.origin))
        return tuple(found)

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
