"""Laws of the target's DDL: executing it gives the decided schema, step by legal step."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.grammar import parse
from shardmerge.schemas.lattice.join import compare_tables, join_tables
from shardmerge.schemas.lattice.joined import JoinedTable
from shardmerge.schemas.model.mysql_facts import zero_value
from shardmerge.schemas.model.mysql_text import create_table
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.records.decisions import Binding, StatementKind, TargetStatement
from shardmerge.schemas.target.diff import CannotRender, diff
from shardmerge.schemas.target.target_table import target_schema
from tests.strategies import SERVER, shard_tables, table, tables
from tests.target_moves import (
    TARGET,
    executed,
    fold_bindings,
    renamed_targets,
    to_target,
    with_former_defaults,
)


@given(shard_tables(), shard_tables())
def test_executing_the_difference_gives_the_decided_schema(
    before: list[TableSchema], after: list[TableSchema]
) -> None:
    old = to_target(before)
    new = to_target(after, old)
    statements = diff(old.schema, old.columns, new, TARGET)
    if isinstance(statements, CannotRender):
        assert statements.reason and statements.hint
        return
    schema = old.schema
    names = {c.id: c.column.name for c in old.columns}
    for statement in statements:
        moved = executed(schema, statement)
        _stands_by_its_kind(schema, moved, statement)
        schema = moved
        fold_bindings(names, statement)
    assert compare_tables(schema, new.schema).is_equal, statements
    assert [c.name for c in schema.columns if not c.generated] == [
        c.column.name for c in new.columns if not c.column.generated
    ]
    assert {i: n for i, n in names.items() if n} == {c.id: c.column.name for c in new.columns}


def _stands_by_its_kind(
    before: TableSchema, after: TableSchema, statement: TargetStatement
) -> None:
    # A default of our own comes and goes with a column's state: by name alone it looks like a
    # default that contradicts a shard's, so it is compared without.
    pairs = ((before, after), (_without_zero_defaults(before), _without_zero_defaults(after)))
    if statement.kind is StatementKind.EXPANDING:
        grows = any(compare_tables(a, b).is_at_most for a, b in pairs)
        # A generated column that becomes ordinary takes the values that row images always carry,
        # so being required refuses none of them.
        was_generated = any(
            c.generated and f"MODIFY COLUMN `{c.name}`" in statement.sql for c in before.columns
        )
        assert grows or was_generated or "ADD COLUMN" in statement.sql, statement
    if statement.kind is StatementKind.CONTRACTING:
        other_columns = "GENERATED" in statement.sql or "DROP COLUMN" in statement.sql
        narrowed = (before, with_former_defaults(after, before))
        shrinks = any(compare_tables(b, a).is_at_most for a, b in (*pairs, narrowed))
        assert shrinks or other_columns, statement


def _without_zero_defaults(schema: TableSchema) -> TableSchema:
    return replace(
        schema,
        columns=tuple(
            replace(c, default=None) if c.default == zero_value(c.type) else c
            for c in schema.columns
        ),
    )


@given(shard_tables())
def test_a_difference_of_nothing_is_nothing(shards: list[TableSchema]) -> None:
    target = to_target(shards)
    assert diff(target.schema, target.columns, target, TARGET) == ()


@given(shard_tables())
def test_the_created_table_is_the_decided_schema(shards: list[TableSchema]) -> None:
    target = to_target(shards)
    statements = diff(None, (), target, TARGET)
    assert not isinstance(statements, CannotRender)
    (statement,) = statements
    made = executed(None, statement)
    assert _without_index_order(made) == _without_index_order(target.schema)
    assert set(statement.binds) == {
        Binding(c.id, c.column.name, c.column.generated is None) for c in target.columns
    }


def _without_index_order(schema: TableSchema) -> TableSchema:
    """Servers put unique indexes first; which stands where decides nothing."""
    return replace(schema, indexes=tuple(sorted(schema.indexes, key=lambda index: index.name)))


def test_the_order_of_indexes_is_the_servers() -> None:
    shard = table("create table t (id int primary key, a int, b int, key ka (a), unique kb (b))")
    joined = join_tables([shard])
    assert isinstance(joined, JoinedTable)
    target = target_schema(joined)
    statements = diff(None, (), target, TARGET)
    assert not isinstance(statements, CannotRender)
    made = executed(None, statements[0])
    assert [index.name for index in made.indexes] == ["PRIMARY", "kb", "ka"]
    assert _without_index_order(made) == _without_index_order(target.schema)


@given(tables())
def test_parsing_a_rendered_table_gives_it_back(schema: TableSchema) -> None:
    parsed = parse(create_table(schema, "t"), SERVER)
    assert isinstance(parsed, CreateTable)
    assert apply_create(parsed, SERVER) == schema


@given(tables(extras=False), st.permutations(["a", "b", "c", "d", "e", "z"]))
def test_renames_in_any_combination_keep_every_identity(
    schema: TableSchema, names: list[str]
) -> None:
    """Also swapped names: one statement each, and every one of them legal."""
    old, new = renamed_targets(schema, names)
    statements = diff(old.schema, old.columns, new, TARGET)
    assert not isinstance(statements, CannotRender)
    current = {c.id: c.column.name for c in old.columns}
    moved = old.schema
    for statement in statements:
        moved = executed(moved, statement)
        fold_bindings(current, statement)
    assert moved == new.schema
    assert current == {c.id: c.column.name for c in new.columns}


@given(shard_tables(), shard_tables())
def test_equal_schemas_give_equal_text(before: list[TableSchema], after: list[TableSchema]) -> None:
    old = to_target(before)
    new = to_target(after, old)
    assert diff(old.schema, old.columns, new, TARGET) == diff(old.schema, old.columns, new, TARGET)
