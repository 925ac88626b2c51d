"""Options that several commands have in common."""

from __future__ import annotations

from pathlib import Path

import click

FILE = click.Path(dir_okay=False, path_type=Path)

pipeline_option = click.option(
    "--pipeline", "path", type=FILE, required=True, help="The pipeline file."
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="JSON for machines; its shapes are in the reference."
)
wait_option = click.option(
    "--wait", default=30.0, show_default=True, help="Seconds to wait for the answer."
)


class ShowGroup(click.Group):
    """A group that runs ``show`` when a call names no command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See ``click.Group``. A call that begins with an option is a call of ``show``."""
        if args and args[0].startswith("-") and args[0] not in ("--help", "-h"):
            args = ["show", *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """See ``click.Group``. A first word that is no command is an argument of ``show``."""
        return super().resolve_command(ctx, args if args[0] in self.commands else ["show", *args])
