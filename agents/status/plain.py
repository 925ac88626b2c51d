"""What ``/api`` answers, as values: their plain form is the JSON. Pure.

Every field is always there. Later versions may add fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shardmerge.agents.holds.reports import HoldReport
from shardmerge.agents.holds.shapes import ShownConflict, WayOut
from shardmerge.schemas.records.decisions import Decision
from shardmerge.schemas.records.progress import SinkProgress

from .matrix import Matrix
from .view import StatusView, TargetView

RECENT = 20
"""Decisions of each target in the status of all; a target's own tells all that are kept."""


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """Why there is no other answer.

    Attributes:
        error: A sentence, with a code where it has one.
    """

    error: str


@dataclass(frozen=True, slots=True)
class HealthAnswer:
    """Whether the worker works.

    Attributes:
        ready: Whether its agents consume. Not while it starts, recovers or rebalances.
        assigned: The partitions that its agents read.
        view_caught_up: Whether everything that was in the topics when it started is shown.
    """

    ready: bool
    assigned: tuple[str, ...]
    view_caught_up: bool


@dataclass(frozen=True, slots=True)
class ColumnAnswer:
    """One joined column.

    Attributes:
        name: In the target.
        definition: Type and properties as SQL.
        id: Its identity.
        partial: Whether some live shard lacks it.
        missing_on: Those shards, sorted.
    """

    name: str
    definition: str
    id: str
    partial: bool
    missing_on: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShardAnswer:
    """One shard.

    Attributes:
        shard: As ``source/database.table``.
        state: ``live``, ``held``, ``paused`` or ``left``.
        version: Of the decision that brought it to this state.
        position: Of the same, in its source.
        reason: Why it is held or paused; "" otherwise.
        hint: What ends that.
        code: Of the reason.
        since_ms: When that began, in milliseconds since 1970; 0 where it is not known.
    """

    shard: str
    state: str
    version: int
    position: str
    reason: str
    hint: str
    code: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class TargetAnswer:
    """One target.

    Attributes:
        target: As ``database.table``.
        version: Of its latest decision.
        columns: The joined schema, in the target's order.
        shards: Sorted; also those that left it.
        decisions: Newest first.
        progress: What the sink told last; null when it has told nothing.
    """

    target: str
    version: int
    columns: tuple[ColumnAnswer, ...]
    shards: tuple[ShardAnswer, ...]
    decisions: tuple[Decision, ...]
    progress: SinkProgress | None


@dataclass(frozen=True, slots=True)
class StatusAnswer:
    """All targets.

    Attributes:
        pipeline: Its name.
        caught_up: Whether everything that was in the topics when the worker started is shown.
        targets: Sorted by name, each with its last 20 decisions.
        ignored: The last decisions about statements that concern no shard, newest first.
    """

    pipeline: str
    caught_up: bool
    targets: tuple[TargetAnswer, ...]
    ignored: tuple[Decision, ...]


@dataclass(frozen=True, slots=True)
class MatrixColumnAnswer:
    """One column of the picture.

    Attributes:
        name: In the target, or on the shards for a column that is left out.
        id: Its identity; "" for a column that the target does not have.
        definition: In the joined schema; "" likewise.
        counts: Kind of a cell → how many shards have it, of all that the search found.
    """

    name: str
    id: str
    definition: str
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class CellAnswer:
    """One cell.

    Attributes:
        kind: ``same``, ``missing``, ``dropped``, ``renamed``, ``type differs``, ``left out`` or
            ``waits``.
        text: What differs; "" for none.
    """

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class GroupAnswer:
    """Shards that are alike.

    Attributes:
        state: ``held``, ``paused``, ``waits`` or ``flows``.
        shards: Sorted.
        cells: One for each of the columns.
    """

    state: str
    shards: tuple[str, ...]
    cells: tuple[CellAnswer, ...]


@dataclass(frozen=True, slots=True)
class MatrixAnswer:
    """Shards and columns of a target.

    Attributes:
        columns: Those that are told.
        alike: Names of the columns that are not told, because all shards have them.
        groups: One part of the groups: shards that stand first, then the smallest.
        group_count: How many groups there are.
        page: Which part this is, from 1; of ``pages``.
        pages: How many parts there are.
        found: How many shards the search found.
        total: How many live shards the target has.
    """

    columns: tuple[MatrixColumnAnswer, ...]
    alike: tuple[str, ...]
    groups: tuple[GroupAnswer, ...]
    group_count: int
    page: int
    pages: int
    found: int
    total: int


@dataclass(frozen=True, slots=True)
class HoldAnswer:
    """One reason for which shards stand.

    Attributes:
        conflict: The reason with both sides.
        shard: The shard whose ways out are told; "" when none are.
        ways: How it can go on.
        waits_for: For the DDL lock: the shards that have not made that shard's change.
    """

    conflict: ShownConflict
    shard: str
    ways: tuple[WayOut, ...]
    waits_for: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HoldsAnswer:
    """Why shards of a target stand.

    Attributes:
        target: As ``database.table``.
        reasons: Holds before pauses.
    """

    target: str
    reasons: tuple[HoldAnswer, ...]


def status_answer(view: StatusView, pipeline: str, caught_up: bool) -> StatusAnswer:
    """All targets, and what was ignored."""
    targets = tuple(target_answer(target, RECENT) for target in view.targets())
    return StatusAnswer(pipeline, caught_up, targets, view.ignored()[:RECENT])


def target_answer(target: TargetView, decisions: int | None = None) -> TargetAnswer:
    """One target.

    Args:
        target: Any.
        decisions: How many of the newest are told; None for all that are kept.
    """
    return TargetAnswer(
        str(target.target),
        target.version,
        tuple(
            ColumnAnswer(c.name, c.definition, c.id, c.partial, tuple(map(str, c.missing_on)))
            for c in target.columns
        ),
        tuple(
            ShardAnswer(
                str(s.shard), s.state, s.version, str(s.position), s.reason, s.hint, s.code, s.ts_ms
            )
            for s in target.shards
        ),
        target.decisions[:decisions],
        target.progress,
    )


def matrix_answer(found: Matrix) -> MatrixAnswer:
    """A target's shards and columns."""
    return MatrixAnswer(
        tuple(
            MatrixColumnAnswer(
                column.name,
                column.id,
                column.definition,
                {cell.value: count for cell, count in sorted(column.counts.items())},
            )
            for column in found.columns
        ),
        found.alike,
        tuple(
            GroupAnswer(
                row.state,
                tuple(map(str, row.shards)),
                tuple(CellAnswer(cell.kind.value, cell.text) for cell in row.cells),
            )
            for row in found.rows
        ),
        found.row_count,
        found.page,
        found.pages,
        found.found,
        found.total,
    )


def holds_answer(target: str, reports: list[HoldReport]) -> HoldsAnswer:
    """Why shards of a target stand."""
    reasons = (
        HoldAnswer(r.conflict, str(r.shard or ""), r.ways, tuple(map(str, r.waits_for)))
        for r in reports
    )
    return HoldsAnswer(target, tuple(reasons))
