"""Whether a target's table is still as decided, as a cut-over asks it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from shardmerge.cli.checks.findings import Finding
from shardmerge.cli.drift.drift_reader import TargetDrift
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.drift import Difference, needs_somebody

from .seen import Reason


def drift_reasons(
    target: TargetTable, drift: TargetDrift | None, findings: Sequence[Finding]
) -> tuple[Reason, ...]:
    """Why the target's table must be looked at before a cut-over.

    Args:
        target: Whose table it is.
        drift: In what it differs from what was decided; None when no sink has made it.
        findings: What ``shardmerge check`` says of the table.
    """
    found = [Reason(finding.code or "SM-6707", str(finding)) for finding in findings]
    if drift is None:
        return (*found, Reason("SM-6707", f"{target} was not made by a sink of this pipeline"))
    hint = f"`shardmerge drift heal {target}` changes it back, `shardmerge drift adopt` keeps it"
    for each in drift.differences:
        if needs_somebody(each.kind):
            found.append(
                Reason("SM-6707", f"{target} is not as decided: {_difference_text(each)}", hint)
            )
    return tuple(found)


def _difference_text(difference: Difference) -> str:
    expected, found = difference.expected or "nothing", difference.found or "nothing"
    return f"{difference.subject} is {found}, decided was {expected}"
