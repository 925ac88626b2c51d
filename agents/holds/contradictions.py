"""What holds a shard: other definitions of a column, or shards that are behind. Pure."""

from __future__ import annotations

import re

from shardmerge.agents.coordination.ddl_lock import head_of
from shardmerge.agents.coordination.identities import known_names
from shardmerge.agents.coordination.state.shard_state import Hold, ShardState
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.schemas.ddl.describe import definition
from shardmerge.schemas.lattice.joined import Conflict
from shardmerge.schemas.model.names import ShardId

from .shapes import WITHOUT, Side

_COLUMN = re.compile(r"column (.+)")
LOCK = "waits for the DDL lock"


def hold_kind(hold: Hold) -> str:
    """Why a shard is held: ``unreadable``, ``lock`` or ``conflict``."""
    if hold.post is None:
        return "unreadable"
    return "lock" if hold.queue and hold.reason.startswith(LOCK) else "conflict"


def lacking(state: TargetState, shard: ShardState) -> list[ShardId]:
    """The shards that a shard waits for at the DDL lock: they have not made its change."""
    if shard.head is None:
        return []
    head = head_of(state, shard.head)
    return [
        name
        for name in sorted(state.shards)
        if (other := state.shards[name]).head not in head.ways
        and not (other.effective is not None and head.is_in(other.effective))
    ]


def conflict_of(state: TargetState) -> Conflict | None:
    """The conflict between the shards' latest schemas; None if they can be joined."""
    names = known_names(state)
    if any(column_id not in names for column_id in state.final.ids):
        return None
    joined = state.final.join(names, (), state.type_rules)
    return joined if isinstance(joined, Conflict) else None


def conflict_path(conflict: Conflict | None, reason: str) -> tuple[str, ...]:
    """The path of the conflict that is the reason of a hold; empty if it has none.

    Args:
        conflict: The conflict between the shards' latest schemas; None without one.
        reason: The reason of the hold.
    """
    if conflict is not None and reason == str(conflict):
        return conflict.path
    # The reason may be an earlier conflict than the present one. Then its text names the column.
    head, colon, _ = reason.partition(": ")
    return tuple(head.split(", ")) if colon and head.startswith("column ") else ()


def sides_of(state: TargetState, path: tuple[str, ...]) -> tuple[Side, ...]:
    """The definitions of the column in a conflict, the most common one first.

    Args:
        state: The state of the target.
        path: The path of the conflict. A path without a column gives no sides.
    """
    column = next((found[1] for part in path if (found := _COLUMN.fullmatch(part))), None)
    if column is None:
        return ()
    names = known_names(state)
    sides: dict[str, list[ShardId]] = {}
    for name in sorted(state.shards):
        told = _definition(state.shards[name], column, names)
        sides.setdefault(told, []).append(name)
    ordered = sorted(sides.items(), key=lambda side: (-len(side[1]), side[0]))
    return tuple(Side(text, tuple(map(str, shards))) for text, shards in ordered)


def _definition(shard: ShardState, column: str, names: dict[str, str]) -> str:
    schema = shard.final
    for item in schema.columns if schema else ():
        if names.get(item.id, item.column.name).casefold() == column.casefold():
            return definition(item.column)
    return WITHOUT
