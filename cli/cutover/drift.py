"""Whether a target's table is still as decided, as a cut-over asks it. Pure."""

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
    """The differences for which the table might refuse rows of its shards.

    Args:
        target: The target with this table.
        decided: The joined schema; None without a live shard.
        there: The table as its server has it; None when the server has no such table.
        findings: What ``shardmerge check`` says about the table.
    """
    found = [Reason(finding.code or "SM-6707", str(finding)) for finding in findings]
    if decided is None or there is None:
        found.append(Reason("SM-6707", f"{target}: {difference(decided, there)}"))
    elif reason := misfit(decided, there):
        hint = "change the table back; `shardmerge schema` shows what was decided"
        found.append(Reason("SM-6707", f"{target} is not as decided: {reason}", hint))
    return tuple(found)
