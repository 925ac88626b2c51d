"""The values that ``shardmerge cutover --json`` prints. Pure; see ``cli.views.shapes``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CutoverReason:
    """Why a cut-over does not go on.

    Attributes:
        code: Such as ``SM-6705``.
        text: What was seen, and where.
        hint: What you can do; "" when the text says it all.
    """

    code: str
    text: str
    hint: str


@dataclass(frozen=True, slots=True)
class CutoverStep:
    """One step.

    Attributes:
        name: ``compare``, ``read-only``, ``note``, ``catch-up``, ``prove``, ``close``, ``tidy`` or
            ``open``; on the way back ``compare-back``, ``turn-back``, ``restore``, ``reopen``,
            ``writable`` or ``forget``; ``refuse``, ``ask`` or ``forget-ends`` where something has
            to be done first; ``done`` when nothing is left to do.
        does: What it does, a sentence.
        source: The source that it changes; "" for none.
        statements: What it executes, as SQL.
        done: Whether it was carried out; false in a rehearsal.
    """

    name: str
    does: str
    source: str
    statements: tuple[str, ...]
    done: bool


@dataclass(frozen=True, slots=True)
class SourceEnd:
    """Where the binlog of a source ended when nobody wrote any more.

    Attributes:
        source: Its name.
        position: As ``file:position``.
    """

    source: str
    position: str


@dataclass(frozen=True, slots=True)
class CutoverReport:
    """What ``shardmerge cutover`` prints.

    Attributes:
        target: As ``database.table``.
        state: ``open`` (applications may write to the target), ``waits`` (something has to be done
            first), ``rehearsed``, or ``back`` (the pipeline goes on as before).
        by: Who began the cut-over; "" when none is begun.
        begun: When.
        opened: When applications were allowed to write to the target; "" before.
        steps: What this call did, or a rehearsal found that it would do.
        reasons: What has to be done first; in a rehearsal also what would have to be.
        ends: The noted ends of the sources' binlogs.
        rows: Rows that were compared behind these ends; 0 before.
        read_only: The sources that the command has made read-only.
        notes: What should be known, as sentences.
        way_back: Whether ``--undo`` is still possible, as far as the command knows.
    """

    target: str
    state: str
    by: str
    begun: str
    opened: str
    steps: tuple[CutoverStep, ...]
    reasons: tuple[CutoverReason, ...]
    ends: tuple[SourceEnd, ...]
    rows: int
    read_only: tuple[str, ...]
    notes: tuple[str, ...]
    way_back: bool
