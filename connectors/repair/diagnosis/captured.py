"""Which events of a binlog give records: those of the tables that the connector reads. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardmerge.connectors.binlog.binlog_events import Logged, RowsEvent, written_name
from shardmerge.connectors.repair.schema_history.history_tables import qualified
from shardmerge.connectors.repair.schema_history.left_out import leaving_out, left_out_of
from shardmerge.schemas.ddl.changes import TruncateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.errors import SourceError
from shardmerge.schemas.model.names import matches


class Captured:
    """The events that a connector's lists of databases and tables let through.

    Args:
        config: The connector's.
        context: How the source's server reads a statement.
    """

    def __init__(self, config: Mapping[str, str], context: ServerContext) -> None:
        self._context = context
        self._left_out = {written_name(table.name) for table in left_out_of(config)}
        # Without what a repair wrote for the tables that are left out.
        plain = leaving_out(config, ())
        self._databases, self._tables = (
            [pattern.strip() for pattern in patterns.split(",")] if patterns else []
            for patterns in (plain.get(f"{k}.include.list", "") for k in ("database", "table"))
        )

    def has(self, item: Logged) -> bool:
        """Whether an event can give a record; yes for an event whose table is not known."""
        if isinstance(item, RowsEvent):
            return not item.table or self._is_read(item.table)
        try:
            parsed = parse(item.sql, self._context)
        except SourceError:
            return True
        if not isinstance(parsed, TruncateTable):
            return True
        return self._is_read(written_name(qualified(parsed.name, item.database)))

    def _is_read(self, name: str) -> bool:
        # A database's name may hold points, so each possible split of the name is tried.
        parts = name.split(".")
        databases = [".".join(parts[:end]) for end in range(1, len(parts))]
        return (
            name not in self._left_out
            and any(_lets(self._databases, database) for database in databases)
            and _lets(self._tables, name)
        )


def _lets(patterns: Sequence[str], name: str) -> bool:
    """Like Debezium: tries each expression on the whole name; without a list every name passes."""
    return not patterns or any(matches(pattern, name) for pattern in patterns)
