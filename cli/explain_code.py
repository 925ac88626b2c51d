"""``shardmerge explain-code``: what a code means, and what to do."""

from __future__ import annotations

import re

import click

from shardmerge.schemas.codes.registry import codes

from .options import json_option
from .screen import print_json

_DIGITS = re.compile(r"(?:SM-)?(\d{4})", re.IGNORECASE)


@click.command("explain-code")
@click.argument("code")
@json_option
def explain_code(code: str, as_json: bool) -> None:
    """Say what CODE (such as SM-1203) means: what was seen, its cause, and what you can do."""
    found = _DIGITS.fullmatch(code.strip().rstrip(":"))
    known = codes().get(f"SM-{found[1]}") if found else None
    if known is None:
        raise click.UsageError(
            f"{code} is no code of this version (codes look like SM-1203). A newer version may "
            "have written it: ask the version that did"
        )
    if as_json:
        print_json(known)
    else:
        click.echo(str(known))
