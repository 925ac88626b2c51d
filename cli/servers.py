"""Asks the sources and the target for what ``server_rules`` judges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pymysql
from pymysql.cursors import Cursor

from shardmerge.cli.checks.findings import Finding, SourceColumn, SourceTable, TargetFacts
from shardmerge.cli.checks.forecast import ShardTable, forecast_findings
from shardmerge.cli.checks.key_ranges import KeyRange, key_range, overlap_findings
from shardmerge.cli.checks.server_rules import (
    catalog_finding,
    database_findings,
    shard_findings,
    source_findings,
    table_findings,
    target_findings,
)
from shardmerge.cli.checks.value_rules import unread_findings, value_findings, year_findings
from shardmerge.cli.loads.load_findings import load_findings
from shardmerge.cli.loads.replica_findings import replica_findings
from shardmerge.connectors.access.mysql import mysql_error
from shardmerge.connectors.sources.unread_tables import unread_tables
from shardmerge.schemas.model.charsets import charset_name
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import ShardId, TargetTable, quote_identifier
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.pipeline.routing import RoutingRule, route
from shardmerge.schemas.pipeline.server_differences import server_context
from shardmerge.schemas.pipeline.settings import Pipeline, Source

from .clients import mysql_cursor

_SYSTEM = ("information_schema", "mysql", "performance_schema", "sys")
_ORDERED = ("tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "date", "datetime")
"""Types of keys whose values are in the same order here as on the server."""
_LOCK_WAIT_S = 2
_LOCK_WAIT_TIMEOUT = 1205


def server_findings(pipeline: Pipeline) -> list[Finding]:
    """Everything that is wrong with the servers of a pipeline, unreachable ones included."""
    found: list[Finding] = []
    routes = pipeline.routes
    needs_keys = pipeline.target.catalog is not None  # an Iceberg target finds rows by key
    tables: dict[str, Sequence[SourceTable]] = {}
    ranges: dict[ShardId, KeyRange] = {}
    definitions: list[ShardTable] = []
    for source in pipeline.sources:
        try:
            with mysql_cursor(source) as cursor:
                variables = _variables(cursor)
                found += source_findings(source, variables)
                captured = tables[source.name] = _tables(cursor, source)
                server = variables.get("character_set_server", "")
                found += database_findings(source, _charsets(cursor, source), captured, server)
                mode = variables.get("sql_mode", "")
                found += value_findings(source, mode, captured, routes)
                found += unread_findings(source, unread_tables(cursor, source))
                if not pipeline.connect.exact_values:
                    found += year_findings(source, variables.get("version", ""), _types(cursor))
                # Else a query would wait for as long as somebody locks its table.
                cursor.execute("SET SESSION lock_wait_timeout = %s", (_LOCK_WAIT_S,))
                ranges |= _key_ranges(cursor, source, captured, routes)
                definitions += _definitions(cursor, source, captured, routes)
        except (pymysql.MySQLError, ConfigError) as error:
            found.append(Finding(f"source {source.name}", mysql_error(error), code="SM-6101"))
    found += shard_findings(
        pipeline.sources,
        tables,
        routes,
        needs_keys=needs_keys,
    )
    for source in pipeline.sources:
        if source.is_loaded and source.name in tables:
            found += load_findings(source, tables[source.name], routes)
        if source.load_host and source.name in tables:
            found += replica_findings(source, _routed(source, tables[source.name], routes))
    found += overlap_findings(ranges, routes)
    found += forecast_findings(pipeline, definitions)
    if pipeline.target.catalog is not None:
        return [*found, catalog_finding(pipeline.target.catalog)]
    try:
        with mysql_cursor(pipeline.target) as cursor:
            found += target_findings(pipeline.target, _variables(cursor))
            for target in _targets(pipeline, tables):
                found += table_findings(target_facts(cursor, pipeline, target))
    except (pymysql.MySQLError, ConfigError) as error:
        found.append(Finding("target", mysql_error(error), code="SM-6101"))
    return found


def _targets(pipeline: Pipeline, tables: Mapping[str, Sequence[SourceTable]]) -> list[TargetTable]:
    """The targets whose names do not depend on the shard, and the targets of the shards found."""
    names = {(rule.target_database, rule.target_table) for rule in pipeline.routes}
    found = {TargetTable(*name) for name in names if "\\g<" not in "".join(name)}
    for source, captured in tables.items():
        for table in captured:
            found.update(route(pipeline.routes, ShardId(source, table.database, table.table)))
    return sorted(found)


def _routed(
    source: Source, tables: Sequence[SourceTable], rules: Sequence[RoutingRule]
) -> list[ShardId]:
    """The shards among the tables of a source."""
    shards = (ShardId(source.name, table.database, table.table) for table in tables)
    return [shard for shard in shards if route(rules, shard)]


def _tables(cursor: Cursor, source: Source) -> list[SourceTable]:
    """The tables that the source's connector captures."""
    cursor.execute(
        "SELECT t.table_schema, t.table_name, COUNT(c.constraint_name)"
        " FROM information_schema.tables t LEFT JOIN information_schema.table_constraints c"
        " ON c.table_schema = t.table_schema AND c.table_name = t.table_name"
        " AND c.constraint_type = 'PRIMARY KEY'"
        " WHERE t.table_type = 'BASE TABLE' AND t.table_schema NOT IN %s"
        " GROUP BY t.table_schema, t.table_name ORDER BY 1, 2",
        (_SYSTEM,),
    )
    found = cursor.fetchall()
    columns = _columns(cursor)
    as_named = server_context(source).as_named
    tables = [
        SourceTable(
            as_named(database),
            as_named(table),
            bool(keys),
            tuple(columns.get((database, table), ())),
        )
        for database, table, keys in found
    ]
    return [table for table in tables if source.reads_table(table.database, table.table)]


