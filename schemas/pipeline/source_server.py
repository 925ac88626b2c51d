"""How a source's server reads a statement, by what the pipeline file says of it."""

from __future__ import annotations

from collections.abc import Iterable

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.server_context import ServerContext

from .settings import Source


def server_context(source: Source) -> ServerContext:
    """What the grammar must know of a source's server.

    Raises:
        ConfigError: The version is not numbers with points.
    """
    numbers = source.version.split(".")
    if not all(number.isdigit() for number in numbers):
        raise ConfigError(
            f"source {source.name}: version {source.version!r} is not numbers with points",
            hint="SELECT VERSION() tells it; write it without what follows the numbers",
        )
    return ServerContext(
        flavour=source.flavour,
        version=tuple(int(number) for number in numbers),
        sql_mode=frozenset(m.strip().upper() for m in source.sql_mode.split(",") if m.strip()),
        charset=source.charset,
    )


def utf8mb4_defaults(sources: Iterable[Source]) -> frozenset[str]:
    """The collations that utf8mb4 has where none is written, on the servers of some sources.

    That is what their versions come with. (A server whose default was set otherwise makes tables
    that its statements do not describe: `shardmerge check` tells.)

    Raises:
        ConfigError: See ``server_context``.
    """
    return frozenset(server_context(source).default_collation("utf8mb4") for source in sources)
