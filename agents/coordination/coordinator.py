"""The coordinator: one schema change in, exactly one decision out.

Pure: no clock, no randomness, no I/O; equal input gives equal decisions.

A repeated change (its id is not beyond ``seen``) gives no decision. Otherwise each column after the
change gets an identity (``identities``). Then the target's mode decides about the change
(``optimistic``, ``pessimistic``). Operator commands come in the same log (``commands``). Where a
change altered existing rows without row events, the decision gets fix-ups (``fixups``).
"""

from __future__ import annotations

from shardmerge.agents.coordination.rows.fixups import with_fixups
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.connectors.debezium.value_limits import limits_of
from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.coded_text import CodedText
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.policies import Mode
from shardmerge.schemas.model.position import BEGINNING
from shardmerge.schemas.records.decisions import Decision, Outcome
from shardmerge.schemas.records.earlier_codes import EARLIER
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId, SchemaChange
from shardmerge.schemas.target.dialects.dialect import Dialect
from shardmerge.schemas.target.dialects.mysql_dialect import MYSQL_8

from . import commands, lock_queue, optimistic, pessimistic
from .decision_records import Step, hold, leave, refuse, warned, with_warning
from .identities import assign, known_names
from .removals import with_removal, without_leaving
from .settling import settle_or_stay
from .target_moves import Refusal

_GENERATED_KEY = "my_row_id"
"""The column of an invisible primary key that MySQL generates.

Source: MySQL Reference Manual, "Generated Invisible Primary Keys".
"""
_BACK = (
    "{} had been taken out and is a shard again: columns that the target dropped meanwhile lack "
    "the values of its rows until they are read again (`shardmerge command reread`)"
)


def initial(target: TargetTable, defaults: frozenset[str] = frozenset()) -> TargetState:
    """The state of a target before its first schema change.

    Args:
        target: Its name.
        defaults: See ``TargetState``.
    """
    return TargetState(target, defaults=defaults)


def decide(state: TargetState, change: SchemaChange, dialect: Dialect = MYSQL_8) -> Step:
    """Fold one schema change into a target's state and answer it.

    Args:
        state: Of ``change.target``.
        change: Any change of one of the target's shards. Changes of one source come in the
            order of their identities; a repeated one is recognised.
        dialect: The target's kind and version.
    """
    counted = _with_next_version(state, change.id)
    if counted is None:
        return Step(state, None, None)
    route = change.policies
    policies = counted.policies_of_route(route)
    if policies is not route:
        change = replace(change, policies=policies)
    if policies.mode is Mode.PESSIMISTIC and counted.policies.mode is not policies.mode:
        counted = lock_queue.with_queues(counted)
    counted = counted.following(policies, route)
    comes_back = bool(change.before and change.after) and change.shard not in counted.shards
    if comes_back:
        # An operator had taken the shard out, so it arrives like a new shard.
        change = replace(change, before=None, lineage=())
    step = with_fixups(counted, change, _fold(counted, change, dialect), dialect)
    step = _warned(_settled(step), change)
    if not comes_back:
        return step
    return with_warning(step, CodedText(_BACK.format(change.shard), "SM-1714"))


def obey(
    state: TargetState,
    command: OperatorCommand,
    dialect: Dialect = MYSQL_8,
    context: ServerContext | None = None,
) -> Step:
    """Check an operator's command against a target's state, carry it out, and answer it.

    Args:
        state: Of ``command.target``, which has been decided about before.
        command: A repeated one is recognised.
        dialect: The target's kind and version.
        context: How the server of ``command.shard`` reads a statement; None without a shard.
    """
    counted = _with_next_version(state, command.id)
    if counted is None:
        return Step(state, None, None)
    if command.kind is CommandKind.RENEW:
        # No row of the old table stays, so there is nothing to be mended.
        return _settled(commands.obey(counted, command, dialect, context))
    if command.kind is not CommandKind.SET_SCHEMA:
        obeyed = commands.obey(counted, command, dialect, context)
        return _settled(with_fixups(counted, None, obeyed, dialect))
    described = commands.described(counted, command)
    if isinstance(described, Refusal):
        return refuse(counted, command, described)
    return _settled(with_fixups(counted, described, _fold(counted, described, dialect), dialect))


