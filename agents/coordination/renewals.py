"""The command ``renew``: a table that a rebuild has filled takes the target's place. Pure.

The table was made anew and has all rows of the shards. So it owes nothing to the target's past: it
can have other origin columns, and it can take schemas of which the rows in the old table would
stand in the way. The decision has the one statement that creates it, opens the gates of the shards
that were held only by the past, and gives all gates of the target the new origin columns. The sink
never executes the statement: the rebuild notes it as done when it exchanges the tables.

``renewed`` is also what the new table's own decisions begin with (``cli.rebuild``). They are the
same fold of the same log from then on. So they lead to the state that this command makes of the
target's own.
"""

from __future__ import annotations

from shardmerge.agents.coordination.state.shard_state import ShardState
from shardmerge.agents.coordination.state.target_state import TargetState, assembled
from shardmerge.schemas.effects.row_effects import next_fills
from shardmerge.schemas.lattice.joined import ShardSchema
from shardmerge.schemas.lattice.origin_columns import having_origin
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.origin import Origin, origin_part
from shardmerge.schemas.records.operator_commands import OperatorCommand, Renewal
from shardmerge.schemas.target.dialects.dialect import Dialect

from .decision_records import Step, obeyed, refuse
from .identities import known_names
from .settling import settle
from .target_moves import Refusal, Settled

_AGAIN = "run `shardmerge rebuild` again"


def renew(state: TargetState, command: OperatorCommand, dialect: Dialect) -> Step:
    """Decide that the rebuilt table takes the target's place, or refuse the command."""
    try:
        renewal = Renewal.read(command.argument)
    except ContractError as error:
        return refuse(state, command, Refusal(error.message, _AGAIN, code="SM-6524"))
    if renewal.version != state.version - 1:
        why = (
            f"the rebuilt table follows decision {renewal.version} of {state.target}, and the "
            f"latest one is {state.version - 1}"
        )
        return refuse(state, command, Refusal(why, _AGAIN, code="SM-6525"))
    found = renewed(state, renewal.origin, dialect)
    if isinstance(found, Refusal):
        return refuse(state, command, found)
    step = obeyed(state, command, found)
    assert step.decision is not None
    why = (
        f"rebuild {renewal.rebuild} puts a table that was loaded anew in the target's place; its "
        f"origin columns: {renewal.origin}"
    )
    (created,) = step.decision.statements
    decision = replace(
        step.decision,
        statements=(replace(created, reason=why, code="SM-6511"),),
        reason=why,
        origin=renewal.origin,
        reloads=(),
    )
    return replace(step, decision=decision)


def renewed(state: TargetState, origin: Origin, dialect: Dialect) -> Settled | Refusal:
    """Where a table moves to that is made anew from the shards' present schemas.

    Args:
        state: Of the target.
        origin: The origin columns that the new table has.
        dialect: The target's kind and version.
    """
    if not state.propagates:
        return Refusal(
            f"{state.target} does not follow its shards",
            "give the command `enable` first",
            code="SM-6524",
        )
    if state.schema is None or not state.shards:
        return Refusal(
            f"{state.target} has no live shard", "there is nothing to load it from", code="SM-6502"
        )
    blank = replace(
        state,
        policies=replace(state.policies, origin=origin),
        schema=None,
        columns=tuple(c for c in state.columns if origin_part(c.id) is None),
        fills={},
        told=(),
        joined=None,
        departed_rows=False,
    )
    blank = assembled(blank, (_renewed(shard, origin) for shard in state.shards.values()))
    known = known_names(state).items()
    names = {column_id: name for column_id, name in known if origin_part(column_id) is None}
    names |= {column.column_id: column.name for column in origin.columns}
    settled = settle(blank, names, dialect)
    if isinstance(settled, Refusal):
        return settled
    for name in sorted(settled.state.held):
        hold = settled.state.shards[name].hold
        assert hold is not None
        reason = f"{name} would be held in a new table, too: {hold.reason}"
        return Refusal(reason, hold.hint, code=hold.code)
    fills = next_fills({}, (), settled.answer.columns)
    return replace(settled, state=replace(settled.state, fills=fills))


def _renewed(shard: ShardState, origin: Origin) -> ShardState:
    """A shard with other origin columns."""

    def having(schema: ShardSchema | None) -> ShardSchema | None:
        return having_origin(schema, origin) if schema is not None else None

    hold = shard.hold
    if hold is not None:
        queue = tuple(replace(pending, post=having(pending.post)) for pending in hold.queue)
        hold = replace(hold, post=having(hold.post), queue=queue, effects=())
    return replace(shard, effective=having(shard.effective), actual=having(shard.actual), hold=hold)
