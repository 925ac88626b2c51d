"""Kinds of values that several commands take, and the pipeline file."""

from __future__ import annotations

import getpass
import os
import re
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Pipeline

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Time(click.ParamType):
    """ISO 8601 → milliseconds since 1970; UTC where the text has no zone."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """See the class."""
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not a time like 2026-11-21T12:30:00Z", param, ctx)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        # Not timestamp(): a float does not hold every millisecond.
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
        return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


class Shard(click.ParamType):
    """``source/database.table`` → ``ShardId``."""

    name = "SOURCE/DATABASE.TABLE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> ShardId:
        """See the class."""
        if isinstance(value, ShardId):
            return value
        source, slash, rest = value.partition("/")
        database, dot, table = rest.partition(".")
        if not (source and slash and database and dot and table):
            self.fail(f"a shard is source/database.table, not {value!r}", param, ctx)
        return ShardId(source, database, table)


class Target(click.ParamType):
    """``database.table`` → ``TargetTable``."""

    name = "DATABASE.TABLE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> TargetTable:
        """See the class."""
        if isinstance(value, TargetTable):
            return value
        if value.count(".") != 1:
            self.fail(f"a target is database.table, not {value!r}", param, ctx)
        return TargetTable(*value.split("."))


class Position(click.ParamType):
    """``binlog.000007:1234`` → ``SourcePosition``.

    After a fail-over the epoch and a slash stand before it (``1/binlog.000007:1234``). A row number
    may follow (``binlog.000007:1234+3``).
    """

    name = "FILE:POS"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> SourcePosition:
        """See the class."""
        if isinstance(value, SourcePosition):
            return value
        found = re.fullmatch(r"(?:(\d+)/)?([^/:]+):(\d+)(?:\+(\d+))?", value)
        if found is None:
            self.fail(f"{value!r} is not a position like binlog.000007:1234", param, ctx)
        epoch, file, place, row = found.groups()
        return SourcePosition(int(epoch or 0), file, int(place), int(row or 0))


def complete_source(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Names of sources for shell completion, from a pipeline file that the line names already."""
    path = context.params.get("path")
    if not isinstance(path, Path):
        return []
    try:
        # Passwords may be missing from the environment here: nothing but names is read.
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return []
    names = [str(source.get("name", "")) for source in document.get("sources", ())]
    return [name for name in names if name.startswith(begun)]


def read_pipeline(path: Path) -> Pipeline:
    """The pipeline of a file; passwords come from the environment.

    Raises:
        ConfigError: The file is wrong.
        OSError: It cannot be read.
    """
    return parse_pipeline(path.read_text(encoding="utf-8"), os.environ)


def login_name() -> str:
    """The user's login name; their number where the machine knows no name for it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def by_option(kept: str) -> Callable[[_Function], _Function]:
    """``--by``: who gives the command.

    Args:
        kept: What becomes of the name, for people.
    """
    return click.option(
        "--by",
        default=login_name,
        show_default="your login name",
        help=f"Who gives the command; {kept}.",
    )
