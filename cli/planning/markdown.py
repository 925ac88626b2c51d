"""A plan as Markdown for a pull request. Pure.

GitHub takes 65,536 characters in a comment, GitLab 1,000,000. So of a long plan only the first
steps, and the first holds and pauses with ways out, are shown. A line says how many are left out.
The verdict and the safe order are always shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from shardmerge.agents.preview.shapes import ShownDecision, ShownPlan, ShownStep
from shardmerge.schemas.codes.registry import coded

from .runs import Run, differing, runs
from .text import conditional, in_ranges, read_again, rows_text, several, untouched, verdict

MOST = 64_000
"""Characters of the whole document, at most."""
_MOST_ROWS = 100
_MOST_HOLDS = 20
_MOST_OF_ORDER = 8_000
_LINE = 200
"""Room for a line that says how much is left out, and for the lines between parts."""
_JSON = "`shardmerge plan --json`"


def plan_markdown(plan: ShownPlan) -> str:
    """The document: verdict, table of steps, holds with ways out, safe order, alternatives."""
    head, order = list(_head(plan)), list(_order(plan))
    room = MOST - sum(len(part) + _LINE for part in (*head, *order))
    stops = list(_stops(plan, room // 2))
    room -= sum(len(part) + _LINE for part in stops)
    sides = list(_side_by_side(plan, room // 3))
    room -= sum(len(part) + _LINE for part in sides)
    parts = [*head, _steps(list(runs(plan.steps)), room), *stops, *order, *sides]
    return "\n\n".join(parts) + "\n"


def _head(plan: ShownPlan) -> Iterator[str]:
    yield f"### {'✅' if plan.clean else '❌'} shardmerge plan: {plan.pipeline}"
    yield (
        f"**{_text(verdict(plan))}.** Steps: {len(plan.steps):,}; live shards: {plan.shards:,} "
        f"(present: {plan.present})."
    )
    if plan.held_before:
        yield f"Held already before: {_text(several(plan.held_before))}."
    if plan.paused_before:
        yield f"Paused already before: {_text(several(plan.paused_before))}."
    if plan.untouched:
        yield f"Note: {_text(untouched(plan))}."
    if count := sum(1 for step in plan.steps if step.condition):
        yield f"Note: {conditional(count)}."
    if plan.read_again:
        yield f"Tables read again: {_text(read_again(plan))}."


def _order(plan: ShownPlan) -> Iterator[str]:
    if plan.order is None:
        return
    text = f"#### Safe order\n\n{_text(plan.order.note)}."
    if plan.order.steps:
        numbers = in_ranges(plan.order.steps)
        if len(numbers) > _MOST_OF_ORDER:
            first = numbers[:_MOST_OF_ORDER].rpartition(", ")[0]
            text += f"\n\n`{first}`, and so on: {_JSON} has the whole order."
        else:
            text += f"\n\n`{numbers}`"
    yield text


def _steps(found: Sequence[Run], room: int) -> str:
    heads = ("step", "shard", "statement", "what happens")
    rows = []
    for run in found[:_MOST_ROWS]:
        step = run.first
        like = f"<br>and {run.more:,} more like it" if run.more else ""
        rows.append((str(step.number), _code(step.shard), _code(step.sql) + like, _decisions(step)))
    shown = _that_fit([_row(row) for row in rows], room - len(_table(heads, ())))
    text = _table(heads, rows[: len(shown)])
    if (more := len(found) - len(shown)) > 0:
        text += f"\n\n{more:,} more rows are left out: {_JSON} has all steps."
    return text


def _that_fit(texts: Sequence[str], room: int) -> Sequence[str]:
    """The first texts, as many as fit together."""
    for count, text in enumerate(texts):
        room -= len(text) + 2  # the ends of lines between them
        if room < 0:
            return texts[:count]
    return texts


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
        yield f"{statement.kind}: {_code(statement.sql)}, waits for {_text(statement.waits_for)}"
        if statement.lossy:
            yield f"⚠️ lossy: {_text(statement.lossy)}"
    for fixup in decision.fixups:
        told = f"{fixup.kind} {fixup.shard} ({rows_text(fixup.rows)})"
        yield f"🔁 {_text(f'{told}: {coded(fixup.code, fixup.reason)}')}"
    if decision.released:
        yield f"released: {_text(several(decision.released))}"
    for warning in decision.coded_warnings:
        yield f"⚠️ {_text(warning)}"


def _stops(plan: ShownPlan, room: int) -> Iterator[str]:
    """Holds and pauses with their ways out."""
    found = [
        (step, decision) for step in plan.steps for decision in step.decisions
        if decision.ways and not (decision.waits_for_lock and decision.shard not in plan.left_held)
    ]  # fmt: skip
    shown = _that_fit([_stop(*each) for each in found[:_MOST_HOLDS]], room)
    yield from shown
    if (more := len(found) - len(shown)) > 0:
        yield f"Ways out of {more:,} more holds and pauses are left out: {_JSON} has them."


def _stop(step: ShownStep, decision: ShownDecision) -> str:
    lines = list(_what_stops(step, decision))
    if decision.sides:
        rows = [(_code(side.definition), _text(several(side.shards))) for side in decision.sides]
        lines.append(_table(("definition", "shards"), rows))
    told = [f"* {_text(way.does)}" for way in decision.ways if not way.command]
    told += [f"* `{way.command}`: {_text(way.does)}" for way in decision.ways if way.command]
    lines.append("Ways out:\n\n" + "\n".join(told))
    return "\n\n".join(lines)


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


def _side_by_side(plan: ShownPlan, room: int) -> Iterator[str]:
    if not plan.alternatives:
        return
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
    differ = [(f"step {number}", *words) for number, words in differing(plan)]
    room -= len(_table(("", *settings), rows))
    shown = _that_fit([_row(row) for row in differ[:_MOST_ROWS]], room)
    text = "#### Side by side\n\n" + _table(("", *settings), [*rows, *differ[: len(shown)]])
    if (more := len(differ) - len(shown)) > 0:
        text += f"\n\n{more:,} more steps differ: {_JSON} has them."
    yield text


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
