"""How a source's server reads a statement, by what the pipeline file says of it."""

from __future__ import annotations

from .errors import ConfigError
from .grammar.context import ServerContext
from .pipeline import Source


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
