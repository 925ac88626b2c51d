"""Laws of what statements do: their actions say what their texts say, on every kind of target."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from shardmerge.schemas.ddl.apply.actions import schema_after
from shardmerge.schemas.model.actions import Action
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.origin import Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.tables import Column, TableSchema
from shardmerge.schemas.records import plain
from shardmerge.schemas.records.codec import decode
from shardmerge.schemas.records.decisions import Decision, Outcome, StatementKind, TargetStatement
from shardmerge.schemas.records.earlier_codes import EARLIER
from shardmerge.schemas.records.earlier_statements import actions_of
from shardmerge.schemas.records.schema_changes import ChangeId
from shardmerge.schemas.target.dialects.dialect import CannotRender, Dialect
from shardmerge.schemas.target.dialects.mysql_dialect import MYSQL_8, MySqlDialect
from shardmerge.schemas.target.dialects.spark import SparkDialect
from shardmerge.schemas.target.diff import diff
from shardmerge.schemas.target.row_statements import (
    clearing,
    copying,
    defaulting,
    deletion,
    filling,
)
from tests.golden.test_avro import earlier, written_by_avro
from tests.properties.test_dialect_laws import DIALECTS
from tests.strategies import ALL_TYPES, shard_tables
from tests.target_moves import TARGET, executed, to_target
from tests.target_statements import NO_REASON

WITHOUT_ACTIONS = next(
    contract for contract in reversed(earlier()["decision"]) if '"actions"' not in str(contract)
)
"""The last contract in which statements are texts alone."""
dialects = st.sampled_from([*DIALECTS, SparkDialect()])
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=9)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
SHARDS = st.builds(ShardId, TEXTS, TEXTS, TEXTS)


def statements_of(
    dialect: Dialect, before: list[TableSchema], after: list[TableSchema]
) -> tuple[TargetStatement, ...]:
    """Those that make the target of one group of shards, and bring it to the target of another."""
    old = to_target(before, dialect=dialect)
    new = to_target(after, old, dialect)
    made = diff(None, (), old, TARGET, dialect)
    moved = diff(old.schema, old.columns, new, TARGET, dialect)
    assume(not isinstance(made, CannotRender) and not isinstance(moved, CannotRender))
    assert not isinstance(made, CannotRender)
    assert not isinstance(moved, CannotRender)
    return (*made, *moved)


@given(dialects, shard_tables(), shard_tables())
def test_the_actions_of_every_difference_are_those_that_its_texts_stand_for(
    dialect: Dialect, before: list[TableSchema], after: list[TableSchema]
) -> None:
    for statement in statements_of(dialect, before, after):
        assert statement.actions
        assert actions_of(statement.sql) == statement.actions, statement.sql


@given(st.sampled_from(DIALECTS), shard_tables(), shard_tables())
def test_actions_make_of_a_schema_what_the_server_makes_of_the_text(
    dialect: MySqlDialect, before: list[TableSchema], after: list[TableSchema]
) -> None:
    schema: TableSchema | None = None
    for statement in statements_of(dialect, before, after):
        moved = executed(schema, statement, dialect.server)
        if statement.kind is not StatementKind.ROWS:
            assert schema_after(schema, statement.actions, TARGET, dialect.server) == moved
        schema = moved


@given(dialects, shard_tables(), shard_tables())
def test_a_decision_of_an_earlier_contract_is_read_as_the_new_one(
    dialect: Dialect, before: list[TableSchema], after: list[TableSchema]
) -> None:
    statements = statements_of(dialect, before, after)
    position = SourcePosition(0, "binlog.000001", 4, 0)
    decision = Decision(
        ChangeId("s1", 5), TARGET, 3, ShardId("s1", "a", "t"), position, Outcome.EMIT, statements
    )
    kept = plain.to_plain(decision)
    for statement in kept["statements"]:
        del statement["actions"]
    # That contract has no codes either: a reason gets the one of earlier versions.
    expected = tuple(replace(each, code=EARLIER if each.reason else "") for each in statements)
    read = decode(written_by_avro(WITHOUT_ACTIONS, kept))
    assert read == replace(decision, statements=expected)
    assert plain.from_plain(Decision, kept) != decision, "the text alone does not do"


@given(
    st.sampled_from([MYSQL_8, SparkDialect()]),
    st.lists(SHARDS, min_size=1, max_size=3),
    st.lists(NAMES, min_size=5, max_size=5, unique_by=str.lower),
    st.lists(st.tuples(st.sampled_from(ALL_TYPES), TEXTS), min_size=1, max_size=3),
    st.booleans(),
)
def test_the_actions_of_changes_of_rows_are_those_that_their_texts_stand_for(
    dialect: Dialect,
    shards: list[ShardId],
    names: list[str],
    values: list[tuple[Column, str]],
    flag: bool,
) -> None:
    origin = Origin(
        (OriginColumn(OriginPart.SHARD, names[0]), OriginColumn(OriginPart.TABLE, names[1]))
    )
    columns = [Column(name, kind) for name, (kind, _) in zip(names[2:], values, strict=False)]  # type: ignore[arg-type]
    fills = ["NULL" if flag else f"value {text}" for _, text in values]
    literals = [dialect.row_value(f, c) for f, c in zip(fills, columns, strict=True)]
    given_values = [
        (column, literal)
        for column, literal in zip(columns, literals, strict=True)
        if literal is not None
        and (column.type.is_string or column.type.name in ("enum", "set") or flag)
    ]
    moved = replace(columns[0], on_update="CURRENT_TIMESTAMP")
    made = [
        deletion(TARGET, shards, origin, NO_REASON),
        clearing(TARGET, NO_REASON),
        copying(TARGET, Column(names[0], moved.type), Column(names[1], moved.type), [moved],
                overwrites=flag),
        defaulting(TARGET, Column(names[0], moved.type), [moved]),
    ]  # fmt: skip
    if given_values:
        made.append(
            filling(
                TARGET, shards[0], origin, given_values, NO_REASON, dialect=dialect, columns=[moved]
            )
        )
    for statement in made:
        actions: tuple[Action, ...] = statement.actions
        assert len(actions) == 1
        assert actions_of(statement.sql) == actions, statement.sql
