"""Ways out of a wait, as commands that can be pasted. Pure.

Every command is put to the coordinator's own rules first. Only one that would be carried out now,
and that lets the shard's rows go on, is a way out.
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
from shardmerge.schemas.records.decisions import Decision, Outcome
from shardmerge.schemas.records.operator_commands import CommandKind

from .shapes import WayOut

_OF_SHARD = (
    CommandKind.SKIP,
    CommandKind.UNLOCK_EXECUTE,
    CommandKind.UNLOCK_DISCARD,
    CommandKind.LEAVE,
)
_MOST_STATEMENTS = 3


class Answering(Protocol):
    """A target whose coordinator can be asked what it would answer to a command."""

    @property
    def target(self) -> TargetTable:
        """Which target."""
        ...

    @property
    def state(self) -> TargetState:
        """Its state."""
        ...

    def answer(
        self, kind: CommandKind, shard: ShardId | None = None, argument: str = ""
    ) -> Decision | None:
        """The answer; nothing is changed."""
        ...


def command_line(
    kind: str, path: Path, *, shard: str = "", target: str = "", text: str = ""
) -> str:
    """A call of ``shardmerge command`` for a shell.

    Args:
        kind: Of the command.
        path: Of the pipeline file.
        shard: Whom it is about; "" without.
        target: Likewise; a shard's own target need not be named.
        text: The command's argument; "" without.
    """
    words = ["shardmerge", "command", kind, *([text] if text else ()), "--pipeline", str(path)]
    words += ["--shard", shard] if shard else []
    words += ["--target", target] if target else []
    return shlex.join(words)


def out_of_hold(log: Answering, shard: ShardState, path: Path) -> Iterator[WayOut]:
    """What ends a shard's hold: DDL first, then the commands.

    Args:
        log: The shard's target as it is then.
        shard: That is held.
        path: Of the pipeline file.
    """
    hold = shard.hold
    assert hold is not None
    if hold.hint:
        yield WayOut("", hold.hint)
    name, target = str(shard.shard), str(log.target)
    if hold.post is None:
        line = command_line("set-schema", path, shard=name, target=target, text="@table.sql")
        yield WayOut(
            line,
            "the shard has the schema in the file table.sql: put the output of SHOW CREATE TABLE "
            "there first",
        )
    for kind in _OF_SHARD:
        answer = log.answer(kind, shard.shard)
        if answer is not None and _frees(answer, shard.shard):
            line = command_line(kind.value, path, shard=name, target=target)
            yield WayOut(line, told(answer))
    if log.state.policies.mode is Mode.PESSIMISTIC:
        answer = log.answer(CommandKind.SET_MODE, None, Mode.OPTIMISTIC.value)
        if answer is not None and _frees(answer, shard.shard):
            text = Mode.OPTIMISTIC.value
            yield WayOut(command_line("set-mode", path, target=target, text=text), told(answer))
    if hold.post is not None and shard.effective is not None:
        line = command_line("replace", path, shard=name, target=target, text="@statement.sql")
        yield WayOut(
            line,
            "the shard counts as if it had executed the ALTER TABLE in the file statement.sql: "
            "write it first",
        )


def out_of_pause(log: Answering, shard: ShardId, path: Path) -> Iterator[WayOut]:
    """What ends a shard's pause."""
    for kind in (CommandKind.RESUME, CommandKind.LEAVE):
        answer = log.answer(kind, shard)
        if answer is not None and (shard in answer.resumes or shard in answer.leaves):
            target = str(log.target)
            line = command_line(kind.value, path, shard=str(shard), target=target)
            yield WayOut(line, told(answer) if kind is CommandKind.LEAVE else "its rows go on")


def told(answer: Decision) -> str:
    """What a decision does, for people: its statements, else its reason, then its warnings."""
    texts = [statement.sql for statement in answer.statements[:_MOST_STATEMENTS]]
    if more := len(answer.statements) - len(texts):
        texts.append(f"and {more} statements more")
    what = f"the target gets: {'; '.join(texts)}" if texts else "the target stays as it is"
    if answer.released:
        what += f"; released: {', '.join(map(str, answer.released))}"
    return ". ".join([what, *answer.warnings])


def _frees(answer: Decision, shard: ShardId) -> bool:
    if answer.outcome is Outcome.REFUSED:
        return False
    return shard in answer.released or shard in answer.leaves
