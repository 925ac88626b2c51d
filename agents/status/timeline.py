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
    """A statement of a decision, and how far the target is with it.

    Attributes:
        state: ``executed``, ``debt``, ``waiting``, ``executing``, ``refused``, or ``not known``
            while the sink has told nothing of this version.
        detail: Who waits for whom, or what the target said.
        since_ms: When the sink first saw that state, in milliseconds since 1970; 0 for unknown.
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
        gate: What the rows of its shard behind it wait for, or waited for; "" without a gate.
    """

    decision: Decision
    statements: tuple[ExecutedStatement, ...]
    gate: str


@dataclass(frozen=True, slots=True)
class TimelineRun:
    """Neighbouring decisions, newest first, never empty.

    Attributes:
        is_quiet: Whether nothing came of them: they are shown folded up.
    """

    entries: tuple[TimelineEntry, ...]
    is_quiet: bool


@dataclass(frozen=True, slots=True)
class Lane:
    """One line of the picture of the last versions.

    Attributes:
        name: A shard's, or ``target``.
        marks: One for each version: an outcome, or for the target the state of its statements; ""
            where the version is not of this lane.
    """

    name: str
    marks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lanes:
    """The picture of the last versions: one lane for the target, then those of the shards.

    Attributes:
        versions: In their order, the latest last.
        more: How many shards have decisions of these versions, and no lane.
    """

    versions: tuple[int, ...]
    lanes: tuple[Lane, ...]
    more: int


def timeline(target: TargetView, first: int = 0, count: int | None = None) -> list[TimelineEntry]:
    """The decisions that are kept, newest first.

    Args:
        target: Any.
        first: How many of the newest are passed over.
        count: How many are told at most; None for all.
    """
    end = None if count is None else first + count
    return [_entry(decision, target.progress) for decision in target.decisions[first:end]]


def runs(entries: Sequence[TimelineEntry]) -> list[TimelineRun]:
    """The entries, with neighbours of which nothing came put together.

    So 10,000 shards that came with the same schema do not hide what did happen.
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
        gate = "rows behind it wait until a later version releases the shard"
    elif decision.shard is not None and decision.statements:
        gate = f"rows behind it wait until version {decision.version} is executed, debts aside"
    return TimelineEntry(decision, tuple(executed(decision, progress)), gate)


def executed(decision: Decision, progress: SinkProgress | None) -> Iterator[ExecutedStatement]:
    """A decision's statements with how far the target is with them."""
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

    A version in which a new shard came and nothing else happened is left out: with many shards, it
    would hide what did happen.
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
