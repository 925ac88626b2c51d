"""Operator commands: each is checked against the target's state, carried out and answered. Pure.

Like a schema change, a command is a record of the schema-log and gets exactly one decision. So its
effects can be replayed. A refused command changes nothing but the version.

Skipping and replacing do not change the shard or its rows. They change the schema with which the
shard counts in the join, and which columns are left out of its rows (``skips``).
"""

from __future__ import annotations

from shardmerge.agents.coordination.rows.loads_again import load_again
from shardmerge.agents.coordination.rows.rereads import is_read_as_whole, why_not_read_again
from shardmerge.agents.coordination.rows.whole_readings import reloaded
from shardmerge.agents.coordination.state.shard_state import ShardState
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.coded_text import CodedText
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.policies import SETTABLE, Mode, RenamePolicy
from shardmerge.schemas.records.decisions import Fixup, FixupKind
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import SchemaChange
from shardmerge.schemas.target.dialects.dialect import Dialect
from shardmerge.schemas.target.row_statements import removal

from . import lock_queue
from .adoptions import adopt
from .decision_records import Step, obeyed, refuse, with_statement, with_warning
from .identities import known_names
from .removals import rows_stay
from .renewals import renew
from .settling import settle, settle_or_stay
from .skips import (
    NOT_HELD,
    held_by_known,
    replaced,
    skip,
    unlock_discard,
    unlock_execute,
    with_left_out,
    with_opened,
)
from .target_moves import (
    Refusal,
    Settled,
    as_all_call_them,
    as_renamed_meanwhile,
    effective_schemas,
    unmoved,
)


def described(state: TargetState, command: OperatorCommand) -> SchemaChange | Refusal:
    """The command ``set-schema`` as a change that describes the shard anew, at its last gate."""
    known = _live(state, command)
    if isinstance(known, Refusal):
        return known
    if command.schema is None:
        return Refusal(
            command.error, "write the table as SHOW CREATE TABLE shows it", code=command.code
        )
    real = known.real
    return SchemaChange(
        id=command.id,
        target=command.target,
        shard=known.shard,
        position=known.position,
        before=real.schema if real else None,
        after=command.schema,
        lineage=(),
        actions=(str(command),),
        ddl=str(command),
        ts_ms=command.ts_ms,
        policies=state.policies,
    )


def obey(
    state: TargetState, command: OperatorCommand, dialect: Dialect, context: ServerContext | None
) -> Step:
    """Carry out any command but ``set-schema``.

    Args:
        state: The target's state; its version is already the answer's version.
        command: The operator's command.
        dialect: The target's kind and version.
        context: How the server of ``command.shard`` reads a statement.
    """
    match command.kind:
        case CommandKind.PAUSE | CommandKind.RESUME:
            return _pause(state, command)
        case CommandKind.REREAD:
            return _reread(state, command)
        case CommandKind.LOAD_AGAIN:
            known = _live(state, command)
            if isinstance(known, Refusal):
                return refuse(state, command, known)
            return load_again(state, command, known)
        case CommandKind.RELOADED:
            return reloaded(state, command)
        case CommandKind.ADOPT:
            return adopt(state, command)
        case CommandKind.RENEW:
            return renew(state, command, dialect)
        case CommandKind.LEAVE:
            return _leave(state, command, dialect)
        case CommandKind.SET_MODE | CommandKind.SET_POLICY:
            return _set_policy(state, command, dialect)
        case CommandKind.DISABLE | CommandKind.ENABLE:
            found = _propagate(state, command, dialect)
        case _:
            found = _about_held(state, command, dialect, context)
    if isinstance(found, Refusal):
        return refuse(state, command, found)
    return with_left_out(obeyed(state, command, found))


def _about_held(
    state: TargetState, command: OperatorCommand, dialect: Dialect, context: ServerContext | None
) -> Settled | Refusal:
    """Carry out a command about the change that holds a shard."""
    known = _live(state, command)
    if isinstance(known, Refusal):
        return known
    held = held_by_known(state, known)
    if isinstance(held, Refusal):
        return held
    match command.kind:
        case CommandKind.SKIP:
            return skip(state, held, dialect)
        case CommandKind.REPLACE:
            if context is None:
                return Refusal(
                    f"{known.shard}: the pipeline has no such source",
                    "if it is gone, take the shard out with leave",
                    code="SM-1315",
                )
            return replaced(state, held, command, dialect, context)
        case CommandKind.UNLOCK_EXECUTE:
            return unlock_execute(state, held, dialect)
        case _:
            return unlock_discard(state, held, dialect)


def _pause(state: TargetState, command: OperatorCommand) -> Step:
    known = _live(state, command)
    if isinstance(known, Refusal):
        return refuse(state, command, known)
    pauses = command.kind is CommandKind.PAUSE
    if known.paused == pauses:
        word = "paused already" if pauses else "not paused"
        return refuse(
            state,
            command,
            Refusal(f"{known.shard} is {word}", "nothing is to be done", code="SM-1306"),
        )
    state = state.with_shard(replace(known, paused=pauses))
    settled = Settled(state, unmoved(state, known_names(state)), {})
    shards = (known.shard,)
    return obeyed(
        state, command, settled, pauses=shards if pauses else (), resumes=() if pauses else shards
    )


