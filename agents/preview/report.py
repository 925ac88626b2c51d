"""A plan as it is shown: decisions with their ways out, sums, the safe order. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from immutables import Map

from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.holds.contradictions import conflict_of, conflict_path, sides_of
from shardmerge.agents.holds.shapes import Side, WayOut
from shardmerge.agents.holds.ways_out import out_of_hold, out_of_pause
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Decision, Fixup, FixupKind, Outcome
from shardmerge.schemas.records.operator_commands import CommandKind

from .plan import LOCK, Plan, PlannedStep, held, paused
from .safe_order import SafeOrder
from .shapes import (
    ShownAlternative,
    ShownDecision,
    ShownFixup,
    ShownOrder,
    ShownPlan,
    ShownStatement,
    ShownStep,
)
from .simulated_agents import AgentsState, SimulatedAgents, SimulatedDecision
from .statements import shown_statement

_WITH_WAYS = 20
"""Ways out are shown for this many holds of one target and code: each asks the coordinator."""
_NAMED = 5
"""A sentence names so many shards."""
READ = (FixupKind.SNAPSHOT, FixupKind.RELOAD, FixupKind.WHOLE)
"""With these a table is read again; a plan has no other such kind."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a report is about, besides the plan.

    Attributes:
        agents: Both agents of the pipeline.
        path: Path of the pipeline file, for the commands that are shown.
        present: See ``ShownPlan``.
        rows: About how many rows the shards' tables have, as far as that is known.
    """

    agents: SimulatedAgents
    path: Path
    present: str
    rows: Mapping[ShardId, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Answers:
    """Answers the questions of ``ways_out`` from a target's state in a plan."""

    agents: SimulatedAgents
    target: TargetTable
    state: TargetState

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline of the plan."""
        return self.agents.pipeline

    def answer(
        self, kind: CommandKind, shard: ShardId | None = None, argument: str = ""
    ) -> Decision | None:
        """What the coordinator would answer to a command."""
        known = AgentsState(targets=Map({self.target: self.state}))
        _, found = self.agents.commanded(known, self.target, kind, shard, argument)
        return None if found is None else found.decision


def shown_plan(
    asked: Asked,
    plan: Plan,
    order: SafeOrder | None = None,
    alternatives: tuple[ShownAlternative, ...] = (),
) -> ShownPlan:
    """A plan as it is shown.

    Args:
        asked: What it is about.
        plan: In the order that was given.
        order: What the search for a safe order found; None when nothing was searched.
        alternatives: Of ``--compare``.
    """
    told: Counter[tuple[str, str]] = Counter()
    steps = tuple(_step(asked, step, told) for step in plan.steps)
    sums = sums_of("", plan)
    return ShownPlan(
        pipeline=asked.agents.pipeline.name,
        present=asked.present,
        shards=sum(len(state.shards) for state in plan.before.targets.values()),
        clean=is_clean(plan),
        holds=sums.holds,
        conflicts=sums.conflicts,
        held_before=tuple(map(str, sorted(held(plan.before)))),
        left_held=sums.left_held,
        lossy=sums.lossy,
        read_again=sums.read_again,
        untouched=tuple(map(str, plan.untouched)),
        steps=steps,
        order=None if order is None else _order(order),
        alternatives=alternatives,
        pauses=sums.pauses,
        paused_before=tuple(map(str, sorted(paused(plan.before)))),
        left_paused=sums.left_paused,
    )


def is_clean(plan: Plan) -> bool:
    """Whether no step holds or pauses a shard, and no shard is left held."""
    return not plan.holds and not plan.pauses and not plan.left_held


def sums_of(setting: str, plan: Plan) -> ShownAlternative:
    """The sums of a plan, and a few words about each of its steps.

    Args:
        setting: See ``ShownAlternative``.
        plan: Any plan.
    """
    holds = [answer for _, answer in plan.holds]
    statements = [
        shown_statement(statement, answer.before)
        for step in plan.steps
        for answer in step.answers
        for statement in answer.decision.statements
    ]
    read = {
        fixup.shard
        for step in plan.steps
        for answer in step.answers
        for fixup in answer.decision.fixups
        if fixup.kind in READ
    }
    return ShownAlternative(
        setting=setting,
        holds=len(holds),
        conflicts=sum(1 for answer in holds if answer.decision.conflict),
        left_held=tuple(map(str, plan.left_held)),
        statements=len(statements),
        lossy=sum(1 for statement in statements if statement.lossy),
        read_again=tuple(map(str, sorted(read))),
        steps=tuple(in_words(step) for step in plan.steps),
        pauses=len(plan.pauses),
        left_paused=tuple(map(str, plan.left_paused)),
    )


def in_words(step: PlannedStep) -> str:
    """What is decided about a step, in a few words."""
    return ", ".join(_in_words(answer.decision) for answer in step.answers) or "no DDL"


def _in_words(decision: Decision) -> str:
    if decision.outcome is Outcome.HOLD:
        return "waits for the lock" if decision.code == LOCK else f"hold {decision.code}"
    kinds = Counter(statement.kind.value for statement in decision.statements)
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    words = f"{decision.outcome.value} ({told})" if told else decision.outcome.value
    if (count := len(decision.pauses)) > 0:
        words += f", pauses {count} shard{'' if count == 1 else 's'}"
    return words


def _step(asked: Asked, step: PlannedStep, told: Counter[tuple[str, str]]) -> ShownStep:
    return ShownStep(
        number=step.number,
        shard=str(step.step.shard),
        sql=step.step.sql,
        origin=step.step.origin,
        decisions=tuple(_decision(asked, answer, told) for answer in step.answers),
        condition=step.step.condition,
    )


def _decision(
    asked: Asked, answer: SimulatedDecision, told: Counter[tuple[str, str]]
) -> ShownDecision:
    decision = answer.decision
    sides: tuple[Side, ...] = ()
    ways: tuple[WayOut, ...] = ()
    if decision.outcome is Outcome.HOLD or decision.pauses:
        told[str(decision.target), decision.code] += 1
        if told[str(decision.target), decision.code] <= _WITH_WAYS:
            sides, ways = _sides(answer), tuple(_ways(asked, answer))
    return ShownDecision(
        target=str(decision.target or ""),
        version=decision.version,
        shard=str(decision.shard or ""),
        outcome=decision.outcome.value,
        waits_for_lock=decision.outcome is Outcome.HOLD and decision.code == LOCK,
        reason=decision.reason,
        hint=decision.hint,
        code=decision.code,
        conflict=decision.conflict,
        sides=sides,
        ways=ways,
        statements=tuple(_statements(answer)),
        fixups=tuple(_fixup(asked, fixup) for fixup in decision.fixups),
        released=tuple(map(str, decision.released)),
        warnings=decision.warnings,
        warning_codes=tuple(notice.code for notice in decision.notices),
        pauses=tuple(map(str, decision.pauses)),
    )


def _statements(answer: SimulatedDecision) -> Iterator[ShownStatement]:
    for statement in answer.decision.statements:
        yield shown_statement(statement, answer.before)


def _sides(answer: SimulatedDecision) -> tuple[Side, ...]:
    if not answer.decision.conflict or answer.after is None:
        return ()
    path = conflict_path(conflict_of(answer.after), answer.decision.reason)
    return sides_of(answer.after, path)


def _ways(asked: Asked, answer: SimulatedDecision) -> Iterator[WayOut]:
    state, target = answer.after, answer.decision.target
    if state is None or target is None:
        return
    answers = _Answers(asked.agents, target, state)
    shard = state.shards.get(answer.decision.shard) if answer.decision.shard else None
    if shard is not None and shard.hold is not None:
        yield from out_of_hold(answers, shard, asked.path)
    for name in answer.decision.pauses:
        yield from out_of_pause(answers, name, asked.path)


def _fixup(asked: Asked, fixup: Fixup) -> ShownFixup:
    return ShownFixup(
        str(fixup.shard),
        fixup.kind.value,
        fixup.columns,
        fixup.reason,
        asked.rows.get(fixup.shard),
        fixup.code,
    )


def _order(order: SafeOrder) -> ShownOrder:
    stop = "a hold or a pause" if order.pausing else "a hold"
    if order.numbers and order.pauses:
        note = (
            f"this order leads to no hold, but it pauses {_first(order.pauses)}; "
            f"steps moved: {order.moved}; "
        )
        note += (
            "every order of these steps pauses or holds a shard" if order.unavoidable else
            "an order that pauses no shard may exist"
        )  # fmt: skip
    elif order.numbers:
        none = "no hold and no pause" if order.pausing else "no hold"
        fewest = f"no order without {stop} moves fewer" if order.shortest else (
            "an order that moves fewer may exist"
        )  # fmt: skip
        note = f"this order leads to {none}; steps moved: {order.moved} ({fewest})"
    elif order.exhausted:
        note = f"every order of these steps that keeps each shard's own order leads to {stop}"
    else:
        note = (
            f"no order without {stop} was found, but there may be one: the search tried "
            f"{order.folded} statements (see --bound), and putting off what stops did not help"
        )
    pauses = tuple(map(str, order.pauses))
    return ShownOrder(order.numbers, order.moved, order.shortest, note, pauses)


def _first(shards: tuple[ShardId, ...]) -> str:
    told = ", ".join(map(str, shards[:_NAMED]))
    return f"{told} and {more} more" if (more := len(shards) - _NAMED) > 0 else told
