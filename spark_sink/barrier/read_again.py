"""Whose rows, read again by incremental snapshots, a debt waits for before it is tried. Pure.

A decision can ask for a shard's table to be read again, because the target's rows of the shard may
hold other values than the shard's (``rows.fixups``). A statement after which the target takes
fewer values can be refused for just these, so it is tried when they have come:

1. The connector tells on the notifications topic that it has read a table. What it tells follows
   the rows in its order of sending, so high watermarks that are read after the notice was seen
   cover every one of them (``RowProgress.scans``).
2. The first notice of a table answers the first request for it, and so on. A request that a
   connector carries out twice, after it was killed, makes a later one look answered too early: the
   debt is refused then, and tried again.
3. Only requests of the debt's own version and before, and for a column that it is about, count.
4. What stands behind a gate that is held comes when that is opened, and nobody knows when: the debt
   is tried without it.

Nothing waits for itself by that. Rows that are read again may stand behind gates of any version,
and so wait for statements. But a debt waits for them only as long as no statement that rows wait
for comes after it with a subject in common, directly or by other statements between: so none that
these rows can wait for waits for the debt. Where there is one (``statements.holds_rows_up``), the
debt is tried at once; if the target refuses it, the other one goes first.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardmerge.schemas.model.actions import Action, DefaultChange, IndexAddition
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.tables import IndexKind
from shardmerge.schemas.records.decisions import StatementKind, TargetStatement

from .applied import RowProgress, is_applied_up_to, unapplied_before
from .decisions import Reread, StatementKey, TargetDecisions
from .shard_gates import ShardGates


def awaited_rereads(
    target: TargetDecisions, key: StatementKey, statement: TargetStatement, rows: RowProgress
) -> tuple[ShardId, ...]:
    """The shards whose rows that are read again can make the target take a debt; sorted.

    Args:
        target: What is decided.
        key: Of the statement.
        statement: Any that is not executed.
        rows: How far rows are applied, and which tables are read.
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
    """Whether a statement is a debt that the target may refuse for values of rows.

    So it may for a definition of a column, a unique index and a check. What drops a column or a
    default, or adds a plain index, it takes whatever the rows hold.
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
    """Whose rows are waited for, as text for people."""
    rest = f" and {len(shards) - 1} more shards" if len(shards) > 1 else ""
    return f"rows of {shards[0]}{rest} that are read again"


def _last_about(asked: Sequence[Reread], columns: frozenset[str]) -> int:
    """How many requests are answered when the last one about some of the columns is."""
    for count in range(len(asked), 0, -1):
        if asked[count - 1].is_about(columns):
            return count
    return 0


def _has_come(shard: ShardId, count: int, rows: RowProgress) -> bool:
    """Whether the rows of so many requests are applied."""
    if not count:
        return True
    scans = rows.scans.get((shard.source, f"{shard.database}.{shard.table}"), ())
    return len(scans) >= count and is_applied_up_to(shard, scans[count - 1], rows)


def stands_held(shard: ShardGates, rows: RowProgress) -> bool:
    """Whether all rows of a shard before the gate at which it is held are applied."""
    gate = shard.first_held
    return gate is not None and not unapplied_before(shard.shard, gate.position, gate.seen, rows)


def _columns_of(
    target: TargetDecisions, key: StatementKey, statement: TargetStatement
) -> frozenset[str]:
    """Identities of the columns that a statement is about, by the names that they have by then."""
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
