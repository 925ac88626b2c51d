"""Laws of the target's DDL on every MySQL-like kind of target, in its own reading."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shardmerge.schemas.ddl.changes import AlterTable
from shardmerge.schemas.ddl.expressions import column_names
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.lattice.join import compare_tables, join_tables
from shardmerge.schemas.lattice.joined import JoinedTable
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.records.decisions import StatementKind, TargetStatement
from shardmerge.schemas.target.dialects.dialect import CannotRender
from shardmerge.schemas.target.dialects.mysql_dialect import MySqlDialect
from shardmerge.schemas.target.dialects.spark import SparkDialect
from shardmerge.schemas.target.dialects.spark_types import can_widen, spark_type
from shardmerge.schemas.target.dialects.tidb import TiDbDialect
from shardmerge.schemas.target.diff import diff
from shardmerge.schemas.target.target_table import TargetSchema, target_schema
from tests.strategies import shard_tables, tables
from tests.target_moves import (
    TARGET,
    executed,
    fold_bindings,
    renamed_targets,
    to_target,
    with_former_defaults,
)

DIALECTS = (
    *(MySqlDialect(ServerContext("mysql", version))
      for version in ((5, 7, 44), (8, 0, 15), (8, 0, 36), (8, 4), (9, 4))),
    *(MySqlDialect(ServerContext("mariadb", version))
      for version in ((10, 4, 30), (10, 11), (11, 8))),
    TiDbDialect(),
)  # fmt: skip
dialects = st.sampled_from(DIALECTS)


def brought(
    dialect: MySqlDialect, before: list[TableSchema], after: list[TableSchema]
) -> tuple[TargetSchema, TargetSchema, tuple[TargetStatement, ...] | CannotRender]:
    """The targets of two groups of shards, and how the first becomes the second."""
    old = to_target(before, dialect=dialect)
    new = to_target(after, old, dialect)
    return old, new, diff(old.schema, old.columns, new, TARGET, dialect)


@given(dialects, shard_tables())
def test_parsing_a_created_table_in_its_own_flavour_gives_it_back(
    dialect: MySqlDialect, shards: list[TableSchema]
) -> None:
    target = to_target(shards, dialect=dialect)
    created = diff(None, (), target, TARGET, dialect)
    if isinstance(created, CannotRender):
        assert created == target.refusal
        return
    (statement,) = created
    found = executed(None, statement, dialect.server)
    assert found.columns == target.schema.columns
    assert set(found.indexes) == set(target.schema.indexes)
    assert found.checks == target.schema.checks


@given(dialects, shard_tables(), shard_tables())
def test_every_target_is_brought_to_the_decided_schema_by_statements_that_it_reads(
    dialect: MySqlDialect, before: list[TableSchema], after: list[TableSchema]
) -> None:
    old, new, statements = brought(dialect, before, after)
    if isinstance(statements, CannotRender):
        assert statements.reason and statements.hint
        return
    schema = old.schema
    for statement in statements:
        schema = executed(schema, statement, dialect.server)
        rows = statement.kind is StatementKind.ROWS
        assert rows or statement.sql.count("ALTER TABLE") == 1
    assert compare_tables(schema, new.schema).is_equal, statements
    assert [c.name for c in schema.columns if not c.generated] == [
        c.column.name for c in new.columns if not c.column.generated
    ]


@given(dialects, shard_tables(), shard_tables())
def test_expanding_statements_only_widen_every_target_and_contracting_ones_only_narrow_it(
    dialect: MySqlDialect, before: list[TableSchema], after: list[TableSchema]
) -> None:
    """So every schema between two steps accepts the rows of one of its ends at least."""
    old, _, statements = brought(dialect, before, after)
    assume(not isinstance(statements, CannotRender))
    assert not isinstance(statements, CannotRender)
    schema = old.schema
    for statement in statements:
        moved = executed(schema, statement, dialect.server)
        smaller, larger = schema, moved
        if statement.kind is StatementKind.CONTRACTING:
            smaller, larger = moved, schema
        if statement.kind is not StatementKind.SWITCHING and not _concerns_other_columns(
            statement, schema
        ):
            # A default of our own looks like a shard's, by name alone: compared without, too.
            pairs = [(smaller, larger), (_bare(smaller, dialect), _bare(larger, dialect))]
            if statement.kind is StatementKind.CONTRACTING:
                # A default of what rows could leave out before makes no row acceptable.
                pairs.append((with_former_defaults(moved, schema), schema))
            assert any(compare_tables(a, b).is_at_most for a, b in pairs), statement
        schema = moved


def _concerns_other_columns(statement: TargetStatement, schema: TableSchema) -> bool:
    """Statements after which the table has other columns, or others that take values."""
    words = ("ADD COLUMN", "DROP COLUMN", "RENAME COLUMN", "CHANGE COLUMN", "GENERATED")
    computed = [c for c in schema.columns if c.generated]
    # What is computed of a column follows it, as on the shards that converted it.
    named = [name for c in computed if c.generated for name in column_names(c.generated.expression)]
    freed = any(
        f"MODIFY COLUMN `{name}`" in statement.sql for name in (*(c.name for c in computed), *named)
    )
    return freed or any(word in statement.sql for word in words)


def _bare(schema: TableSchema, dialect: MySqlDialect) -> TableSchema:
    columns = tuple(
        replace(c, default=None) if c.default == dialect.zero_value(c.type) else c
        for c in schema.columns
    )
    return replace(schema, columns=columns)


@given(dialects, shard_tables(), shard_tables())
def test_identities_are_bound_to_the_columns_of_every_target(
    dialect: MySqlDialect, before: list[TableSchema], after: list[TableSchema]
) -> None:
    old, new, statements = brought(dialect, before, after)
    assume(not isinstance(statements, CannotRender))
    assert not isinstance(statements, CannotRender)
    names = {c.id: c.column.name for c in old.columns}
    for statement in statements:
        fold_bindings(names, statement)
    assert {i: n for i, n in names.items() if n} == {c.id: c.column.name for c in new.columns}


@given(dialects, shard_tables())
def test_a_target_that_is_there_already_needs_nothing(
    dialect: MySqlDialect, shards: list[TableSchema]
) -> None:
    target = to_target(shards, dialect=dialect)
    assume(target.refusal is None)
    again = to_target(shards, target, dialect)
    assert diff(target.schema, target.columns, again, TARGET, dialect) == ()


@given(shard_tables(), shard_tables())
def test_tidb_gets_one_action_per_statement_and_columns_before_indexes(
    before: list[TableSchema], after: list[TableSchema]
) -> None:
    dialect = TiDbDialect()
    _, _, statements = brought(dialect, before, after)
    if isinstance(statements, CannotRender):
        return
    actions = []
    for statement in statements:
        if statement.kind is StatementKind.ROWS:
            continue
        parsed = parse(statement.sql, dialect.server)
        assert isinstance(parsed, AlterTable) and len(parsed.actions) == 1
        actions.append(type(parsed.actions[0]).__name__)
    if "AddIndex" in actions:
        assert not set(actions[actions.index("AddIndex") :]) & {"AddColumn", "DropColumn"}


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
def test_every_dialect_has_a_name_of_its_own(dialect: MySqlDialect) -> None:
    assert sum(d.name == dialect.name for d in DIALECTS) == 1


@given(
    dialects, tables(extras=False), st.permutations(["a", "b", "c", "d", "e", "z", "_shardmerge_b"])
)
def test_renames_in_any_combination_are_followed_by_every_target(
    dialect: MySqlDialect, schema: TableSchema, names: list[str]
) -> None:
    """Also swapped names, and by CHANGE, which says the whole definition again."""
    old, new = renamed_targets(schema, names, dialect)
    statements = diff(old.schema, old.columns, new, TARGET, dialect)
    assert not isinstance(statements, CannotRender)
    current = {c.id: c.column.name for c in old.columns}
    moved = old.schema
    for statement in statements:
        moved = executed(moved, statement, dialect.server)
        fold_bindings(current, statement)
    assert moved.columns == new.schema.columns
    assert current == {c.id: c.column.name for c in new.columns}


@given(st.lists(shard_tables(2), min_size=2, max_size=4))
def test_an_iceberg_table_only_ever_accepts_more_of_a_column(
    histories: list[list[TableSchema]],
) -> None:
    dialect = SparkDialect()
    schema: TableSchema | None = None
    columns: tuple[ShardColumn, ...] = ()
    for shards in histories:
        joined = join_tables(shards)
        if not isinstance(joined, JoinedTable):
            continue
        to = target_schema(joined, columns, TARGET.table, dialect=dialect)
        statements = diff(schema, columns, to, TARGET, dialect)
        if isinstance(statements, CannotRender):
            assert statements.reason and statements.hint
            continue
        before = {c.id: c.column for c in columns}
        for item in to.columns:
            known = before.get(item.id)
            if known is not None:
                old, new = spark_type(known.type), spark_type(item.column.type)
                assert old == new or can_widen(old, new)
                assert item.column.nullable or not known.nullable
            elif before:
                assert item.column.nullable
            assert item.column.generated is None
        changed = [i.id for i in to.columns if before.get(i.id) != i.column]
        # Nothing is said of a table that stays as it is.
        assert changed or set(before) - {i.id for i in to.columns} or not statements
        schema, columns = to.schema, to.columns


@given(shard_tables())
def test_an_iceberg_table_that_is_there_already_needs_nothing(shards: list[TableSchema]) -> None:
    joined = join_tables(shards)
    assume(isinstance(joined, JoinedTable))
    assert isinstance(joined, JoinedTable)
    dialect = SparkDialect()
    to = target_schema(joined, (), TARGET.table, dialect=dialect)
    again = target_schema(joined, to.columns, TARGET.table, dialect=dialect)
    assert diff(to.schema, to.columns, again, TARGET, dialect) == ()
