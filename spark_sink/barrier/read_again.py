"""Which shards must be read again by incremental snapshots before a debt is tried. Pure.

A decision can request that a shard's table is read again, because the target's rows of the shard
may hold other values than the shard's own (``rows.fixups``). The target can refuse a debt because
of these values. So the debt is tried when the new values have come:

1. The connector sends a notice to the notifications topic when it has read a table. It sends the
   notice after the rows, so high watermarks that are read after the notice was seen cover every
   one of these rows (``RowProgress.scans``).
2. The first notice for a table answers the first request for it, and so on. If a connector was
   killed, it may carry out one request twice, and a later request looks answered too early. The
   target then refuses the debt, and the debt is tried again.
3. A request counts only if its version is at most the debt's, and if it concerns a column of the
   debt.
4. Rows behind a held gate come when the gate is opened, which may be never. The debt is tried
   without them.

No wait is circular. Rows that are read again may stand behind gates of any version, and so wait for
statements. But a debt waits for such rows only if no later statement that rows wait for has a
subject in common with it, directly or through statements in between. So no statement that these
rows wait for waits for the debt. If there is such a statement (``statements.holds_rows_up``), the
debt is tried at once; if the target refuses it, the other statement goes first.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardmerge.schemas.model.actions import Action, DefaultChange, IndexAddition
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.tables import IndexKind
from shardmerge.schemas.records.decisions import StatementKind, TargetStatement

from .applied import RowProgress, is_applied_up_to, unapplied_before_gate
from .decisions import Reread, StatementKey, TargetDecisions
from .shard_gates import ShardGates


def awaited_rereads(
    target: TargetDecisions, key: StatementKey, statement: TargetStatement, rows: RowProgress
) -> tuple[ShardId, ...]:
    """The shards that must be read again so that the target can accept a debt; sorted.

    Args:
        target: What is decided.
        key: Of the statement.
        statement: Any statement that is not executed.
        rows: How far rows are applied, and which tables were read again.
    """
    if not target.rereads or not takes_fewer_values(statement):
        return ()
    found = []
    columns: frozenset[str] | None = None
    for shard, asked in sorted(target.rereads.items()):
        before = [reread for reread in asked if reread.version <= key.version]
        if not target.lives(shard) or _has_come(shard, len(before), rows):
            continue
        if columns is None:
            columns = _columns_of(target, key, statement)
        if not _has_come(shard, _last_about(before, columns), rows):
            found.append(shard)
    return tuple(found)


def takes_fewer_values(statement: TargetStatement) -> bool:
    """Whether a statement is a debt that the target may refuse because of values in rows.

    That is so for a column definition, a unique index and a check. The target accepts every DROP
    COLUMN, change of a default or plain index, whatever the rows hold.
    """
    if statement.kind is not StatementKind.CONTRACTING or not statement.subjects:
        return False
    if any(not binding.name for binding in statement.binds):
        return False
    what = statement.subjects[0].partition(":")[0]
    if what == "index":
        return any(_is_unique(action) for action in statement.actions)
    if what == "column":
        return not any(isinstance(action, DefaultChange) for action in statement.actions)
    return True


def _is_unique(action: Action) -> bool:
    return isinstance(action, IndexAddition) and action.index.kind is IndexKind.UNIQUE


def awaited_text(shards: Sequence[ShardId]) -> str:
    """The shards whose rows are waited for, as text for people."""
    rest = f" and {len(shards) - 1} more shards" if len(shards) > 1 else ""
    return f"rows of {shards[0]}{rest} that are read again"


def _last_about(asked: Sequence[Reread], columns: frozenset[str]) -> int:
    """How many requests of ``asked`` there are up to the last one about some of the columns."""
    for count in range(len(asked), 0, -1):
        if asked[count - 1].is_about(columns):
            return count
    return 0


def _has_come(shard: ShardId, count: int, rows: RowProgress) -> bool:
    """Whether the rows of the shard's first ``count`` requests are applied."""
    if not count:
        return True
    scans = rows.scans.get((shard.source, f"{shard.database}.{shard.table}"), ())
    return len(scans) >= count and is_applied_up_to(shard, scans[count - 1], rows)


def stands_held(shard: ShardGates, rows: RowProgress) -> bool:
    """Whether all rows of a shard before the gate at which it is held are applied."""
    gate = shard.first_held
    return gate is not None and not unapplied_before_gate(shard, gate, rows)


def _columns_of(
    target: TargetDecisions, key: StatementKey, statement: TargetStatement
) -> frozenset[str]:
    """Identities of the columns that a statement is about.

    Its subjects name target columns; the statements up to it say which identity has which name.
    """
    names: dict[str, set[str]] = {}
    ids: dict[str, str] = {}
    for other, earlier in target.statements.items():
        if other > key:
            break
        for binding in earlier.binds:
            if (before := ids.pop(binding.column_id, None)) is not None:
                names[before].discard(binding.column_id)
            if binding.name:
                name = f"column:{binding.name.lower()}"
                ids[binding.column_id] = name
                names.setdefault(name, set()).add(binding.column_id)
    return frozenset(i for subject in statement.subjects for i in names.get(subject, ()))
