"""For each shard the first gate that may not be passed, and why. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.schemas.model.position import SourcePosition

from .applied import RowProgress, unapplied_before_gate
from .shard_gates import Gate, ShardGates


@dataclass(frozen=True, slots=True)
class Stop:
    """A gate that may not be passed, and the reason for people.

    Attributes:
        held: True when the decision holds the shard. False when rows wait for a statement, or for
            something of the shard itself (``first_stop``).
        code: Of the reason, see ``schemas.codes``.
        rows_from: Rows from here on wait: the gate's position, or the beginning
            (``ShardGates.is_before_every_row``).
    """

    gate: Gate
    held: bool
    reason: str
    hint: str
    code: str
    rows_from: SourcePosition

    @property
    def position(self) -> SourcePosition:
        """Where the gate stands."""
        return self.gate.position


def first_stop(
    shard: ShardGates, frontier: int, own: tuple[int, str, str] | None = None
) -> Stop | None:
    """The first gate that may not be passed; None when all may.

    Args:
        shard: The shard's gates.
        frontier: Lowest version of the target whose rows must wait (``statements.frontier``).
        own: Index of the gate at which the shard's rows wait for something of the shard itself,
            what that is, and its code; None when they do not wait so.
    """
    index = shard.first_blocked(frontier)
    if own is not None and own[0] < index:
        gate = shard.gates[own[0]]
        return Stop(gate, False, own[1], "", own[2], shard.rows_behind(gate))
    if index == len(shard.gates):
        return None
    gate = shard.gates[index]
    effective = gate.effective_version
    if effective is None:
        return Stop(gate, True, gate.reason, gate.hint, gate.code, shard.rows_behind(gate))
    waits = f"waits for the target to reach version {effective}"
    return Stop(gate, False, waits, "", "SM-1601", shard.rows_behind(gate))


def key_stop(shard: ShardGates, rows: RowProgress) -> tuple[int, str] | None:
    """The gate at which message keys change, while the shard's earlier rows are not all applied.

    Kafka keeps the rows of one key in order, because it puts them into one partition. That holds
    only as long as message keys are made of the same columns.

    Returns:
        Its index, and the reason for people; None when no row waits.
    """
    for index in shard.key_changes:
        gate = shard.gates[index]
        if waits := unapplied_before_gate(shard, gate, rows):
            return index, f"its message keys are others from here on: waits for {waits}"
    return None
