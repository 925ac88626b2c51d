"""A state that an earlier version stored is read with this version's texts of expressions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from shardmerge.agents.coordination import coordinator
from shardmerge.agents.coordination.decision_records import Step
from shardmerge.agents.coordination.state import state_rows
from shardmerge.agents.coordination.state.restated_texts import (
    NO_SERVERS,
    Servers,
    restated_change,
)
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.handling.store import TargetStates
from shardmerge.schemas.ddl.apply.statements import apply_alter, apply_create
from shardmerge.schemas.ddl.apply.stored_texts import with_texts
from shardmerge.schemas.ddl.changes import AlterTable, CreateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.policies import Mode, RoutePolicies
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import Lineage
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.records.decisions import Decision, Outcome
from shardmerge.schemas.records.schema_changes import ChangeId, SchemaChange
from shardmerge.schemas.target.dialects.mysql_dialect import MYSQL_8, MySqlDialect

TARGET = TargetTable("merged", "t")
MYSQL, OLD_MYSQL = ServerContext(version=(8, 0, 36)), ServerContext(version=(5, 7, 44))
EARLIER = {"round(`a`,0)": "round(`a`)", "(`a` = 1)": "(`a` in (1))", "round(1.5,0)": "round(1.5)"}
"""This version's text → the one that an earlier version wrote for it."""
BASE = "id INT PRIMARY KEY, a INT"
COMPUTED = "g INT AS (ROUND(a))"


class Upgraded:
    """A target's rows; they are written by an earlier version until ``upgraded`` is set."""

    def __init__(
        self,
        *sources: str,
        columns: str = BASE,
        mode: Mode = Mode.OPTIMISTIC,
        dialect: MySqlDialect = MYSQL_8,
    ) -> None:
        self.contexts: dict[str, ServerContext] = {}
        self.policies, self.dialect = RoutePolicies(mode=mode), dialect
        self.schemas: dict[str, TableSchema] = {}
        self.rows: dict[bytes, bytes] = {}
        self.offset, self.upgraded = 0, False
        self.earlier: Mapping[str, str] = EARLIER
        for source in sources:
            self.create(source, columns)

    def create(self, source: str, columns: str) -> Decision:
        context = self.contexts.setdefault(source, MYSQL)
        statement = parse(f"CREATE TABLE t ({columns})", context)
        assert isinstance(statement, CreateTable)
        return self.send(source, apply_create(statement, context))

    def alter(self, source: str, action: str) -> Decision:
        context = self.contexts[source]
        statement = parse(f"ALTER TABLE t {action}", context)
        assert isinstance(statement, AlterTable)
        result = apply_alter(self.schemas[source], statement, "t", context)
        return self.send(source, result.schema, tuple(result.lineage), tuple(result.actions))

    def send(
        self,
        source: str,
        after: TableSchema | None,
        lineage: tuple[Lineage, ...] = (),
        actions: tuple[str, ...] = (),
    ) -> Decision:
        self.offset += 1
        before = self.schemas.pop(source, None)
        if after is not None:
            if not self.upgraded:
                after = with_texts(after, lambda text: self.earlier.get(text, text))
            self.schemas[source] = after
        change = SchemaChange(
            ChangeId(source, self.offset), TARGET, ShardId(source, "app", "t"),
            SourcePosition(0, "binlog.000001", self.offset * 10, 0), before, after, lineage,
            actions, "", policies=self.policies,
        )  # fmt: skip
        states = TargetStates(servers=self.servers if self.upgraded else NO_SERVERS)
        old = states.get(self.rows, TARGET)
        if self.upgraded:
            change = restated_change(old, change, self.contexts[source])
        step = coordinator.decide(old, change, self.dialect)
        self.store(states, old, step, change)
        assert step.decision is not None
        return step.decision

    def store(
        self, states: TargetStates, old: TargetState, step: Step, change: SchemaChange
    ) -> None:
        assert step.decision is not None
        touched = {change.shard, *old.held, *step.decision.released}
        for key, row in states.puts(old, step.state, sorted(touched), change.id.source).items():
            if row is None:
                del self.rows[key]
            else:
                self.rows[key] = row

    @property
    def servers(self) -> Servers:
        return Servers(self.contexts, self.dialect.server)

    @property
    def state(self) -> TargetState:
        return TargetStates(servers=self.servers).get(self.rows, TARGET)

    @property
    def schema_rows(self) -> set[str]:
        """The fingerprints of the stored schemas."""
        parsed = map(state_rows.parsed_key, self.rows)
        return {each[2][0] for each in parsed if each is not None and each[1] == "schema"}


def sql(decision: Decision) -> list[str]:
    return [s.sql.removeprefix("ALTER TABLE `merged`.`t` ") for s in decision.statements]


@pytest.mark.parametrize("stored_format", [2, 13])
def test_a_shard_that_adds_the_others_column_after_the_upgrade_is_no_conflict(
    stored_format: int,
) -> None:
    line = Upgraded("s1", "s2", columns=f"{BASE}, {COMPUTED}")
    line.create("s3", BASE)
    key = state_rows.header_key(TARGET)
    line.rows[key] = json.dumps(json.loads(line.rows[key]) | {"format": stored_format}).encode()
    line.upgraded = True

    decision = line.alter("s3", f"ADD COLUMN {COMPUTED}")

    assert decision.outcome is not Outcome.HOLD
    (statement,) = sql(decision)
    assert "round(`a`,0)" in statement
    assert not line.state.held


