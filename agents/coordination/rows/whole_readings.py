"""Tables without a primary key, read again as a whole: the request and the answer. Pure.

No incremental snapshot can read such a table. So the shard's rows wait. The watchdog has the table
read at one position of its binlog, and reports that by the command ``reloaded``. The decision that
answers it removes the old rows (``Decision.reloads``).

Where origin columns do not tell a shard's rows from others, nobody can remove them alone: equal
rows of two shards look the same. Then all shards of the target are read again, and the target is
emptied for them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from shardmerge.agents.coordination.decision_records import Step, obeyed, refuse
from shardmerge.agents.coordination.identities import known_names
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.coordination.target_moves import Refusal, Settled, unmoved
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records.decisions import Fixup, FixupKind
from shardmerge.schemas.records.operator_commands import OperatorCommand
from shardmerge.schemas.records.reloads import Reload, reloads_in

from .rereads import is_read_as_whole

_AGAIN = "nothing is to be done: the watchdog reads the tables again while their rows wait"


def with_mates(state: TargetState, fixups: Sequence[Fixup]) -> list[Fixup]:
    """The fix-ups, sorted, with one more for each shard that must be read along with another.

    If one of them cannot be read as a whole, none is: the difference stays, with the reason.

    Args:
        state: After the decision.
        fixups: At most one for each shard.
    """
    wholes = [fixup for fixup in fixups if fixup.kind is FixupKind.WHOLE]
    if not wholes or state.policies.origin.tells_shards_apart:
        return sorted(fixups, key=_shard)
    why = ""
    if state.departed_rows:
        why = "its rows cannot be told from those of shards that left"
    had = {fixup.shard for fixup in wholes}
    others = sorted(name for name in state.shards if name not in had)
    if unread := next(
        (name for name in others if not is_read_as_whole(name, state.shards[name].table)), None
    ):
        why = f"its rows cannot be told from those of {unread}, which cannot be read as a whole"
    if why:
        accepted = [replace(f, kind=FixupKind.ACCEPT, reason=f"{f.reason}; {why}") for f in wholes]
        return sorted([*(f for f in fixups if f.shard not in had), *accepted], key=_shard)
    reason = f"the target does not tell its rows from those of {wholes[0].shard}"
    mates = [Fixup(name, FixupKind.WHOLE, (), reason, "SM-1812") for name in others]
    kept = [fixup for fixup in fixups if fixup.shard not in others]
    return sorted([*kept, *mates], key=_shard)


def with_awaited(
    state: TargetState, fixups: Sequence[Fixup], reloaded: Collection[ShardId]
) -> TargetState:
    """The state that knows which tables are to be read as a whole.

    Args:
        state: After the decision.
        fixups: Of the decision.
        reloaded: Shards that the decision reloads.
    """
    asked = {fixup.shard for fixup in fixups if fixup.kind is FixupKind.WHOLE}
    if not asked and not state.awaited:
        return state
    awaited = {name for name in asked.union(state.awaited) if name in state.shards}
    found = tuple(sorted(awaited.difference(reloaded)))
    return state if found == state.awaited else replace(state, awaited=found)


def reloaded(state: TargetState, command: OperatorCommand) -> Step:
    """Accept the tables that the watchdog has had read, unless a reading is out of date."""
    try:
        reloads = reloads_in(command.argument)
    except ContractError as error:
        return refuse(
            state,
            command,
            Refusal(error.message, "the watchdog gives this command", code=error.code),
        )
    if why := _stale(state, reloads):
        return refuse(state, command, Refusal(why, _AGAIN, code="SM-1313"))
    settled = Settled(state, unmoved(state, known_names(state)), {})
    step = obeyed(state, command, settled)
    assert step.decision is not None
    shards = ", ".join(str(reload.shard) for reload in reloads)
    decision = replace(
        step.decision,
        reloads=reloads,
        reason=f"read again as a whole: {shards}; their rows of before go",
    )
    return replace(step, decision=decision)


def _stale(state: TargetState, reloads: Sequence[Reload]) -> str:
    """Why readings do not count any more; "" when they do."""
    names = tuple(reload.shard for reload in reloads)
    if names != state.awaited:
        wanted = ", ".join(map(str, state.awaited)) or "no shard"
        return f"these tables are to be read as a whole: {wanted}"
    for reload in reloads:
        known = state.shards[reload.shard]
        if known.hold is not None:
            return f"{reload.shard} is held at {known.hold.position}: {known.hold.reason}"
        if reload.position <= known.position:
            return (
                f"{reload.shard} was read at {reload.position}, its schema has changed at "
                f"{known.position}"
            )
    return ""


def _shard(fixup: Fixup) -> ShardId:
    return fixup.shard
