"""Which restarts (snapshots that began again) and TRUNCATEs are carried out next. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.spark_sink.barrier.decisions import Decisions
from shardmerge.spark_sink.barrier.restarts import (
    Restart,
    Stage,
    open_restart,
    restarts_of,
    snapshots_seen,
)
from shardmerge.spark_sink.barrier.statements import bindings
from shardmerge.spark_sink.barrier.truncations import Truncation

from .sink_state import SinkState


class Turns:
    """What is due besides statements and ranges of rows.

    Args:
        decisions: Everything decided, as far as it was read.
        state: Everything else that a plan depends on.
        restarts: Shard → its restart that is not settled (``open_restarts``).
        ready: Targets that have statements to run first.

    Attributes:
        due_truncations: Truncations whose turn has come.
        restarts: Restarts whose turn has come.
        emptying: Targets from which a statement will delete rows: none of their ranges is applied.
    """

    def __init__(
        self,
        decisions: Decisions,
        state: SinkState,
        restarts: Mapping[ShardId, Restart],
        ready: frozenset[TargetTable],
    ) -> None:
        def has_turn(of: Truncation | Restart) -> bool:
            return (
                of.target not in ready
                and of.target not in state.busy
                and of.target not in state.closed
                and of.shard not in decisions.targets[of.target].paused
                and not _rests(of, state)
            )

        self.due_truncations = tuple(
            truncation
            for truncation in state.truncations.values()
            if has_turn(truncation)
            and lets_rows_pass(restarts, truncation.shard)
            and not truncation.waits_for(state.rows)
        )
        self.restarts = _together(
            [
                r
                for r in restarts.values()
                if has_turn(r)
                and _is_past_load(r, state)
                and _is_there(decisions, state, r.target)
                # An older reading may lack the partitions; the restart would then look finished.
                and state.rows.watermarks.seen >= r.gate.seen
            ],
            state,
        )
        self.emptying = {truncation.target for truncation in self.due_truncations}
        self.emptying |= {
            r.target for r in self.restarts if r.stage is Stage.BEGUN and r.removal is not None
        }

    @property
    def taken_back(self) -> list[Restart]:
        """Restarts whose rows are to be taken back range by range."""
        return [
            r
            for r in self.restarts
            if r.target not in self.emptying and r.removal is None and r.left
        ]

    @property
    def to_carry_out(self) -> tuple[Restart, ...]:
        """Restarts that need something besides tasks for ranges (``BatchPlan.restarts``)."""
        left = {(r.target, r.gate.version) for r in self.restarts if r.left}
        return tuple(
            r
            for r in self.restarts
            if r.leads
            and (
                r.stage in {Stage.FOUND, Stage.SOUGHT, Stage.UNPROVEN}
                or (
                    r.stage is Stage.BEGUN
                    and (r.removal is not None or (r.target, r.gate.version) not in left)
                )
            )
        )


def open_restarts(decisions: Decisions, state: SinkState) -> dict[ShardId, Restart]:
    """Shard → its restart that is not settled; few shards have one."""
    seen = snapshots_seen(decisions, state.executed, state.rows, state.loaded)
    found: dict[ShardId, Restart] = {}
    for target in decisions.targets.values():
        executed = state.executed.get(target.target, ())
        if any(
            open_restart(target.shards[name], executed) is not None for name in target.restarted
        ):
            bound = bindings(target, executed)
            found |= restarts_of(target, executed, state.rows, bound, seen)
    return found


def lets_rows_pass(restarts: Mapping[ShardId, Restart], shard: ShardId) -> bool:
    """Whether a shard's rows may be applied although a snapshot of it may have begun again."""
    restart = restarts.get(shard)
    return restart is None or restart.lets_rows_pass


def _rests(of: Truncation | Restart, state: SinkState) -> bool:
    """Whether its shard waits for a while, because a row could not be applied.

    A reload waits only if the shard waits at the reload's own gate: every row before that gate is
    taken out, also one that could not be applied. The same holds for a restart that is sought.
    """
    place = state.resting.get(of.shard)
    if isinstance(of, Restart) and (of.gate.reloads or of.stage is Stage.SOUGHT):
        return place == of.position
    return place is not None


def _together(turns: Sequence[Restart], state: SinkState) -> list[Restart]:
    """The restarts whose mates all have their turn too.

    The statement that deletes the rows of all mates is dropped when none of them has rows.

    Args:
        turns: Those that have their own turn.
        state: Tells which shards have rows of a first load.
    """
    found: dict[tuple[TargetTable, int], list[Restart]] = {}
    for restart in turns:
        found.setdefault((restart.target, restart.gate.version), []).append(restart)
    kept = [some for some in found.values() if len(some) == len(some[0].mates)]
    return [
        restart
        if any(mate.left or _has_loaded_rows(mate, state) for mate in some)
        else replace(restart, removal=None)
        for some in kept
        for restart in some
    ]


def _is_past_load(restart: Restart, state: SinkState) -> bool:
    """Whether no chunk of a first load from before the gate can be written any more."""
    load = state.rows.loads.get(restart.shard)
    return load is None or load.position is None or load.version >= restart.gate.version


def _has_loaded_rows(restart: Restart, state: SinkState) -> bool:
    load = state.rows.loads.get(restart.shard)
    return load is not None and load.has_rows


def _is_there(decisions: Decisions, state: SinkState, target: TargetTable) -> bool:
    """Whether the target table exists: marks of restarts, and rows, need it."""
    statements, executed = decisions.targets[target].statements, state.executed.get(target, ())
    return not statements or any(key.ordinal >= 0 for key in executed)
