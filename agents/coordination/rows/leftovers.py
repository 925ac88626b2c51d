"""Values that shards left behind in the target, in columns that become narrower. Pure.

A shard can give a column up: drop it, or rename it to one that others have. Its rows in the target
keep their values in that column. These values do no harm until the target's column becomes
narrower; then the target's server refuses the statement for values that no shard has any more. So
the rows of every shard that lacks the column get the value that rows without the column have. That
is done like the other repairs of existing rows (``fixups``), and the statement that makes the
column narrower waits for it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from shardmerge.agents.coordination.decision_records import Step
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.schemas.effects.added_column_values import fill_text
from shardmerge.schemas.effects.row_effect import RowEffect
from shardmerge.schemas.effects.value_changes import keeps_values
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records.decisions import StatementKind, TargetStatement


def leftover_effects(
    old: TargetState,
    new: TargetState,
    given_up: Container[str],
    statements: Sequence[TargetStatement],
) -> dict[ShardId, list[RowEffect]]:
    """The shards that lack a column which becomes narrower, but whose rows may have values in it.

    A held shard is not among them: the rows behind its gate have the schema of its release.

    Args:
        old: The state before a decision.
        new: The state after it.
        given_up: Columns that a shard gave up with it.
        statements: Of the decision. Columns whose values the target converts are left to
            ``column_replacement``.

    Returns:
        Shard → an effect for each such column, with the target's name of it.
    """
    debts = {s.subjects[0] for s in statements if s.kind is StatementKind.CONTRACTING}
    debts -= {s.subjects[0] for s in statements if s.kind is StatementKind.SWITCHING}
    if not debts:
        return {}
    before = {item.id: item.column for item in old.columns}
    narrower = [
        item
        for item in new.columns
        if item.id in before
        # A column in ``fills`` holds the known value of ADD COLUMN, which fits.
        and (item.id not in old.fills or item.id in given_up)
        and f"column:{item.column.name.lower()}" in debts
        and item.column.generated is None
        and not keeps_values(before[item.id].type, item.column.type)
    ]
    found: dict[ShardId, list[RowEffect]] = {}
    for item in narrower:
        reason = "it has no such column any more, and its rows in the target may hold old values"
        fill = fill_text(item.column)
        effect = RowEffect(item.id, item.column.name, fill, reason, code="SM-1809")
        for name, shard in new.shards.items():
            if shard.hold is None and shard.real is not None and item.id not in shard.real.ids:
                found.setdefault(name, []).append(effect)
    return found


def with_cleared(step: Step, statement: TargetStatement, effects: Iterable[RowEffect]) -> Step:
    """The step with a statement that clears leftover values, before the columns become narrower.

    Rows from before the shard gave the column up can still be on the way. So the statement waits
    for the rows of all shards, like the debts behind it, and no row waits for it.

    Args:
        step: Whose decision makes the columns narrower.
        statement: Changes the rows of one shard.
        effects: On the columns (``leftover_effects``).
    """
    decision = step.decision
    assert decision is not None
    subjects = {f"column:{effect.name.lower()}" for effect in effects}
    before, after = list[TargetStatement](), list(decision.statements)
    while not (
        after[0].kind is StatementKind.CONTRACTING and not subjects.isdisjoint(after[0].subjects)
    ):
        before.append(after.pop(0))
    cleared = replace(statement, shard=None)
    return replace(step, decision=replace(decision, statements=(*before, cleared, *after)))
