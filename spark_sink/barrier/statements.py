"""Which target statements are executed, may run now, or wait, and what they wait for. Pure.

The rules, by ``StatementKind``:

* A statement waits for every earlier statement of its target that has a common subject. It does
  not wait for a debt that the target refuses. When the statement changes the subject of such a
  debt, the debt becomes void, except a NOT NULL that the statement does not take back
  (``passed_debts``). Two cases still wait: a column must be dropped before another one gets its
  name, and a debt waits for an earlier refused debt about the same thing, unless it drops that
  thing.
* Apart from that, an expanding statement may run at once: it overtakes debts.
* A contracting or switching statement of version v waits until each shard has applied all rows
  before the shard's *limit* as of v (``statement_limits``). This concerns every shard that a
  decision up to v names. Shards that left count too: their last rows may still be on the way.
* Some debts hold up no row, neither directly nor through a common subject (``is_waited_for``). Such
  a debt waits for the rows up to the shard's last gate as of v instead (``debt_limit_of``), because
  it may need rows that the same version lets through. Example: the server refuses NOT NULL while
  the target has a NULL, and the row in which the shard replaced it stands behind a held gate.
* A debt that the target may refuse because of values in rows waits for rows that are read again, as
  long as the debt holds up no row (``read_again``, which shows that no wait is circular).
* A statement that changes the rows of one shard waits for that shard's rows before the statement's
  gate (``rows_gate``), and for no other shard's. A statement that changes the rows of all shards
  waits like a contracting one.
* When a decision reloads shards, only expanding statements run before the shards' rows are taken
  out: those rows are found by what the target had before, for example by its primary key.
* A statement that adds a unique key waits until the rows of all first loads agree (``rows_agree``).
  Nothing waits for it but statements about the same key.
* When a decision has a fix-up for a shard, that shard's rows wait for the decision's statements,
  even if the decision has no gate in the shard's stream (``row_stops``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from shardmerge.schemas.model.actions import IndexAddition
from shardmerge.schemas.model.tables import IndexKind
from shardmerge.schemas.records.decisions import Binding, StatementKind, TargetStatement

from .applied import RowProgress, rows_agree
from .closing import Closing
from .decisions import StatementKey, TargetDecisions
from .passed_debts import carried_debts, forbids_null, without_not_null
from .read_again import awaited_rereads, awaited_text, stands_held
from .restarts import unsettled_reload
from .statement_limits import (
    WAITED_FOR,
    WHOLE_TABLE,
    debt_limit_of,
    is_waited_for,
    limit_of,
    unapplied_before_change,
    unapplied_before_limits,
)


class StatementState(StrEnum):
    """The state of a statement that is not executed."""

    READY = "ready"
    EXECUTING = "executing"
    DEBT = "debt"
    WAITING = "waiting"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class OpenStatement:
    """A statement that is decided and not executed.

    Attributes:
        detail: What it waits for, or the target's error from its last try.
        code: Of the detail, see ``schemas.codes``.
    """

    key: StatementKey
    statement: TargetStatement
    state: StatementState
    detail: str = ""
    code: str = ""

    @property
    def is_refused(self) -> bool:
        """Whether its last try failed; also true while it is tried again."""
        return self.state is StatementState.REFUSED or (
            self.state in (StatementState.READY, StatementState.EXECUTING) and bool(self.detail)
        )


REFUSED_BY_TARGET = "SM-3101"
"""The code of a statement that the target refuses."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The last try of a statement failed.

    Attributes:
        error: The target's.
        resting: Whether it is too early to try again.
        judged: Whether the target refused the statement, at this try or an earlier one. Otherwise
            it was away or busy, for example with a lock, and later statements do not pass this one.
    """

    error: str
    resting: bool
    judged: bool = True
    code: str = REFUSED_BY_TARGET


def open_statements(
    target: TargetDecisions,
    executed: Collection[StatementKey],
    refused: Mapping[StatementKey, Refused],
    rows: RowProgress,
) -> tuple[OpenStatement, ...]:
    """Every statement of a target that is not executed, in execution order, with its state.

    Args:
        target: What is decided.
        executed: Keys of the statements that are in the target.
        refused: What failed when it was tried last.
        rows: How far rows are applied.
    """
    judged = {key for key, refusal in refused.items() if refusal.judged}
    found: list[OpenStatement] = []
    earlier: dict[str, StatementKey] = {}
    refused_of: dict[str, StatementKey] = {}
    passed: set[str] = set()
    void = void_debts(target, executed)
    left = {k: s for k, s in target.statements.items() if k not in executed and k not in void}
    if judged:
        left |= carried_debts(target.statements, executed)
        left = dict(sorted(left.items()))
    for key, decided in left.items():
        statement = decided
        if statement.kind in WAITED_FOR and statement.subjects[0] in passed:
            statement = without_not_null(statement)
        before = _earlier(statement, earlier)
        if before is None and _may_be_passed(statement):
            # Executed first, this one would make the refused debt void: its effect would be lost.
            before = refused_of.get(statement.subjects[0])
        if before is not None:
            detail = f"waits for statement {before.version}.{before.ordinal}"
            found.append(OpenStatement(key, statement, StatementState.WAITING, detail, "SM-1622"))
        elif reloaded := _reloaded_before(target, key, statement, executed):
            detail = f"waits until the rows of {reloaded}, which are read again, are taken out"
            found.append(OpenStatement(key, statement, StatementState.DEBT, detail, "SM-1623"))
        else:
            at = _at_its_turn(target, key, statement, refused.get(key), rows)
            found.append(_waiting_for_rereads(target, at, left, judged, rows))
        if key in judged and _may_be_passed(statement):
            refused_of[statement.subjects[0]] = key
            if forbids_null(statement):
                passed.add(statement.subjects[0])
            continue
        for subject in statement.subjects:
            earlier[subject] = key
    return tuple(found)


def _may_be_passed(statement: TargetStatement) -> bool:
    """Whether later statements need not wait for this one if the target refuses it.

    A later statement may undo what the target refuses.
    """
    return statement.kind is StatementKind.CONTRACTING and not _drops(statement)


def _drops(statement: TargetStatement) -> bool:
    return any(not binding.name for binding in statement.binds)


def void_debts(target: TargetDecisions, executed: Collection[StatementKey]) -> set[StatementKey]:
    """The debts that an executed later statement has undone or made pointless.

    A statement changes its first subject; a rename also changes the column with the new name. An
    index or a check does not change the columns that it is made of. Debts to NOT NULL among the
    result can still be open, with another text (``carried_debts``).
    """
    changed: set[str] = set()
    found = set()
    for key, statement in reversed(target.statements.items()):
        if key in executed:
            changed.update(statement.subjects[:1])
            changed.update(f"column:{b.name.lower()}" for b in statement.binds if b.name)
        elif _may_be_passed(statement) and statement.subjects[0] in changed:
            found.add(key)
    return found


def executing(statement: OpenStatement) -> OpenStatement:
    """The statement as it stands while its target executes what was ready."""
    if statement.state is StatementState.READY:
        return replace(statement, state=StatementState.EXECUTING)
    return statement


def awaiting_opening(statement: OpenStatement, why: Closing) -> OpenStatement:
    """The statement as it stands on a target that the sink may not change."""
    detail = f"waits, because {why.clause}"
    code = "SM-1626" if why is Closing.CUT_OVER else why.code
    return replace(statement, state=StatementState.WAITING, detail=detail, code=code)


def frontier(target: TargetDecisions, executed: Collection[StatementKey]) -> int:
    """The lowest version whose rows must wait: rows pass gates of lower versions only.

    It is the first version with an expanding or switching statement that is not executed. When
    there is none, it is the version after the latest decision.
    """
    for key, statement in target.statements.items():
        if statement.kind in WAITED_FOR and key not in executed:
            return key.version
    return target.version + 1


def bindings(target: TargetDecisions, executed: Collection[StatementKey]) -> dict[str, Binding]:
    """Column identity → the target's column, as the executed statements made it."""
    bound: dict[str, Binding] = {}
    for key, statement in target.statements.items():
        if statement.binds and key in executed:
            for binding in statement.binds:
                if binding.name:
                    bound[binding.column_id] = binding
                else:
                    bound.pop(binding.column_id, None)
    return bound


