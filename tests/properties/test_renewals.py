"""A rebuilt table's own decisions lead to where the command ``renew`` brings the target.

The model is the coordinator itself: two folds of one random log, with the rebuilt table's origin
columns from some version on, and with the target's own to the end.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st

from shardmerge.agents.coordination import coordinator
from shardmerge.agents.coordination.renewals import renewed
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.coordination.target_moves import Refusal
from shardmerge.schemas.ddl.apply.statements import apply_alter, apply_create
from shardmerge.schemas.ddl.changes import AlterTable, CreateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.lattice.origin_columns import having_origin, row_columns
from shardmerge.schemas.model.errors import UnsupportedDDL
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.origin import NO_ORIGIN, Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.policies import Mode, RenamePolicy, RoutePolicies
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.records.decisions import Decision, Outcome
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand, Renewal
from shardmerge.schemas.records.schema_changes import ChangeId, SchemaChange
from shardmerge.schemas.target.dialects.mysql_dialect import MYSQL_8
from shardmerge.spark_sink.barrier.decisions import Decisions

CONTEXT = ServerContext()
TARGET = TargetTable("merged", "t")
SHARDS = [ShardId(f"s{number}", "app", "t") for number in range(3)]
SHARD = (OriginColumn(OriginPart.SHARD, "_shard"),)
ORIGINS = [
    NO_ORIGIN,
    Origin(SHARD),
    Origin(SHARD, in_keys=True),
    Origin((OriginColumn(OriginPart.SOURCE, "_shard"), OriginColumn(OriginPart.TABLE, "_t"))),
    Origin((OriginColumn(OriginPart.GROUP, "_n", "n", "int"), *SHARD), in_keys=True),
]
CREATE = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(9), UNIQUE u (b))"
ACTIONS = [
    "ADD COLUMN c INT NOT NULL DEFAULT 5",
    "ADD COLUMN c BIGINT",
    "ADD COLUMN d INT NOT NULL",
    "DROP COLUMN a",
    "DROP COLUMN c",
    "MODIFY a BIGINT",
    "MODIFY b VARCHAR(20) NOT NULL",
    "MODIFY a DATE",
    "RENAME COLUMN a TO e",
    "RENAME COLUMN c TO a",
    "ADD UNIQUE v (a, b)",
    "DROP KEY u",
    "ADD KEY k (b)",
    "DROP PRIMARY KEY, ADD PRIMARY KEY (id, b)",
    "DROP PRIMARY KEY, ADD COLUMN n INT NOT NULL AUTO_INCREMENT PRIMARY KEY",
    "",
]
"""What a shard does; with the empty text its table is dropped, or made again."""
STEPS = st.tuples(st.sampled_from(SHARDS), st.sampled_from(ACTIONS), st.booleans())


class Log:
    """Schema changes as the schema-log has them."""

    def __init__(self, policies: RoutePolicies) -> None:
        self.policies = policies
        self.schemas: dict[ShardId, TableSchema] = {}
        self.records: list[SchemaChange] = []
        for shard in SHARDS[:2]:
            self.act(shard, "")

    def act(self, shard: ShardId, action: str) -> None:
        """Let a shard execute a statement, unless its table does not take it."""
        known = self.schemas.get(shard)
        if known is None or not action:
            statement = parse(CREATE, CONTEXT)
            assert isinstance(statement, CreateTable)
            after = apply_create(statement, CONTEXT) if known is None else None
            self.send(shard, after)
            return
        altered = parse(f"ALTER TABLE t {action}", CONTEXT)
        assert isinstance(altered, AlterTable)
        try:
            result = apply_alter(known, altered, "t", CONTEXT)
        except UnsupportedDDL:  # MySQL refuses it, too
            return
        self.send(shard, result.schema, tuple(result.lineage), tuple(result.actions))

    def send(self, shard: ShardId, after: TableSchema | None, *told: tuple[object, ...]) -> None:
        lineage, actions = told or ((), ())
        offset = len(self.records) + 1
        self.records.append(
            SchemaChange(
                ChangeId(shard.source, offset), TARGET, shard,
                SourcePosition(0, "binlog.000001", offset * 10, 0),
                self.schemas.get(shard), after, lineage, actions, "",  # type: ignore[arg-type]
                policies=self.policies,
            )
        )  # fmt: skip
        if after is None:
            self.schemas.pop(shard, None)
        else:
            self.schemas[shard] = after


def fold(state: TargetState, record: SchemaChange) -> tuple[TargetState, Decision]:
    step = coordinator.decide(state, record)
    assert step.decision is not None
    return step.state, step.decision


def new_table(state: TargetState, origin: Origin) -> TargetState | None:
    """The state of a table that is made anew; None if there can be none now."""
    found = renewed(state, origin, MYSQL_8)
    return None if isinstance(found, Refusal) else renew(state, origin)[0]


def renew(state: TargetState, origin: Origin) -> tuple[TargetState, Decision]:
    argument = str(Renewal(1, state.version, origin))
    change_id = ChangeId("p.commands", 10_000)
    step = coordinator.obey(
        state, OperatorCommand(change_id, TARGET, CommandKind.RENEW, None, argument)
    )
    assert step.decision is not None
    return step.state, step.decision


def facts(state: TargetState) -> tuple[object, ...]:
    """Everything that later decisions depend on. The order of columns is no part of it."""
    shards = {name: (s.effective, s.actual, s.hold) for name, s in state.shards.items()}
    schema = state.schema
    assert schema is not None
    unordered = replace(schema, columns=tuple(sorted(schema.columns, key=lambda c: c.name)))
    return unordered, {c.id: c.column for c in state.columns}, shards, state.policies.origin


@given(
    before=st.lists(STEPS, max_size=6),
    after=st.lists(STEPS, min_size=1, max_size=6),
    old=st.sampled_from(ORIGINS),
    new=st.sampled_from(ORIGINS),
    mode=st.sampled_from(Mode),
    renames=st.sampled_from(RenamePolicy),
)
def test_both_ways_lead_to_the_same_table(  # noqa: PLR0917 - the arguments are drawn
    before: list[tuple[ShardId, str, bool]],
    after: list[tuple[ShardId, str, bool]],
    old: Origin,
    new: Origin,
    mode: Mode,
    renames: RenamePolicy,
) -> None:
    log = Log(RoutePolicies(mode=mode, renames=renames, origin=old))
    for steps in (before, after):
        begun = len(log.records)
        for shard, action, by_all in steps:
            for each in SHARDS if by_all and action else [shard]:
                if each in log.schemas or not by_all:
                    log.act(each, action)
    own, of_table, follows = coordinator.initial(TARGET), None, True
    for number, record in enumerate(log.records):
        if number == begun:
            of_table = new_table(own, new)
            if of_table is not None:
                of_table = replace(of_table, version=own.version, seen=own.seen)
        own, _ = fold(own, record)
        if of_table is not None:
            of_table, decision = fold(of_table, record)
            assert decision.version == own.version
            follows &= not (own.held or of_table.held)
    if of_table is None or not follows:
        event("held")
        return
    event("followed")
    there = new_table(own, new)
    if there is None:
        assert not own.shards
        return
    assert facts(there) == facts(of_table)


@given(
    steps=st.lists(STEPS, max_size=8),
    old=st.sampled_from(ORIGINS),
    new=st.sampled_from(ORIGINS),
)
def test_gates_get_the_columns_that_the_new_decisions_have(
    steps: list[tuple[ShardId, str, bool]], old: Origin, new: Origin
) -> None:
    log = Log(RoutePolicies(origin=old))
    for shard, action, _ in steps:
        log.act(shard, action)
    state, decisions = coordinator.initial(TARGET), Decisions()
    for record in log.records:
        state, decision = fold(state, record)
        decisions.add(decision)
        if decision.columns and decision.shard is not None:
            schema = state.shards[decision.shard].real
            assert schema is not None
            other = having_origin(schema, new)
            key = other.schema.primary_key
            expected = (other.columns, key.columns if key else ())
            assert row_columns(decision.columns, decision.key, new) == expected
    after, decision = renew(state, new)
    if decision.outcome is Outcome.REFUSED:
        assert (after.schema, after.policies) == (state.schema, state.policies)
        return
    decisions.add(decision)
    known = decisions.targets[TARGET]
    assert not decision.fixups and not decision.reloads and not after.held
    for name, shard_state in after.shards.items():
        schema, gates = shard_state.real, known.shards[name]
        assert schema is not None and gates.first_held is None
        key = schema.schema.primary_key
        assert gates.gates[-1].columns == schema.columns
        assert gates.gates[-1].key == (key.columns if key else ())
