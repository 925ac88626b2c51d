"""Why a shard stands: who waits for whom, since when, and each way out. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shardmerge.agents.coordination.state.shard_state import ShardState
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.holds.contradictions import conflict_of, hold_kind, lacking, sides_of
from shardmerge.agents.holds.shapes import WITHOUT, WayOut
from shardmerge.agents.holds.ways_out import out_of_hold, out_of_pause
from shardmerge.connectors.formats.connector_status import connector_fault
from shardmerge.schemas.codes.registry import coded
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records.drift import MET_CODE
from shardmerge.schemas.records.progress import ShardProgress, SinkProgress

from .picture import Picture, moment
from .shapes import Cause, Explanation, StatementStatus
from .status import open_statements, paused_by
from .target_log import TargetLog

_VERSION = re.compile(r"reach version (\d+)")
_STATEMENT = re.compile(r"statement (\d+\.\d+)")
_REBUILT = frozenset({"SM-3108"})
"""Codes of rows that a rebuilt target does not need: its loads bring what is behind them."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What an explanation is made of.

    Attributes:
        log: The shard's target as of now.
        path: Of the pipeline file, for the commands that are told.
    """

    picture: Picture
    log: TargetLog
    shard: ShardId
    path: Path

    @property
    def progress(self) -> SinkProgress | None:
        """What the sink told last of the target."""
        return self.picture.progress.get(self.log.target)

    @property
    def applied(self) -> ShardProgress | None:
        """What the sink told of the shard."""
        progress = self.progress
        shards = progress.shards if progress else ()
        return next((each for each in shards if each.shard == self.shard), None)

    @property
    def open(self) -> tuple[StatementStatus, ...]:
        """The target's statements that are not executed."""
        progress = self.progress
        return open_statements(self.picture, progress) if progress else ()


def explanation(asked: Asked) -> Explanation:
    """What ``shardmerge explain`` prints."""
    state = asked.log.state
    known, applied = state.shards.get(asked.shard), asked.applied
    causes = tuple(_causes(asked, state, known)) if known is not None else ()
    if known is None:
        word = "left"
    elif known.hold is not None:
        word = "held"
    elif known.paused:
        word = "paused"
    else:
        word = "waits" if applied is not None and applied.waiting else "flows"
    return Explanation(
        shard=str(asked.shard),
        target=str(asked.log.target),
        at=asked.picture.at,
        state=word,
        parked=applied.parked if applied and word not in ("flows", "left") else 0,
        causes=causes,
        waiting=tuple(_waiting(asked, state)),
        unanswered=asked.picture.unanswered,
    )


def _causes(asked: Asked, state: TargetState, shard: ShardState) -> Iterator[Cause]:
    if shard.hold is not None:
        yield _hold(asked, state, shard)
    if shard.paused:
        yield _pause(asked, shard)
    if asked.shard in state.awaited:
        yield _cause(
            "reading",
            "its table has no primary key and is read as a whole; its rows wait until that is done",
            ways=(WayOut("", "the watchdog has it read: see whether it runs, and its log"),),
        )
    yield from _parked(asked, shard)
    yield from _servers(asked)


def _hold(asked: Asked, state: TargetState, shard: ShardState) -> Cause:
    hold = shard.hold
    assert hold is not None
    kind = hold_kind(hold)
    others: tuple[str, ...] = ()
    if kind == "lock":
        others = tuple(map(str, lacking(state, shard)))
    elif kind == "conflict" and (conflict := conflict_of(state)) is not None:
        sides = sides_of(state, conflict.path)
        # A shard without the column contradicts nobody.
        others = tuple(n for side in sides if side.definition != WITHOUT
                       and str(asked.shard) not in side.shards for n in side.shards)  # fmt: skip
    return _cause(
        "hold" if kind == "conflict" else kind,
        hold.reason,
        since=_written(asked, hold.version),
        position=str(hold.position),
        version=hold.version,
        others=others,
        ways=tuple(out_of_hold(asked.log, shard, asked.path)),
        code=hold.code,
    )


def _pause(asked: Asked, shard: ShardState) -> Cause:
    version, by = paused_by(asked.picture, asked.log.target, asked.shard)
    decided = asked.picture.of_target(asked.log.target).get(version)
    fixups = [f for f in decided.decision.fixups if f.shard == asked.shard] if decided else []
    if by:
        what = f"paused by {by}"
    elif fixups:
        reasons = "; ".join(fixup.reason for fixup in fixups)
        what = f"paused by its route until somebody has looked at its rows: {reasons}"
    else:
        what = "paused"
    return _cause(
        "pause",
        what,
        since=_written(asked, version),
        position=str(shard.position),
        version=version,
        ways=tuple(out_of_pause(asked.log, asked.shard, asked.path)),
        code=fixups[0].code if fixups and not by else "SM-1613",
    )


