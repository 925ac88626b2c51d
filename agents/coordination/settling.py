"""Where a target moves to without a schema change, and which gates open then. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.schemas.model.policies import Mode
from shardmerge.schemas.target.dialects.dialect import Dialect

from . import optimistic, pessimistic
from .identities import known_names
from .target_moves import NO_COMMENTS, Refusal, Settled, unmoved


def settle(
    state: TargetState,
    names: Mapping[str, str],
    dialect: Dialect,
    comments: Mapping[str, str] = NO_COMMENTS,
) -> Settled | Refusal:
    """The target's move by its mode, after its state changed without a schema change.

    Args:
        state: With the shards as they are.
        names: Identity → name in the target.
        dialect: The target's kind and version.
        comments: Those that have been set already, see ``join_target``.
    """
    found = pessimistic.settle if state.policies.mode is Mode.PESSIMISTIC else optimistic.settle
    return found(state, names, dialect, comments)


def settle_or_stay(state: TargetState, dialect: Dialect) -> Settled:
    """Like ``settle``, when no new schema counts; if the schemas have no join, the target stays."""
    names = known_names(state)
    found = settle(state, names, dialect)
    return Settled(state, unmoved(state, names), {}) if isinstance(found, Refusal) else found
