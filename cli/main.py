"""The ``shardmerge`` command: a command's module is imported when that command is called."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from shardmerge.connectors.log_lines import FORMS, LOG_FORMAT, form_of, set_up
from shardmerge.local.sigterm import end_on_sigterm
from shardmerge.schemas.model.errors import ConfigError

COMMANDS = {
    "agents": (
        "shardmerge.cli.deployment.parts:agents",
        "Run one agents' worker, which decides, until TERM.",
    ),
    "check": (
        "shardmerge.cli.check:check",
        "Check a pipeline file, its servers and shards, Connect's exactly-once support, and "
        "topics.",
    ),
    "command": (
        "shardmerge.cli.command:command",
        "Tell a target's coordinator what to do, and print its answer.",
    ),
    "conflicts": (
        "shardmerge.cli.views.commands:conflicts",
        "Show why shards are held: each reason once, with both sides and the shards on each.",
    ),
    "connect": (
        "shardmerge.cli.deployment.connect:connect",
        "Make, see, print, restart, delete and watch the pipeline's connectors in Kafka Connect.",
    ),
    "cutover": (
        "shardmerge.cli.cutover.command:cutover",
        "Move the applications from the shards to TARGET (DATABASE.TABLE), or back with --undo.",
    ),
    "ddl": ("shardmerge.cli.ddl:ddl", "Work with DDL statements without a server."),
    "decisions": (
        "shardmerge.cli.views.commands:decisions",
        "Show what was decided: each schema change and command with its answer, oldest first.",
    ),
    "demo": (
        "shardmerge.cli.deployment.local_stack:demo",
        "Run the demo: three shards, six DDL statements, on a local stack of its own.",
    ),
    "down": ("shardmerge.cli.deployment.local_stack:down", "Stop the local stack."),
    "drift": (
        "shardmerge.cli.drift.drift:drift",
        "Show what somebody changed on the target's tables by hand; heal it or adopt it.",
    ),
    "explain": (
        "shardmerge.cli.views.commands:explain",
        "Say why SHARD (SOURCE/DATABASE.TABLE) is held or waits, since when, and for whom.",
    ),
    "explain-code": (
        "shardmerge.cli.explain_code:explain_code",
        "Say what CODE (such as SM-1203) means: what was seen, its cause, and what you can do.",
    ),
    "export": (
        "shardmerge.cli.export:export",
        "Write everything that a pipeline decided, and from what, into one file.",
    ),
    "init": (
        "shardmerge.cli.deployment.init:init",
        "Write a commented pipeline file for the servers that are named.",
    ),
    "load": (
        "shardmerge.cli.loads.load:load",
        'Show how far the loads of sources with `snapshot = "spark"` are; load a shard again.',
    ),
    "plan": (
        "shardmerge.cli.planning.command:plan",
        "Show what the targets would do at each step of a rollout. Nothing is changed anywhere.",
    ),
    "rebuild": (
        "shardmerge.cli.rebuild.command:rebuild",
        "Load TARGET (DATABASE.TABLE) anew from its shards while it serves, and swap the tables.",
    ),
    "replay": (
        "shardmerge.cli.replay:replay",
        "Repeat a pipeline's decisions and show each step: what came, what was decided and why.",
    ),
    "run": (
        "shardmerge.cli.deployment.run:run",
        "Run watchdog, agents and sink of one pipeline on this machine.",
    ),
    "schema": (
        "shardmerge.cli.views.commands:schema",
        "Show the joined schema of a target, or the schema that SHARD has.",
    ),
    "sink": (
        "shardmerge.cli.deployment.parts:sink",
        "Run the sink, which applies rows and statements to the target, until TERM.",
    ),
    "sink-archive": (
        "shardmerge.cli.deployment.sink_archive:sink_archive",
        "Pack what the executors of a Spark cluster need, for `spark.archives`.",
    ),
    "source": (
        "shardmerge.cli.moving.command:source",
        "Move a source to another server, such as a replica that took over.",
    ),
    "status": (
        "shardmerge.cli.status:status",
        "Show what runs, and what each target and shard is doing.",
    ),
    "target": (
        "shardmerge.cli.target:target",
        "Keep the tables of an Iceberg target small, also while the sink runs.",
    ),
    "up": (
        "shardmerge.cli.deployment.local_stack:up",
        "Start the local stack with the demo's shards, without rows.",
    ),
    "validate": (
        "shardmerge.cli.validation.validate:validate",
        "Compare TARGET (DATABASE.TABLE; by default every target) with its shards.",
    ),
}
"""Name → where the command is, as ``module:attribute``, and the first sentence of its
help. So the list of commands is shown without importing their modules, which takes
up to a second."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are needed.

    Args:
        known: Name → ``module:attribute``, and the command's line in the list of commands.
    """

    def __init__(
        self, *args: Any, known: Mapping[str, tuple[str, str]] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._known = known or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, sorted."""
        return sorted(self._known)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name; None when there is none."""
        if cmd_name not in self._known:
            return None
        module, _, attribute = self._known[cmd_name][0].partition(":")
        found = getattr(import_module(module), attribute)
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, without importing any."""
        room = formatter.width - 6 - max(map(len, self._known))
        rows = [
            (name, click.Command(name, help=text).get_short_help_str(room))
            for name, (_, text) in sorted(self._known.items())
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(
    cls=LazyGroup, known=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="shardmerge", message="%(prog)s %(version)s")
@click.option(
    "--log-format",
    type=click.Choice(FORMS),
    help=f"Form of the log lines on standard error, also of the processes that the command "
    f"starts: plain (default) or json ({LOG_FORMAT}).",
)
def main(log_format: str | None) -> None:
    """Merge many MySQL shards into one table; each shard changes its schema at its own time."""
    try:
        form = form_of(log_format, os.environ)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    if log_format is not None:
        os.environ[LOG_FORMAT] = form
    set_up("cli", "WARNING", form)
    end_on_sigterm()


if __name__ == "__main__":
    main()
