"""What the agents would decide about a rollout's steps, one after another. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records.decisions import Outcome

from .rollout import RolloutStep
from .simulated_agents import AgentsState, SimulatedAgents, SimulatedDecision

LOCK = "SM-1213"
"""Code of a hold that only waits for the DDL lock. In pessimistic mode every change waits so."""


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step, and what the agents would decide.

    Attributes:
        number: Its place in the order that was given, from 1.
        step: The statement.
        answers: The decisions in order; none for a statement that changes only rows or settings.
    """

    number: int
    step: RolloutStep
    answers: tuple[SimulatedDecision, ...]

    @property
    def holds(self) -> tuple[SimulatedDecision, ...]:
        """The answers that hold their shard, without those that wait for the DDL lock."""
        return tuple(a for a in self.answers if is_hold(a))

    @property
    def pauses(self) -> tuple[ShardId, ...]:
        """The shards that their routes pause: an operator is to look at their existing rows."""
        return tuple(shard for answer in self.answers for shard in answer.decision.pauses)


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole rollout.

    Attributes:
        before: What the agents know before it.
        steps: In the order in which they are executed.
        after: What the agents know at its end.
    """

    before: AgentsState
    steps: tuple[PlannedStep, ...]
    after: AgentsState

    @property
    def holds(self) -> tuple[tuple[PlannedStep, SimulatedDecision], ...]:
        """The holds of all steps, without those that wait for the DDL lock."""
        return tuple((step, answer) for step in self.steps for answer in step.holds)

    @property
    def left_held(self) -> tuple[ShardId, ...]:
        """The shards that are held at the end, and were not held before, sorted."""
        return left_held(self.before, self.after)

    @property
    def pauses(self) -> tuple[ShardId, ...]:
        """The shards that steps pause, in the order of the steps."""
        return tuple(shard for step in self.steps for shard in step.pauses)

    @property
    def left_paused(self) -> tuple[ShardId, ...]:
        """The shards that are paused at the end, and were not paused before, sorted.

        No step resumes a shard. So these are the shards that steps pause, except those that a later
        step drops or renames.
        """
        return tuple(sorted(paused(self.after) - paused(self.before)))

    @property
    def untouched(self) -> tuple[ShardId, ...]:
        """The shards whose steps all concern tables that are no shards, sorted.

        Most likely the statements name another table than the shard's.
        """
        touched: dict[ShardId, bool] = {}
        for step in self.steps:
            if step.answers:
                counts = any(a.decision.outcome is not Outcome.IGNORED for a in step.answers)
                shard = step.step.shard
                touched[shard] = touched.get(shard, False) or counts
        return tuple(sorted(shard for shard, counts in touched.items() if not counts))


def is_hold(answer: SimulatedDecision) -> bool:
    """Whether a decision holds its shard for another reason than the DDL lock."""
    return answer.decision.outcome is Outcome.HOLD and answer.decision.code != LOCK


def is_stop(answer: SimulatedDecision) -> bool:
    """Whether after a decision a shard's rows wait for an operator: a hold or a pause."""
    return is_hold(answer) or bool(answer.decision.pauses)


def left_held(before: AgentsState, after: AgentsState) -> tuple[ShardId, ...]:
    """The shards that are held in one state and not in an earlier one, sorted."""
    return tuple(sorted(held(after) - held(before)))


def planned(
    agents: SimulatedAgents,
    before: AgentsState,
    steps: Iterable[tuple[int, RolloutStep]],
    on_stop: Callable[[], None] = lambda: None,
) -> Plan:
    """Let the agents decide about steps, one after another.

    Args:
        agents: Both agents of the pipeline.
        before: What the agents know before the first step.
        steps: Each with its number, in the order in which they are executed.
        on_stop: Called once, after the first step that stops a shard.
    """
    state = before
    found: list[PlannedStep] = []
    stopped = False
    for number, step in steps:
        state, answers = agents.executed(state, step)
        found.append(PlannedStep(number, step, answers))
        if not stopped and any(map(is_stop, answers)):
            stopped = True
            on_stop()
    return Plan(before, tuple(found), state)


def numbered(steps: Sequence[RolloutStep]) -> list[tuple[int, RolloutStep]]:
    """Steps with their numbers, from 1."""
    return list(enumerate(steps, 1))


def held(state: AgentsState) -> set[ShardId]:
    """The shards that are held."""
    return {shard for target in state.targets.values() for shard in target.held}


def paused(state: AgentsState) -> set[ShardId]:
    """The shards that are paused."""
    return {
        name
        for target in state.targets.values()
        for name, shard in target.shards.items()
        if shard.paused
    }