def _columns(cursor: Cursor) -> dict[tuple[str, str], list[SourceColumn]]:
    """The columns of each table, with what decides about their values."""
    cursor.execute(
        "SELECT table_schema, table_name, column_name, data_type, column_type, character_set_name,"
        " is_nullable FROM information_schema.columns WHERE table_schema NOT IN %s",
        (_SYSTEM,),
    )
    found: dict[tuple[str, str], list[SourceColumn]] = {}
    for database, table, name, kind, whole, charset, nullable in cursor.fetchall():
        of = ColumnType(
            str(kind).lower(),
            zerofill="zerofill" in str(whole).lower(),
            charset=charset_name(charset or ""),
        )
        column = SourceColumn(name, of, nullable=nullable == "YES")
        found.setdefault((database, table), []).append(column)
    return found


def _types(cursor: Cursor) -> dict[tuple[str, str], list[str]]:
    """The types of the columns of every table with a YEAR column, on the whole server."""
    cursor.execute(
        "SELECT c.table_schema, c.table_name, c.data_type FROM information_schema.columns c"
        " JOIN information_schema.columns y ON y.table_schema = c.table_schema"
        " AND y.table_name = c.table_name AND y.data_type = 'year'"
        " WHERE c.table_schema NOT IN %s"
        " GROUP BY c.table_schema, c.table_name, c.column_name, c.data_type",
        (_SYSTEM,),
    )
    found: dict[tuple[str, str], list[str]] = {}
    for database, table, name in cursor.fetchall():
        found.setdefault((database, table), []).append(str(name).lower())
    return found


def _key_ranges(
    cursor: Cursor, source: Source, tables: Sequence[SourceTable], rules: Sequence[RoutingRule]
) -> dict[ShardId, KeyRange]:
    """Least and greatest values of keys: reads the first and the last entry of each key's index."""
    cursor.execute(
        "SELECT s.table_schema, s.table_name, s.column_name FROM information_schema.statistics s"
        " JOIN information_schema.columns c ON c.table_schema = s.table_schema"
        " AND c.table_name = s.table_name AND c.column_name = s.column_name"
        " WHERE s.index_name = 'PRIMARY' AND s.seq_in_index = 1 AND s.table_schema NOT IN %s"
        " AND c.data_type IN %s",
        (_SYSTEM, _ORDERED),
    )
    columns = {(database, table): column for database, table, column in cursor.fetchall()}
    found = {}
    for table in tables:
        shard = ShardId(source.name, table.database, table.table)
        column = columns.get((table.database, table.table))
        if column is not None and route(rules, shard):
            values = _least_and_greatest(cursor, table, column)
            if (of_shard := key_range(column, *values)) is not None:
                found[shard] = of_shard
    return found