def _parked(asked: Asked, shard: ShardState) -> Iterator[Cause]:
    """What the sink says that the shard's rows wait for, and what that waits for in turn."""
    applied = asked.applied
    if applied is None or not applied.waiting or (shard.hold or shard.paused):
        return
    found = _VERSION.search(applied.waiting)
    named = set(_STATEMENT.findall(applied.waiting))
    below = int(found[1]) if found else 0
    statements = [
        each
        for each in asked.open
        if each.statement in named or int(each.statement.partition(".")[0]) <= below
    ]
    yield _cause(
        "rows",
        applied.waiting,
        since=moment(applied.since_ms),
        position=str(applied.position or ""),
        version=below,
        others=tuple(f"statement {each.statement}" for each in statements),
        ways=(
            *((WayOut("", applied.hint),) if applied.hint else ()),
            *(_rebuild_ways(asked) if applied.code in _REBUILT else ()),
        ),
        code=applied.code,
    )
    for each in statements:
        yield _cause(
            "statement",
            f"statement {each.statement} is {each.state}: {each.sql}"
            + (f": {each.detail}" if each.detail else "")
            + (f" (because {coded(each.why_code, each.why)})" if each.why else ""),
            since=each.since,
            code=each.code,
            version=int(each.statement.partition(".")[0]),
            ways=tuple(_drift_ways(asked)) if each.code == MET_CODE else (),
            others=tuple(sorted(str(name) for name in asked.log.state.shards
                                if _names(each.detail, name) and name != asked.shard)),
        )  # fmt: skip


def _rebuild_ways(asked: Asked) -> Iterator[WayOut]:
    """The ways out when the target's rows are not those that the shard had."""
    of_target = shlex.join(("shardmerge", "rebuild", str(asked.log.target)))
    of_shard = shlex.join(("shardmerge", "command", "reread", "--shard", str(asked.shard)))
    more = shlex.join(("--pipeline", str(asked.path)))
    yield WayOut(
        f"{of_target} {more}",
        "loads the target anew from its shards while it serves, and passes over the waiting row",
    )
    yield WayOut(
        f"{of_shard} {more}",
        "takes the shard's rows out and has them read again, together with those of all shards "
        "from which the target does not tell them",
    )


def _drift_ways(asked: Asked) -> Iterator[WayOut]:
    """The ways out when a statement would overwrite a change by hand."""
    words = (str(asked.log.state.target), "--pipeline", str(asked.path))
    heal = shlex.join(("shardmerge", "drift", "heal", *words))
    yield WayOut(
        heal, "shows the statements that give the table its decided definition; --yes executes them"
    )
    adopt = shlex.join(("shardmerge", "drift", "adopt", *words))
    yield WayOut(adopt, "accepts the change by hand; the statement then overwrites it")


def _servers(asked: Asked) -> Iterator[Cause]:
    failure = asked.progress.failure if asked.progress else None
    if failure is not None:
        yield _cause(
            "failure",
            f"rows of {failure.where} cannot be applied, {failure.times} tries: {failure.message}",
            since=moment(failure.since_ms),
            ways=(WayOut("", failure.hint),) if failure.hint else (),
            code=failure.code,
        )
    for connector in asked.picture.connectors:
        if connector.source == asked.shard.source and connector.state != "RUNNING":
            words = ("shardmerge", "connect", "restart", connector.source, "--pipeline")
            line = shlex.join((*words, str(asked.path)))
            yield _cause(
                "connector",
                f"{connector_fault(connector)}; no new rows come",
                others=(connector.source,),
                ways=(WayOut(line, "the connector and its tasks are started anew"),),
            )
    agents = asked.picture.agents
    if agents is not None and not agents.workers:
        yield _cause(
            "agents",
            f"no agents' worker runs; {agents.undecided} records wait to be decided",
            ways=(WayOut("", "start the agents: shardmerge agents, or shardmerge run"),),
        )


def _waiting(asked: Asked, state: TargetState) -> Iterator[str]:
    """What waits for the shard that is asked for."""
    for each in asked.open:
        if _names(each.detail, asked.shard):
            yield f"statement {each.statement} ({each.state}): {each.sql}: {each.detail}"
    for name in sorted(state.held):
        other = state.shards[name]
        hold = other.hold
        if name == asked.shard or hold is None or hold_kind(hold) != "lock":
            continue
        if asked.shard in lacking(state, other):
            yield f"{name} ({hold.reason})"


def _names(text: str, shard: ShardId) -> bool:
    return re.search(rf"(?<![\w/.]){re.escape(str(shard))}(?![\w.])", text) is not None


def _written(asked: Asked, version: int) -> str:
    decided = asked.picture.of_target(asked.log.target).get(version)
    return moment(decided.written_ms) if decided else ""


def _cause(
    kind: str,
    what: str,
    *,
    since: str = "",
    position: str = "",
    version: int = 0,
    others: tuple[str, ...] = (),
    ways: tuple[WayOut, ...] = (),
    code: str = "",
) -> Cause:
    return Cause(kind, what, since, position, version, others, ways, code)
