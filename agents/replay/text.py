"""Steps and verifications as text for people. Equal steps give equal text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from difflib import ndiff
from enum import StrEnum
from typing import Any

from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.connectors.formats.stored_record import iso_time
from shardmerge.schemas.codes.registry import coded
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records.codec import Record
from shardmerge.schemas.records.decisions import Decision, JoinedSchema
from shardmerge.schemas.records.operator_commands import OperatorCommand
from shardmerge.schemas.records.plain import to_plain
from shardmerge.schemas.records.schema_changes import SchemaChange

from .comparing import COUNTED, Comparison
from .facts import create_table, schema_lines, shard_extras, target_extras
from .steps import ReplayStep
from .verify import Verification

_WIDTH = 11
_MOST_NAMES = 8
_ALWAYS_COUNTED = 5
"""How many of the counts, from the first, are shown even when they are 0."""


class SchemaText(StrEnum):
    """How the target's schema is shown."""

    DIFF = "diff"
    """What changed, a line each."""
    FULL = "full"
    """CREATE TABLE before and after."""


def step_text(step: ReplayStep, schema: SchemaText = SchemaText.DIFF) -> str:
    """One step; ends with a line end."""
    lines = [_title(step)]
    for name, text in _parts(step, schema):
        first, *more = text.split("\n")
        lines.append(f"  {name:<{_WIDTH}}{first}".rstrip())
        lines += [f"  {'':<{_WIDTH}}{line}".rstrip() for line in more]
    return "\n".join(lines) + "\n"


def verification_text(verification: Verification) -> str:
    """The counts of each topic, then each difference; ends with a line end."""
    folded = f"read {_counted(verification.folded, 'record')} of the schema-log"
    if verification.events is not None:
        folded += f" and {_counted(verification.events, 'record')} of the sources and commands"
    lines = [folded, *(_comparison(each) for each in verification.comparisons)]
    for topic, count in sorted(verification.others.items()):
        lines.append(f"  {topic}: {_counted(count, 'record')} not compared")
    for difference in verification.differences:
        lines.append(f"DIFFERENCE  {difference.topic}: {difference.kind}: {difference.what}")
        lines.append(f"    {difference.place}")
        lines += [f"    {detail}" for detail in difference.details]
    count = len(verification.differences)
    lines.append(_counted(count, "difference") if count else "equal")
    return "\n".join(lines) + "\n"


def _comparison(comparison: Comparison) -> str:
    counts = [
        f"{comparison.counts[kind]} {kind}"
        for number, kind in enumerate(COUNTED)
        if number < _ALWAYS_COUNTED or comparison.counts[kind]
    ]
    return f"  {comparison.topic}: {', '.join(counts)}"


def _title(step: ReplayStep) -> str:
    decision = step.decision
    if step.number == 0 and decision is not None:
        return f"statement {decision.id}: {decision.outcome}"
    title = f"step {step.number}: {step.target or 'no target'}"
    if decision is None:
        return f"{title}, decided before"
    return f"{title}, version {decision.version}: {decision.outcome}"


def _parts(step: ReplayStep, schema: SchemaText) -> Iterator[tuple[str, str]]:
    yield "came", f"{iso_time(step.ts_ms)}, {step.record.place}"
    if step.came is not None:
        yield from _what_came(step.came)
    elif step.decision is not None:
        yield "from", f"{step.decision.id.source} at {step.decision.position}"
        yield "ddl", step.decision.ddl
    for answer in step.answers:
        if isinstance(answer, Decision):
            yield from _decided(answer)
        elif not isinstance(answer, JoinedSchema):  # the state tells it
            yield "answer", _json({"kind": type(answer).__name__, **to_plain(answer)})
    if not step.answers:
        yield "decided", "nothing: the record repeats one that was decided before"
    if step.before is not None and step.after is not None:
        yield from _target(step.before, step.after, schema)
        yield from _standing(step.after, step.decision)
        yield from _more(step.before, step.after)


def _what_came(came: Record) -> Iterator[tuple[str, str]]:
    if isinstance(came, OperatorCommand):
        yield "from", f"{came.id}, a command{f' of {came.by}' if came.by else ''}"
        yield "command", str(came)
        if came.error:
            yield "error", coded(came.code, came.error)
        return
    if not isinstance(came, SchemaChange):
        plain = {name: value for name, value in to_plain(came).items() if value}
        yield "record", f"{type(came).__name__} {_json(plain)}"
        return
    kind = "describes" if came.snapshot else "changes"
    yield "from", f"{came.id} at {came.position}, {kind} {came.shard}"
    yield "ddl", came.ddl
    for action in came.actions:
        yield "action", action
    if came.error:
        yield "error", coded(came.code, came.error)
        yield "", f"remedy: {came.hint}"