def _reloaded_before(
    target: TargetDecisions,
    key: StatementKey,
    statement: TargetStatement,
    executed: Collection[StatementKey],
) -> str:
    """The shards whose rows have to be taken out before a statement, as text; "" for none."""
    if statement.kind is StatementKind.EXPANDING or not target.reloads:
        return ""
    version = unsettled_reload(target, key.version, executed)
    return "" if version is None else ", ".join(map(str, target.reloads[version]))


def _at_its_turn(
    target: TargetDecisions,
    key: StatementKey,
    statement: TargetStatement,
    refusal: Refused | None,
    rows: RowProgress,
) -> OpenStatement:
    """The state of a statement that waits for no earlier one."""
    if statement.kind is not StatementKind.EXPANDING:
        if statement.shard is not None:
            waits = unapplied_before_change(target.shards[statement.shard], key.version, rows)
        else:
            limit = limit_of if is_waited_for(target, key, statement) else debt_limit_of
            waits = unapplied_before_limits(target, key.version, rows, limit)
        if waits:
            return OpenStatement(
                key, statement, StatementState.DEBT, f"waits for {waits}", "SM-1621"
            )
    loading = [name for name in rows.loads if name in target.shards and not rows_agree(name, rows)]
    if loading and _adds_unique_key(statement):
        detail = f"waits until the first load of {min(loading)} is complete and its rows agree"
        return OpenStatement(key, statement, StatementState.DEBT, detail, "SM-1625")
    if refusal is None:
        return OpenStatement(key, statement, StatementState.READY)
    state = StatementState.REFUSED if refusal.resting else StatementState.READY
    return OpenStatement(key, statement, state, refusal.error, refusal.code)