def _definitions(
    cursor: Cursor, source: Source, tables: Sequence[SourceTable], rules: Sequence[RoutingRule]
) -> Iterator[ShardTable]:
    """SHOW CREATE TABLE of each shard's table, without tables that are locked now."""
    for table in tables:
        shard = ShardId(source.name, table.database, table.table)
        if not route(rules, shard):
            continue
        name = f"{quote_identifier(table.database)}.{quote_identifier(table.table)}"
        for row in _unless_locked(cursor, f"SHOW CREATE TABLE {name}"):
            yield ShardTable(shard, str(row[1]))


def _least_and_greatest(cursor: Cursor, table: SourceTable, column: str) -> tuple[object, object]:
    """The least and greatest value of a key's first column; None if empty, or locked now."""
    name = f"{quote_identifier(table.database)}.{quote_identifier(table.table)}"
    of = quote_identifier(column)
    for low, high in _unless_locked(cursor, f"SELECT MIN({of}), MAX({of}) FROM {name}"):
        return low, high
    return None, None


def _unless_locked(cursor: Cursor, query: str) -> Sequence[tuple[object, ...]]:
    """The rows of a query; none where a table stays locked for longer than ``_LOCK_WAIT_S``."""
    try:
        cursor.execute(query)
    except (pymysql.MySQLError, ConfigError) as error:
        if error.args[0] != _LOCK_WAIT_TIMEOUT:
            raise
        return ()
    return cursor.fetchall()


def _charsets(cursor: Cursor, source: Source) -> dict[str, str]:
    """Default charset of each database that the source's connector captures."""
    cursor.execute(
        "SELECT schema_name, default_character_set_name FROM information_schema.schemata"
        " WHERE schema_name NOT IN %s",
        (_SYSTEM,),
    )
    return {
        str(name): str(charset)
        for name, charset in cursor.fetchall()
        if source.reads_database(str(name))
    }


def target_facts(cursor: Cursor, pipeline: Pipeline, target: TargetTable) -> TargetFacts:
    """What ``table_findings`` judges of a target."""
    name = (target.database, target.table)
    cursor.execute(
        "SELECT engine FROM information_schema.tables WHERE table_schema = %s AND table_name = %s",
        name,
    )
    rows = cursor.fetchall()
    cursor.execute(
        "SELECT trigger_name FROM information_schema.triggers"
        " WHERE event_object_schema = %s AND event_object_table = %s ORDER BY 1",
        name,
    )
    triggers = tuple(str(row[0]) for row in cursor.fetchall())
    cursor.execute(
        "SELECT DISTINCT CONCAT(table_schema, '.', table_name, '.', constraint_name)"
        " FROM information_schema.key_column_usage WHERE referenced_table_name IS NOT NULL"
        " AND (table_schema = %s AND table_name = %s"
        " OR referenced_table_schema = %s AND referenced_table_name = %s) ORDER BY 1",
        (*name, *name),
    )
    keys = tuple(str(row[0]) for row in cursor.fetchall())
    engine = str(rows[0][0] or "") if rows else ""
    of_others = bool(rows) and not _is_in_journal(cursor, pipeline, target)
    return TargetFacts(target, engine, triggers, keys, of_others)


def _is_in_journal(cursor: Cursor, pipeline: Pipeline, target: TargetTable) -> bool:
    """Whether the sink has executed a statement about the target."""
    database = pipeline.target.control_database
    cursor.execute(
        "SELECT COUNT(*) FROM information_schema.tables"
        " WHERE table_schema = %s AND table_name = 'ddl_journal'",
        (database,),
    )
    if not cursor.fetchall()[0][0]:
        return False
    cursor.execute(
        f"SELECT 1 FROM {quote_identifier(database)}.ddl_journal"
        " WHERE pipeline = %s AND target_database = %s AND target_table = %s LIMIT 1",
        (pipeline.name, target.database, target.table),
    )
    return bool(cursor.fetchall())


def _variables(cursor: Cursor) -> dict[str, str]:
    cursor.execute("SHOW GLOBAL VARIABLES")
    found = {str(name).lower(): str(value) for name, value in cursor.fetchall()}
    # TiDB's real version is in VERSION() only.
    cursor.execute("SELECT VERSION()")
    return {**found, "version": str(cursor.fetchall()[0][0])}
