"""How commands end: their exit codes, which scripts may rely on, and errors as text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from importlib import import_module
from types import ModuleType

import click

from shardmerge.schemas.codes.registry import coded
from shardmerge.schemas.model.errors import ConfigError, ShardMergeError


class ExitCode(IntEnum):
    """What a command ends with."""

    GOOD = 0
    """Done, and nothing needs somebody."""
    FOUND = 1
    """Done, and something needs somebody: a held shard, a fault, a refused command."""
    WRONG_CALL = 2
    """The call, the pipeline file or another named file is wrong; nothing was done."""
    UNANSWERED = 3
    """Kafka, Kafka Connect or a server did not answer, or answered what cannot be read."""


@contextmanager
def telling_errors() -> Iterator[None]:
    """Turn expected errors into a message on stderr and an exit code."""
    try:
        yield
    except (ConfigError, OSError, UnicodeDecodeError) as error:
        if isinstance(error, BrokenPipeError):
            raise  # the reader of the output went away: click ends quietly
        _tell(error)
        raise SystemExit(ExitCode.WRONG_CALL) from None
    except ShardMergeError as error:
        _tell(error)
        raise SystemExit(ExitCode.UNANSWERED) from None


def imported(module: str, extra: str) -> ModuleType:
    """Import a module whose packages only some machines have.

    Args:
        module: Its full name.
        extra: The extra of the distribution ``shardmerge`` that brings these packages.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        click.echo(f"error: the package {error.name} is not installed", err=True)
        click.echo(f"  pip install 'shardmerge[{extra}]'", err=True)
        raise SystemExit(ExitCode.WRONG_CALL) from None


def _tell(error: Exception) -> None:
    message = str(error)
    if isinstance(error, ShardMergeError):
        message = coded(error.code, error.message)
    click.echo(f"error: {message}", err=True)
    if hint := getattr(error, "hint", ""):
        click.echo(f"  {hint}", err=True)
