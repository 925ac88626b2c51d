"""Whether a target's table is still what was decided: the one place that a cut-over asks. Pure."""

from __future__ import annotations

from shardmerge.cli.checks.findings import Finding
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.target.table_comparison import difference, misfit

from .seen import Reason


def drift_of(
    target: TargetTable,
    decided: TableSchema | None,
    there: TableSchema | None,
    findings: list[Finding],
) -> tuple[Reason, ...]:
    """How the table differs from what was decided, so that it does not take every shard's rows.

    Args:
        target: Whose table it is.
        decided: The joined schema; None without a live shard.
        there: The table as its server has it; None without one.
        findings: What ``shardmerge check`` says of the table.
    """
    found = [Reason(finding.code or "SM-6707", str(finding)) for finding in findings]
    if decided is None or there is None:
        found.append(Reason("SM-6707", f"{target}: {difference(decided, there)}"))
    elif reason := misfit(decided, there):
        hint = "change the table back; `shardmerge schema` shows what was decided"
        found.append(Reason("SM-6707", f"{target} is not as decided: {reason}", hint))
    return tuple(found)
