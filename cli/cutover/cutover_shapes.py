"""The values that ``shardmerge cutover --json`` prints. Pure; see ``cli.views.shapes``."""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.cli.views.call_shapes import CallReason


@dataclass(frozen=True, slots=True)
class CutoverStep:
    """One step.

    Attributes:
        name: ``compare``, ``read-only``, ``note``, ``catch-up``, ``prove``, ``close``, ``tidy`` or
            ``open``; on the way back ``compare-back``, ``turn-back``, ``restore``, ``reopen``,
            ``writable`` or ``forget``. ``refuse``, ``ask`` and ``forget-ends``: something has to be
            done first. ``done``: nothing is left to do.
        does: What the step does, without a subject, such as ``compare all rows again``.
        source: The source that the step changes; "" for none.
        statements: The SQL that the step executes.
        done: Whether the step was carried out; false in a rehearsal.
    """

    name: str
    does: str
    source: str
    statements: tuple[str, ...]
    done: bool


@dataclass(frozen=True, slots=True)
class SourceEnd:
    """Where the binlog of a source ended after the writes had stopped.

    Attributes:
        source: Name of the source.
        position: The end, as ``file:position``.
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
        by: Who began the cut-over; "" when none has begun.
        begun: When it began.
        opened: When applications were allowed to write to the target; "" before.
        steps: The steps that this call carried out; for a rehearsal, the steps that would follow.
        reasons: What has to be done first. A rehearsal also has what later steps would ask for.
        ends: The noted ends of the sources' binlogs.
        rows: How many rows were compared after the ends were noted; 0 before.
        changed_only: Whether these are only the rows that had changed since the comparison under
            traffic. That one has proved all other rows.
        read_only: The sources that the command has made read-only.
        not_compared: What the last comparison left out, as sentences.
        notes: What else the operator should know, as sentences.
        way_back: Whether a cut-over has begun and no step of it is final. Whether applications have
            written to the target is not looked at.
    """

    target: str
    state: str
    by: str
    begun: str
    opened: str
    steps: tuple[CutoverStep, ...]
    reasons: tuple[CallReason, ...]
    ends: tuple[SourceEnd, ...]
    rows: int
    changed_only: bool
    read_only: tuple[str, ...]
    notes: tuple[str, ...]
    way_back: bool
    not_compared: tuple[str, ...] = ()
