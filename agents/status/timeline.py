"""What happened to a target: what was asked, decided and executed, decision by decision. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records.decisions import Decision, Outcome, TargetStatement
from shardmerge.schemas.records.progress import SinkProgress, StatementProgress

from .execution import MAX_CHANGES, ChangeExecution, executions, reported, stand
from .rollouts import StatementPlace
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
            Of an executed statement: when the sink first reported that it is executed.
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
class ShownChange:
    """One change of shards: what it asked of the target, and how far each shard is.

    Attributes:
        entries: The decisions about it that have statements, and those that ended a hold at one of
            its gates; in the order of their versions, as far as they are kept.
    """

    execution: ChangeExecution
    entries: tuple[TimelineEntry, ...]


@dataclass(frozen=True, slots=True)
class Lane:
    """One line of the picture of the last versions.

    Attributes:
        name: Name of a shard, or ``target``.
        marks: One for each version. On a shard's lane: the outcome, or ``released``. On the
            target's lane: the worst state of its statements. "" if the version did nothing
            on this lane.
        stands: One for each version: how far the shard's rows are with its change, see ``Stand``;
            "" on the target's lane, and for a version that is no change of this shard.
    """

    name: str
    marks: tuple[str, ...]
    stands: tuple[str, ...]


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
    times = _executed_times(target)
    return [_entry(decision, target.progress, times) for decision in target.decisions[first:end]]


def changes(
    target: TargetView, first: int = 0, most: int = MAX_CHANGES, search: str = ""
) -> tuple[ShownChange, ...]:
    """The latest changes shard by shard, the latest one first; the arguments as ``executions``."""
    asking = [entry for entry in reversed(timeline(target)) if entry.statements]
    found = []
    for each in executions(target, first, most, search):
        gates = each.rollout.gates
        versions = {version for gate in gates for version in (gate.version, gate.released)}
        entries = tuple(e for e in asking if e.decision.version in versions)
        found.append(ShownChange(each, entries))
    return tuple(found)


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


def _executed_times(target: TargetView) -> Mapping[StatementPlace, int]:
    return {place: ms for rollout in target.rollouts for place, ms in rollout.executed.items()}


def _entry(
    decision: Decision, progress: SinkProgress | None, times: Mapping[StatementPlace, int]
) -> TimelineEntry:
    gate = ""
    if decision.outcome is Outcome.HOLD:
        gate = "later rows of the shard wait until a later version releases it"
    elif decision.shard is not None and decision.statements:
        gate = f"later rows of the shard wait for version {decision.version}, but not for its debts"
    return TimelineEntry(decision, tuple(executed(decision, progress, times)), gate)


def executed(
    decision: Decision,
    progress: SinkProgress | None,
    times: Mapping[StatementPlace, int] = MappingProxyType({}),
) -> Iterator[ExecutedStatement]:
    """A decision's statements, each with its state on the target.

    Args:
        decision: The decision.
        progress: The sink's last report; None if there is none.
        times: Executed statement → when the sink first reported that, as far as it is known.
    """
    open_ = _open(progress)
    for ordinal, statement in enumerate(decision.statements):
        found = open_.get((decision.version, ordinal))
        if found is not None:
            yield ExecutedStatement(
                statement, found.state, found.detail, found.since_ms, found.code
            )
        elif progress is not None and decision.version <= progress.executed_version:
            since_ms = times.get((decision.version, ordinal), 0)
            yield ExecutedStatement(statement, "executed", since_ms=since_ms)
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
    versions = tuple(d.version for d in told)
    found = [Lane("target", tuple(of_target), ("",) * len(told))]
    standing = _stands(target, latest, versions)
    found += [Lane(str(name), tuple(shards[name]), standing[name]) for name in sorted(latest)]
    return Lanes(versions, tuple(found), len(shards) - len(latest))


def _stands(
    target: TargetView, names: Collection[ShardId], versions: Sequence[int]
) -> Mapping[ShardId, tuple[str, ...]]:
    wanted = set(names)
    gates = {
        gate.version: gate
        for each in target.rollouts
        for gate in each.gates
        if gate.shard in wanted
    }
    told = reported(target)
    executed_version = target.progress.executed_version if target.progress else 0

    def of(name: ShardId, version: int) -> str:
        gate = gates.get(version)
        if gate is None or gate.shard != name:
            return ""
        return stand(gate, told.get(name), executed_version).value

    return {name: tuple(of(name, version) for version in versions) for name in names}


def _counts(decision: Decision) -> bool:
    return decision.outcome is not Outcome.NOOP or bool(decision.releases)


def _last(marks: Sequence[str]) -> int:
    return max((place for place, mark in enumerate(marks) if mark), default=-1)


_STATES = ("refused", "executing", "waiting", "debt", "not known", "executed")


def _worst(states: Sequence[str]) -> str:
    return min(states, key=_STATES.index)