@pytest.mark.parametrize(
    "columns",
    [COMPUTED, "b INT DEFAULT (ROUND(1.5))", "CHECK (a IN (1))", "KEY k ((ROUND(a)))"],
    ids=["generated", "default", "check", "index"],
)
def test_the_upgrade_alone_changes_nothing_in_the_target(columns: str) -> None:
    line = Upgraded("s1", "s2", columns=f"{BASE}, {columns}")
    line.upgraded = True

    assert sql(line.create("s3", f"{BASE}, {columns}")) == []
    statements = sql(line.alter("s1", "ADD COLUMN x INT"))

    assert len(statements) == 1
    assert statements[0].startswith("ADD COLUMN `x` int")
    assert not line.state.held


@pytest.mark.parametrize(
    ("server", "form", "earlier"),
    [
        # What a target of another kind or version stores is not what the shards store.
        (ServerContext("mariadb", (10, 11)), "json_value(`j`, '$.a')", "json_value(`j`, '$.a')"),
        (ServerContext(version=(8, 0, 15)), "(`s` like 'x')", "(`s` like 'x' escape '|')"),
    ],
)
def test_a_target_of_another_kind_keeps_what_it_computes(
    server: ServerContext, form: str, earlier: str
) -> None:
    expression = earlier.replace("`", "")
    columns = f"id INT PRIMARY KEY, j JSON, s VARCHAR(9), g VARCHAR(512) AS ({expression})"
    line = Upgraded("s1", "s2", columns=columns, dialect=MySqlDialect(server))
    key = next(k for k in line.rows if k.endswith(b'"target"]'))
    stored = json.loads(line.rows[key])
    g = stored["schema"]["columns"][3]
    g |= {"default": None, "generated": {"expression": earlier, "stored": False}}
    line.rows[key] = json.dumps(stored).encode()
    line.upgraded = True

    found = sql(line.alter("s1", "ADD COLUMN x INT"))
    assert len(found) == 1, found
    statement = found[0]

    assert statement.startswith("ADD COLUMN `x` int")
    assert line.state.schema is not None
    generated = line.state.schema.columns[3].generated
    assert generated is not None
    assert generated.expression == form


def test_a_change_that_the_earlier_tracker_wrote_is_read_with_the_present_texts() -> None:
    line = Upgraded("s1", columns=f"{BASE}, {COMPUTED}")
    line.upgraded = True
    line.create("s2", f"{BASE}, {COMPUTED}")
    line.upgraded = False
    earlier = line.schemas["s1"]
    line.upgraded = True

    decision = line.send("s4", earlier) if line.contexts.setdefault("s4", MYSQL) else None

    assert decision is not None
    assert decision.outcome is not Outcome.HOLD
    assert sql(decision) == []
    assert len({shard.effective for shard in line.state.shards.values()}) == 1


def test_a_shard_that_waits_for_the_lock_is_followed_after_the_upgrade() -> None:
    line = Upgraded("s1", "s2", mode=Mode.PESSIMISTIC)
    assert line.alter("s1", f"ADD COLUMN {COMPUTED}").outcome is Outcome.HOLD
    line.upgraded = True

    decision = line.alter("s2", f"ADD COLUMN {COMPUTED}")

    assert decision.outcome is not Outcome.HOLD
    assert [shard.source for shard in decision.released] == ["s1"]
    assert not line.state.held


def test_rows_that_are_written_after_the_upgrade_belong_together() -> None:
    line = Upgraded("s1", "s2", "s3", columns=f"{BASE}, {COMPUTED}")
    (earlier,) = line.schema_rows
    line.upgraded = True

    line.alter("s1", "ADD COLUMN x INT")
    assert earlier in line.schema_rows, "s2 and s3 refer to it"
    assert len(line.state.shards) == 3
    line.alter("s1", "DROP COLUMN x")
    assert len({shard.effective for shard in line.state.shards.values()}) == 1
    for source in ("s1", "s2", "s3"):
        line.alter(source, "ADD COLUMN x INT")

    (schema,) = {shard.effective for shard in line.state.shards.values()}
    assert schema is not None
    # The decision after this one finds that no shard refers to the earlier schema any more.
    line.create("s4", f"{BASE}, {COMPUTED}, x INT")
    assert len(line.schema_rows) == 1
    assert earlier not in line.schema_rows


def test_a_text_that_servers_of_the_target_store_differently_stays_as_it_is() -> None:
    line = Upgraded()
    escaped = "(`s` like 'x' escape '|')"
    line.contexts = {"s1": OLD_MYSQL, "s2": MYSQL}
    line.earlier = {"(`s` like 'x')": escaped}
    columns = "id INT PRIMARY KEY, s VARCHAR(9), g INT AS (s LIKE 'x' ESCAPE '|')"
    line.create("s1", columns)
    assert line.create("s2", columns).outcome is not Outcome.HOLD
    line.upgraded = True

    for source in ("s1", "s2"):
        decision = line.alter(source, "ADD COLUMN x INT")
        assert decision.outcome is not Outcome.HOLD
        assert not any("like" in statement for statement in sql(decision))

    assert not line.state.held
    assert line.state.schema is not None
    generated = line.state.schema.columns[2].generated
    assert generated is not None
    assert generated.expression == escaped


def test_a_state_with_the_present_texts_stays_the_same_object() -> None:
    line = Upgraded("s1", columns=f"{BASE}, {COMPUTED}")
    line.upgraded = True
    change = SchemaChange(
        ChangeId("s1", 9), TARGET, ShardId("s1", "app", "t"), SourcePosition(0, "b", 1, 0),
        None, line.state.shards[ShardId("s1", "app", "t")].table, (), (), "",
    )  # fmt: skip
    assert restated_change(line.state, change, MYSQL) is change
    told = replace(change, after=None)
    assert restated_change(line.state, told, MYSQL) is told
