"""A shard whose rows the sink takes out of the target, and reads from its table again. Pure.

The decision has a gate in the shard's stream, at the position of its last one. So it changes
nothing about which rows come with which schema; the sink finds the place of the new load itself
(``spark_sink.loading.load_rules``).
"""

from __future__ import annotations

from shardmerge.agents.coordination.decision_records import Step, obeyed, refuse
from shardmerge.agents.coordination.identities import known_names
from shardmerge.agents.coordination.state.shard_state import ShardState
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.coordination.target_moves import Refusal, Settled, unmoved
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.records.decisions import Fixup, FixupKind
from shardmerge.schemas.records.operator_commands import OperatorCommand
from shardmerge.schemas.records.reloads import Reload


def load_again(state: TargetState, command: OperatorCommand, known: ShardState) -> Step:
    """Order that a live shard is loaded again; refused where its rows cannot be told from others.

    Args:
        state: The target's state.
        command: The operator's command.
        known: The shard.
    """
    if (why := _why_not(state, known)) is not None:
        return refuse(state, command, why)
    settled = Settled(state, unmoved(state, known_names(state)), {})
    step = obeyed(state, command, settled)
    assert step.decision is not None
    fixup = Fixup(known.shard, FixupKind.LOAD, (), "an operator asked for it", "SM-1642")
    decision = replace(
        step.decision,
        fixups=(fixup,),
        reloads=(Reload(known.shard, known.position),),
        reason=f"the sink reads {known.shard} again; the rows that the target has of it go",
    )
    return replace(step, decision=decision)


def _why_not(state: TargetState, known: ShardState) -> Refusal | None:
    name = known.shard
    if known.real is None:
        return Refusal(f"the schema of {name} is not known", "tell it with set-schema", "SM-1305")
    if known.hold is not None:
        why = f"{name} is held at {known.hold.position}: {known.hold.reason}"
        return Refusal(why, "`shardmerge explain` shows the ways out of the hold", "SM-1645")
    if name in state.awaited:
        why = f"the table of {name} is to be read as a whole"
        return Refusal(why, "nothing is to be done: the watchdog has it read", "SM-1645")
    is_alone = len(state.shards) == 1 and not state.departed_rows
    if not is_alone and not state.policies.origin.tells_shards_apart:
        return Refusal(
            f"the rows of {name} cannot be told from others of {state.target}",
            f"load the whole target anew: shardmerge rebuild {state.target}",
            "SM-1641",
        )
    return None
