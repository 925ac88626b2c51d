"""What becomes of the target's rows of a shard that left. Pure.

They stay, unless the route says that they are deleted, which needs origin columns that tell them
from the rows of other shards.
"""

from __future__ import annotations

import re

from shardmerge.schemas.events import SchemaChange
from shardmerge.schemas.routing import TOOLS_TABLES, RowsPolicy
from shardmerge.schemas.row_statements import removal

from .answers import Step, with_statement, with_warning
from .state import TargetState

_RENAME_TO = "RENAME TO "


def with_removal(state: TargetState, change: SchemaChange, step: Step) -> Step:
    """The answer to a shard's leave, with what becomes of its rows.

    Args:
        state: With the shard.
        change: With which it left.
        step: Its answer.
    """
    deletes = change.on_drop is RowsPolicy.DELETE and state.origin.tells_shards_apart
    if deletes and state.schema is not None and not _is_swap(change):
        reason = f"{change.shard} is gone"
        return with_statement(step, removal(state.target, change.shard, state.origin, reason))
    return with_warning(step, f"rows of {change.shard} stay in the target")


def _is_swap(change: SchemaChange) -> bool:
    """Whether an online schema change tool put another table in the place of the shard's.

    The one that it puts there holds the same rows.
    """
    names = [a.removeprefix(_RENAME_TO) for a in change.actions if a.startswith(_RENAME_TO)]
    return any(re.fullmatch(TOOLS_TABLES, name.rpartition(".")[2]) for name in names)
