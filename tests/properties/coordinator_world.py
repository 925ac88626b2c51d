"""A target and its shards before the real coordinator; each decision is kept and looked at.

``coordinator_machine`` plays in it, and ``coordinator_checks`` says what holds after every step.
"""

from __future__ import annotations

from hypothesis.stateful import RuleBasedStateMachine

from shardmerge.agents.coordination import coordinator
from shardmerge.agents.coordination.decision_records import Step
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.handling.store import TargetStates
from shardmerge.schemas.ddl.apply.statements import AlterResult, apply_alter, apply_create
from shardmerge.schemas.ddl.changes import AlterTable, CreateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.origin import NO_ORIGIN, Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.policies import (
    ExistingRows,
    Keyless,
    Mode,
    RenamePolicy,
    RoutePolicies,
    RowsPolicy,
    TypePolicy,
)
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import Lineage
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.records.decisions import Decision, Outcome, StatementKind, TargetStatement
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId, SchemaChange

CONTEXT = ServerContext()
TARGET = TargetTable("merged", "t")
SHARDS = [ShardId("s1", "app", "t_1"), ShardId("s1", "app", "t_2"), ShardId("s2", "app", "t_1")]
COLUMNS = ["a", "b", "c"]
ORIGIN_NAME = "o"
_COLUMN = (OriginColumn(OriginPart.SHARD, ORIGIN_NAME),)
_PLACE = OriginColumn(OriginPart.POSITION, "place")
ORIGINS = [
    NO_ORIGIN,
    Origin(_COLUMN),
    Origin(_COLUMN, in_keys=True),
    Origin((*_COLUMN, _PLACE), in_keys=True),
]
DEFINITIONS = [
    "INT",
    "INT NOT NULL",
    "INT NOT NULL DEFAULT 5",
    "INT DEFAULT 7",
    "BIGINT",
    "INT UNSIGNED",
    "DECIMAL(9,2)",
    "DATE",
    "VARCHAR(9)",
    "INT AS (id + 1) STORED",
]
OLD_KEY, NEW_KEY = "id", "k"
ADDED_KEYS = [
    "INT NOT NULL AUTO_INCREMENT, DROP PRIMARY KEY, ADD PRIMARY KEY (k)",
    "INT NOT NULL AUTO_INCREMENT, DROP PRIMARY KEY, ADD PRIMARY KEY (id, k)",
    "INT NOT NULL DEFAULT 5, DROP PRIMARY KEY, ADD PRIMARY KEY (id, k)",
    "INT NOT NULL, DROP PRIMARY KEY, ADD PRIMARY KEY (k)",
    "INT NOT NULL",
]
LATER_KEYS = [
    "DROP PRIMARY KEY, ADD PRIMARY KEY (id)",
    "DROP PRIMARY KEY, ADD PRIMARY KEY (k)",
    "DROP PRIMARY KEY, ADD PRIMARY KEY (id), DROP COLUMN k",
]


