"""A plan as plain lines. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from shardmerge.agents.preview.report import READ
from shardmerge.agents.preview.shapes import ShownAlternative, ShownDecision, ShownPlan, ShownStep
from shardmerge.schemas.codes.registry import coded

from .runs import differing, runs

_MOST_SHARDS = 5
_MOST_DIFFERING = 20


def plan_lines(plan: ShownPlan) -> Iterator[str]:
    """The lines: each step with its decisions, then the verdict, the safe order, alternatives."""
    yield (
        f"plan for pipeline {plan.pipeline}: {_count(len(plan.steps), 'step')}, "
        f"{_count(plan.shards, 'live shard')} (present: {plan.present})"
    )
    for run in runs(plan.steps):
        yield ""
        yield from _step(run.first)
        if run.more:
            yield f"    and {_count(run.more, 'step')} more like it"
    yield ""
    if plan.held_before:
        yield f"held already before the rollout: {several(plan.held_before)}"
    if plan.paused_before:
        yield f"paused already before the rollout: {several(plan.paused_before)}"
    yield verdict(plan)
    if plan.untouched:
        yield f"note: {untouched(plan)}"
    if count := sum(1 for step in plan.steps if step.condition):
        yield f"note: {conditional(count)}"
    if plan.read_again:
        yield f"tables read again: {read_again(plan)}"
    if plan.order is not None:
        yield f"safe order: {plan.order.note}"
        if plan.order.steps:
            yield f"  {in_ranges(plan.order.steps)}"
    if plan.alternatives:
        yield ""
        yield "side by side:"
        yield from map(_alternative, plan.alternatives)
        yield from _differing(plan)


def verdict(plan: ShownPlan) -> str:
    """The plan in one sentence."""
    told = [
        _count(plan.holds, "hold"),
        *([_count(plan.pauses, "pause")] if plan.pauses else ()),
        _count(plan.conflicts, "conflict"),
        f"statements that lose values: {plan.lossy:,}",
    ]
    end = f"; held at the end: {several(plan.left_held)}" if plan.left_held else ""
    end += f"; paused at the end: {several(plan.left_paused)}" if plan.left_paused else ""
    word = "clean" if plan.clean else "NOT CLEAN"
    return f"{word}: {', '.join(told)}{end}"


def untouched(plan: ShownPlan) -> str:
    """Which shards no step changes, and what may be the reason."""
    return (
        f"no step changes {several(plan.untouched)}, because the statements concern tables that no "
        "route takes. In a statement {table} stands for the shard's table"
    )


def conditional(steps: int) -> str:
    """That the plan executes steps which may be left out."""
    return (
        f"{_count(steps, 'step')} may not run, because only the tool that executes the migrations "
        "knows whether the conditions hold. The plan takes the steps as executed"
    )


def read_again(plan: ShownPlan) -> str:
    """The tables that are read again, and about how many rows these readings have together."""
    decisions = (decision for step in plan.steps for decision in step.decisions)
    rows = [f.rows for d in decisions for f in d.fixups if f.kind in READ]
    known = [each for each in rows if each is not None]
    told = rows_text(sum(known) if known else None)
    if known and len(known) < len(rows):
        told += f" in {len(known)} of {len(rows)} readings, the others unknown"
    return f"{several(plan.read_again)} ({told})"


def several(names: tuple[str, ...]) -> str:
    """Names; when there are many, only the first ones and how many more there are."""
    if (more := len(names) - _MOST_SHARDS) <= 1:
        return ", ".join(names)
    return f"{', '.join(names[:_MOST_SHARDS])} and {more} more"


def in_ranges(numbers: tuple[int, ...]) -> str:
    """Numbers in their order, where numbers that follow one another are joined: ``1-3, 7, 4-6``."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] + 1 == number:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ", ".join("-".join(map(str, part)) for part in parts)


def rows_text(rows: int | None) -> str:
    """How many rows a table has, as far as it is known."""
    return "rows unknown" if rows is None else f"about {rows:,} rows"


def _headline(decision: ShownDecision) -> str:
    """What is decided, and for which target or shard."""
    if decision.outcome == "hold":
        word = "waits for the DDL lock" if decision.waits_for_lock else "HOLD"
        return f"{word} {decision.shard}: {coded(decision.code, decision.reason)}"
    if not decision.target:
        return f"{decision.outcome}: {decision.reason}"
    return f"{decision.outcome} {decision.target}/{decision.version}: {decision.reason}"


def _step(step: ShownStep) -> Iterator[str]:
    origin = f"  [{step.origin}]" if step.origin else ""
    sql = " ".join(step.sql.split())
    yield f"{step.number}. {step.shard}: {sql}{origin}"
    if step.condition:
        yield f"    only if it runs: {step.condition}"
    if not step.decisions:
        yield "    no decision: it changes no table's schema, or no connector reads its database"
    for decision in step.decisions:
        yield from (f"    {line}" for line in decision_lines(decision))


def decision_lines(decision: ShownDecision) -> Iterator[str]:
    """What is decided, and what the target and the shards do."""
    yield _headline(decision)
    for shard in decision.pauses:
        yield f"  PAUSES {shard}: its rows wait until an operator resumes it"
    for side in decision.sides:
        yield f"  {side.definition}: {several(side.shards)}"
    for way in decision.ways:
        if way.command:
            yield f"  way out: {way.command}"
            yield f"    {way.does}"
        else:
            yield f"  way out: {way.does}"
    for statement in decision.statements:
        yield f"  {statement.kind}: {statement.sql}"
        yield f"    waits for {statement.waits_for}"
        if statement.lossy:
            yield f"    LOSSY: {statement.lossy}"
    for fixup in decision.fixups:
        told = f"{fixup.kind} {fixup.shard} ({rows_text(fixup.rows)})"
        yield f"  {told}: {coded(fixup.code, fixup.reason)}"
    if decision.released:
        yield f"  released: {several(decision.released)}"
    for warning in decision.coded_warnings:
        yield f"  warning: {warning}"


def _alternative(each: ShownAlternative) -> str:
    told = [
        _count(each.holds, "hold"),
        _count(each.conflicts, "conflict"),
        _count(each.statements, "statement"),
        f"{each.lossy} lossy",
        f"tables read again: {len(each.read_again)}",
        f"held at the end: {several(each.left_held) or 'none'}",
        _count(each.pauses, "pause"),
    ]
    return f"  {each.setting}: {', '.join(told)}"


def _differing(plan: ShownPlan) -> Iterator[str]:
    found = differing(plan)
    for number, words in found[:_MOST_DIFFERING]:
        yield f"  step {number}:"
        for each, decided in zip(plan.alternatives, words, strict=True):
            yield f"    {each.setting}: {decided}"
    if (more := len(found) - _MOST_DIFFERING) > 0:
        yield f"  and {_count(more, 'step')} more that differ: --json has them"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
