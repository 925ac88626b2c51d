"""Heals a target's table: executes the statements that bring it back to what was decided.

They run under the lock of the target's DDL, so none of the sink's statements runs meanwhile. They
need no place among the rows: rows that wait, or are written, expect the decided table already.
What was planned is planned again under the lock. If the table has changed since, nothing is done.

A statement of the sink that was begun, and whose end the journal does not know, is settled then:
the table shows that it was executed, or it begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.target.drift_healing import Healing
from shardmerge.spark_sink.targets.interface import JournalEntry

from .compared_tables import ComparedTable, TableComparer
from .ddl_lock import check_no_job, ddl_lock
from .entries import Told

WAIT_S = 30
"""Most seconds to wait for a statement that runs on the target."""


def heal(
    comparer: TableComparer,
    target: TargetTable,
    plan: Callable[[ComparedTable], Sequence[Healing]],
    planned: Sequence[Healing],
    by: str,
) -> ComparedTable:
    """Execute what was planned.

    Args:
        comparer: Of the pipeline; no transaction may be open on its session.
        target: The table.
        plan: Makes the plan from a comparison.
        planned: What it made, and somebody agreed to.
        by: Who agreed; the journal keeps it.

    Returns:
        The table afterwards, compared.

    Raises:
        TargetError: The table has changed since; the server refused a statement, or does not
            answer; or a statement of the sink runs on it (``retryable``).
    """
    session, pipeline = comparer.session, comparer.pipeline
    with ddl_lock(session, pipeline, target, WAIT_S):
        check_no_job(session, target)
        if tuple(plan(comparer.compare(target))) != tuple(planned):
            raise TargetError(
                f"{target} has changed since the statements were made; none was executed",
                hint=f"look again: shardmerge drift show {target}",
                code="SM-6809",
            )
        for done, each in enumerate(planned):
            try:
                session.execute(each.sql)
            except TargetError as error:
                raise TargetError(
                    f"{each.sql}: {error.message}; {done} statements before it were executed",
                    number=error.number,
                    statement=each.sql,
                    retryable=error.retryable,
                    hint=error.hint or "remove what is in the way, and heal again",
                    code="SM-6809",
                ) from error
            comparer.entries.note_healing(pipeline, target, f"{each.sql} (healed by {by})")
        compared = comparer.compare(target)
        _settle(comparer, target, compared)
        return compared


def _settle(comparer: TableComparer, target: TargetTable, compared: ComparedTable) -> None:
    for begun in list(comparer.entries.begun(comparer.pipeline, target)):
        is_executed = compared.executed is not None and compared.executed.place == begun.place
        entry = JournalEntry("done") if is_executed else begun.entry
        told = Told(begun.statement.sql, begun.statement.actions)
        comparer.entries.store(begun.place, told, entry, None)
