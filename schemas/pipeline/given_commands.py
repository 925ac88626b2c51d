"""What an operator says → the record of a command. The command line and the pages use it."""

from __future__ import annotations

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId

from . import topics
from .routing import route
from .settings import Pipeline

_ELSEWHERE = (
    CommandKind.RELOADED,
    CommandKind.ADOPT,
    CommandKind.LOAD_AGAIN,
    CommandKind.RENEW,
)
KINDS = tuple(kind for kind in CommandKind if kind not in _ELSEWHERE)
"""The kinds for operators: the watchdog sends ``RELOADED``, ``shardmerge drift`` ``ADOPT``,
``shardmerge load again`` ``LOAD_AGAIN``, and ``shardmerge rebuild`` ``RENEW``."""
OF_TARGET = (CommandKind.DISABLE, CommandKind.ENABLE, CommandKind.SET_MODE, CommandKind.SET_POLICY)
"""The kinds that concern a whole target; all others concern one shard."""
WITH_ARGUMENT = (
    CommandKind.REPLACE,
    CommandKind.SET_SCHEMA,
    CommandKind.LEAVE,
    CommandKind.SET_MODE,
    CommandKind.SET_POLICY,
)
_HINT = "shardmerge command --help tells what each command takes"


def given_command(
    pipeline: Pipeline,
    kind: str,
    argument: str,
    shard: str,
    target: str,
    *,
    by: str,
    ts_ms: int,
) -> OperatorCommand:
    """The command that an operator means.

    Args:
        pipeline: The pipeline of the target.
        kind: Kind of the command.
        argument: Argument of the command; "" without one.
        shard: As ``source/database.table``; "" without one.
        target: As ``database.table``; "" for the target of the shard's route.
        by: Who gives it.
        ts_ms: When, in milliseconds since 1970.

    Raises:
        ConfigError: Something is missing, too much, or not written as it must be.
    """
    wanted = next((each for each in KINDS if each.value == kind), None)
    if wanted is None:
        raise _wrong(f"there is no command {kind or '(none chosen)'}")
    of_shard = wanted not in OF_TARGET
    if of_shard != bool(shard):
        raise _wrong(f"{kind} {'needs a' if of_shard else 'takes no'} shard")
    if bool(argument) > (wanted in WITH_ARGUMENT):
        raise _wrong(f"{kind} takes no argument")
    named = _shard(shard) if shard else None
    if target:
        if target.count(".") != 1:
            raise _wrong(f"a target is database.table, not {target!r}")
        database, table = target.split(".")
        found = TargetTable(database, table)
    elif named is not None and len(routed := route(pipeline.routes, named)) == 1:
        found = routed[0]
    else:
        raise _wrong(f"{kind} needs a target", hint="no single route leads to it")
    return OperatorCommand(
        id=ChangeId(topics.commands(pipeline).name, 0),
        target=found,
        kind=wanted,
        shard=named,
        argument=argument.strip(),
        by=by.strip(),
        ts_ms=ts_ms,
    )


def _shard(text: str) -> ShardId:
    source, slash, rest = text.partition("/")
    database, dot, table = rest.partition(".")
    if not (source and slash and database and dot and table):
        raise _wrong(f"a shard is source/database.table, not {text!r}")
    return ShardId(source, database, table)


def _wrong(what: str, hint: str = _HINT) -> ConfigError:
    return ConfigError(what, hint=hint, code="SM-5601")
