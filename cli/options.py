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
