"""The rules by which the offset barrier's world moves: anything, between any two steps."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from shardmerge.schemas.ddl.apply.statements import apply_alter
from shardmerge.schemas.ddl.changes import AlterTable
from shardmerge.schemas.ddl.grammar import parse
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.policies import Mode
from shardmerge.schemas.records.decisions import Outcome
from shardmerge.schemas.records.operator_commands import CommandKind
from shardmerge.spark_sink.barrier.decisions import Decisions
from tests.properties.barrier_checks import check_cells, check_rows, check_statements
from tests.properties.barrier_world import (
    COLUMNS,
    DEFINITIONS,
    SHARDS,
    VALUES,
    BarrierWorld,
    number_of,
)
from tests.toy_kafka import Row
from tests.toy_target import CONTEXT, accepts

SETTINGS = settings(
    max_examples=max(40, settings().max_examples // 3),
    stateful_step_count=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
DRAIN_STEPS = 30_000
STILL_PASSES = 8
"""A sink that did nothing for so many passes of its loop has come to rest."""


class BarrierMachine(BarrierWorld):
    """Rows, schema changes, commands, transactions; agents and a sink that may die at any step."""

    @initialize(
        partitions=st.integers(1, 2),
        batch=st.sampled_from([2, 5, 100]),
        mode=st.sampled_from(Mode),
        shared=st.sampled_from(["", "t_.", "t_1"]),
    )
    def start(self, partitions: int, batch: int, mode: Mode, shared: str = "") -> None:
        self.begin(partitions, batch, mode, shared=shared)

    # --- the sources

    @rule(shard=st.sampled_from(SHARDS), key=st.integers(0, 3), value=st.data())
    def upsert(self, shard: ShardId, key: int, value: st.DataObject) -> None:
        schema = self.schema_of(shard)
        if schema is None:
            return
        image: dict[str, object] = {}
        for column in schema.columns:
            fits = [v for v in VALUES if accepts(column, v)]
            image[column.name] = (
                number_of(shard, key) if column.name == "id" else value.draw(st.sampled_from(fits))
            )
        self._send_row(shard, key, schema, image)

    @rule(shard=st.sampled_from(SHARDS), column=st.sampled_from(COLUMNS), steps=st.integers(0, 30))
    def write_right_after_a_change(self, shard: ShardId, column: str, steps: int) -> None:
        """In one transaction, whose marker reaches the row before the change."""
        source = self.sources[shard.source]
        if shard not in source.schemas:
            return
        source.commit()
        source.finish()
        self.alter(shard, column, "INT", column, "DROP", both=False)
        self._write(shard)
        source.commit()
        source.land_marker(which=-1)
        self.run_the_sink(steps)

    @rule(shard=st.sampled_from(SHARDS), key=st.integers(0, 3))
    def delete(self, shard: ShardId, key: int) -> None:
        schema = self.schema_of(shard)
        if schema is not None and key in self.sources[shard.source].rows[shard]:
            self._send_row(shard, key, schema, None)

    @rule(
        shard=st.sampled_from(SHARDS),
        column=st.sampled_from(COLUMNS),
        definition=st.sampled_from(DEFINITIONS),
        other=st.sampled_from(COLUMNS),
        verb=st.sampled_from(["DROP", "DROP", "MODIFY", "RENAME"]),
        both=st.booleans(),
    )
    def alter(  # noqa: PLR0917 - a rule's arguments are drawn
        self, shard: ShardId, column: str, definition: str, other: str, verb: str, both: bool
    ) -> None:
        """One statement, on one shard or, as one event, on all of the source's shards."""
        source = self.sources[shard.source]
        shards = [s for s in source.schemas if s == shard or both]
        if shard not in source.schemas:
            return
        changes, rows = [], {}
        for each in shards:
            schema = source.schemas[each]
            if schema.column(column) is None:
                action = f"ADD COLUMN {column} {definition}"
            elif verb == "DROP":
                action = f"DROP COLUMN {column}"
            elif verb == "MODIFY":
                action = f"MODIFY COLUMN {column} {definition}"
            elif schema.column(other) is None:
                action = f"RENAME COLUMN {column} TO {other}"
            else:
                return
            statement = parse(f"ALTER TABLE t {action}", CONTEXT)
            assert isinstance(statement, AlterTable)
            result = apply_alter(schema, statement, each.table, CONTEXT)
            altered = self._altered_rows(each, schema, result)
            if altered is None:
                return
            rows[each] = altered
            changes.append((each, result.schema, result.lineage))
        source.rows |= rows
        self._send_ddl(source, changes)

    @rule(
        order=st.permutations(SHARDS),
        columns=st.permutations(COLUMNS),
        definition=st.sampled_from(DEFINITIONS),
        steps=st.integers(0, 30),
    )
    def roll_out(
        self, order: list[ShardId], columns: list[str], definition: str, steps: int
    ) -> None:
        """Two changes shard by shard, each with a row behind it; the sink runs meanwhile."""
        for shard in order:
            for column in columns[:2]:
                self.alter(shard, column, definition, column, "DROP", both=False)
                self._write(shard)
                self.sources[shard.source].settle()
                self._decide_all(shard.source)
                self.run_the_sink(steps)

    @rule(shard=st.sampled_from(SHARDS[2:]))
    def create_or_drop(self, shard: ShardId) -> None:
        source = self.sources[shard.source]
        if shard in source.schemas:
            self._send_ddl(source, [(shard, None, ())])
        else:
            self._create(shard)

    @rule(shard=st.sampled_from(SHARDS), kind=st.sampled_from(["pause", "resume"]))
    def pause_or_resume(self, shard: ShardId, kind: str) -> None:
        self._command(CommandKind(kind), shard)

    @rule(
        shard=st.sampled_from(SHARDS),
        kind=st.sampled_from(["skip", "replace", "unlock-execute", "unlock-discard", "leave"]),
        column=st.sampled_from(COLUMNS),
        definition=st.sampled_from(["", *DEFINITIONS]),
    )
    def speak_about_a_held_shard(
        self, shard: ShardId, kind: str, column: str, definition: str
    ) -> None:
        if shard in self.state.held:
            action = f"ADD COLUMN {column} {definition}" if definition else f"DROP COLUMN {column}"
            argument = f"ALTER TABLE t {action}" if kind == "replace" else ""
            self._command(CommandKind(kind), shard, argument)

    @rule(
        shard=st.sampled_from(SHARDS),
        column=st.sampled_from(COLUMNS),
        definition=st.sampled_from(DEFINITIONS),
        verb=st.sampled_from(["DROP", "MODIFY"]),
        kind=st.sampled_from(["skip", "replace", "leave"]),
        other=st.sampled_from(["", *DEFINITIONS]),
        arrives=st.booleans(),
    )
    def hold_a_shard_and_speak_about_it(  # noqa: PLR0917 - a rule's arguments are drawn
        self,
        shard: ShardId,
        column: str,
        definition: str,
        verb: str,
        kind: str,
        other: str,
        arrives: bool,
    ) -> None:
        """A change, rows of before and behind it, and what an operator says if it is held."""
        self._write(shard)
        self.alter(shard, column, definition, column, verb, both=False)
        self._write(shard)
        self.sources[shard.source].settle()
        self._decide_all(shard.source)
        self.speak_about_a_held_shard(shard, kind, column, other)
        self._write(shard)
        if arrives:
            self.let_everything_arrive()

    @rule(leaves=st.booleans())
    def leave_every_conflict_by_commands(self, leaves: bool) -> None:
        """Skipping ends it, or taking the shard out; then all rows arrive."""
        self._let_the_sources_settle()
        for _ in range(30 * len(SHARDS)):
            if not (held := sorted(self.state.held)):
                break
            if leaves or self._command(CommandKind.SKIP, held[0]) is Outcome.REFUSED:
                self._command(CommandKind.LEAVE, held[0])
        assert not self.state.held
        self.let_everything_arrive()

    @rule(source=st.sampled_from(["s1", "s2"]))
    def change_what_concerns_nobody(self, source: str) -> None:
        self._send_ddl(self.sources[source], [])

    @rule(source=st.sampled_from(["s1", "s2"]), abort=st.sampled_from([False, False, True]))
    def end_the_transaction(self, source: str, abort: bool) -> None:
        self.sources[source].commit(abort=abort)

    @rule(source=st.sampled_from(["s1", "s2"]), which=st.integers(0, 3))
    def land_a_marker(self, source: str, which: int) -> None:
        self.sources[source].land_marker(which)

    # --- the agents

    @rule(source=st.sampled_from(["s1", "s2"]))
    def decide(self, source: str) -> None:
        self._decide(source)

    @precondition(lambda self: self.outbox)
    @rule()
    def send_a_decision(self) -> None:
        self._send_a_decision()

    @precondition(lambda self: self.ddl)
    @rule(which=st.integers(0, 50), compacted=st.booleans())
    def send_a_decision_again(self, which: int, compacted: bool) -> None:
        which %= len(self.ddl)
        self.ddl.append(self.ddl[which])
        if compacted:
            self.ddl[which] = None

    # --- the sink

    @rule(steps=st.integers(1, 12))
    def run_the_sink(self, steps: int) -> None:
        for _ in range(steps):
            next(self.steps)

    @rule()
    def kill_the_sink(self) -> None:
        self._start_sink()

    @rule()
    def let_everything_arrive(self) -> None:
        """No standstill: nothing is left but what stands behind a hold."""
        self._let_the_sources_settle()
        for shard in self.state.shards:
            if self.state.shards[shard].paused:
                self.pause_or_resume(shard, "resume")
        if not self.state.propagates:
            self._command(CommandKind.ENABLE, None)
        self._let_the_sources_settle()
        self._let_the_sink_rest()
        known = self.known()
        check_statements(self, known)
        check_rows(self, known)
        self._check_cells(known)

    @invariant()
    def rows_are_applied_once_and_in_order(self) -> None:
        if hasattr(self, "target"):
            for place, numbers in self.target.taken.items():
                log = self.kafka.logs[place.whole]
                sent = [r.number for _, r in log.committed(0, self.target.offsets[place])
                        if isinstance(r, Row) and place.shard in (None, r.shard)]  # fmt: skip
                assert list(numbers.values()) == sent

    @invariant()
    def the_shards_that_may_not_pass_are_found_without_looking_at_all(self) -> None:
        if hasattr(self, "sink"):
            for target in self.sink.decisions.targets.values():
                for frontier in range(1, target.version + 2):
                    found = target.stopped_at(frontier)
                    shards = target.shards.items()
                    assert sorted(found) == sorted(
                        n for n, gates in shards if gates.first_blocked(frontier) < len(gates.gates)
                    )

    def _let_the_sources_settle(self) -> None:
        for source in self.sources.values():
            source.settle()
        self._decide_all()
        for source in self.sources.values():
            source.settle()

    def _let_the_sink_rest(self) -> None:
        moved = self.sink.passes
        for _ in range(DRAIN_STEPS):
            next(self.steps)
            if self.sink.moved:
                moved = self.sink.passes
            if self.sink.passes - moved > STILL_PASSES:
                break
        assert self.sink.passes - moved > STILL_PASSES, "the sink does not come to rest"

    def _check_cells(self, known: Decisions) -> None:
        check_cells(self, known)
