"""The reasons for which shards of a target are held, each with both sides. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from .contradictions import conflict_of, conflict_path, hold_kind, sides_of
from .picture import Picture, moment
from .shapes import ShownConflict
from .target_log import TargetLog


def conflicts(picture: Picture, log: TargetLog) -> Iterator[ShownConflict]:
    """What ``shardmerge conflicts`` prints of one target, as of now."""
    state = log.state
    decided = picture.of_target(log.target)
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    since: dict[tuple[str, str, str, str], int] = {}
    for name in sorted(state.held):
        hold = state.shards[name].hold
        assert hold is not None
        group = (hold_kind(hold), hold.reason, hold.hint, hold.code)
        groups.setdefault(group, []).append(str(name))
        known = decided.get(hold.version)
        if known is not None:
            since[group] = min(since.get(group, known.written_ms), known.written_ms)
    conflict = conflict_of(state) if groups else None
    for group, held in groups.items():
        kind, reason, hint, code = group
        path = conflict_path(conflict, reason) if kind == "conflict" else ()
        yield ShownConflict(
            target=str(log.target),
            kind=kind,
            about=", ".join(path),
            reason=reason,
            hint=hint,
            since=moment(since.get(group, 0)),
            held=tuple(held),
            sides=sides_of(state, path),
            code=code,
        )
