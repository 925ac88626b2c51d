"""A plan as Markdown for a pull request. Pure.

GitHub takes 65,536 characters in a comment, GitLab 1,000,000. So of a long plan only the first
steps and the first holds with ways out are shown. The verdict and the safe order are always shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from shardmerge.agents.preview.shapes import ShownDecision, ShownPlan, ShownStep
from shardmerge.schemas.codes.registry import coded

from .runs import Run, runs
from .text import conditional, in_ranges, rows_text, several, untouched, verdict

_MOST_RUNS = 100
_MOST_HOLDS = 20


def plan_markdown(plan: ShownPlan) -> str:
    """The document: verdict, table of steps, holds with ways out, safe order, alternatives."""
    sign = "✅" if plan.clean else "❌"
    count = sum(1 for step in plan.steps if step.condition)
    parts = [
        f"### {sign} shardmerge plan: {plan.pipeline}",
        f"**{_text(verdict(plan))}.** Steps: {len(plan.steps):,}; live shards: {plan.shards:,} "
        f"(present: {plan.present}).",
        *(
            [f"Held already before: {_text(several(plan.held_before))}."]
            if plan.held_before
            else ()
        ),
        *(
            [f"Paused already before: {_text(several(plan.paused_before))}."]
            if plan.paused_before
            else ()
        ),
        *([f"Note: {_text(untouched(plan))}."] if plan.untouched else ()),
        *([f"Note: {conditional(count)}."] if count else ()),
        _steps(list(runs(plan.steps))),
        *_holds(plan),
    ]
    if plan.order is not None:
        order = f"\n\n`{in_ranges(plan.order.steps)}`" if plan.order.steps else ""
        parts.append(f"#### Safe order\n\n{_text(plan.order.note)}.{order}")
    if plan.alternatives:
        parts.append(f"#### Side by side\n\n{_side_by_side(plan)}")
    return "\n\n".join(parts) + "\n"


def _steps(found: Sequence[Run]) -> str:
    rows = []
    for run in found[:_MOST_RUNS]:
        step = run.first
        like = f"<br>and {run.more:,} more like it" if run.more else ""
        rows.append((str(step.number), _code(step.shard), _code(step.sql) + like, _decisions(step)))
    text = _table(("step", "shard", "statement", "what happens"), rows)
    if (more := len(found) - _MOST_RUNS) > 0:
        text += f"\n\n{more:,} more rows are left out: `shardmerge plan --json` has all steps."
    return text


def _decisions(step: ShownStep) -> str:
    lines = [line for decision in step.decisions for line in _decision(decision)] or ["no DDL"]
    if step.condition:
        lines.insert(0, f"only if it runs: {_text(step.condition)}")
    return "<br>".join(lines)


def _decision(decision: ShownDecision) -> Iterator[str]:
    if decision.outcome == "hold":
        if decision.waits_for_lock:
            yield f"⏳ {_text(decision.reason)}"
        else:
            yield f"❌ **hold** {decision.code}: {_text(decision.reason)}"
    elif not decision.statements:
        yield _text(f"{decision.outcome}: {decision.reason}")
    for shard in decision.pauses:
        yield f"⏸️ **pauses** {_code(shard)}"
    for statement in decision.statements:
        yield f"{statement.kind}: {_code(statement.sql)}"
        if statement.lossy:
            yield f"⚠️ lossy: {_text(statement.lossy)}"
    for fixup in decision.fixups:
        told = f"{fixup.kind} {fixup.shard} ({rows_text(fixup.rows)})"
        yield f"🔁 {_text(f'{told}: {coded(fixup.code, fixup.reason)}')}"
    if decision.released:
        yield f"released: {_text(several(decision.released))}"
    for warning in decision.coded_warnings:
        yield f"⚠️ {_text(warning)}"


def _holds(plan: ShownPlan) -> Iterator[str]:
    held = [
        (step, decision) for step in plan.steps for decision in step.decisions
        if decision.ways and not (decision.waits_for_lock and decision.shard not in plan.left_held)
    ]  # fmt: skip
    for step, decision in held[:_MOST_HOLDS]:
        lines = list(_what_stops(step, decision))
        if decision.sides:
            rows = [
                (_code(side.definition), _text(several(side.shards))) for side in decision.sides
            ]
            lines.append(_table(("definition", "shards"), rows))
        told = [f"* {_text(way.does)}" for way in decision.ways if not way.command]
        told += [f"* `{way.command}`: {_text(way.does)}" for way in decision.ways if way.command]
        lines.append("Ways out:\n\n" + "\n".join(told))
        yield "\n\n".join(lines)


def _what_stops(step: ShownStep, decision: ShownDecision) -> Iterator[str]:
    """A heading, and the reason."""
    if decision.outcome == "hold":
        yield f"#### Step {step.number} holds {_code(decision.shard)}"
        yield _text(decision.reason)
        return
    yield f"#### Step {step.number} pauses {', '.join(map(_code, decision.pauses))}"
    yield "Its rows wait until an operator has looked at the existing rows and resumes it."
    reasons = [f for f in decision.fixups if f.shard in decision.pauses]
    yield "\n".join(f"* {_text(coded(f.code, f.reason))}" for f in reasons)


def _side_by_side(plan: ShownPlan) -> str:
    settings = [each.setting for each in plan.alternatives]
    rows: list[Sequence[str]] = [
        ("holds", *(str(each.holds) for each in plan.alternatives)),
        ("pauses", *(str(each.pauses) for each in plan.alternatives)),
        ("conflicts", *(str(each.conflicts) for each in plan.alternatives)),
        ("statements", *(str(each.statements) for each in plan.alternatives)),
        ("lossy statements", *(str(each.lossy) for each in plan.alternatives)),
        ("tables read again", *(str(len(each.read_again)) for each in plan.alternatives)),
        ("held at the end", *(_text(several(e.left_held)) or "none" for e in plan.alternatives)),
    ]
    differ = [
        (f"step {step.number}", *words)
        for step, *words in zip(
            plan.steps, *(each.steps for each in plan.alternatives), strict=True
        )
        if len(set(words)) > 1
    ]
    text = _table(("", *settings), [*rows, *differ[:_MOST_RUNS]])
    if (more := len(differ) - _MOST_RUNS) > 0:
        text += f"\n\n{more:,} more steps differ."
    return text


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [_row(heads), _row(["---"] * len(heads)), *map(_row, rows)]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(text: str) -> str:
    """Text on one line, with the characters escaped that Markdown would interpret."""
    flat = " ".join(text.split())
    for special in "\\`*_{}[]<>|#":
        flat = flat.replace(special, "\\" + special)
    return flat


def _code(text: str) -> str:
    """Text on one line, as code in a table's cell; with a longer fence if it has backticks."""
    flat = " ".join(text.split()).replace("|", "\\|")
    fence = "``" if "`" in flat else "`"
    return f"{fence} {flat} {fence}" if fence == "``" else f"`{flat}`"
