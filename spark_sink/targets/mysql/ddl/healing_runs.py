"""Heals a target's table: executes the statements that bring it back to what was decided.

They run under the lock of the target's DDL, so the sink executes no statement on the table
meanwhile. Healing may happen at any point among the rows, because all rows expect the decided
table. Under the lock the plan is made once more. If it differs from the plan that somebody agreed
to, nothing is executed.

The journal may have statements that the sink began, and whose end it does not know. Healing settles
them. If the table shows that such a statement was executed, the journal notes it as done. Otherwise
it counts as not executed, and the sink begins it anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.target.drift_healing import Healing
from shardmerge.spark_sink.targets.interface import JournalEntry

from .compared_tables import ComparedTable, TableComparer
from .ddl_lock import check_no_job, ddl_lock

WAIT_S = 30
"""Longest wait, in seconds, for a statement that runs on the table."""


def heal(
    comparer: TableComparer,
    target: TargetTable,
    plan: Callable[[ComparedTable], Sequence[Healing]],
    planned: Sequence[Healing],
    by: str,
) -> ComparedTable:
    """Execute the planned statements, and note each in the journal.

    Args:
        comparer: The pipeline's comparer; no transaction may be open on its session.
        target: The table.
        plan: Makes a plan from a comparison.
        planned: The plan that somebody agreed to.
        by: Who agreed; the journal keeps the name.

    Returns:
        The comparison after the last statement.

    Raises:
        TargetError: The table has changed since it was planned; or the server refused a statement,
            or does not answer; or a statement of the sink runs on the table (``retryable``).
    """
    session, pipeline = comparer.session, comparer.pipeline
    with ddl_lock(session, pipeline, target, WAIT_S):
        check_no_job(session, target)
        if tuple(plan(comparer.compare(target))) != tuple(planned):
            raise TargetError(
                f"{target} has changed since the statements were planned; none was executed",
                hint=f"look again: shardmerge drift show {target} --pipeline FILE",
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
                    hint=error.hint or "remove what the server names, and heal again",
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
        comparer.entries.store(begun.place, begun.statement, entry, None)
