"""What holds of the coordinator's state and decisions after every step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis.stateful import invariant
from immutables import Map

from shardmerge.agents.coordination import coordinator
from shardmerge.agents.coordination.identities import known_names
from shardmerge.agents.coordination.state.state_rows import changed_rows
from shardmerge.agents.coordination.state.target_state import assembled
from shardmerge.schemas.lattice.join import compare_tables
from shardmerge.schemas.lattice.joined import ShardSchema
from shardmerge.schemas.lattice.type_join import WIDE, joined_type
from shardmerge.schemas.model.policies import SETTABLE, Keyless
from shardmerge.schemas.records.schema_changes import SchemaChange
from tests.properties.coordinator_world import (
    NEW_KEY,
    ORIGIN_NAME,
    TARGET,
    CoordinatorWorld,
    key_of,
)


class CoordinatorChecks(CoordinatorWorld):
    """The world, looked at between any two steps."""

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
    def the_policies_are_those_that_operators_set_and_the_last_routes(self) -> None:
        changes = [came for came in self.log if isinstance(came, SchemaChange)]
        route = changes[-1].policies if changes else self.state.policies
        said: dict[str, Any] = {
            name: kind(self.state.set_policies[name])
            for name, kind in SETTABLE.items()
            if name in self.state.set_policies
        }
        if self.state.mode_is_set:
            said["mode"] = self.state.policies.mode
        counts = replace(route, origin=self.state.policies.origin, **said)
        assert self.state.policies == counts

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
        if any(NEW_KEY in key_of(schema) for schema in self.schemas.values()):
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
            assert key_ids(own) == key_ids(counts)
            assert shard.left_out.isdisjoint(key_ids(own) or counts.ids)
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


def key_ids(shard: ShardSchema) -> list[str]:
    return [shard.by_name[name.lower()] for name in key_of(shard.schema)]
