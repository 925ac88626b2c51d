"""Which rows have to be applied before a statement of the target. Pure.

Why it is so: see ``statements``.
"""

from __future__ import annotations

from collections.abc import Callable

from shardmerge.schemas.records.decisions import StatementKind, TargetStatement

from .applied import RowProgress, unapplied_before
from .decisions import StatementKey, TargetDecisions
from .shard_gates import Gate, ShardGates

WAITED_FOR = (StatementKind.EXPANDING, StatementKind.SWITCHING)
"""The statements that rows of their version wait for."""
WHOLE_TABLE = "table"
"""The subject that every other subject is part of."""


def limit_of(shard: ShardGates, version: int) -> Gate | None:
    """The gate up to which a shard's rows must be applied before a statement of ``version``.

    It is the shard's last gate up to that version. But where a gate is held, or was opened by
    this version or a later one, it is that gate: the rows behind it wait for this version
    themselves, and before it the shard's schema counts as it was.

    Returns:
        None when the shard has no gate up to that version.
    """
    count = shard.upto(version)
    if count == 0:
        return None
    return shard.gates[min(shard.first_blocked(version), count - 1)]


def debt_limit_of(shard: ShardGates, version: int) -> Gate | None:
    """The gate up to which rows must be applied before a debt of ``version`` that none waits for.

    It is the shard's last gate up to that version, or the first one that only a later version
    opens, or none yet.

    Returns:
        None when the shard has no gate up to that version.
    """
    count = shard.upto(version)
    if count == 0:
        return None
    return shard.gates[min(shard.first_blocked(version + 1), count - 1)]


def is_waited_for(target: TargetDecisions, key: StatementKey, statement: TargetStatement) -> bool:
    """Whether rows that a statement's own version lets through may wait for it.

    So they do for one that rows wait for, and for one before it with which it has a subject in
    common, or which stands in a chain of such. Statements of later versions do not matter: no row
    that the statement could ask for waits for those.
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

    It is the gate that this version opens: its own, or the first of those that were held until
    then.

    Returns:
        None when it opens none: no row waits for the statement.
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
    """Whose rows a contracting or switching statement waits for; "" for nobody's."""
    waits = []
    for shard in target.shards.values():
        limit = limit_at(shard, version)
        if limit is not None and (
            waited := unapplied_before(shard.shard, limit.position, limit.seen, rows)
        ):
            waits.append(waited)
    if not waits:
        return ""
    return waits[0] if len(waits) == 1 else f"{waits[0]} and {len(waits) - 1} more shards"


def unapplied_before_change(shard: ShardGates, version: int, rows: RowProgress) -> str:
    """Whether a statement that changes a shard's rows waits for some of them; "" if not."""
    index = rows_gate(shard, version)
    if index is None:
        return ""
    gate = shard.gates[index]
    return unapplied_before(shard.shard, gate.position, gate.seen, rows)
