"""Heals an Iceberg table: commits the layout that brings it back to what was decided.

The plan is made once more from the metadata on which the layout is committed. If it differs from
the plan that somebody agreed to, nothing is committed. A commit of the sink that comes between is
no obstacle: the table is read again. So the sink need not be stopped.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.target.drift_healing import Healing
from shardmerge.schemas.target.table_state import TABLE
from shardmerge.spark_sink.targets.iceberg.store import repeated
from shardmerge.spark_sink.targets.iceberg.texts.compared_layouts import (
    ComparedLayout,
    no_table,
)
from shardmerge.spark_sink.targets.iceberg.texts.layout import Layout
from shardmerge.spark_sink.targets.iceberg.texts.layout_healing import layout_healing, plain_steps

from .table_looks import LayoutComparer


def plan_of(
    compared: ComparedLayout, target: TargetTable, subjects: Collection[str] | None = None
) -> tuple[tuple[Healing, ...], Layout | None]:
    """The steps that heal differences, and the layout after them.

    Args:
        compared: The table.
        target: Its name.
        subjects: Of the differences to heal; None for all.

    Returns:
        The layout is None when no layout heals them.
    """
    wanted = [d for d in compared.differences if subjects is None or d.subject in subjects]
    if compared.layouts is None:
        return plain_steps(wanted, target), None
    return layout_healing(wanted, compared.layouts, target)


def heal(
    comparer: LayoutComparer,
    target: TargetTable,
    planned: Sequence[Healing],
    subjects: Collection[str],
    by: str,
) -> ComparedLayout:
    """Commit what ``plan_of`` planned, and note it in the table's properties.

    Args:
        comparer: Of the pipeline.
        target: The table.
        planned: The steps that somebody agreed to.
        subjects: Of the differences that they heal.
        by: Who agreed; the table's properties keep the name.

    Returns:
        The comparison afterwards; without a difference when the table is forgotten.

    Raises:
        TargetError: The table has changed since it was planned; or the catalog refuses the layout,
            or does not answer (``retryable``).
    """
    store = comparer.store
    key = f"shardmerge.{store.pipeline}.healed"
    kept = comparer.kept.load().get(target, ())

    def commit() -> None:
        table = store.catalog.find(target)
        compared = comparer.compare_reading(table)
        steps, layout = plan_of(compared, target, subjects)
        if steps != tuple(planned):
            raise TargetError(
                f"{target} has changed since the steps were planned; nothing was done",
                hint=f"look again: shardmerge drift show {target} --pipeline FILE",
                code="SM-6809",
            )
        if table is not None and layout is not None:
            done = [f"{each.sql} (healed by {by})" for each in steps if each.sql]
            noted = json.loads(table.property(key) or "[]")
            table.commit({key: json.dumps([*noted, *dict.fromkeys(done)])}, layout=layout)

    repeated(commit)
    if TABLE in subjects:
        store.forget_made(target)
        return no_table()
    return comparer.compare(target, kept)
