"""The rules by which the coordinator's world moves: DDL, commands, routes, replays, restarts."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from shardmerge.agents.coordination import coordinator
from shardmerge.agents.handling.store import TargetStates
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.origin import Origin
from shardmerge.schemas.model.policies import (
    ExistingRows,
    Keyless,
    Mode,
    RenamePolicy,
    RowsPolicy,
    TypePolicy,
)
from shardmerge.schemas.records.decisions import Outcome
from shardmerge.schemas.records.operator_commands import CommandKind
from tests.properties.coordinator_checks import CoordinatorChecks
from tests.properties.coordinator_world import (
    ADDED_KEYS,
    COLUMNS,
    DEFINITIONS,
    LATER_KEYS,
    NEW_KEY,
    ORIGIN_NAME,
    ORIGINS,
    SHARDS,
    TARGET,
)


class CoordinatorMachine(CoordinatorChecks):
    """Schema changes and commands in any order, in both modes and with every policy."""

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
    @rule(data=st.data(), definition=st.sampled_from(DEFINITIONS), column=st.sampled_from(COLUMNS))
    def alter_by_statements_that_cannot_be_read(
        self, data: st.DataObject, definition: str, column: str
    ) -> None:
        """Until the shard's schema is told; what it waits with then is known."""
        shard = data.draw(st.sampled_from(sorted(self.schemas)))
        for _ in range(data.draw(st.integers(1, 2))):
            self._send(shard, None, (), error="cannot be read")
        lacks = self.schemas[shard].column(column) is None
        action = f"ADD COLUMN {column} {definition}" if lacks else f"DROP COLUMN {column}"
        if lacks or self.schemas[shard].index(f"k{column}") is None:
            self.schemas[shard] = self._altered(shard, action).schema
        self._say(CommandKind.SET_SCHEMA, shard, "", self.schemas[shard])
        hold = self.state.shards[shard].hold
        assert hold is None or all(pending.post is not None for pending in hold.queue)

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
                "renames=",
                "keyless=",
                "types=",
                "existing_rows=",
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
