"""What lineage reads off the decisions."""

from __future__ import annotations

from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.tables import Column
from shardmerge.spark_sink.barrier.decisions import StatementKey
from shardmerge.spark_sink.lineage.reports import RunState, executed_table, feeds_of, names_of
from tests.unit.spark_sink.decided import TARGET, A, B, decision, folded
from tests.unit.spark_sink.lineage.lined import INT, addition, creation, rename


def test_a_shard_feeds_with_the_columns_that_its_rows_may_have() -> None:
    """B is held: its rows up to the gate have the columns before it."""
    decided = folded(
        decision(1, A, 10), decision(2, B, 10), decision(3, B, 20, hold=True, columns=("id", "x")),
        decision(4, A, 20, columns=("id", "y")),
    ).targets[TARGET]  # fmt: skip
    feeds = feeds_of(decided)
    names = {s: [c.column.name for c in feed.columns] for s, feed in feeds.items()}
    assert names == {A: ["id", "y"], B: ["id"]}


def test_a_dropped_shard_feeds_nothing() -> None:
    decided = folded(decision(1, A, 10), decision(2, A, 20, live=False, columns=()))
    assert feeds_of(decided.targets[TARGET]) == {}


def test_the_table_is_what_was_executed_of_it() -> None:
    statements = creation(Column("id", INT)), addition("c"), rename("c", "d"), addition("e")
    decided = folded(decision(1, A, 10, *statements)).targets[TARGET]
    executed = {StatementKey(1, ordinal) for ordinal in range(3)}
    schema = executed_table(decided, executed, ServerContext()).schema
    assert schema is not None
    assert [c.name for c in schema.columns] == ["id", "d"]
    assert names_of(decided, executed) == {"id#1": "id", "c#1": "d"}


def test_a_run_ends_in_three_ways() -> None:
    ends = [state for state in RunState if state.ends_run]
    assert ends == [RunState.COMPLETE, RunState.FAIL, RunState.ABORT]
