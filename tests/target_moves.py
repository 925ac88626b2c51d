"""What laws of the target's DDL stand on: joined tables, and statements executed by the tracker."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume

from shardmerge.schemas.ddl.apply.statements import apply_alter, apply_create
from shardmerge.schemas.ddl.changes import AlterTable, CreateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.lattice.join import join_all, join_tables
from shardmerge.schemas.lattice.joined import JoinedTable, ShardSchema
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.records.decisions import StatementKind, TargetStatement
from shardmerge.schemas.target.dialects.dialect import Dialect
from shardmerge.schemas.target.dialects.mysql_dialect import MYSQL_8
from shardmerge.schemas.target.target_table import TargetSchema, target_schema
from tests.strategies import SERVER, names_of

TARGET = TargetTable("merged", "t")


def executed(
    schema: TableSchema | None, statement: TargetStatement, server: ServerContext = SERVER
) -> TableSchema:
    """The table after a statement, in the server's own reading of it."""
    if statement.kind is StatementKind.ROWS:
        assert schema is not None
        return schema
    parsed = parse(statement.sql, server)
    if isinstance(parsed, CreateTable):
        assert schema is None
        return apply_create(parsed, server)
    assert isinstance(parsed, AlterTable)
    assert schema is not None
    return apply_alter(schema, parsed, TARGET.table, server).schema


def to_target(
    shards: list[TableSchema], previous: TargetSchema | None = None, dialect: Dialect = MYSQL_8
) -> TargetSchema:
    """The target of shards that have a join."""
    joined = join_tables(shards)
    assume(isinstance(joined, JoinedTable))
    assert isinstance(joined, JoinedTable)
    columns = previous.columns if previous else ()
    return target_schema(joined, columns, TARGET.table, dialect=dialect)


def renamed_targets(
    schema: TableSchema, names: list[str], dialect: Dialect = MYSQL_8
) -> tuple[TargetSchema, TargetSchema]:
    """The target of one shard, before and after its columns a to e got these names."""
    assume(all(column.generated is None for column in schema.columns))
    renamed = dict(zip("abcde", names, strict=False))
    shard = ShardSchema(schema, tuple(c.name for c in schema.columns))
    joined = join_all([shard], names_of([shard]))
    again = join_all([shard], {name: renamed.get(name, name) for name in shard.ids})
    assume(isinstance(joined, JoinedTable) and isinstance(again, JoinedTable))
    assert isinstance(joined, JoinedTable)
    assert isinstance(again, JoinedTable)
    old = target_schema(joined, dialect=dialect)
    return old, target_schema(again, old.columns, dialect=dialect)


def fold_bindings(names: dict[str, str], statement: TargetStatement) -> None:
    """Identity → name, after a statement."""
    for bind in statement.binds:
        names[bind.column_id] = bind.name


def with_former_defaults(schema: TableSchema, before: TableSchema) -> TableSchema:
    """A schema with the defaults of before, of columns that rows could leave out before.

    Another default makes no row acceptable there.
    """
    old = {c.name: c for c in before.columns}
    columns = tuple(
        replace(c, default=old[c.name].default)
        if c.name in old and c.default is not None and not old[c.name].is_required
        else c
        for c in schema.columns
    )
    return replace(schema, columns=columns)