def _decided(decision: Decision) -> Iterator[tuple[str, str]]:
    yield "decided", f"{decision.outcome}: {coded(decision.code, decision.reason)}"
    if decision.conflict and decision.conflict != decision.reason:
        yield "conflict", decision.conflict
    if decision.hint:
        yield "", f"remedy: {decision.hint}"
    for statement in decision.statements:
        why = coded(statement.code, statement.reason)
        yield "statement", f"{statement.sql}\n{statement.kind}: {why}"
    for release in decision.releases:
        yield "releases", f"{release.shard}, its gates up to version {release.through}"
    for fixup in decision.fixups:
        yield "fix-up", f"{fixup.kind} of {fixup.shard} ({', '.join(fixup.columns)})"
        yield "", coded(fixup.code, fixup.reason)
    for reload in decision.reloads:
        yield "reloads", f"{reload.shard}: its rows before {reload.position} go"
    for word, shards in (
        ("pauses", decision.pauses),
        ("resumes", decision.resumes),
        ("leaves", decision.leaves),
    ):
        if shards:
            yield word, ", ".join(map(str, shards))
    for warning in decision.notices:
        yield "warning", coded(warning.code, warning.text)
    if not decision.live:
        yield "leaves", f"{decision.shard} is no shard of the target any more"
    for item in fields(decision):
        if item.name not in _DECISION_TOLD and (value := getattr(decision, item.name)):
            yield item.name, _json(to_plain(value))


_DECISION_TOLD = frozenset(
    ("id", "target", "version", "shard", "position", "outcome", "statements", "reason", "hint",
     "code",
     "conflict", "columns", "key", "live", "releases", "pauses", "resumes", "warnings",
     "warning_codes",     "fixups", "reloads", "snapshot", "ddl", "ts_ms")
)  # fmt: skip
"""Fields that are shown in words, and those that the record or the state already shows."""


def _target(
    before: TargetState, after: TargetState, schema: SchemaText
) -> Iterator[tuple[str, str]]:
    if schema is SchemaText.FULL:
        yield "schema", f"before: {create_table(before) or 'no table'}"
        yield "", f"after: {create_table(after) or 'no table'}"
    else:
        yield "schema", _difference(before, after)
    yield "before", _shards(before)
    yield "after", _shards(after)


def _standing(state: TargetState, decision: Decision | None) -> Iterator[tuple[str, str]]:
    """Every shard that is held, paused or has skipped changes; no reason that was just told."""
    for name in sorted(state.shards):
        shard = state.shards[name]
        if (hold := shard.hold) is not None:
            since = f"{name} since version {hold.version}, at {hold.position}"
            if decision is not None and (decision.shard, decision.reason) == (name, hold.reason):
                yield "held", since
            else:
                yield "held", f"{since}: {coded(hold.code, hold.reason)}"
                if hold.hint:
                    yield "", f"remedy: {hold.hint}"
            for pending in hold.queue:
                yield "", f"waits for the lock: {'; '.join(pending.made.actions)}"
        if shard.paused:
            yield "paused", str(name)
        if shard.actual is not None and shard.effective is not None:
            counts, actual = shard.effective, shard.actual
            lines = _changed(
                schema_lines(counts.schema, counts.columns),
                schema_lines(actual.schema, actual.columns),
            )
            yield "differs", "\n".join([f"{name} from the schema that counts:", *lines])
        more = shard_extras(shard)
        if more := {n: v for n, v in more.items() if n not in ("paused", "actual")}:
            yield "shard", f"{name} {_json(more)}"


def _more(before: TargetState, after: TargetState) -> Iterator[tuple[str, str]]:
    """The rest of the target's state."""
    was, now = target_extras(before), target_extras(after)
    for name in dict.fromkeys((*was, *now)):
        one, other = was.get(name, "as usual"), now.get(name, "as usual")
        if isinstance(other, dict):  # one entry per column: only what changed
            known = one if isinstance(one, dict) else {}
            changed = {key: item for key, item in other.items() if known.get(key) != item}
            if changed:
                yield name, _json(changed)
        else:
            yield name, _json(other) if one == other else f"{_json(one)}, then {_json(other)}"


def _difference(before: TargetState, after: TargetState) -> str:
    if before.schema is None and after.schema is None:
        return "no table"
    if (before.schema, before.columns) == (after.schema, after.columns):
        return "as before"
    lines = _changed(
        schema_lines(before.schema, before.columns), schema_lines(after.schema, after.columns)
    )
    return "\n".join(lines) if lines else "as before"


def _changed(before: list[str], after: list[str]) -> list[str]:
    return [line for line in ndiff(before, after) if line.startswith(("+ ", "- "))]


def _shards(state: TargetState) -> str:
    held = sorted(state.held)
    text = f"version {state.version}, {len(state.shards)} live"
    if state.shards:
        text += f" ({_names(sorted(state.shards))})"
    return text + (f", held: {_names(held)}" if held else ", none held")


def _names(shards: Iterable[ShardId]) -> str:
    names = [str(shard) for shard in shards]
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}" + ("" if count == 1 else "s")


def _json(value: Any) -> str:
    """JSON; a text as it is."""
    return (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    )
