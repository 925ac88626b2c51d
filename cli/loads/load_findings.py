"""What ``shardmerge check`` finds about sources whose first rows the sink reads itself.

The sink's machine must reach the sources, so that is the machine on which to run ``check``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardmerge.cli.checks.findings import Finding, SourceTable
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.model.mysql_text import string_literal
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.first_rows import not_loaded
from shardmerge.schemas.pipeline.routing import RoutingRule, route, rule_of
from shardmerge.schemas.pipeline.settings import Pipeline, Source
from shardmerge.spark_sink.loading.snapshot_queries import has_snapshots
from shardmerge.spark_sink.sources.table_reader import TableReader

_ENGINES = (
    "SELECT table_schema, table_name, engine FROM information_schema.tables"
    " WHERE table_type = 'BASE TABLE' AND engine <> 'InnoDB'"
)


def debezium_findings(pipeline: Pipeline) -> list[Finding]:
    """The sources whose first rows Debezium brings, because the sink cannot load them."""
    found = []
    for source in pipeline.sources:
        why = not_loaded(source.name, pipeline.routes, pipeline.target.kind)
        if why and not source.is_loaded:
            text = f"Debezium's snapshot brings its first rows, not the sink: {why}"
            found.append(Finding(f"source {source.name}", text, fault=False, code="SM-6111"))
    return found


def load_findings(
    source: Source, tables: Sequence[SourceTable], rules: Sequence[RoutingRule]
) -> list[Finding]:
    """What would keep the sink from loading a source's first rows.

    Args:
        source: A source whose first rows the sink reads itself.
        tables: Those that its connector captures.
        rules: The routing rules.
    """
    reader = TableReader(source)
    try:
        reader.binlog_end()
        return list(_unfit(reader, source, tables, rules))
    except ShardMergeError as error:
        hint = f" ({error.hint})" if error.hint else ""
        where = f"source {source.name}"
        return [Finding(where, f"{error.message}{hint}", code=error.code)]
    finally:
        reader.close()


def _unfit(
    reader: TableReader,
    source: Source,
    tables: Sequence[SourceTable],
    rules: Sequence[RoutingRule],
) -> Iterator[Finding]:
    """The tables that must be read as of one moment, and whose engine cannot do that."""
    known = {(table.database, table.table): table for table in tables}
    for database, name, engine in reader.query(_ENGINES):
        table = known.get((str(database), str(name)))
        shard = ShardId(source.name, str(database), str(name))
        if table is None or has_snapshots(str(engine)) or not route(rules, shard):
            continue
        if why := _needs_one_moment(reader, table, rule_of(rules, shard)):
            yield Finding(
                f"shard {shard}",
                f"its first rows cannot be loaded: its engine is {engine}, and {why}; make it a "
                "table of InnoDB, or give the source snapshot = 'debezium'",
                code="SM-6112",
            )


def _needs_one_moment(reader: TableReader, table: SourceTable, rule: RoutingRule | None) -> str:
    """Why a table cannot be read in chunks, as far as that is known beforehand; "" if it can."""
    if not table.has_key:
        return "it has no primary key"
    if rule is not None and rule.ignores_operations:
        return "its route ignores operations, or keeps the rows of a TRUNCATE"
    unique = reader.query(
        "SELECT 1 FROM information_schema.statistics WHERE non_unique = 0"
        f" AND index_name <> 'PRIMARY' AND table_schema = {string_literal(table.database)}"
        f" AND table_name = {string_literal(table.table)} LIMIT 1"
    )
    return "it has a unique key besides the primary key" if unique else ""