def _reread(state: TargetState, command: OperatorCommand) -> Step:
    known = _live(state, command)
    if isinstance(known, Refusal):
        return refuse(state, command, known)
    if known.real is None:
        why = Refusal(
            f"the schema of {known.shard} is not known", "tell it with set-schema", code="SM-1305"
        )
        return refuse(state, command, why)
    schema, kind = known.table, FixupKind.SNAPSHOT
    if is_read_as_whole(known.shard, schema):
        kind = FixupKind.WHOLE
    elif reason := why_not_read_again(known.shard, schema):
        return refuse(
            state, command, Refusal(reason, "write the rows again on the shard", code="SM-1307")
        )
    columns = tuple(item.column.name for item in known.real.own_columns)
    fixup = Fixup(known.shard, kind, columns, "an operator asked for it", "SM-1811")
    settled = Settled(state, unmoved(state, known_names(state)), {})
    step = obeyed(state, command, settled)
    assert step.decision is not None
    return replace(step, decision=replace(step.decision, fixups=(fixup,)))


def _leave(state: TargetState, command: OperatorCommand, dialect: Dialect) -> Step:
    known = _live(state, command)
    if isinstance(known, Refusal):
        return refuse(state, command, known)
    if command.argument not in ("", "delete"):
        why = Refusal(
            f"{command.argument!r} is not known",
            'nothing, or "delete" for its rows too',
            code="SM-1308",
        )
        return refuse(state, command, why)
    deletes = bool(command.argument)
    if deletes and not (state.policies.origin.tells_shards_apart and state.schema is not None):
        why = Refusal(
            f"the rows of {known.shard} cannot be told from others",
            "without origin columns in the target they stay; delete them by hand",
            code="SM-1309",
        )
        return refuse(state, command, why)
    remaining = state.without_shard(known.shard)
    if not deletes:
        remaining = replace(remaining, departed_rows=True)
    settled = settle_or_stay(remaining, dialect)
    if known.hold is not None:
        settled = with_opened(settled, {known.shard: state.version})
    step = obeyed(state, command, settled, leaves=(known.shard,))
    if deletes:
        gone = CodedText(f"{known.shard} was taken out", "SM-1923")
        step = with_statement(step, removal(state.target, known.shard, state.policies.origin, gone))
    else:
        step = with_warning(step, rows_stay(known.shard))
    if known.hold is None:
        return step
    text = (
        f"{known.shard} was held at {known.hold.position}: its rows after that are passed over, up "
        "to its next schema change, with which it counts again (`shardmerge command reread` brings "
        "them then)"
    )
    return with_warning(step, CodedText(text, "SM-1705"))


def _propagate(state: TargetState, command: OperatorCommand, dialect: Dialect) -> Settled | Refusal:
    enables = command.kind is CommandKind.ENABLE
    if state.propagates == enables:
        word = "enabled" if enables else "disabled"
        return Refusal(f"propagation is {word} already", "nothing is to be done", code="SM-1306")
    state = replace(state, propagates=enables)
    names = known_names(state)
    if not enables:
        return Settled(state, unmoved(state, names), {})
    called = as_all_call_them(effective_schemas(state), names)
    if state.policies.renames is RenamePolicy.MAP:
        called = as_renamed_meanwhile(state.finals, called)
    return settle(state, called, dialect)


def _set_policy(state: TargetState, command: OperatorCommand, dialect: Dialect) -> Step:
    chosen = _policy_of(command)
    if isinstance(chosen, Refusal):
        return refuse(state, command, chosen)
    name, value = chosen
    unknown = not value and state.has_set(name) and name not in state.route_says
    now = state.with_policy(name, value)
    if name == "mode" and now.policies.mode is Mode.PESSIMISTIC:
        now = lock_queue.with_queues(now)
    step = with_left_out(obeyed(state, command, settle_or_stay(now, dialect)))
    if not unknown:
        return step
    text = (
        f"{name} stays {getattr(now.policies, name)} until the next schema change of a shard of "
        f"{state.target}: an earlier version, under which it was set, did not keep what the route "
        "says"
    )
    return with_warning(step, CodedText(text, "SM-1715"))


def _policy_of(command: OperatorCommand) -> tuple[str, str] | Refusal:
    """Name and value of the policy that the command sets; the mode is one of them."""
    if command.kind is CommandKind.SET_MODE:
        if command.argument in ("", *Mode):
            return "mode", command.argument
        return Refusal(
            f"mode {command.argument!r} is not known",
            f'known: {", ".join(Mode)}, or "" for what the routes say',
            code="SM-1308",
        )
    name, equals, value = command.argument.partition("=")
    if (kind := SETTABLE.get(name)) is not None and equals and value in ("", *kind):
        return name, value
    texts = (f"{n}={'|'.join(kind)}" for n, kind in SETTABLE.items())
    return Refusal(
        f"policy {command.argument!r} is not known",
        f"known: {', '.join(texts)}; without a value it is what the routes say",
        code="SM-1308",
    )


def _live(state: TargetState, command: OperatorCommand) -> ShardState | Refusal:
    if command.shard is None:
        return Refusal(
            f"{command.kind.value} needs a shard",
            "name it as source/database.table",
            code="SM-1302",
        )
    known = state.shards.get(command.shard)
    if known is None:
        return Refusal(
            f"{command.shard} is no live shard of {state.target}", NOT_HELD, code="SM-1303"
        )
    return known
