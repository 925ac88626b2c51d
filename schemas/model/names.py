"""Names of sources, shards and targets, and how MySQL quotes an identifier."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

SIGNAL_TABLE = "signals"
SIGNAL_DATABASE_PREFIX = "shardmerge_"
"""Prefix of the database in whose table ``SIGNAL_TABLE`` a connector writes its own marks.

See ``connectors.debezium.signals``."""


@dataclass(frozen=True, order=True, slots=True)
class ShardId:
    """One source table that is merged. Each shard may change its schema at its own time.

    Attributes:
        source: Name of the source, which is its connector's ``topic.prefix``.
        database: Database name as the server writes it.
        table: Table name as the server writes it.
    """

    source: str
    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.source}/{self.database}.{self.table}"


@dataclass(frozen=True, order=True, slots=True)
class TargetTable:
    """The merged table that a routing rule maps shards to."""

    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"

    @property
    def sql(self) -> str:
        """The quoted, qualified name."""
        return f"{quote_identifier(self.database)}.{quote_identifier(self.table)}"


def quote_identifier(name: str) -> str:
    """Quote a name for MySQL, doubling backticks.

    Source: MySQL Reference Manual, "Schema Object Names".
    """
    return "`" + name.replace("`", "``") + "`"


@lru_cache(maxsize=8_192)
def matches(pattern: str, name: str) -> bool:
    """Whether an expression matches a whole name as Debezium reads it, whatever the case.

    Source: Debezium's MySQL connector documentation, ``database.include.list``,
    ``table.include.list``, ``column.exclude.list``.
    """
    return re.fullmatch(pattern, name, re.IGNORECASE) is not None
