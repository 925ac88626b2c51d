"""What operators say: each command is checked against the state, carried out, and answered. Pure.

A command is a record of the schema-log like a schema change, and gets one decision like it: what it
does can be replayed. A refused one changes nothing.

Skipping and replacing do not touch the shard: its rows come as its server has them. What changes is
with which schema the shard counts in the join (``counted``). Values of columns that the target does
not have are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from shardmerge.schemas.apply import apply_alter
from shardmerge.schemas.changes import AlterTable
from shardmerge.schemas.errors import SourceError
from shardmerge.schemas.events import (
    CommandKind,
    Fixup,
    FixupKind,
    OperatorCommand,
    SchemaChange,
)
from shardmerge.schemas.grammar import ServerContext, parse
from shardmerge.schemas.joined import ShardSchema
from shardmerge.schemas.names import ShardId
from shardmerge.schemas.origin_columns import of_shard
from shardmerge.schemas.render.dialect import Dialect
from shardmerge.schemas.routing import ExistingRows, Keyless, Mode, RenamePolicy, RowsPolicy
from shardmerge.schemas.row_statements import removal

from . import optimistic, pessimistic
from .answers import Step, obeyed, refuse, with_statement, with_warning
from .identities import assign, known_names
from .lock_heads import head_of
from .moves import Refusal, Settled, as_all_call_them, effective_schemas, unmoved
from .rereads import why_not_read_again
from .state import ShardState, TargetState

POLICIES: Mapping[str, type[StrEnum]] = {
    "renames": RenamePolicy,
    "existing_rows": ExistingRows,
    "keyless": Keyless,
    "on_drop": RowsPolicy,
}
"""The policies of a route that an operator can set for a target, by their names there."""

_SHOW = "`shardmerge status` and the status page tell which shards are held, and by what"


def described(state: TargetState, command: OperatorCommand) -> SchemaChange | Refusal:
    """``set-schema`` as the change that describes the shard anew, at its last gate."""
    known = _live(state, command)
    if isinstance(known, Refusal):
        return known
    if command.schema is None:
        return Refusal(command.error, "write the table as SHOW CREATE TABLE shows it")
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
        mode=state.mode,
    )


def with_set_policies(state: TargetState, change: SchemaChange) -> SchemaChange:
    """The change with the policies that an operator set in the place of its route's."""
    found: dict[str, Any] = {name: POLICIES[name](value) for name, value in state.policies.items()}
    return replace(change, **found) if found else change


def obey(
    state: TargetState, command: OperatorCommand, dialect: Dialect, context: ServerContext | None
) -> Step:
    """Carry out any command but ``set-schema``.

    Args:
        state: Its version is that of the answer.
        command: What an operator said.
        dialect: The target's kind and version.
        context: How the server of ``command.shard`` reads a statement.
    """
    match command.kind:
        case CommandKind.PAUSE | CommandKind.RESUME:
            return _pause(state, command)
        case CommandKind.REREAD:
            return _reread(state, command)
        case CommandKind.LEAVE:
            return _leave(state, command, dialect)
        case CommandKind.DISABLE | CommandKind.ENABLE:
            found = _propagate(state, command, dialect)
        case CommandKind.SET_MODE:
            found = _set_mode(state, command, dialect)
        case CommandKind.SET_POLICY:
            found = _set_policy(state, command, dialect)
        case CommandKind.SKIP:
            found = _skip(state, command, dialect)
        case CommandKind.REPLACE:
            found = _replace(state, command, dialect, context)
        case CommandKind.UNLOCK_EXECUTE:
            found = _unlock(state, command, dialect, lambda shard: shard.popped)
        case _:
            found = _unlock(state, command, dialect, _skipped)
    if isinstance(found, Refusal):
        return refuse(state, command, found)
    return obeyed(state, command, found)


def _pause(state: TargetState, command: OperatorCommand) -> Step:
    known = _live(state, command)
    if isinstance(known, Refusal):
        return refuse(state, command, known)
    pauses = command.kind is CommandKind.PAUSE
    if known.paused == pauses:
        word = "paused already" if pauses else "not paused"
        return refuse(state, command, Refusal(f"{known.shard} is {word}", "nothing is to be done"))
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
        why = Refusal(f"the schema of {known.shard} is not known", "tell it with set-schema")
        return refuse(state, command, why)
    if reason := why_not_read_again(known.shard, known.real.schema):
        return refuse(state, command, Refusal(reason, "write the rows again on the shard"))
    columns = tuple(item.column.name for item in of_shard(known.real.columns))
    fixup = Fixup(known.shard, FixupKind.SNAPSHOT, columns, "an operator asked for it")
    settled = Settled(state, unmoved(state, known_names(state)), {})
    step = obeyed(state, command, settled)
    assert step.decision is not None
    return replace(step, decision=replace(step.decision, fixups=(fixup,)))


