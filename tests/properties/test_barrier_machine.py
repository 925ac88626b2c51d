"""The offset barrier under random histories: a toy Kafka, a toy target that refuses, the real plan.

The coordinator, the fold, the barrier, the gates, the statements' turns and the plan are the real
ones; what they stand between is a toy. Anything may happen between any two steps of the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from shardmerge.agents import coordinator
from shardmerge.schemas.apply import apply_alter, apply_create
from shardmerge.schemas.changes import AlterTable, CreateTable
from shardmerge.schemas.events import (
    ChangeId,
    CommandKind,
    Decision,
    Lineage,
    OperatorCommand,
    Outcome,
    SchemaChange,
    StatementKind,
    TargetStatement,
)
from shardmerge.schemas.grammar import parse
from shardmerge.schemas.model import Column, TableSchema
from shardmerge.schemas.names import ShardId, TargetTable
from shardmerge.schemas.routing import Mode, RenamePolicy, RoutingRule
from shardmerge.schemas.topics import RowTopics
from shardmerge.spark_sink.decisions import Decisions, Gate, StatementKey
from shardmerge.spark_sink.statements import bindings
from tests.toy_kafka import Change, Ddl, Place, Row, ToyKafka, ToySource
from tests.toy_sink import ToySink
from tests.toy_target import BIG, CONTEXT, FAMILIES, SMALL, ToyTarget, accepts

TARGET = TargetTable("merged", "t")
SHARDS = [
    ShardId("s1", "app", "t_1"),
    ShardId("s1", "app", "t_2"),
    ShardId("s2", "app", "t_1"),
    ShardId("s2", "app", "t_2"),
]
COLUMNS = ["a", "b", "c"]
DEFINITIONS = ["INT", "INT NOT NULL", "INT NOT NULL DEFAULT 5", "BIGINT", "VARCHAR(9)", "DATE"]
VALUES: list[object] = [None, SMALL, BIG, "x", "2020-02-02"]
DRAIN_STEPS = 30_000
STILL_PASSES = 8
"""A sink that did nothing for so many passes of its loop has come to rest."""


class StaleSink(ToySink):
    """Reads watermarks before decisions."""

    stale = True


class BarrierMachine(RuleBasedStateMachine):
    """Two sources, up to four shards of one target, one sink that may die at any step.

    The shards have row topics of their own, or share one.
    """

    sink_class = ToySink
    target_class = ToyTarget
    renames = RenamePolicy.MAP

    @initialize(
        partitions=st.integers(1, 2),
        batch=st.sampled_from([2, 5, 100]),
        mode=st.sampled_from(Mode),
        shared=st.sampled_from(["", "t_.", "t_1"]),
    )
    def start(self, partitions: int, batch: int, mode: Mode, shared: str = "") -> None:
        """``shared``: which tables' rows, of both sources, come in one topic."""
        self.batch = batch
        self.mode = mode
        self.commands = 0
        route = RoutingRule(".*", "app", shared, "merged", "t", row_topic="merged.t")
        self.kafka = ToyKafka(partitions, RowTopics([route] if shared else []))
        self.sources = {name: ToySource(name, self.kafka) for name in ("s1", "s2")}
        self.state = coordinator.initial(TARGET)
        self.tracked: dict[ShardId, TableSchema] = {}
        self.read_to = dict.fromkeys(self.sources, 0)
        self.outbox: list[Decision] = []
        self.ddl: list[Decision | None] = []
        self.target = self.target_class()
        self.number = 0
        self._start_sink()
        for shard in SHARDS[:3]:
            self._create(shard, snapshot=True)

    # --- the sources

    @rule(shard=st.sampled_from(SHARDS), key=st.integers(0, 3), value=st.data())
    def upsert(self, shard: ShardId, key: int, value: st.DataObject) -> None:
        schema = self.sources[shard.source].schemas.get(shard)
        if schema is None:
            return
        image: dict[str, object] = {}
        for column in schema.columns:
            fits = [v for v in VALUES if accepts(column, v)]
            number = SHARDS.index(shard) * 100 + key
            image[column.name] = (
                number if column.name == "id" else value.draw(st.sampled_from(fits))
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
        schema = self.sources[shard.source].schemas.get(shard)
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
        changes = []
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
            if not self._source_accepts(each, schema, result.schema, result.lineage):
                return
            changes.append((each, result.schema, result.lineage))
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
                source = self.sources[shard.source]
                source.settle()
                while self._decide(shard.source):
                    pass
                self.ddl += self.outbox
                self.outbox = []
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
        self.commands += 1
        said = OperatorCommand(
            ChangeId("p.commands", self.commands), TARGET, CommandKind(kind), shard
        )
        if self.state.version:
            step = coordinator.obey(self.state, said)
            assert step.decision is not None
            self.state = step.state
            self.outbox.append(step.decision)

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

    def _decide(self, source: str) -> bool:
        log = self.kafka.logs[Place(source, 0)]
        for offset, event in log.committed(self.read_to[source], log.stable_end):
            assert isinstance(event, Ddl)
            self.read_to[source] = offset + 1
            count = len(event.changes)
            for ordinal, (shard, after, lineage) in enumerate(event.changes):
                change = SchemaChange(
                    ChangeId(source, offset, ordinal, count), TARGET, shard, event.position,
                    self.tracked.get(shard), after, lineage,
                    _actions(self.tracked.get(shard), after, lineage), "",
                    snapshot=event.snapshot, mode=self.mode, renames=self.renames,
                )  # fmt: skip
                step = coordinator.decide(self.state, change)
                assert step.decision is not None
                self.state = step.state
                self.outbox.append(step.decision)
                self._decided(step.decision)
                if after is None:
                    self.tracked.pop(shard, None)
                else:
                    self.tracked[shard] = after
            if not count:
                ignored = ChangeId(source, offset)
                self.ddl.append(Decision(ignored, None, 0, None, event.position, Outcome.IGNORED))
            return True
        return False

    def _decided(self, decision: Decision) -> None:
        """For machines that look at more."""

    @precondition(lambda self: self.outbox)
    @rule()
    def send_a_decision(self) -> None:
        self.ddl.append(self.outbox.pop(0))

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
        for shard in self.state.shards:
            if self.state.shards[shard].paused:
                self.pause_or_resume(shard, "resume")
        for source in self.sources.values():
            source.settle()
        while [source for source in self.sources if self._decide(source)]:
            pass
        self.ddl += self.outbox
        self.outbox = []
        moved = self.sink.passes
        for _ in range(DRAIN_STEPS):
            next(self.steps)
            if self.sink.moved:
                moved = self.sink.passes
            if self.sink.passes - moved > STILL_PASSES:
                break
        assert self.sink.passes - moved > STILL_PASSES, "the sink does not come to rest"
        known = Decisions(self.kafka.topics)
        for decision in self.ddl:
            if decision is not None:
                known.add(decision)
        self._check_statements(known)
        for source in self.sources.values():
            self._check_rows(source, known)
        self._check_cells(known)

    @invariant()
    def rows_are_applied_once_and_in_order(self) -> None:
        if hasattr(self, "target"):
            for place, numbers in self.target.taken.items():
                log = self.kafka.logs[place.whole]
                sent = [r.number for _, r in log.committed(0, self.target.offsets[place])
                        if isinstance(r, Row) and place.shard in (None, r.shard)]  # fmt: skip
                assert numbers == sent

    # --- helpers

    def _start_sink(self) -> None:
        self.sink = self.sink_class(
            self.kafka, self.ddl, self.target, list(self.sources), self.batch
        )
        self.steps: Iterator[None] = self.sink.steps()

    def _create(self, shard: ShardId, *, snapshot: bool = False) -> None:
        statement = parse("CREATE TABLE t (id INT PRIMARY KEY, a INT)", CONTEXT)
        assert isinstance(statement, CreateTable)
        schema = apply_create(statement, CONTEXT)
        self._send_ddl(self.sources[shard.source], [(shard, schema, ())], snapshot=snapshot)

    def _send_ddl(
        self, source: ToySource, changes: Sequence[Change], *, snapshot: bool = False
    ) -> None:
        position = source.snapshot_position if snapshot else source.next_position()
        source.send(Ddl(position, tuple(changes), snapshot))
        for shard, after, lineage in changes:
            if after is None or _gives_up(source.schemas.get(shard), after, lineage):
                first = SHARDS.index(shard) * 100
                self.target.orphans |= set(range(first, first + 100))
            if after is None:
                del source.schemas[shard]
            else:
                if shard not in source.schemas:
                    source.rows[shard] = {}
                source.schemas[shard] = after

    def _write(self, shard: ShardId) -> None:
        schema = self.sources[shard.source].schemas.get(shard)
        if schema is not None:
            image: dict[str, object] = {
                c.name: next(v for v in reversed(VALUES) if accepts(c, v)) for c in schema.columns
            }
            image["id"] = SHARDS.index(shard) * 100
            self._send_row(shard, 0, schema, image)

    def _send_row(
        self, shard: ShardId, key: int, schema: TableSchema, image: dict[str, object] | None
    ) -> None:
        source = self.sources[shard.source]
        self.number += 1
        names = tuple(c.name for c in schema.columns)
        whole = SHARDS.index(shard) * 100 + key
        source.send(Row(self.number, shard, source.next_position(), whole, names, image))
        if image is None:
            del source.rows[shard][key]
        else:
            source.rows[shard][key] = dict(image)

    def _source_accepts(
        self, shard: ShardId, before: TableSchema, after: TableSchema, lineage: Sequence[Lineage]
    ) -> bool:
        """Do to the shard's rows what its server would do; False when it would refuse."""
        rows: dict[int, dict[str, object]] = {}
        for key, old in self.sources[shard.source].rows[shard].items():
            rows[key] = {}
            for came, column in zip(lineage, after.columns, strict=True):
                if came.before not in old:
                    continue
                value = old[came.before]
                if _family(before.column(came.before)) == _family(column):
                    if not accepts(column, value):
                        return False
                    rows[key][column.name] = value
        self.sources[shard.source].rows[shard] = rows
        return True

    def _check_passed_over(self, row: Row, known: Decisions) -> None:
        """Its shard was held before it, and dropped after it while it still was."""
        gates = known.targets[TARGET].shards[row.shard].gates
        held = [g for g in gates if g.outcome is Outcome.HOLD and g.position <= row.position]
        ends = {g.version for g in gates if not g.live and g.position > row.position}
        assert held[-1].released_by in ends

    def _check_statements(self, known: Decisions) -> None:
        statements = known.targets[TARGET].statements if TARGET in known.targets else {}
        left = [key for key in statements if key not in self.target.executed]
        if not self.sink.stuck:
            assert not left, [statements[key] for key in left]
        else:
            # Debts may wait for a shard that stands for good, and others for those debts.
            for key in left:
                expanding = statements[key].kind is StatementKind.EXPANDING
                assert not expanding or _waits(key, left, statements)

    def _check_rows(self, source: ToySource, known: Decisions) -> None:
        for shard in SHARDS:
            gates = known.targets[TARGET].shards.get(shard) if TARGET in known.targets else None
            if shard.source != source.name or gates is None or shard in self.sink.stuck:
                continue
            held = next((g.position for g in gates.gates if g.effective_version is None), None)
            rows = [e for e in source.sent if isinstance(e, Row) and e.shard == shard]
            wanted = {r.number for r in rows if held is None or r.position < held}
            taken = {n for numbers in self.target.taken.values() for n in numbers}
            got = {r.number for r in rows} & taken
            if self.sink.stuck:
                assert got <= wanted
            else:
                assert got == wanted

    def _check_cells(self, known: Decisions) -> None:
        """The target holds what the last applied event of each key wrote."""
        if TARGET not in known.targets:
            return
        taken = {n for numbers in self.target.taken.values() for n in numbers}
        bound = bindings(known.targets[TARGET], self.target.executed)
        last: dict[int, Row] = {}
        for source in self.sources.values():
            for event in source.sent:
                if not isinstance(event, Row) or event.number not in taken:
                    continue
                if event.number in self.target.passed_over:
                    self._check_passed_over(event, known)
                else:
                    last[event.key] = event
        assert set(self.target.cells) == {key for key, row in last.items() if row.image is not None}
        for key, row in last.items():
            gate = _gate_of(known, row)
            for shard_column in gate.columns if row.image is not None else ():
                assert row.image is not None
                binding = bound.get(shard_column.id)
                if binding is None or binding.name in self.target.converted:
                    continue
                if _dropped_behind_the_hold(known, row.shard, gate, shard_column.id):
                    continue
                if key in self.target.orphans and binding.name not in self.target.cells[key]:
                    continue
                found = self.target.cells[key].get(binding.name, "no value")
                assert found == row.image[shard_column.column.name]


def _gate_of(known: Decisions, row: Row) -> Gate:
    gates = known.targets[TARGET].shards[row.shard].gates
    return [g for g in gates if g.position <= row.position][-1]


def _dropped_behind_the_hold(known: Decisions, shard: ShardId, gate: Gate, column: str) -> bool:
    """Whether the shard gave the column up before its hold was ended: its value goes too.

    So it does where the shard has the column again, or converted it.
    """
    if gate.released_by is None:
        return False
    gates = known.targets[TARGET].shards[shard].gates
    later = [g for g in gates if gate.version < g.version <= gate.released_by]
    return any(column in g.renewed or column not in {c.id for c in g.columns} for g in later)


def _gives_up(before: TableSchema | None, after: TableSchema, lineage: Sequence[Lineage]) -> bool:
    """Whether values of the shard's rows are given up without a row event that tells."""
    if before is None:
        return False
    came = {entry.before: after.column(entry.name) for entry in lineage}
    return any(c.name not in came or _family(came[c.name]) != _family(c) for c in before.columns)


def _actions(
    before: TableSchema | None, after: TableSchema | None, lineage: Sequence[Lineage]
) -> tuple[str, ...]:
    """What a change does, as texts that are equal for the same change."""
    if before is None or after is None:
        return ()
    found = [f"DROP {c.name}" for c in before.columns if c.name not in {x.before for x in lineage}]
    for came, column in zip(lineage, after.columns, strict=True):
        if before.column(came.before) != column:
            found.append(f"{came.before} TO {column}")
    return tuple(found)


def _family(column: Column | None) -> str:
    return FAMILIES[column.type.name] if column else ""


def _waits(
    key: StatementKey,
    left: Sequence[StatementKey],
    statements: Mapping[StatementKey, TargetStatement],
) -> bool:
    """Whether an earlier open statement has a subject in common with this one."""
    mine = set(statements[key].subjects)
    for other in left:
        theirs = set(statements[other].subjects)
        if other < key and (mine & theirs or "table" in mine | theirs):
            return True
    return False


TestBarrier = BarrierMachine.TestCase
TestBarrier.settings = settings(
    max_examples=max(40, settings().max_examples // 3),
    stateful_step_count=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


class StaleBarrierMachine(BarrierMachine):
    """The same with watermarks that are older than the decisions."""

    sink_class = StaleSink


TestStaleBarrier = StaleBarrierMachine.TestCase
TestStaleBarrier.settings = TestBarrier.settings
