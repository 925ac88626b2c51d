"""What a target does without is told with the decision that first meets it, and once."""

from __future__ import annotations

from shardmerge.agents.coordination import coordinator
from shardmerge.agents.coordination.state.state_rows import changed_rows, header_key, stored_state
from shardmerge.schemas.ddl.apply.statements import apply_alter, apply_create
from shardmerge.schemas.ddl.changes import AlterTable, CreateTable
from shardmerge.schemas.ddl.grammar import parse
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.records.decisions import Decision
from shardmerge.schemas.records.schema_changes import ChangeId, SchemaChange
from shardmerge.schemas.target.dialects.dialects import dialect_of
from tests.unit.agents.sql_line import CONTEXT, TARGET, shard_of

MYSQL_57 = dialect_of("mysql", "5.7.44")


def test_an_index_that_the_target_does_without_is_told_once_also_after_a_restart() -> None:
    create = parse("CREATE TABLE t (id INT PRIMARY KEY, a INT)", CONTEXT)
    add = parse("ALTER TABLE t ADD INDEX kf ((a + 1))", CONTEXT)
    more = parse("ALTER TABLE t ADD COLUMN b INT", CONTEXT)
    assert isinstance(create, CreateTable)
    assert isinstance(add, AlterTable)
    assert isinstance(more, AlterTable)
    plain = apply_create(create, CONTEXT)
    first = apply_alter(plain, add, "t", CONTEXT)
    second = apply_alter(first.schema, more, "t", CONTEXT)
    state = coordinator.initial(TARGET)
    decisions: list[Decision] = []
    for number, (before, after, lineage) in enumerate(
        [(None, plain, ()), (plain, first.schema, first.lineage), (first.schema, second.schema,
         second.lineage)], 1
    ):  # fmt: skip
        change = SchemaChange(
            ChangeId("s1", number), TARGET, shard_of("s1"),
            SourcePosition(0, "binlog.000001", 10 * number, 0), before, after, tuple(lineage), (),
            "",
        )  # fmt: skip
        step = coordinator.decide(state, change, MYSQL_57)
        assert step.decision is not None
        decisions.append(step.decision)
        rows = changed_rows(
            coordinator.initial(TARGET), step.state, step.state.shards, step.state.seen
        )
        keys = [key for key in rows if key != header_key(TARGET)]
        state = stored_state(TARGET, rows.get, keys)
    told = [decision.warnings for decision in decisions]
    assert told[0] == ()
    assert "kf is left out: MySQL 5.7.44 has no functional indexes" in told[1][0]
    assert told[2] == ()
