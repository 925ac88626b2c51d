"""Why shards of a target are held or paused, with both sides and the ways out. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from shardmerge.schemas.model.names import ShardId

from .answers import Answers
from .conflicts import conflicts
from .contradictions import lacking
from .shapes import ShownConflict, WayOut
from .ways_out import out_of_hold, out_of_pause

MOST_REASONS = 20
"""Only this many reasons get ways out, because each one asks the coordinator several times."""


@dataclass(frozen=True, slots=True)
class HoldReport:
    """One reason.

    Attributes:
        conflict: The reason, and both sides if there are any. ``kind`` is ``pause`` for paused
            shards.
        shard: The shard that ``ways`` are for; None if no ways out were looked for.
        ways: The ways out of ``shard``; see ``ways_out``.
        waits_for: For the DDL lock: the shards that have not made the change of ``shard``.
    """

    conflict: ShownConflict
    shard: ShardId | None
    ways: tuple[WayOut, ...]
    waits_for: tuple[ShardId, ...] = ()


def hold_reports(
    answers: Answers,
    decided_ms: Mapping[int, int],
    path: Path,
    chosen: ShardId | None = None,
) -> Iterator[HoldReport]:
    """The reasons of a target, holds before pauses.

    Args:
        answers: The target's coordinator.
        decided_ms: See ``conflicts``.
        path: Path of the pipeline file, for the commands.
        chosen: The shard to show ways out for. A reason that does not hold it shows those of its
            first shard.
    """
    state = answers.state
    names = {str(name): name for name in state.shards}
    found = list(conflicts(state, decided_ms))
    for place, conflict in enumerate(found):
        if place >= MOST_REASONS:
            yield HoldReport(conflict, None, ())
            continue
        first = names[conflict.held[0]]
        shard = chosen if chosen is not None and str(chosen) in conflict.held else first
        ways = tuple(out_of_hold(answers, state.shards[shard], path))
        behind = lacking(state, state.shards[shard]) if conflict.kind == "lock" else ()
        yield HoldReport(conflict, shard, ways, tuple(behind))
    paused = [
        name for name in sorted(state.shards)
        if state.shards[name].paused and state.shards[name].hold is None
    ]  # fmt: skip
    if paused:
        conflict = ShownConflict(
            target=str(state.target),
            kind="pause",
            about="",
            reason="paused by an operator, or by its route",
            hint="",
            since="",
            held=tuple(map(str, paused)),
            sides=(),
            code="SM-1613",
        )
        shard = chosen if chosen in paused else paused[0]
        assert shard is not None
        yield HoldReport(conflict, shard, tuple(out_of_pause(answers, shard, path)))
