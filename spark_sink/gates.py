"""For each shard the first gate that may not be passed, and why. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.schemas.position import SourcePosition

from .decisions import Gate, ShardGates, StatementKey


@dataclass(frozen=True, slots=True)
class Stop:
    """A gate that may not be passed, and the reason for people.

    Attributes:
        held: Whether the decision holds the shard; else its statements are not executed yet.
    """

    gate: Gate
    held: bool
    reason: str
    hint: str

    @property
    def position(self) -> SourcePosition:
        """Where the gate stands."""
        return self.gate.position


def first_stop(
    shard: ShardGates, frontier: int, own: tuple[int, StatementKey] | None = None
) -> Stop | None:
    """The first gate that may not be passed; None when all may.

    Args:
        shard: The shard's gates.
        frontier: Lowest version of the target whose rows must wait (``statements.frontier``).
        own: The gate at which the shard's rows wait for a change of its rows, if they do
            (``statements.rows_stops``).
    """
    index = shard.first_blocked(frontier)
    if own is not None and own[0] < index:
        key = own[1]
        what = f"waits for statement {key.version}.{key.ordinal}, which changes its rows"
        return Stop(shard.gates[own[0]], False, what, "")
    if index == len(shard.gates):
        return None
    gate = shard.gates[index]
    effective = gate.effective_version
    if effective is None:
        return Stop(gate, True, gate.reason, gate.hint)
    return Stop(gate, False, f"waits for the target to reach version {effective}", "")
