"""Whether a statement of the binlog may change what a table is, or holds. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from shardmerge.connectors.binlog.binlog_events import Logged, Statement
from shardmerge.connectors.repair.schema_history.history_tables import HistoryTables, qualified
from shardmerge.schemas.ddl.changes import DropDatabase, TableName, TruncateTable
from shardmerge.schemas.ddl.grammar import ServerContext, concerned_tables, parse
from shardmerge.schemas.model.errors import SourceError


def first_concerning(
    items: Iterable[Logged], tables: Collection[TableName], context: ServerContext
) -> Statement | None:
    """The first statement that may concern one of some tables; None without one.

    Args:
        items: What the binlog has.
        tables: With their databases.
        context: How the source's server reads a statement.
    """
    for item in items:
        if isinstance(item, Statement) and _may_concern(item, tables, context):
            return item
    return None


def _may_concern(item: Statement, tables: Collection[TableName], context: ServerContext) -> bool:
    context = replace(context, default_database=item.database)
    try:
        parsed = parse(item.sql, context)
    except SourceError:
        names = concerned_tables(item.sql, context)
        # If the tables cannot be told, the statement may concern any.
        return not names or _has(tables, (qualified(n, item.database) for n in names))
    if isinstance(parsed, DropDatabase):
        return any(_compared_name(t.database) == _compared_name(parsed.name) for t in tables)
    if isinstance(parsed, TruncateTable):
        return _has(tables, (qualified(parsed.name, item.database),))
    return _has(tables, HistoryTables(context).take(item.sql, item.database))


def _has(tables: Collection[TableName], names: Iterable[TableName]) -> bool:
    # A server may or may not tell upper and lower case apart: a match too many does no harm.
    known = {(_compared_name(t.database), _compared_name(t.table)) for t in tables}
    return any((_compared_name(n.database), _compared_name(n.table)) in known for n in names)


def _compared_name(name: str) -> str:
    return name.casefold()