def _leave(state: TargetState, command: OperatorCommand, dialect: Dialect) -> Step:
    known = _live(state, command)
    if isinstance(known, Refusal):
        return refuse(state, command, known)
    if known.hold is not None:
        why = Refusal(
            f"{known.shard} is held at {known.hold.position}, its rows after that wait",
            "skip or replace its change, or tell its schema with set-schema, so that they pass",
        )
        return refuse(state, command, why)
    if command.argument not in ("", "delete"):
        why = Refusal(f"{command.argument!r} is not known", 'nothing, or "delete" for its rows too')
        return refuse(state, command, why)
    deletes = bool(command.argument)
    if deletes and not (state.origin.tells_shards_apart and state.schema is not None):
        why = Refusal(
            f"the rows of {known.shard} cannot be told from others",
            "without origin columns in the target they stay; delete them by hand",
        )
        return refuse(state, command, why)
    remaining = state.without_shard(known.shard)
    names = known_names(state)
    settled = _settle(remaining, names, dialect)
    if isinstance(settled, Refusal):
        settled = Settled(remaining, unmoved(state, names), {})
    step = obeyed(state, command, settled, leaves=(known.shard,))
    if deletes:
        reason = f"{known.shard} was taken out"
        return with_statement(step, removal(state.target, known.shard, state.origin, reason))
    return with_warning(step, f"rows of {known.shard} stay in the target")


def _propagate(state: TargetState, command: OperatorCommand, dialect: Dialect) -> Settled | Refusal:
    enables = command.kind is CommandKind.ENABLE
    if state.propagates == enables:
        word = "enabled" if enables else "disabled"
        return Refusal(f"propagation is {word} already", "nothing is to be done")
    state = replace(state, propagates=enables)
    names = known_names(state)
    if not enables:
        return Settled(state, unmoved(state, names), {})
    return _settle(state, as_all_call_them(effective_schemas(state), names), dialect)


def _set_mode(state: TargetState, command: OperatorCommand, dialect: Dialect) -> Settled | Refusal:
    if command.argument not in ("", *Mode):
        return Refusal(
            f"mode {command.argument!r} is not known",
            f'known: {", ".join(Mode)}, or "" for what the routes say',
        )
    is_set = bool(command.argument)
    mode = Mode(command.argument) if is_set else state.mode
    state = replace(state, mode=mode, mode_is_set=is_set)
    if mode is Mode.PESSIMISTIC:
        state = pessimistic.with_queues(state)
    return _settled_or_still(state, dialect)


def _set_policy(
    state: TargetState, command: OperatorCommand, dialect: Dialect
) -> Settled | Refusal:
    name, equals, value = command.argument.partition("=")
    if (kind := POLICIES.get(name)) is None or not equals or value not in ("", *kind):
        texts = (f"{n}={'|'.join(kind)}" for n, kind in POLICIES.items())
        return Refusal(
            f"policy {command.argument!r} is not known",
            f"known: {', '.join(texts)}; without a value it is what the routes say",
        )
    others = {n: v for n, v in state.policies.items() if n != name}
    state = replace(state, policies=others | ({name: value} if value else {}))
    if value and name != "on_drop":
        # That of a dropped shard is asked for when it leaves.
        changed: dict[str, Any] = {name: kind(value)}
        state = replace(state, **changed)
    return _settled_or_still(state, dialect)


def _skip(state: TargetState, command: OperatorCommand, dialect: Dialect) -> Settled | Refusal:
    known = _held(state, command)
    if isinstance(known, Refusal):
        return known
    moved = state.with_shard(_skipped(known))
    return _with(_settled_or_still(moved, dialect), {known.shard: _opens(state, known)})


