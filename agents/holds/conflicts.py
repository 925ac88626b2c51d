"""Why shards of a target are held: each reason with both sides. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.connectors.formats.stored_record import iso_time

from .contradictions import conflict_of, conflict_path, hold_kind, sides_of
from .shapes import ShownConflict


def conflicts(state: TargetState, decided_ms: Mapping[int, int]) -> Iterator[ShownConflict]:
    """Each reason once, with both sides.

    Args:
        state: The present state of a target.
        decided_ms: Version → when it was decided, in milliseconds since 1970. A hold of a version
            that is not in it has no time.
    """
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    since: dict[tuple[str, str, str, str], int] = {}
    for name in sorted(state.held):
        hold = state.shards[name].hold
        assert hold is not None
        group = (hold_kind(hold), hold.reason, hold.hint, hold.code)
        groups.setdefault(group, []).append(str(name))
        known_ms = decided_ms.get(hold.version)
        if known_ms is not None:
            since[group] = min(since.get(group, known_ms), known_ms)
    conflict = conflict_of(state) if groups else None
    for group, held in groups.items():
        kind, reason, hint, code = group
        path = conflict_path(conflict, reason) if kind == "conflict" else ()
        yield ShownConflict(
            target=str(state.target),
            kind=kind,
            about=", ".join(path),
            reason=reason,
            hint=hint,
            since=iso_time(since[group]) if group in since else "",
            held=tuple(held),
            sides=sides_of(state, path),
            code=code,
        )
