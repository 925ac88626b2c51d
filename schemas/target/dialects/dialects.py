"""From the settings of a target to its dialect."""

from __future__ import annotations

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.server_context import ServerContext

from .dialect import Dialect
from .mysql_dialect import MySqlDialect
from .spark import SparkDialect
from .tidb import TiDbDialect


def dialect_of(kind: str, version: str) -> Dialect:
    """The dialect of a target.

    Args:
        kind: ``mysql``, ``mariadb``, ``tidb``, or ``iceberg`` for Iceberg tables in Spark SQL.
        version: One to three numbers with points; for Iceberg it does not matter.

    Raises:
        ConfigError: The kind is not known.
    """
    numbers = tuple(int(number) for number in version.split(".") if number.isdigit())
    if kind in ("mysql", "mariadb"):
        return MySqlDialect(ServerContext(flavour=kind, version=numbers))
    if kind == "tidb":
        return TiDbDialect(version=numbers)
    if kind == "iceberg":
        return SparkDialect()
    raise ConfigError(
        f"there is no dialect for targets of kind {kind!r}",
        hint="mysql, mariadb, tidb, iceberg",
        code="SM-5005",
    )
