"""Which rows have to be applied before a statement of the target. Pure.

``statements`` gives the reasons for these rules.
"""

from __future__ import annotations

from collections.abc import Callable

from shardmerge.schemas.records.decisions import StatementKind, TargetStatement

from .applied import RowProgress, unapplied_before_gate
from .decisions import StatementKey, TargetDecisions
from .shard_gates import Gate, ShardGates

WAITED_FOR = (StatementKind.EXPANDING, StatementKind.SWITCHING)
"""The statements that rows of their version wait for."""
WHOLE_TABLE = "table"
"""The subject that contains every other subject."""


def limit_of(shard: ShardGates, version: int) -> Gate | None:
    """The gate up to which a shard's rows must be applied before a statement of ``version``.

    Usually it is the shard's last gate up to that version. If an earlier gate is held, or was
    opened by this version or a later one, it is the first such gate: the rows behind it wait for
    this version themselves, and the rows before it have the schema from before the gate.

    Returns:
        None when the shard has no gate up to that version.
    """
    count = shard.upto(version)
    if count == 0:
        return None
    return shard.gates[min(shard.first_blocked(version), count - 1)]


def debt_limit_of(shard: ShardGates, version: int) -> Gate | None:
    """The gate up to which rows must be applied before a debt that no row waits for.

    It is the shard's last gate up to ``version``, or the first gate that is held or was opened
    only by a later version, if that comes first.

    Returns:
        None when the shard has no gate up to that version.
    """
    count = shard.upto(version)
    if count == 0:
        return None
    return shard.gates[min(shard.first_blocked(version + 1), count - 1)]


def is_waited_for(target: TargetDecisions, key: StatementKey, statement: TargetStatement) -> bool:
    """Whether rows that the statement's own version lets through may wait for the statement.

    They may when its kind is one that rows wait for (``WAITED_FOR``). They also may when a later
    statement of the same version, for which rows wait, has a subject in common with it, directly or
    through statements in between. Statements of later versions do not matter: no row that the
    statement could need waits for those.
    """
    if statement.kind in WAITED_FOR:
        return True
    subjects = set(statement.subjects)
    later = StatementKey(key.version, key.ordinal + 1)
    while (other := target.statements.get(later)) is not None:
        everything = WHOLE_TABLE in subjects or WHOLE_TABLE in other.subjects
        if everything or not subjects.isdisjoint(other.subjects):
            if other.kind in WAITED_FOR or other.shard is not None:
                return True
            subjects.update(other.subjects)
        later = StatementKey(key.version, later.ordinal + 1)
    return False


def rows_gate(shard: ShardGates, version: int) -> int | None:
    """Index of the gate at which a statement of ``version`` that changes the shard's rows stands.

    It is the gate that this version opens: the version's own gate, or the first of the held gates
    that it releases.

    Returns:
        None when the version opens no gate: no row waits for the statement.
    """
    index = shard.first_blocked(version)
    if index < len(shard.gates) and shard.gates[index].effective_version == version:
        return index
    return None


def unapplied_before_limits(
    target: TargetDecisions,
    version: int,
    rows: RowProgress,
    limit_at: Callable[[ShardGates, int], Gate | None],
) -> str:
    """The rows that a contracting or switching statement waits for, as text; "" for none."""
    waits = []
    for shard in target.shards.values():
        limit = limit_at(shard, version)
        if limit is not None and (waited := unapplied_before_gate(shard, limit, rows)):
            waits.append(waited)
    if not waits:
        return ""
    return waits[0] if len(waits) == 1 else f"{waits[0]} and {len(waits) - 1} more shards"


def unapplied_before_change(shard: ShardGates, version: int, rows: RowProgress) -> str:
    """The rows that a statement which changes a shard's rows waits for, as text; "" for none."""
    index = rows_gate(shard, version)
    if index is None:
        return ""
    return unapplied_before_gate(shard, shard.gates[index], rows)
