"""What happens to a shard's rows in the target when the shard leaves. Pure.

They stay, unless the route says that they are deleted, which needs origin columns that tell them
from the rows of other shards.
"""

from __future__ import annotations

import re

from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.schemas.model.coded_text import CodedText
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.policies import RowsPolicy
from shardmerge.schemas.pipeline.routing import TOOLS_TABLES
from shardmerge.schemas.records.schema_changes import SchemaChange
from shardmerge.schemas.target.row_statements import removal

from .decision_records import Step, with_statement, with_warning

_RENAME_TO = "RENAME TO "


def with_removal(state: TargetState, change: SchemaChange, step: Step) -> Step:
    """The answer to the change by which a shard leaves, with what happens to its rows.

    Args:
        state: With the shard.
        change: By which the shard left.
        step: Its answer.
    """
    if _deletes(state, change) and not _is_swap(change):
        why = CodedText(f"{change.shard} is gone", "SM-1923")
        return with_statement(step, removal(state.target, change.shard, state.policies.origin, why))
    return with_warning(step, rows_stay(change.shard))


def rows_stay(shard: ShardId) -> CodedText:
    """What the operator is told when a shard leaves and its rows do not."""
    return CodedText(f"rows of {shard} stay in the target", "SM-1713")


def without_leaving(state: TargetState, change: SchemaChange) -> TargetState:
    """The state without a shard that leaves; ``departed_rows`` tells whether its rows stay.

    When an online schema change tool swaps a shard's table, its rows do not count as departed: they
    are the shard's again when it is back.

    Args:
        state: With the shard.
        change: By which the shard leaves.
    """
    remaining = state.without_shard(change.shard)
    if _deletes(state, change) or _is_swap(change):
        return remaining
    return replace(remaining, departed_rows=True)


def _deletes(state: TargetState, change: SchemaChange) -> bool:
    deletes = (
        change.policies.on_drop is RowsPolicy.DELETE and state.policies.origin.tells_shards_apart
    )
    return deletes and state.schema is not None


def _is_swap(change: SchemaChange) -> bool:
    """Whether an online schema change tool put another table in the place of the shard's.

    The new table holds the same rows.
    """
    names = [a.removeprefix(_RENAME_TO) for a in change.actions if a.startswith(_RENAME_TO)]
    return any(re.fullmatch(TOOLS_TABLES, name.rpartition(".")[2]) for name in names)