def _replace(
    state: TargetState,
    command: OperatorCommand,
    dialect: Dialect,
    context: ServerContext | None,
) -> Settled | Refusal:
    known = _held(state, command)
    if isinstance(known, Refusal):
        return known
    assert known.effective is not None
    assert context is not None
    hint = "write an ALTER TABLE of the shard, as it could have run instead"
    try:
        statement = parse(command.argument, context)
        if not isinstance(statement, AlterTable):
            return Refusal("the statement is no ALTER TABLE", hint)
        result = apply_alter(known.effective.schema, statement, known.shard.table, context)
    except SourceError as error:
        return Refusal(error.message, error.hint or hint)
    change = SchemaChange(
        command.id, command.target, known.shard, known.position, known.effective.schema,
        result.schema, tuple(result.lineage), tuple(result.actions), command.argument,
    )  # fmt: skip
    free = state.with_shard(replace(known, hold=None, actual=None))
    assigned = assign(free, change)
    skipped = _skipped(known)
    real = skipped.actual or skipped.effective
    actual = None if assigned.tracked == real else real
    moved = state.with_shard(replace(skipped, effective=assigned.tracked, actual=actual))
    moved = replace(moved, generations=assigned.generations, copies=assigned.copies)
    settled = _settle(moved, assigned.names, dialect)
    return _with(settled, {known.shard: _opens(state, known)})


def _unlock(
    state: TargetState,
    command: OperatorCommand,
    dialect: Dialect,
    act: Callable[[ShardState], ShardState],
) -> Settled | Refusal:
    known = _held(state, command)
    if isinstance(known, Refusal):
        return known
    if known.head is None:
        return Refusal(
            f"{known.shard} does not wait for a DDL lock",
            "it is held by a conflict: skip or replace its change",
        )
    ways = head_of(state, known.head).ways
    opens: dict[ShardId, int] = {}
    for name in sorted(state.held):
        shard = state.shards[name]
        if shard.head in ways:
            opens[name] = _opens(state, shard)
            state = state.with_shard(act(shard))
    if command.kind is CommandKind.UNLOCK_DISCARD:
        return _with(_settled_or_still(state, dialect), opens)
    return _with(_settle(state, known_names(state), dialect), opens)


def _settled_or_still(state: TargetState, dialect: Dialect) -> Settled:
    """For commands that let no schema count that did not count before: the target may stay."""
    names = known_names(state)
    found = _settle(state, names, dialect)
    return Settled(state, unmoved(state, names), {}) if isinstance(found, Refusal) else found


def _settle(state: TargetState, names: Mapping[str, str], dialect: Dialect) -> Settled | Refusal:
    settle = pessimistic.settle if state.mode is Mode.PESSIMISTIC else optimistic.settle
    return settle(state, names, dialect)


def _with(settled: Settled | Refusal, opens: dict[ShardId, int]) -> Settled | Refusal:
    """The same, with what the command itself opens."""
    if isinstance(settled, Refusal):
        return settled
    releases = dict(settled.releases)
    for shard, through in opens.items():
        releases[shard] = max(through, releases.get(shard, 0))
    return replace(settled, releases=releases)


def _opens(state: TargetState, shard: ShardState) -> int:
    """Up to which version the gates of a held shard's first change stand."""
    queue = shard.hold.queue if shard.hold else ()
    return queue[0].version if queue else state.version


def _skipped(shard: ShardState) -> ShardState:
    """The shard when the first change that it waits with does not count."""
    hold = shard.hold
    assert hold is not None
    has = hold.queue[0].post if hold.queue else hold.post
    return replace(shard, hold=shard.rest, actual=_other(has, shard.effective))


def _other(has: ShardSchema | None, counts: ShardSchema | None) -> ShardSchema | None:
    return None if has == counts else has


def _held(state: TargetState, command: OperatorCommand) -> ShardState | Refusal:
    """The shard of a command, held by a change whose effect is known."""
    known = _live(state, command)
    if isinstance(known, Refusal):
        return known
    if known.hold is None:
        return Refusal(f"{known.shard} is not held", _SHOW)
    first = known.hold.queue[0].post if known.hold.queue else known.hold.post
    if first is None or known.effective is None:
        missing = "what its change did" if first is None else "its schema before the change"
        return Refusal(
            f"{known.shard} is held, and {missing} is not known",
            "tell its schema with set-schema, or change it until it fits",
        )
    for column in state.origin.columns:
        if column.part.column_id not in first.ids:
            return Refusal(
                f"{known.shard} has a column {column.name!r}, which is the target's origin column",
                "rename or drop the column on the shard",
            )
    return known


def _live(state: TargetState, command: OperatorCommand) -> ShardState | Refusal:
    if command.shard is None:
        return Refusal(f"{command.kind.value} needs a shard", "name it as source/database.table")
    known = state.shards.get(command.shard)
    if known is None:
        return Refusal(f"{command.shard} is no live shard of {state.target}", _SHOW)
    return known
