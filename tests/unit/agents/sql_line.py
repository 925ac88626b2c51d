"""A target's coordinator fed with statements, each shard on a source of its own.

The state goes through its stored rows at every change, and the target's statements are executed on
a schema, so that every test also sees that a restart changes nothing and that what is emitted leads
to what is decided.
"""

from __future__ import annotations

from collections.abc import Mapping

from shardmerge.agents.coordination import coordinator
from shardmerge.agents.coordination.decision_records import Step
from shardmerge.agents.coordination.state.shard_state import ShardState
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.handling.store import TargetStates
from shardmerge.agents.tracking.tracker import command_with_schema
from shardmerge.schemas.codes.registry import codes
from shardmerge.schemas.ddl.apply.statements import apply_alter, apply_create
from shardmerge.schemas.ddl.changes import AlterTable, CreateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.actions import Adoption
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
from shardmerge.schemas.records.decisions import Decision, Outcome, StatementKind
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId, SchemaChange

CONTEXT = ServerContext()
TARGET = TargetTable("merged", "t")
BASE = "id INT PRIMARY KEY, a INT"
SHARD_COLUMN = Origin((OriginColumn(OriginPart.SHARD, "_shard"),))


def shard_of(source: str) -> ShardId:
    """The one shard of a source."""
    return ShardId(source, "app", "t")


def assert_coded(decision: Decision) -> None:
    """Every warning, fix-up and statement of a decision has a code of the registry."""
    found = [*decision.warning_codes, *(part.code for part in decision.fixups)]
    found += [statement.code for statement in decision.statements]
    assert len(decision.warning_codes) == len(decision.warnings)
    assert set(found) <= codes().keys()


class SqlLine:
    """Statements in, decisions out."""

    def __init__(
        self,
        mode: Mode,
        *sources: str,
        create: str = "id INT PRIMARY KEY",
        origin: Origin = NO_ORIGIN,
        on_drop: RowsPolicy = RowsPolicy.KEEP,
        keyless: Keyless = Keyless.COUNT,
        context: ServerContext = CONTEXT,
        collations: frozenset[str] = frozenset(),
    ) -> None:
        self.mode, self.collations = mode, collations
        self.context = context
        self.renames, self.types = RenamePolicy.MAP, TypePolicy.WIDE
        self.origin, self.on_drop = origin, on_drop
        self.existing_rows, self.keyless = ExistingRows.REREAD, keyless
        self.state: TargetState = coordinator.initial(TARGET, collations)
        self.schemas: dict[str, TableSchema] = {}
        self.decisions: list[Decision] = []
        self.target: TableSchema | None = None
        self.rows: dict[bytes, bytes] = {}
        for source in sources:
            self.create(source, create)

    def create(self, source: str, columns: str, options: str = "") -> Decision:
        statement = parse(f"CREATE TABLE t ({columns}){options}", self.context)
        assert isinstance(statement, CreateTable)
        return self.send(source, apply_create(statement, self.context))

    def alter(self, source: str, action: str) -> Decision:
        statement = parse(f"ALTER TABLE t {action}", self.context)
        assert isinstance(statement, AlterTable)
        result = apply_alter(self.schemas[source], statement, "t", self.context)
        return self.send(source, result.schema, tuple(result.lineage), tuple(result.actions))

    def drop(self, source: str, action: str = "DROP TABLE") -> Decision:
        return self.send(source, None, actions=(action,))

    def unreadable(self, source: str) -> Decision:
        return self.send(source, None, error="cannot parse it")

    def send(
        self,
        source: str,
        after: TableSchema | None,
        lineage: tuple[Lineage, ...] = (),
        actions: tuple[str, ...] = (),
        error: str = "",
    ) -> Decision:
        offset = len(self.decisions) + 1
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
            ChangeId(source, offset), TARGET, shard_of(source),
            SourcePosition(0, "binlog.000001", offset * 10, 0),
            self.schemas.get(source), after, lineage, actions, "", error=error,
            hint="fix it" if error else "", policies=policies,
        )  # fmt: skip
        if after is not None:
            self.schemas[source] = after
        elif not error:
            del self.schemas[source]
        states = TargetStates(self.collations)
        before = states.get(self.rows, TARGET)
        assert before == self.state
        return self._taken(states, before, coordinator.decide(before, change), change)

    def command(self, kind: CommandKind, source: str = "", argument: str = "") -> Decision:
        shard = shard_of(source) if source else None
        said = OperatorCommand(
            ChangeId("p.commands", len(self.decisions) + 1), TARGET, kind, shard, argument
        )
        if kind is CommandKind.SET_SCHEMA:
            said = command_with_schema(said, self.context)
        states = TargetStates(self.collations)
        before = states.get(self.rows, TARGET)
        assert before == self.state
        return self._taken(
            states, before, coordinator.obey(before, said, context=self.context), said
        )

    def put(self, shard: ShardState) -> None:
        """Have a shard as another version may have left it, in the stored state, too."""
        before, self.state = self.state, self.state.with_shard(shard)
        self._store(TargetStates().puts(before, self.state, [shard.shard], shard.shard.source))

    def _taken(
        self,
        states: TargetStates,
        before: TargetState,
        step: Step,
        change: SchemaChange | OperatorCommand,
    ) -> Decision:
        assert step.decision is not None
        assert_coded(step.decision)
        source, touched = (
            change.id.source,
            {*before.held, *step.decision.released, *step.decision.pauses},
        )
        if change.shard in {*before.shards, *step.state.shards}:
            touched.add(change.shard)
        self._store(states.puts(before, step.state, touched, source))
        self.state = step.state
        self.decisions.append(step.decision)
        for emitted in step.decision.statements:
            adopts = any(isinstance(action, Adoption) for action in emitted.actions)
            if emitted.kind is not StatementKind.ROWS and not adopts:
                self._execute(emitted.sql)
        if self.target is not None and self.state.schema is not None:
            names = [c.name for c in self.target.columns]
            assert sorted(names) == sorted(c.name for c in self.state.schema.columns)
        return step.decision

    def _store(self, rows: Mapping[bytes, bytes | None]) -> None:
        for key, row in rows.items():
            if row is None:
                del self.rows[key]
            else:
                self.rows[key] = row

    @property
    def held(self) -> list[str]:
        """The sources whose shards stand."""
        return sorted(shard.source for shard in self.state.held)

    @property
    def columns(self) -> list[str]:
        """Names of the target's columns, in no order that means anything."""
        assert self.target is not None
        return sorted(column.name for column in self.target.columns)

    def _execute(self, sql: str) -> None:
        statement = parse(sql, self.context)
        if isinstance(statement, CreateTable):
            assert self.target is None
            self.target = apply_create(statement, self.context)
        else:
            assert isinstance(statement, AlterTable)
            assert self.target is not None
            self.target = apply_alter(self.target, statement, "t", self.context).schema


def sql(decision: Decision) -> list[str]:
    """What a decision emits, without the target's name."""
    return [s.sql.removeprefix("ALTER TABLE `merged`.`t` ") for s in decision.statements]


def in_conflict() -> SqlLine:
    """Shard s1 has made ``a`` a date, s0 has it as an integer."""
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE)
    assert shards.alter("s1", "MODIFY a DATE").outcome is Outcome.HOLD
    return shards