def _adds_unique_key(statement: TargetStatement) -> bool:
    return any(
        isinstance(action, IndexAddition) and action.index.kind is IndexKind.UNIQUE
        for action in statement.actions
    )


def _waiting_for_rereads(
    target: TargetDecisions,
    at: OpenStatement,
    left: Mapping[StatementKey, TargetStatement],
    refused: Collection[StatementKey],
    rows: RowProgress,
) -> OpenStatement:
    """A debt whose turn has come, with the state that fits while it needs rows read again."""
    if at.state not in (StatementState.READY, StatementState.REFUSED):
        return at
    lacking = awaited_rereads(target, at.key, at.statement, rows)
    shards = [name for name in lacking if not stands_held(target.shards[name], rows)]
    if shards:
        if at.key not in refused and holds_rows_up(at.key, at.statement, left):
            return at
        error = f"; the target refused it before: {at.detail}" if at.detail else ""
        return replace(
            at,
            state=StatementState.DEBT,
            detail=f"waits for {awaited_text(shards)}{error}",
            code="SM-1624",
        )
    if lacking and at.detail:
        behind = f"{awaited_text(lacking)} stand behind the gate at which it is held"
        return replace(at, detail=f"{at.detail}; it is tried again: {behind}")
    return at


def holds_rows_up(
    key: StatementKey, statement: TargetStatement, left: Mapping[StatementKey, TargetStatement]
) -> bool:
    """Whether this statement delays a later one that rows wait for, directly or through others."""
    subjects = set(statement.subjects)
    for other, later in left.items():
        if other <= key:
            continue
        everything = WHOLE_TABLE in subjects or WHOLE_TABLE in later.subjects
        if everything or not subjects.isdisjoint(later.subjects):
            if later.kind in WAITED_FOR or later.shard is not None:
                return True
            subjects.update(later.subjects)
    return False


def _earlier(
    statement: TargetStatement, earlier: Mapping[str, StatementKey]
) -> StatementKey | None:
    """The latest open statement before this one that has a subject in common with it."""
    if WHOLE_TABLE in statement.subjects:
        return max(earlier.values(), default=None)
    common = (*statement.subjects, WHOLE_TABLE)
    return max((earlier[s] for s in common if s in earlier), default=None)
