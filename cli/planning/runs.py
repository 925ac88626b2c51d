"""Joins like steps that follow one another, so that they are shown once. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from shardmerge.agents.preview.shapes import ShownDecision, ShownStep

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
