"""Ways out of a hold or a pause, as commands to paste. Pure.

The coordinator's rules are asked about each command first. A command is a way out if the
coordinator would carry it out now and the shard's rows would go on. ``set-schema`` and ``replace``
are not asked about, because they need a file that the operator has yet to write.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from shardmerge.agents.coordination.state.shard_state import ShardState
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.policies import Mode
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Decision, Outcome
from shardmerge.schemas.records.operator_commands import CommandKind, Renewal

from .shapes import WayOut

_OF_SHARD = (
    CommandKind.SKIP,
    CommandKind.UNLOCK_EXECUTE,
    CommandKind.UNLOCK_DISCARD,
    CommandKind.LEAVE,
)
_MOST_STATEMENTS = 3
_REBUILD = "shardmerge rebuild"
_NOT_OF_LAKES = "; a rebuild of an Iceberg target frees no held shard"


class Answering(Protocol):
    """A target whose coordinator can be asked what it would answer to a command."""

    @property
    def pipeline(self) -> Pipeline:
        """The target's pipeline."""
        ...

    @property
    def target(self) -> TargetTable:
        """The target."""
        ...

    @property
    def state(self) -> TargetState:
        """The coordinator's state of the target."""
        ...

    def answer(
        self, kind: CommandKind, shard: ShardId | None = None, argument: str = ""
    ) -> Decision | None:
        """The decision that the command would lead to now; None if it would lead to none."""
        ...


def command_line(
    kind: str, path: Path, *, shard: str = "", target: str = "", text: str = ""
) -> str:
    """A call of ``shardmerge command`` for a shell.

    Args:
        kind: Kind of the command.
        path: Path of the pipeline file.
        shard: The shard that the command is about; "" for none.
        target: The target that the command is about; "" for that of the shard.
        text: The argument of the command; "" for none.
    """
    words = ["shardmerge", "command", kind, *([text] if text else ()), "--pipeline", str(path)]
    words += ["--shard", shard] if shard else []
    words += ["--target", target] if target else []
    return shlex.join(words)


def out_of_hold(log: Answering, shard: ShardState, path: Path) -> Iterator[WayOut]:
    """What ends the hold of a shard: DDL first, then the commands.

    Args:
        log: The shard's target.
        shard: The held shard.
        path: Path of the pipeline file.
    """
    hold = shard.hold
    assert hold is not None
    if hold.hint:
        # The decision names a rebuild whatever the kind of target is.
        is_lake = log.pipeline.target.catalog is not None and _REBUILD in hold.hint
        yield WayOut("", f"{hold.hint}{_NOT_OF_LAKES}" if is_lake else hold.hint)
    name, target = str(shard.shard), str(log.target)
    if hold.post is None:
        line = command_line("set-schema", path, shard=name, target=target, text="@table.sql")
        yield WayOut(
            line,
            "the agents take the schema in the file table.sql for that of the shard: write the "
            "output of SHOW CREATE TABLE into the file first",
            CommandKind.SET_SCHEMA.value,
        )
    for kind in _OF_SHARD:
        answer = log.answer(kind, shard.shard)
        if answer is not None and _frees(answer, shard.shard):
            line = command_line(kind.value, path, shard=name, target=target)
            yield WayOut(line, effect_text(answer), kind.value)
    if log.pipeline.target.catalog is None and _is_free_anew(log, shard.shard):
        words = ("shardmerge", "rebuild", target, "--pipeline", str(path))
        yield WayOut(
            shlex.join(words),
            "loads the target anew from its shards while it serves; the new table takes the "
            "schema for which the shard is held",
        )
    if log.state.policies.mode is Mode.PESSIMISTIC:
        answer = log.answer(CommandKind.SET_MODE, None, Mode.OPTIMISTIC.value)
        if answer is not None and _frees(answer, shard.shard):
            text = Mode.OPTIMISTIC.value
            line = command_line("set-mode", path, target=target, text=text)
            yield WayOut(line, effect_text(answer), CommandKind.SET_MODE.value, text)
    if hold.post is not None and shard.effective is not None:
        line = command_line("replace", path, shard=name, target=target, text="@statement.sql")
        yield WayOut(
            line,
            "the agents act as if the shard had executed the ALTER TABLE in the file "
            "statement.sql: write the file first",
            CommandKind.REPLACE.value,
        )


def out_of_pause(log: Answering, shard: ShardId, path: Path) -> Iterator[WayOut]:
    """What ends the pause of a shard."""
    for kind in (CommandKind.RESUME, CommandKind.LEAVE):
        answer = log.answer(kind, shard)
        if answer is not None and (shard in answer.resumes or shard in answer.leaves):
            target = str(log.target)
            line = command_line(kind.value, path, shard=str(shard), target=target)
            does = effect_text(answer) if kind is CommandKind.LEAVE else "its rows go on"
            yield WayOut(line, does, kind.value)


def _is_free_anew(log: Answering, shard: ShardId) -> bool:
    """Whether a table that is made anew takes what the shard is held for."""
    state = log.state
    renewal = Renewal(0, state.version, state.policies.origin)
    answer = log.answer(CommandKind.RENEW, None, str(renewal))
    return answer is not None and _frees(answer, shard)


def effect_text(answer: Decision) -> str:
    """What a decision does, for people: its statements, the shards it releases, its warnings."""
    texts = [statement.sql for statement in answer.statements[:_MOST_STATEMENTS]]
    if more := len(answer.statements) - len(texts):
        texts.append(f"and {more} more statements")
    what = f"the target gets: {'; '.join(texts)}" if texts else "the target stays as it is"
    if answer.released:
        what += f"; released: {', '.join(map(str, answer.released))}"
    return ". ".join([what, *answer.warnings])


def _frees(answer: Decision, shard: ShardId) -> bool:
    if answer.outcome is Outcome.REFUSED:
        return False
    return shard in answer.released or shard in answer.leaves