def disobey(state: TargetState, command: OperatorCommand, why: Refusal) -> Step:
    """Refuse a command, whatever it is; a repeated one is recognised, as by ``obey``."""
    counted = _with_next_version(state, command.id)
    return Step(state, None, None) if counted is None else refuse(counted, command, why)


def no_target(command: OperatorCommand) -> Decision:
    """The answer to a command about a target that does not exist."""
    return Decision(
        id=command.id,
        target=None,
        version=0,
        shard=None,
        position=BEGINNING,
        outcome=Outcome.REFUSED,
        reason=f"there is no target {command.target}",
        hint="write it as the pipeline's routes do: database.table",
        code="SM-1301",
        ddl=str(command),
        ts_ms=command.ts_ms,
    )


def _with_next_version(state: TargetState, change: ChangeId) -> TargetState | None:
    """The state with the next version; None when this change was decided before."""
    place = (change.offset, change.ordinal)
    if place <= state.seen.get(change.source, (-1, -1)):
        return None
    return replace(state, version=state.version + 1, seen=state.seen.set(change.source, place))


def _fold(state: TargetState, change: SchemaChange, dialect: Dialect) -> Step:
    waits = state.policies.mode is Mode.PESSIMISTIC
    if change.error:
        why = Refusal(change.error, change.hint, code=change.code or EARLIER)
        queue = lock_queue.queue_of_unknown(state, change)
        return hold(state, change, None, known_names(state), why, queue=queue)
    if change.after is None:
        settled = settle_or_stay(without_leaving(state, change), dialect)
        return with_removal(state, change, leave(state, change, settled))
    assigned = assign(state, change)
    if assigned.generations is not state.generations:
        state = replace(state, generations=assigned.generations)
    if assigned.copies != state.copies:
        state = replace(state, copies=assigned.copies)
    move = pessimistic.move if waits else optimistic.move
    return move(state, change, assigned, dialect)


def _settled(step: Step) -> Step:
    """The step; its state no longer lists copies of columns that nobody has any more."""
    state = step.state.with_known_copies()
    return step if state is step.state else replace(step, state=state)


def _warned(step: Step, change: SchemaChange) -> Step:
    """The step with warnings about the route's origin columns and the values of new columns."""
    if step.decision is None:
        return step
    warnings = [*_value_warnings(change), *_number_warnings(change, step.state)]
    if change.policies.origin != step.state.policies.origin:
        text = (
            f"the route gives the target the origin columns {change.policies.origin}, it keeps "
            f"those that it began with: {step.state.policies.origin}"
        )
        warnings.append(CodedText(text, "SM-1707"))
    return replace(step, decision=warned(step.decision, warnings)) if warnings else step


def _number_warnings(change: SchemaChange, state: TargetState) -> list[CodedText]:
    """The warning about a shard that arrives with a key that its server counts for itself."""
    key = change.after.primary_key if change.after is not None else None
    if change.before is not None or key is None or key.columns != (_GENERATED_KEY,):
        return []
    if len(state.shards) < 2 or state.policies.origin.in_keys:
        return []
    text = (
        f"the server of {change.shard} numbers its rows itself ({_GENERATED_KEY}): rows of two "
        "shards with the same number are one row of the target, the one that was written last"
    )
    return [CodedText(text, "SM-1716")]


def _value_warnings(change: SchemaChange) -> list[CodedText]:
    """Warnings about values that arrive changed, for columns that the change adds or retypes."""
    if change.after is None or change.after is change.before:
        return []
    before = {c.name: c for c in change.before.columns} if change.before else {}
    made = []
    for column in change.after.columns:
        known = before.get(column.name)
        if known is None or (known is not column and known.type != column.type):
            made.append(column)
    return [
        CodedText(f"column {column.name} of {change.shard}: {limit.sentence}", "SM-1708")
        for column in made
        for limit in limits_of(column.type, column.nullable)
        if limit.told_by_ddl
    ]
