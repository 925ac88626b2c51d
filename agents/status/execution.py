"""How far each shard is with each change: passed, waiting and for what, or not known. Pure.

All of it is from the sink's last report. A shard that waits tells the position at which it stands,
so gates before and behind that place are told apart. Where no position is told, it is not guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records.progress import ShardProgress

from .rollouts import Rollout, ShardGate, is_passed
from .view import ShardView, TargetView

MAX_CHANGES = 15
"""Changes that a page shows shard by shard."""


class Stand(StrEnum):
    """Where a shard's rows are, seen from one of its gates; the worst first."""

    HERE = "waits here"
    """Rows stand at this gate."""
    EARLIER = "waits earlier"
    """Rows stand at an earlier gate or row, and have not come to this gate."""
    SOMEWHERE = "waits"
    """Rows wait for something that has no place in the binlog, such as the end of a pause."""
    UNREACHED = "not reached"
    """The target has not reached the gate's version, and no row stands there."""
    OPEN = "open"
    """The gate lets rows pass. Some are on the way, or stand at a later place."""
    PASSED = "passed"
    """Every row is applied that the sink knows of."""
    LEFT = "left"
    """The shard has left the target."""
    UNKNOWN = "not known"
    """The sink has not reported on the shard."""


_LOCKS = frozenset(("SM-1213", "SM-1214"))
_GATES = frozenset(("SM-1601", "SM-1612"))
_PAUSE = "SM-1613"


@dataclass(frozen=True, slots=True)
class StandingGroup:
    """Shards that are equally far with one change.

    Attributes:
        kind: What a waiting shard waits at: ``hold``, ``lock`` (the DDL lock), ``gate`` (that the
            target reaches a version), ``pause``, or ``row`` for anything else; "" for other states.
        reason, code, hint: As the sink tells them; "" for shards that do not wait.
        shards: In the order of their versions.
        since_ms: When the first of them began to wait, in milliseconds since 1970; 0 for none.
        parked: Rows that are not applied, of all of them, at most.
        fastest_ms, slowest_ms: Of the passed ones: time between the change on the shard and the
            first report that has it passed; None if no time is known.
    """

    stand: Stand
    kind: str
    reason: str
    code: str
    hint: str
    shards: tuple[ShardId, ...]
    since_ms: int = 0
    parked: int = 0
    fastest_ms: int | None = None
    slowest_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ChangeExecution:
    """One change, shard by shard.

    Attributes:
        groups: The shards that made the change, the worst first.
        lacking: Live shards that have not made it, sorted; empty for a change that leaves all
            columns as they were, because the view knows no indexes of shards.
        differing: Live shards that have what it makes, but with another definition; sorted.
        without: Live shards that do not have the column that it renames or redefines; sorted.
    """

    rollout: Rollout
    groups: tuple[StandingGroup, ...]
    lacking: tuple[ShardId, ...]
    differing: tuple[ShardId, ...]
    without: tuple[ShardId, ...]


def executions(
    target: TargetView, first: int = 0, most: int = MAX_CHANGES, search: str = ""
) -> tuple[ChangeExecution, ...]:
    """The latest changes shard by shard, the latest one first.

    Args:
        target: The target.
        first: How many of the latest changes to skip.
        most: How many to return.
        search: Counts only shards whose name contains this text, in upper or lower case.
    """
    told = reported(target)
    wanted = search.casefold()
    shards = {s.shard: s for s in target.shards if wanted in str(s.shard).casefold()}
    return tuple(
        _execution(rollout, target, told, shards)
        for rollout in target.rollouts[first : first + most]
    )


def reported(target: TargetView) -> dict[ShardId, ShardProgress]:
    """What the sink told of each shard last."""
    return {s.shard: s for s in target.progress.shards} if target.progress else {}


def stand(
    gate: ShardGate,
    told: ShardProgress | None,
    executed_version: int,
    *,
    has_left: bool = False,
) -> Stand:
    """Where a shard's rows are, seen from a gate.

    Args:
        gate: One of the shard's gates.
        told: What the sink told of the shard last; None for nothing.
        executed_version: What it told of the target.
        has_left: Whether the shard has left the target.
    """
    if has_left:
        return Stand.LEFT
    if told is None:
        return Stand.UNKNOWN
    if told.waiting:
        at = told.position
        if at is None:
            return Stand.SOMEWHERE
        if at == gate.position:
            return Stand.HERE
        return Stand.EARLIER if at < gate.position else Stand.OPEN
    if is_passed(gate, told, executed_version):
        return Stand.PASSED
    return Stand.UNREACHED if executed_version < gate.version else Stand.OPEN


def wait_kind(code: str) -> str:
    """What a shard waits at, by the code of the reason; see ``StandingGroup``."""
    if code in _LOCKS:
        return "lock"
    if code in _GATES:
        return "gate"
    if code == _PAUSE:
        return "pause"
    return "hold" if code.startswith("SM-12") else "row"


def _execution(
    rollout: Rollout,
    target: TargetView,
    told: Mapping[ShardId, ShardProgress],
    shards: Mapping[ShardId, ShardView],
) -> ChangeExecution:
    made = {gate.shard for gate in rollout.gates}
    others = _others(rollout, shards, made)
    return ChangeExecution(
        rollout,
        tuple(_groups(rollout, target, told, shards)),
        tuple(others["lacks"]),
        tuple(others["differs"]),
        tuple(others["without"]),
    )


def _others(
    rollout: Rollout, shards: Mapping[ShardId, ShardView], made: set[ShardId]
) -> Mapping[str, list[ShardId]]:
    """The live shards that did not make the change, by what they have instead."""
    found: dict[str, list[ShardId]] = {
        "has": [], "lacks": [], "differs": [], "without": [],
    }  # fmt: skip
    known: dict[int, str] = {}  # shards with equal columns share one object
    for shard in shards.values() if rollout.change else ():
        if shard.state != "left" and shard.shard not in made and shard.latest:
            key = id(shard.latest)
            if key not in known:
                known[key] = rollout.standing_of(shard.latest)
            found[known[key]].append(shard.shard)
    return found


def _groups(
    rollout: Rollout,
    target: TargetView,
    told: Mapping[ShardId, ShardProgress],
    shards: Mapping[ShardId, ShardView],
) -> Iterator[StandingGroup]:
    executed = target.progress.executed_version if target.progress else 0
    alike: dict[tuple[Stand, str, str, str], list[ShardGate]] = {}
    for gate in rollout.gates:
        known = shards.get(gate.shard)
        if known is None:
            continue
        report, has_left = told.get(gate.shard), known.state == "left"
        at = stand(gate, report, executed, has_left=has_left)
        waits = at in (Stand.HERE, Stand.EARLIER, Stand.SOMEWHERE) and report is not None
        why = (report.waiting, report.code, report.hint) if waits and report else ("", "", "")
        alike.setdefault((at, *why), []).append(gate)
    order = list(Stand)
    for (at, reason, code, hint), gates in sorted(
        alike.items(), key=lambda item: (order.index(item[0][0]), item[0][1:])
    ):
        reports = [report for gate in gates if (report := told.get(gate.shard)) is not None]
        times = [g.passed_ms - g.ts_ms for g in gates if g.passed_ms and g.ts_ms]
        took = [max(0, ms) for ms in times] if at is Stand.PASSED else []
        yield StandingGroup(
            at,
            wait_kind(code) if reason else "",
            reason,
            code,
            hint,
            tuple(gate.shard for gate in gates),
            min((r.since_ms for r in reports if reason and r.since_ms), default=0),
            sum(r.parked for r in reports),
            min(took, default=None),
            max(took, default=None),
        )
