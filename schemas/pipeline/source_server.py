"""How a source's server reads statements, according to the pipeline file."""

from __future__ import annotations

from collections.abc import Iterable

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.server_context import ServerContext

from .settings import Source


def server_context(source: Source) -> ServerContext:
    """What the grammar must know about a source's server.

    Raises:
        ConfigError: The version is not numbers with points.
    """
    numbers = source.version.split(".")
    if not all(number.isdigit() for number in numbers):
        raise ConfigError(
            f"source {source.name}: version {source.version!r} is not numbers with points",
            hint="SELECT VERSION() tells it; write it without what follows the numbers",
            code="SM-5004",
        )
    return ServerContext(
        flavour=source.flavour,
        version=tuple(int(number) for number in numbers),
        sql_mode=frozenset(m.strip().upper() for m in source.sql_mode.split(",") if m.strip()),
        charset=source.charset,
    )


def utf8mb4_defaults(sources: Iterable[Source]) -> frozenset[str]:
    """The default collations of utf8mb4 on the servers of some sources.

    These are the defaults of the servers' versions. (On a server with another default, tables get
    collations that the statements do not show; `shardmerge check` reports such a server.)

    Raises:
        ConfigError: See ``server_context``.
    """
    return frozenset(server_context(source).default_collation("utf8mb4") for source in sources)
