"""What ``/api`` takes and answers about commands, as values. The JSON is their plain form. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shardmerge.agents.status.command_log import AnsweredCommand
from shardmerge.schemas.model.errors import ConfigError, ContractError
from shardmerge.schemas.records.decisions import Decision
from shardmerge.schemas.records.plain import from_plain


@dataclass(frozen=True, slots=True)
class CommandCall:
    """A command that somebody gives.

    Attributes:
        kind: As ``KIND`` of ``shardmerge command``.
        shard: As ``source/database.table``; "" for a command about the whole target.
        argument: As ``ARGUMENT`` of ``shardmerge command``; "" without one.
        only_ask: Whether the agents' rules are only asked what they would answer, and nothing is
            given.
    """

    kind: str
    shard: str = ""
    argument: str = ""
    only_ask: bool = False


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """A command that was given, or what the agents would answer to it.

    Attributes:
        id: The id of the command, which its answer has, too; "" if it was not given.
        answer: What the agents would have answered at this moment. Their real answer comes later.
    """

    id: str
    answer: Decision


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """A command that was given.

    Attributes:
        id: The id of the command.
        kind: Kind of the command.
        shard: As ``source/database.table``; "" for a command about the whole target.
        argument: The argument; "" without one.
        by: Who gave it.
        ts_ms: When, in milliseconds since 1970.
        answer: The agents' decision about it; null as long as there is none.
    """

    id: str
    kind: str
    shard: str
    argument: str
    by: str
    ts_ms: int
    answer: Decision | None


@dataclass(frozen=True, slots=True)
class CommandsAnswer:
    """The commands that were given to a target.

    Attributes:
        target: As ``database.table``.
        commands: The last 100 commands, newest first.
    """

    target: str
    commands: tuple[CommandAnswer, ...]


def call_of(plain: Any) -> CommandCall:
    """The command of a call's JSON.

    Raises:
        ConfigError: It is not one.
    """
    try:
        call = from_plain(CommandCall, plain)
        f"{call.kind}{call.shard}{call.argument}".encode()
    except (ContractError, UnicodeEncodeError) as error:
        what = error.message if isinstance(error, ContractError) else str(error)
        raise ConfigError(what, hint="see /api/openapi.json", code="SM-6912") from None
    return call


def commands_answer(target: str, commands: Sequence[AnsweredCommand]) -> CommandsAnswer:
    """The answer of ``/api/target/NAME/commands``."""
    return CommandsAnswer(
        target,
        tuple(
            CommandAnswer(
                str(each.command.id),
                each.command.kind.value,
                str(each.command.shard or ""),
                each.command.argument,
                each.command.by,
                each.command.ts_ms,
                each.answer,
            )
            for each in commands
        ),
    )
