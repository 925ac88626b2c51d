"""Which steps of a plan are shown: like ones once, and those that a setting changes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from shardmerge.agents.preview.shapes import ShownDecision, ShownPlan, ShownStep

_LEAST = 3
"""Fewer like steps than these are shown one by one."""


@dataclass(frozen=True, slots=True)
class Run:
    """One step, or several like steps that follow one another.

    Attributes:
        first: The first step.
        more: How many like steps follow it.
    """

    first: ShownStep
    more: int


def runs(steps: Sequence[ShownStep]) -> Iterator[Run]:
    """The steps in their order; each step that differs from the one before begins a run.

    Steps are alike when their statements differ only in the table's name, and their decisions only
    in shard, version and reason. A step with statements for the target, a hold, a fix-up or a
    warning is always a run of its own.
    """
    gathered: list[ShownStep] = []
    for step in steps:
        if gathered and _likeness(step) == _likeness(gathered[0]):
            gathered.append(step)
            continue
        yield from _gathered(gathered)
        gathered = [step]
    yield from _gathered(gathered)


def differing(plan: ShownPlan) -> list[tuple[int, tuple[str, ...]]]:
    """The steps that the settings of ``--compare`` decide differently.

    Returns:
        The number of each such step, and what each setting decides, in the settings' order.
    """
    words = zip(*(each.steps for each in plan.alternatives), strict=True)
    told = zip(plan.steps, words, strict=True) if plan.alternatives else ()
    return [(step.number, decided) for step, decided in told if len(set(decided)) > 1]


def _gathered(steps: list[ShownStep]) -> Iterator[Run]:
    if len(steps) >= _LEAST:
        yield Run(steps[0], len(steps) - 1)
    else:
        yield from (Run(step, 0) for step in steps)


def _likeness(step: ShownStep) -> object:
    if any(map(_stands_alone, step.decisions)):
        return step.number
    table = step.shard.rpartition(".")[2]
    like = tuple(replace(each, shard="", version=0, reason="") for each in step.decisions)
    return step.sql.replace(table, "\0"), step.condition, like


def _stands_alone(decision: ShownDecision) -> bool:
    waits = decision.outcome == "hold"
    return bool(waits or decision.statements or decision.fixups or decision.warnings)
