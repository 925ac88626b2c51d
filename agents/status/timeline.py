"""What happened to a target: what was asked, decided and executed, decision by decision. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records.decisions import Decision, Outcome, TargetStatement
from shardmerge.schemas.records.progress import SinkProgress, StatementProgress

from .view import TargetView

MAX_LANES = 25
MAX_VERSIONS = 30
_LEAST_RUN = 3


@dataclass(frozen=True, slots=True)
class ExecutedStatement:
    """A statement of a decision, and its state on the target.

    Attributes:
        state: ``executed``, ``debt``, ``waiting``, ``executing``, ``refused``, or ``not known``
            while the sink has not reported on this version.
        detail: What the statement waits for, or what the target's server answered.
        since_ms: When the sink first saw that state, in milliseconds since 1970; 0 if not known.
    """

    statement: TargetStatement
    state: str
    detail: str = ""
    since_ms: int = 0
    code: str = ""


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One decision.

    Attributes:
        gate: What later rows of the shard wait for, or waited for; "" without a gate.
    """

    decision: Decision
    statements: tuple[ExecutedStatement, ...]
    gate: str


@dataclass(frozen=True, slots=True)
class TimelineRun:
    """Neighbouring decisions, newest first, never empty.

    Attributes:
        is_quiet: Whether they changed nothing. Then the page folds them up.
    """

    entries: tuple[TimelineEntry, ...]
    is_quiet: bool


@dataclass(frozen=True, slots=True)
class Lane:
    """One line of the picture of the last versions.

    Attributes:
        name: Name of a shard, or ``target``.
        marks: One for each version. On a shard's lane: the outcome, or ``released``. On the
            target's lane: the worst state of its statements. "" if the version did nothing
            on this lane.
    """

    name: str
    marks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lanes:
    """The picture of the last versions: one lane for the target, then those of the shards.

    Attributes:
        versions: In ascending order.
        more: How many more shards changed in these versions, and have no lane.
    """

    versions: tuple[int, ...]
    lanes: tuple[Lane, ...]
    more: int


def timeline(target: TargetView, first: int = 0, count: int | None = None) -> list[TimelineEntry]:
    """The decisions that are kept, newest first.

    Args:
        target: The target.
        first: How many of the newest decisions to skip.
        count: Most decisions to return; None for all.
    """
    end = None if count is None else first + count
    return [_entry(decision, target.progress) for decision in target.decisions[first:end]]


def runs(entries: Sequence[TimelineEntry]) -> list[TimelineRun]:
    """The entries, with neighbours that changed nothing in one run.

    So 10,000 shards that came with the same schema do not hide the other decisions.
    """
    found: list[TimelineRun] = []
    for quiet, group in groupby(entries, _is_quiet):
        run = tuple(group)
        if quiet and len(run) >= _LEAST_RUN:
            found.append(TimelineRun(run, is_quiet=True))
        else:
            found += [TimelineRun((entry,), is_quiet=False) for entry in run]
    return found


def _is_quiet(entry: TimelineEntry) -> bool:
    decision = entry.decision
    told = decision.warnings or decision.hint or decision.pauses or decision.resumes
    return not (told or decision.leaves or decision.reloads or _counts(decision))


def _entry(decision: Decision, progress: SinkProgress | None) -> TimelineEntry:
    gate = ""
    if decision.outcome is Outcome.HOLD:
        gate = "later rows of the shard wait until a later version releases it"
    elif decision.shard is not None and decision.statements:
        gate = f"later rows of the shard wait for version {decision.version}, but not for its debts"
    return TimelineEntry(decision, tuple(executed(decision, progress)), gate)


def executed(decision: Decision, progress: SinkProgress | None) -> Iterator[ExecutedStatement]:
    """A decision's statements, each with its state on the target."""
    open_ = _open(progress)
    for ordinal, statement in enumerate(decision.statements):
        found = open_.get((decision.version, ordinal))
        if found is not None:
            yield ExecutedStatement(
                statement, found.state, found.detail, found.since_ms, found.code
            )
        elif progress is not None and decision.version <= progress.executed_version:
            yield ExecutedStatement(statement, "executed")
        else:
            yield ExecutedStatement(statement, "not known")


def _open(progress: SinkProgress | None) -> dict[tuple[int, int], StatementProgress]:
    return {(s.version, s.ordinal): s for s in progress.open} if progress else {}


def lanes(target: TargetView) -> Lanes:
    """The last versions as a picture: who changed, who is held, and what the target executed.

    Versions that changed nothing are left out, such as those of new shards with the joined schema.
    With many shards they would hide the others.
    """
    told = [d for d in target.decisions if _counts(d)][:MAX_VERSIONS]
    told.reverse()
    shards: dict[ShardId, list[str]] = {}
    of_target = [""] * len(told)
    for place, decision in enumerate(told):
        if decision.shard is not None:
            marks = shards.setdefault(decision.shard, [""] * len(told))
            marks[place] = decision.outcome.value
        for release in decision.releases:
            marks = shards.setdefault(release.shard, [""] * len(told))
            marks[place] = marks[place] or "released"
        if states := [each.state for each in executed(decision, target.progress)]:
            of_target[place] = _worst(states)
    latest = sorted(shards, key=lambda name: (-_last(shards[name]), name))[:MAX_LANES]
    found = [Lane("target", tuple(of_target))]
    found += [Lane(str(name), tuple(shards[name])) for name in sorted(latest)]
    return Lanes(tuple(d.version for d in told), tuple(found), len(shards) - len(latest))


def _counts(decision: Decision) -> bool:
    return decision.outcome is not Outcome.NOOP or bool(decision.releases)


def _last(marks: Sequence[str]) -> int:
    return max((place for place, mark in enumerate(marks) if mark), default=-1)


_STATES = ("refused", "executing", "waiting", "debt", "not known", "executed")


def _worst(states: Sequence[str]) -> str:
    return min(states, key=_STATES.index)
