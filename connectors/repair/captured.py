"""Which events of a binlog a connector makes records of: those of tables that it reads. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from shardmerge.schemas.changes import TruncateTable
from shardmerge.schemas.errors import SourceError
from shardmerge.schemas.grammar import ServerContext, parse

from .binlog_events import Logged, RowsEvent
from .left_out import leaving_out, left_out_of


@dataclass(frozen=True, slots=True)
class Captured:
    """What a connector's lists of databases and tables let through.

    Attributes:
        config: The connector's.
        context: How the source's server reads a statement.
    """

    config: Mapping[str, str]
    context: ServerContext

    def has(self, item: Logged) -> bool:
        """Whether a record can come of an event; of one whose table is not told it can."""
        if isinstance(item, RowsEvent):
            return not item.table or self._is_read(item.table)
        try:
            parsed = parse(item.sql, self.context)
        except SourceError:
            return True
        if not isinstance(parsed, TruncateTable):
            return True
        return self._is_read(f"{parsed.name.database or item.database}.{parsed.name.table}")

    def _is_read(self, name: str) -> bool:
        # A database with a point in its name is not told: what may be read counts.
        parts = name.split(".")
        databases = [".".join(parts[:end]) for end in range(1, len(parts))]
        left_out = {f"{t.name.database}.{t.name.table}" for t in left_out_of(self.config)}
        return (
            name not in left_out
            and any(self._lets("database", d) for d in databases)
            and self._lets("table", name)
        )

    def _lets(self, kind: str, name: str) -> bool:
        """Debezium: each expression of a list with commas is tried on the whole name."""
        # Without what a repair wrote for the tables that are left out.
        patterns = leaving_out(self.config, ()).get(f"{kind}.include.list", "")
        return not patterns or any(
            re.fullmatch(pattern.strip(), name, re.IGNORECASE) for pattern in patterns.split(",")
        )
