"""The report of a call of ``cutover``, as values and as lines for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardmerge.cli.views.call_shapes import CallReason
from shardmerge.schemas.codes.registry import coded

from .cutover_shapes import CutoverReport, CutoverStep, SourceEnd
from .record import CutoverRecord
from .seen import Act, Reason, Step

_DOES = {
    Act.REFUSE: "refuse to go on, because something has to be done first",
    Act.ASK: "ask the operator to decide or to act",
    Act.COMPARE: "compare all rows that no comparison has proved yet, while applications write",
    Act.READ_ONLY: "make the source refuse writes",
    Act.NOTE: "note where the binlogs of the sources end",
    Act.CATCH_UP: "wait until the target has applied everything up to these ends",
    Act.PROVE: "compare the rows that have changed since then, now that nobody writes",
    Act.CLOSE: "forbid the sink to change the target, and wait until it does not",
    Act.TIDY: "give the target what applications need, and drop what only the merging needed",
    Act.OPEN: "allow applications to write to the target",
    Act.DONE: "nothing is left to do",
    Act.FORGET_ENDS: "forget the noted ends, because something was written behind them",
    Act.COMPARE_BACK: "prove that no application has changed the target",
    Act.TURN_BACK: "note that the way back has begun",
    Act.RESTORE: "take back a statement that tidied the target",
    Act.REOPEN: "allow the sink to change the target again",
    Act.WRITABLE: "give the source its earlier settings back",
    Act.FORGET: "forget this cut-over",
}


def step_of(step: Step, *, done: bool) -> CutoverStep:
    """The shape of a step."""
    source = step.source.name if step.source else ""
    return CutoverStep(step.act.value, _DOES[step.act], source, step.statements, done)


def report_of(
    target: str,
    record: CutoverRecord,
    steps: Sequence[CutoverStep],
    reasons: Sequence[Reason],
    notes: Sequence[str],
    *,
    rehearsed: bool,
    back: bool,
) -> CutoverReport:
    """The shape of a call.

    Args:
        target: Name of the target.
        record: The record that is stored at the end of the call.
        steps: The steps that the call carried out, or would carry out.
        reasons: Why the call did not go on.
        notes: What the operator should know.
        rehearsed: Whether the call was a rehearsal.
        back: Whether the call was one with ``--undo``.
    """
    state = "waits"
    if rehearsed:
        state = "rehearsed"
    elif not reasons or (record.opened and not record.undoing and not back):
        state = "back" if back else "open"
    return CutoverReport(
        target=target,
        state=state,
        by=record.by,
        begun=record.begun,
        opened=record.opened,
        steps=tuple(steps),
        reasons=tuple(CallReason(r.code, r.text, r.hint) for r in dict.fromkeys(reasons)),
        ends=tuple(SourceEnd(end.source, str(end.position)) for end in record.noted),
        rows=record.rows,
        changed_only=record.changed_only,
        read_only=tuple(made.source for made in record.read_only),
        notes=tuple(notes),
        way_back=record.is_begun and all(tidied.back for tidied in record.tidied),
        not_compared=record.not_compared,
    )


def progress_line(target: str, step: CutoverStep) -> str:
    """The line that a call prints before it carries out a step."""
    source = f" {step.source}" if step.source else ""
    return f"{target}: {step.name}{source}: {step.does}"


def lines(report: CutoverReport, undo: str) -> Iterator[str]:
    """The report as lines.

    Args:
        report: The report.
        undo: The command line of the way back.
    """
    if report.state == "rehearsed":
        yield f"{report.target}: these steps would follow; nothing was changed"
        for number, step in enumerate(report.steps, 1):
            source = f" {step.source}" if step.source else ""
            yield f"  {number}. {step.name}{source}: {step.does}"
            for statement in step.statements:
                yield f"       {statement}"
    elif report.state == "open":
        yield f"{report.target}: applications may write to it since {report.opened}"
        for end in report.ends:
            yield f"  source {end.source}: until then, no shard got a row behind {end.position}"
        which = "changed rows" if report.changed_only else "rows"
        yield f"  {report.rows} {which} were compared after the writes stopped, and are equal"
    elif report.state == "back":
        yield f"{report.target}: there is no cut-over; the pipeline goes on as before"
    else:
        yield f"{report.target}: the cut-over cannot go on yet"
    for reason in report.reasons:
        yield f"  {coded(reason.code, reason.text)}"
        if reason.hint:
            yield f"    {reason.hint}"
    for text in report.not_compared:
        yield f"  not compared: {text}"
    for note in report.notes:
        yield f"  note: {note}"
    if report.state == "open":
        yield from _afterwards(report, undo)


def _afterwards(report: CutoverReport, undo: str) -> Iterator[str]:
    if report.read_only:
        names = ", ".join(report.read_only)
        yield f"  note: a restart makes {names} writable, unless its own settings say read-only"
    if report.way_back:
        yield "  The way back, as long as no application has written to the target:"
        yield f"    {undo}"
        yield "  After the first write to the target there is no way back: no shard has that row."
    else:
        yield "  There is no way back: the target has lost its origin columns."
