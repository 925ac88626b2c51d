"""An order without a stop that is found by putting steps off. Pure.

A step that stops a shard is put off until others are done, as long as that brings the rollout
forward. An order that is found in this way stops no shard, but an order with fewer moves may exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from immutables import Map

from shardmerge.agents.tracking.tracked import Tracked
from shardmerge.schemas.model.names import ShardId

from .plan import is_hold, is_stop, left_held
from .rollout import RolloutStep
from .simulated_agents import AgentsState, SimulatedAgents, SimulatedDecision

_MOST_FOLDS = 10
"""At most this many statements are tried for each step."""


@dataclass(frozen=True, slots=True)
class PutOff:
    """What was found.

    Attributes:
        places: The steps, as places in the given order; empty when no order was found.
        pausing: Whether a step was put off only because it pauses a shard.
    """

    places: tuple[int, ...]
    pausing: bool


def putting_off(
    agents: SimulatedAgents,
    before: AgentsState,
    steps: Sequence[RolloutStep],
    tables: Map[ShardId, Tracked],
    *,
    may_pause: bool = False,
) -> PutOff:
    """Find an order without a stop.

    Args:
        agents: Of the pipeline.
        before: What they know before the first step.
        steps: In the order that was given.
        tables: What the shards have after the given order.
        may_pause: Whether steps that pause a shard are taken.
    """
    state = before
    order: list[int] = []
    ahead = list(range(len(steps)))
    most = _MOST_FOLDS * len(ahead)
    pausing = False
    while ahead and most > 0:
        later: list[int] = []
        waiting: set[ShardId] = set()
        for place in ahead:
            step = steps[place]
            if step.shard not in waiting:
                most -= 1
                after, answers = agents.executed(state, step)
                if not is_stopped(answers, may_pause=may_pause):
                    state = after
                    order.append(place)
                    continue
                pausing |= not is_stopped(answers, may_pause=True)
                waiting.add(step.shard)
            later.append(place)
        if len(later) == len(ahead):
            break
        ahead = later
    found = not ahead and is_good(before, state, tables)
    return PutOff(tuple(order) if found else (), pausing)


def is_stopped(answers: Sequence[SimulatedDecision], *, may_pause: bool) -> bool:
    """Whether a step's answers stop a shard; with ``may_pause`` only holds do."""
    return any(map(is_hold if may_pause else is_stop, answers))


def is_good(before: AgentsState, after: AgentsState, tables: Map[ShardId, Tracked]) -> bool:
    """Whether an order leaves the shards with the tables of the given order, and holds none."""
    return not left_held(before, after) and after.tables == tables