class CoordinatorWorld(RuleBasedStateMachine):
    """Shards of one target; every decision is kept, as the ddl topic keeps them."""

    def __init__(self) -> None:
        super().__init__()
        self.state: TargetState = coordinator.initial(TARGET)
        self.schemas: dict[ShardId, TableSchema] = {}
        self.taken_out: dict[ShardId, TableSchema] = {}
        self.mode, self.renames = Mode.OPTIMISTIC, RenamePolicy.MAP
        self.origin, self.on_drop = NO_ORIGIN, RowsPolicy.KEEP
        self.existing_rows, self.keyless = ExistingRows.REREAD, Keyless.COUNT
        self.types = TypePolicy.WIDE
        self.log: list[SchemaChange | OperatorCommand] = []
        self.decisions: list[Decision] = []
        self.target: TableSchema | None = None
        self.rows: dict[bytes, bytes] = {}
        self.states = TargetStates()

    def _altered(self, shard: ShardId, action: str) -> AlterResult:
        statement = parse(f"ALTER TABLE t {action}", CONTEXT)
        assert isinstance(statement, AlterTable)
        return apply_alter(self.schemas[shard], statement, shard.table, CONTEXT)

    def _alter(self, shard: ShardId, action: str) -> None:
        result = self._altered(shard, action)
        self._send(shard, result.schema, result.lineage, tuple(result.actions))
        self.schemas[shard] = result.schema

    def _create(self, shard: ShardId) -> None:
        statement = parse("CREATE TABLE t (id INT PRIMARY KEY, a INT)", CONTEXT)
        assert isinstance(statement, CreateTable)
        schema = apply_create(statement, CONTEXT)
        self._send(shard, schema, ())
        self.schemas[shard] = schema

    def _send(
        self,
        shard: ShardId,
        after: TableSchema | None,
        lineage: tuple[Lineage, ...],
        actions: tuple[str, ...] = (),
        error: str = "",
    ) -> None:
        offset = len(self.log) + 1
        policies = RoutePolicies(
            mode=self.mode,
            renames=self.renames,
            origin=self.origin,
            on_drop=self.on_drop,
            existing_rows=self.existing_rows,
            keyless=self.keyless,
            types=self.types,
        )
        change = SchemaChange(
            ChangeId(shard.source, offset), TARGET, shard,
            SourcePosition(0, "binlog.000001", offset * 10, 0),
            self.schemas.get(shard), after, lineage, actions, "", error=error,
            hint="tell its schema" if error else "", policies=policies,
        )  # fmt: skip
        self._take(change)

    def _say(
        self,
        kind: CommandKind,
        shard: ShardId | None,
        argument: str,
        schema: TableSchema | None = None,
    ) -> None:
        change_id = ChangeId("p.commands", len(self.log) + 1)
        self._take(OperatorCommand(change_id, TARGET, kind, shard, argument, schema=schema))

    def _step(self, state: TargetState, change: SchemaChange | OperatorCommand) -> Step:
        if isinstance(change, OperatorCommand):
            return coordinator.obey(state, change, context=CONTEXT)
        return coordinator.decide(state, change)

    def _take(self, change: SchemaChange | OperatorCommand) -> None:
        step = self._step(self.state, change)
        assert step.decision is not None
        assert step.decision.version == self.state.version + 1
        assert bool(step.decision.statements) == (step.decision.outcome is Outcome.EMIT)
        if not step.decision.reloads:  # else all rows are read again, with the new key
            self._look_at_key(step.state, change)
        shards = {*self.state.held, *step.decision.released, *step.decision.pauses}
        if change.shard in {*self.state.shards, *step.state.shards}:
            shards.add(change.shard)
        source = change.id.source
        for key, row in self.states.puts(self.state, step.state, shards, source).items():
            if row is None:
                del self.rows[key]
            else:
                self.rows[key] = row
        self.state = step.state
        self.log.append(change)
        self.decisions.append(step.decision)
        for emitted in step.decision.statements:
            if emitted.kind is StatementKind.ROWS:
                self._look_at(emitted)
            else:
                self._execute(emitted.sql)

    def _look_at_key(self, state: TargetState, change: SchemaChange | OperatorCommand) -> None:
        """No key is made of a new column whose values the target's rows cannot have.

        A shard that comes back after it was taken out counts as a new one.
        """
        before = self.state.schema
        accepts = state.policies.existing_rows is ExistingRows.ACCEPT
        if accepts or before is None or state.schema is None or before.column(NEW_KEY) is not None:
            return
        if NEW_KEY in key_of(state.schema):
            assert OLD_KEY in key_of(state.schema)
            known = change.shard in self.state.shards
            after = change.after if isinstance(change, SchemaChange) and known else None
            others = (
                self.schemas[shard.shard]
                for shard in self.state.shards.values()
                if shard.effective is not None and shard.shard != change.shard
            )
            for schema in (*others, after):
                column = schema.column(NEW_KEY) if schema else None
                assert column is None or not column.auto_increment

    def _look_at(self, statement: TargetStatement) -> None:
        """A statement that changes rows names columns that the target has, and whose rows."""
        assert self.target is not None
        if statement.shard is not None:
            assert f"`{ORIGIN_NAME}` = '{statement.shard}'" in statement.sql
            assert self.target.column(ORIGIN_NAME) is not None
        for subject in statement.subjects:
            kind, _, name = subject.partition(":")
            assert kind == "rows" or self.target.column(name) is not None

    def _execute(self, sql: str) -> None:
        statement = parse(sql, CONTEXT)
        if isinstance(statement, CreateTable):
            assert self.target is None
            self.target = apply_create(statement, CONTEXT)
        else:
            assert isinstance(statement, AlterTable)
            assert self.target is not None
            self.target = apply_alter(self.target, statement, "t", CONTEXT).schema


def key_of(schema: TableSchema) -> tuple[str, ...]:
    return schema.primary_key.columns if schema.primary_key else ()
