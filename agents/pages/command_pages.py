"""Makes the pages for signing in, for a command, and for the commands that were given. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shardmerge.agents.status.command_log import AnsweredCommand
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.pipeline.given_commands import KINDS, WITH_ARGUMENT
from shardmerge.schemas.records.decisions import Decision, Outcome
from shardmerge.schemas.records.operator_commands import CommandKind

from .render import MOST_NAMES, Frame, error_values, filled, path_of

MOST_COMMANDS = 100
"""Commands on one page."""
_TEXTS = {
    CommandKind.REPLACE: "Write the ALTER TABLE as which the held change counts.",
    CommandKind.SET_SCHEMA: "Write the CREATE TABLE of the shard.",
    CommandKind.SET_POLICY: "Write the policy as NAME=VALUE, or NAME= for that of the routes.",
}


@dataclass(frozen=True, slots=True)
class CommandAsked:
    """The form of a command.

    Attributes:
        kind: Kind of the command; "" before one was chosen.
        shard: As ``source/database.table``; "" without one.
        argument: The argument; "" without one.
    """

    kind: str = ""
    shard: str = ""
    argument: str = ""

    @property
    def lacks(self) -> str:
        """What must be written before the agents can be asked; "" for nothing."""
        if self.argument.strip():
            return ""
        return next((text for kind, text in _TEXTS.items() if kind.value == self.kind), "")


def login_page(frame: Frame, back: str, error: ShardMergeError | None = None) -> str:
    """The form for a token.

    Args:
        frame: What every page has.
        back: The path to come back to.
        error: Why the last token did not count.
    """
    return filled("login.html", frame=frame, back=back, **error_values(error))


def command_page(
    frame: Frame,
    target: str,
    shards: Sequence[str],
    asked: CommandAsked,
    *,
    answer: Decision | None = None,
    seen: str = "",
    error: ShardMergeError | None = None,
) -> str:
    """The form for a command; with an answer also what it would do, and the button that gives it.

    Args:
        frame: What every page has.
        target: Name of the target.
        shards: Names of the target's shards, which the form offers.
        asked: The contents of the form.
        answer: What the agents would answer now; None if they were not asked.
        seen: A text that is equal as long as the agents would answer the same.
        error: Why there is no answer, or why the command was not given.
    """
    return filled(
        "command.html",
        frame=frame,
        target=target,
        path=path_of(target),
        shards=shards[:MOST_NAMES],
        kinds=[kind.value for kind in KINDS],
        with_argument=[kind.value for kind in WITH_ARGUMENT],
        asked=asked,
        answer=answer,
        refused=answer is not None and answer.outcome is Outcome.REFUSED,
        seen=seen,
        **error_values(error),
    )


def commands_page(
    frame: Frame, target: str, commands: Sequence[AnsweredCommand], given: int | None = None
) -> str:
    """The commands that were given to a target, with who gave them and the answers.

    Args:
        frame: What every page has.
        target: Name of the target.
        commands: The commands, newest first.
        given: Offset of the command that the user has just given; None without one.
    """
    mine = next((each for each in commands if each.command.id.offset == given), None)
    return filled(
        "commands.html",
        frame=frame,
        target=target,
        path=path_of(target),
        commands=commands[:MOST_COMMANDS],
        total=len(commands),
        given=given,
        mine=mine,
    )
