"""The coordinator under random schema changes of random shards, replays and restarts.

In both modes and with every policy of renames, and with these changing in between.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from immutables import Map

from shardmerge.agents.coordination import coordinator
from shardmerge.agents.coordination.decision_records import Step
from shardmerge.agents.coordination.identities import known_names
from shardmerge.agents.coordination.state.state_rows import changed_rows
from shardmerge.agents.coordination.state.target_state import TargetState, assembled
from shardmerge.agents.handling.store import TargetStates
from shardmerge.schemas.ddl.apply.statements import apply_alter, apply_create
from shardmerge.schemas.ddl.changes import AlterTable, CreateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.lattice.join import compare_tables
from shardmerge.schemas.lattice.joined import ShardSchema
from shardmerge.schemas.lattice.type_join import WIDE, joined_type
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


class CoordinatorMachine(RuleBasedStateMachine):
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

    @initialize(
        mode=st.sampled_from(Mode),
        renames=st.sampled_from(RenamePolicy),
        origin=st.sampled_from(ORIGINS),
    )
    def start(self, mode: Mode, renames: RenamePolicy, origin: Origin) -> None:
        self.mode, self.renames, self.origin = mode, renames, origin
        for shard in SHARDS[:2]:
            self._create(shard)

    @rule(
        mode=st.sampled_from(Mode),
        renames=st.sampled_from(RenamePolicy),
        origin=st.sampled_from(ORIGINS),
        on_drop=st.sampled_from(RowsPolicy),
        existing_rows=st.sampled_from(ExistingRows),
    )
    def change_the_route(
        self,
        mode: Mode,
        renames: RenamePolicy,
        origin: Origin,
        on_drop: RowsPolicy,
        existing_rows: ExistingRows,
    ) -> None:
        self.mode, self.renames = mode, renames
        self.origin, self.on_drop, self.existing_rows = origin, on_drop, existing_rows

    @precondition(lambda self: self.schemas)
    @rule(shard=st.sampled_from(SHARDS))
    def take_the_name_of_an_origin_column(self, shard: ShardId) -> None:
        if shard in self.schemas and self.schemas[shard].column(ORIGIN_NAME) is None:
            self._alter(shard, f"ADD COLUMN {ORIGIN_NAME} INT")

    @rule(keyless=st.sampled_from(Keyless))
    def change_what_the_route_says_of_tables_without_a_key(self, keyless: Keyless) -> None:
        self.keyless = keyless

    @rule(types=st.sampled_from(TypePolicy))
    def change_what_the_route_says_of_types(self, types: TypePolicy) -> None:
        self.types = types

    @precondition(lambda self: self.schemas)
    @rule(shard=st.sampled_from(SHARDS))
    def drop_or_add_the_primary_key(self, shard: ShardId) -> None:
        if shard in self.schemas:
            has_key = self.schemas[shard].primary_key is not None
            self._alter(shard, "DROP PRIMARY KEY" if has_key else "ADD PRIMARY KEY (id)")

    @precondition(lambda self: len(self.schemas) + len(self.taken_out) < len(SHARDS))
    @rule()
    def create_shard(self) -> None:
        known = {*self.schemas, *self.taken_out}
        self._create(next(s for s in SHARDS if s not in known))

    @precondition(lambda self: len(self.schemas) > 1)
    @rule(data=st.data())
    def drop_shard(self, data: st.DataObject) -> None:
        shard = data.draw(st.sampled_from(sorted(self.schemas)))
        self._send(shard, None, ())
        del self.schemas[shard]

    @precondition(lambda self: self.schemas)
    @rule(data=st.data(), definition=st.sampled_from(DEFINITIONS), other=st.sampled_from(COLUMNS))
    def alter(self, data: st.DataObject, definition: str, other: str) -> None:
        shard = data.draw(st.sampled_from(sorted(self.schemas)))
        column = data.draw(st.sampled_from(COLUMNS))
        schema = self.schemas[shard]
        if schema.column(column) is None:
            action = f"ADD COLUMN {column} {definition}"
        else:
            actions = [f"DROP COLUMN {column}", f"MODIFY COLUMN {column} {definition}"]
            key = f"k{column}"
            actions.append(f"DROP KEY {key}" if schema.index(key) else f"ADD KEY {key} ({column})")
            if schema.column(other) is None:
                actions.append(f"RENAME COLUMN {column} TO {other}")
            action = data.draw(st.sampled_from(actions))
        self._alter(shard, action)

    @precondition(lambda self: self.schemas)
    @rule(data=st.data(), every=st.booleans())
    def change_the_key(self, data: st.DataObject, every: bool) -> None:
        """Of one shard, or of all of them alike, which a conflict of keys ends with."""
        shards = sorted(s for s, schema in self.schemas.items() if schema.primary_key)
        if not shards:
            return
        first = data.draw(st.sampled_from(shards))
        there = self.schemas[first].column(NEW_KEY) is not None
        action = data.draw(st.sampled_from(LATER_KEYS if there else ADDED_KEYS))
        for shard in shards if every else [first]:
            if (self.schemas[shard].column(NEW_KEY) is not None) == there:
                self._alter(shard, action if there else f"ADD COLUMN {NEW_KEY} {action}")

    def _alter(self, shard: ShardId, action: str) -> None:
        schema = self.schemas[shard]
        statement = parse(f"ALTER TABLE t {action}", CONTEXT)
        assert isinstance(statement, AlterTable)
        result = apply_alter(schema, statement, shard.table, CONTEXT)
        self._send(shard, result.schema, result.lineage, tuple(result.actions))
        self.schemas[shard] = result.schema

    @precondition(lambda self: self.schemas)
    @rule(order=st.permutations(SHARDS), columns=st.permutations(COLUMNS))
    def leave_every_conflict(self, order: list[ShardId], columns: list[str]) -> None:
        """No state is a dead end: ordinary statements that make the shards alike end it."""
        for shard in order:
            if shard in self.schemas and self.schemas[shard].primary_key is None:
                self._alter(shard, "ADD PRIMARY KEY (id)")
            if shard in self.schemas and self.schemas[shard].column(NEW_KEY) is not None:
                self._alter(shard, LATER_KEYS[-1])
            for column in (*columns, ORIGIN_NAME):
                if shard in self.schemas and self.schemas[shard].column(column) is not None:
                    self._alter(shard, f"DROP COLUMN {column}")
        if self.state.policies.mode is Mode.PESSIMISTIC and self.state.skipping:
            return  # a shard whose change was skipped does not make it: the others wait for it
        assert not [s for s in self.schemas if s in self.state.held]

    @precondition(lambda self: self.schemas)
    @rule(
        kind=st.sampled_from([k for k in CommandKind if k is not CommandKind.SET_SCHEMA]),
        shard=st.sampled_from(SHARDS),
        argument=st.sampled_from(
            [
                "",
                "renames=hold",
                "renames=copy",
                "renames=map",
                "keyless=refuse",
                "keyless=count",
                "types=wide",
                "types=published",
                "existing_rows=accept",
                "existing_rows=reread",
                *Mode,
                *(f"ALTER TABLE t ADD {c} INT" for c in COLUMNS),
            ]
        ),
    )
    def command(self, kind: CommandKind, shard: ShardId, argument: str) -> None:
        of_target = (
            CommandKind.DISABLE,
            CommandKind.ENABLE,
            CommandKind.SET_MODE,
            CommandKind.SET_POLICY,
        )
        self._say(kind, None if kind in of_target else shard, argument)
        if self.decisions[-1].leaves:
            self.taken_out[shard] = self.schemas.pop(shard)

    @precondition(lambda self: self.taken_out)
    @rule(definition=st.sampled_from(DEFINITIONS))
    def change_a_shard_that_was_taken_out(self, definition: str) -> None:
        shard, schema = self.taken_out.popitem()
        self.schemas[shard] = schema
        free = next((c for c in COLUMNS if schema.column(c) is None), None)
        self._alter(shard, f"ADD COLUMN {free} {definition}" if free else "COMMENT = 'x'")

    @precondition(lambda self: self.schemas)
    @rule()
    def leave_every_conflict_by_commands(self) -> None:
        """A held shard goes on when its changes are skipped; where that is refused, without it."""
        for _ in range(30 * len(SHARDS)):
            if not (held := sorted(self.state.held)):
                break
            self._say(CommandKind.SKIP, held[0], "")
            if self.decisions[-1].outcome is Outcome.REFUSED:
                self._say(CommandKind.LEAVE, held[0], "")
                self.taken_out[held[0]] = self.schemas.pop(held[0])
        assert not self.state.held

    @precondition(lambda self: self.log)
    @rule(data=st.data())
    def replay(self, data: st.DataObject) -> None:
        for change in self.log[data.draw(st.integers(0, len(self.log) - 1)) :]:
            step = self._step(self.state, change)
            assert step.decision is None
            assert step.state == self.state

    @rule()
    def restart(self) -> None:
        self.states = TargetStates()
        again = self.states.get(self.rows, TARGET)
        assert again == self.state
        self.state = again

    @rule()
    def fold_the_whole_log_again(self) -> None:
        state = coordinator.initial(TARGET)
        again = []
        for change in self.log:
            step = self._step(state, change)
            assert step.decision is not None
            state = step.state
            again.append(step.decision)
        assert again == self.decisions
        assert state == self.state

    @invariant()
    def what_is_kept_of_the_shards_is_what_they_are(self) -> None:
        state = self.state
        anew = assembled(replace(state, shards=Map()), state.shards.values())
        names = known_names(state)
        assert set(state.held) == set(anew.held)
        assert state.pool.counts() == anew.pool.counts()
        assert (state.heads, state.finals) == (anew.heads, anew.finals)
        assert state.standing == anew.standing
        assert state.skipping == anew.skipping
        assert state.anew == anew.anew
        for kept, made in ((state.effective, anew.effective), (state.final, anew.final)):
            assert set(kept.ids) == set(made.ids)
            assert kept.shards == made.shards
            assert not kept.shards or kept.join(names) == made.join(names)

    @invariant()
    def the_rows_are_those_of_the_state_and_no_others(self) -> None:
        everything = changed_rows(
            coordinator.initial(TARGET), self.state, self.state.shards, self.state.seen
        )
        assert self.rows == everything

    @invariant()
    def the_target_accepts_every_effective_schema(self) -> None:
        for shard in self.state.shards.values():
            if shard.effective is None or self.state.schema is None or not self.state.propagates:
                continue
            names = {c.id: c.column.name for c in self.state.columns}
            for column_id, column in zip(
                shard.effective.ids, shard.effective.schema.columns, strict=True
            ):
                # A computed column that another shard lacks is left out.
                assert column_id in names or column.generated, column.name

    @invariant()
    def executing_every_statement_gives_the_decided_schema(self) -> None:
        assert (self.target is None) == (self.state.schema is None)
        if self.target is not None and self.state.schema is not None:
            assert compare_tables(self.target, self.state.schema).is_equal
            assert {c.name for c in self.target.columns} == {
                c.name for c in self.state.schema.columns
            }

    @invariant()
    def nobody_is_held_when_all_final_schemas_are_equal(self) -> None:
        finals = [s.final for s in self.state.shards.values()]
        if self.state.policies.origin.columns and any(
            s.column(ORIGIN_NAME) for s in self.schemas.values()
        ):
            return  # no join has that name twice
        keyless = [f for f in finals if f and f.schema.primary_key is None]
        if self.state.policies.keyless is Keyless.REFUSE and keyless:
            return  # the target gets no rows without a key
        if self.state.policies.origin.position and any(
            s.primary_key is None for s in self.schemas.values()
        ):
            return  # what rows had a key before have no place to be told apart by
        if any(NEW_KEY in _key_of(schema) for schema in self.schemas.values()):
            return  # what the rows have in it may be unknown to the target
        if (
            all(finals)
            and len({f.schema for f in finals if f}) == 1
            and len({f.ids for f in finals if f}) == 1
        ):
            assert not [s for s in self.state.shards.values() if s.hold]

    @invariant()
    def the_rows_of_a_shard_are_rows_of_the_schema_with_which_it_counts(self) -> None:
        for shard in self.state.shards.values():
            own, counts = shard.actual, shard.effective
            if own is None or counts is None:
                continue
            assert _key_ids(own) == _key_ids(counts)
            assert shard.left_out.isdisjoint(_key_ids(own) or counts.ids)
            mine = {c.id: c.column for c in own.columns if c.id not in shard.left_out}
            for item in counts.columns:
                if item.id not in mine:
                    assert not item.column.is_required, item
                    continue
                joined = joined_type((mine[item.id].type, item.column.type), WIDE)
                assert not isinstance(joined, str)
                assert joined.name == item.column.type.name
                assert item.column.nullable or not mine[item.id].nullable

    @invariant()
    def a_hold_says_what_ends_it(self) -> None:
        for shard in self.state.shards.values():
            if shard.hold:
                assert shard.hold.reason
                assert shard.hold.hint

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
            self.schemas.get(shard), after, lineage, actions, "", policies=policies,
        )  # fmt: skip
        self._take(change)

    def _say(self, kind: CommandKind, shard: ShardId | None, argument: str) -> None:
        change_id = ChangeId("p.commands", len(self.log) + 1)
        self._take(OperatorCommand(change_id, TARGET, kind, shard, argument))

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
        if NEW_KEY in _key_of(state.schema):
            assert OLD_KEY in _key_of(state.schema)
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


def _key_of(schema: TableSchema) -> tuple[str, ...]:
    return schema.primary_key.columns if schema.primary_key else ()


def _key_ids(shard: ShardSchema) -> list[str]:
    return [shard.by_name[name.lower()] for name in _key_of(shard.schema)]


TestCoordinator = CoordinatorMachine.TestCase
# One history is worth many examples of a law.
TestCoordinator.settings = settings(
    max_examples=max(20, settings().max_examples // 6), stateful_step_count=25
)
