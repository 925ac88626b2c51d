"""The values that ``shardmerge rebuild --json`` prints. Pure; see ``cli.views.shapes``."""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.cli.views.call_shapes import CallReason


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """What ``shardmerge rebuild`` prints.

    Attributes:
        target: As ``database.table``.
        number: Number of the rebuild in its pipeline; 0 when none began.
        stage: ``building``, ``swapping``, ``swapped``, ``ended`` (the old table is dropped) or
            ``aborted``; "" when none began.
        by: Who began it.
        begun: When it began, as ISO 8601.
        new_table: Where the new table is before the swap.
        old_table: Where the old table is after the swap; for an Iceberg target, what a query reads
            to see the old rows.
        rows: Rows that were loaded from the shards.
        compared_rows: Rows of the shards that were compared with the new table; None when this
            call has compared none.
        closed_ms: For how many milliseconds the sink could not change the target during the swap;
            None without a swap.
        where: The condition that the target's route has with the new table; None if it is not
            changed.
        origin: The origin columns that the target has with the new table; None if they are not
            changed.
        file_changed: Whether this call has written what its route has into the pipeline file.
        reasons: Why the call did not go on; empty when it did what it was to do.
    """

    target: str
    number: int
    stage: str
    by: str
    begun: str
    new_table: str
    old_table: str
    rows: int
    compared_rows: int | None
    closed_ms: int | None
    where: str | None
    origin: str | None
    file_changed: bool
    reasons: tuple[CallReason, ...]
