"""A small world for the offset barrier: sources, a coordinator, a sink, and what befalls them.

The coordinator, the fold, the barrier, the gates, the statements' turns and the plan are the real
ones; what they stand between is a toy. ``barrier_machine`` plays in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from hypothesis.stateful import RuleBasedStateMachine

from shardmerge.agents.coordination import coordinator
from shardmerge.schemas.ddl.apply.statements import AlterResult, apply_create
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.grammar import parse
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.origin import NO_ORIGIN, Origin
from shardmerge.schemas.model.policies import (
    EARLIEST_POLICIES,
    ExistingRows,
    Mode,
    RenamePolicy,
    RowsPolicy,
)
from shardmerge.schemas.model.shard_columns import Lineage
from shardmerge.schemas.model.tables import Column, TableSchema
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.topics import RowTopics
from shardmerge.schemas.records.decisions import Decision, FixupKind, Outcome
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand
from shardmerge.schemas.records.schema_changes import ChangeId, SchemaChange
from shardmerge.spark_sink.barrier.decisions import Decisions
from shardmerge.spark_sink.barrier.restarts import undone_upto
from shardmerge.spark_sink.rows.folding.segment_locator import is_behind
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
Rows = dict[int, dict[str, object]]
"""The rows of a shard by key."""


class BarrierWorld(RuleBasedStateMachine):
    """Two sources, up to four shards of one target, one sink: what can happen, without rules."""

    sink_class = ToySink
    source_class = ToySource
    target_class = ToyTarget
    renames = RenamePolicy.MAP
    origin: Origin = NO_ORIGIN
    on_drop = RowsPolicy.KEEP
    existing_rows = ExistingRows.REREAD
    routes: Sequence[RoutingRule] = ()

    def begin(
        self, partitions: int, batch: int, mode: Mode, shards: int = 3, shared: str = ""
    ) -> None:
        """A world with some shards that a snapshot described.

        ``shared``: which tables' rows, of both sources, come in one topic.
        """
        route = RoutingRule(".*", "app", shared, "merged", "t", row_topic="merged.t")
        self.batch = batch
        self.mode = mode
        self.commands = 0
        self.kafka = ToyKafka(partitions, RowTopics([route] if shared else []))
        self.sources = {name: self.source_class(name, self.kafka) for name in ("s1", "s2")}
        self.state = coordinator.initial(TARGET)
        self.tracked: dict[ShardId, TableSchema] = {}
        self.read_to = dict.fromkeys(self.sources, 0)
        self.outbox: list[Decision] = []
        self.ddl: list[Decision | None] = []
        self.target = self.target_class()
        self.number = 0
        self._start_sink()
        for shard in SHARDS[:shards]:
            self._create(shard, snapshot=True)

    def schema_of(self, shard: ShardId) -> TableSchema | None:
        """What its server has now; None when there is no such table."""
        return self.sources[shard.source].schemas.get(shard)

    def was_taken_back(self, row: Row, known: Decisions) -> bool:
        """Whether an interrupted snapshot brought the row, and it went for that."""
        gates = known.targets[TARGET].shards[row.shard]
        upto = undone_upto(gates, self.target.executed)
        if not upto:
            return False
        gate = gates.gates[upto]
        return not is_behind(cast(Any, row), row.position, gate.position, gate.began_ms)

    def known(self) -> Decisions:
        """Everything on the ddl topic."""
        known = Decisions(self.kafka.topics)
        for decision in self.ddl:
            if decision is not None:
                known.add(decision)
        return known

    # --- the sources

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
                self.target.orphans |= numbers_of(shard)
            if after is None:
                del source.schemas[shard]
            else:
                if shard not in source.schemas:
                    source.rows[shard] = {}
                source.schemas[shard] = after

    def _write(self, shard: ShardId) -> None:
        schema = self.schema_of(shard)
        if schema is not None:
            image: dict[str, object] = {
                c.name: next(v for v in reversed(VALUES) if accepts(c, v)) for c in schema.columns
            }
            image["id"] = number_of(shard, 0)
            self._send_row(shard, 0, schema, image)

    def _send_row(
        self, shard: ShardId, key: int, schema: TableSchema, image: dict[str, object] | None
    ) -> None:
        source = self.sources[shard.source]
        self.number += 1
        names = tuple(c.name for c in schema.columns)
        whole = number_of(shard, key)
        source.send(Row(self.number, shard, source.next_position(), whole, names, image))
        if image is None:
            del source.rows[shard][key]
        else:
            source.rows[shard][key] = dict(image)

    def _altered_rows(
        self, shard: ShardId, before: TableSchema, result: AlterResult
    ) -> Rows | None:
        """The shard's rows after an ALTER TABLE; None when its server would refuse it."""
        rows: Rows = {}
        for key, old in self.sources[shard.source].rows[shard].items():
            rows[key] = {}
            for came, column in zip(result.lineage, result.schema.columns, strict=True):
                if came.before not in old:
                    continue
                value = old[came.before]
                if family_of(before.column(came.before)) == family_of(column):
                    if not accepts(column, value):
                        return None
                    rows[key][column.name] = value
        return rows

    # --- the agents

    def _decide(self, source: str) -> bool:
        """Answer the next schema change that can be read; False when there is none."""
        log = self.kafka.logs[Place(source, 0)]
        for offset, event in log.committed(self.read_to[source], log.stable_end):
            assert isinstance(event, Ddl)
            self.read_to[source] = offset + 1
            count = len(event.changes)
            for ordinal, change in enumerate(event.changes):
                self._answer(ChangeId(source, offset, ordinal, count), event, *change)
            if not count:
                ignored = ChangeId(source, offset)
                self.ddl.append(Decision(ignored, None, 0, None, event.position, Outcome.IGNORED))
            return True
        return False

    def _answer(
        self,
        change: ChangeId,
        event: Ddl,
        shard: ShardId,
        after: TableSchema | None,
        lineage: tuple[Lineage, ...],
    ) -> None:
        before = self.tracked.get(shard)
        if (event.snapshot or not lineage) and before is not None and after is not None:
            # It is described anew, or created behind a DROP TABLE that no record tells of: columns
            # are the same by name.
            was = {c.name for c in before.columns}
            lineage = tuple(Lineage(c.name, c.name if c.name in was else "") for c in after.columns)
        policies = replace(
            EARLIEST_POLICIES,
            mode=self.mode,
            renames=self.renames,
            origin=self.origin,
            on_drop=self.on_drop,
            existing_rows=self.existing_rows,
        )
        tracked = SchemaChange(
            change, TARGET, shard, event.position, before, after, lineage,
            _actions(before, after, lineage), "",
            snapshot=event.snapshot, policies=policies, ts_ms=event.ts_ms,
        )  # fmt: skip
        step = coordinator.decide(self.state, tracked)
        assert step.decision is not None
        self._decided(step.decision)
        known = self.state.shards.get(shard)
        if known and known.real:
            ids = {c.column.name: c.id for c in known.real.columns}
            now = {c.column.name: c.id for c in step.decision.columns}
            renamed = [x for x in lineage if x.before not in ("", x.name)]
            if any(ids.get(x.before) != now.get(x.name) for x in renamed):
                # A rename gave the column up, for one that others have.
                self.target.orphans |= numbers_of(shard)
        self.state = step.state
        self.outbox.append(step.decision)
        if after is None:
            self.tracked.pop(shard, None)
        else:
            self.tracked[shard] = after

    def _command(self, kind: CommandKind, shard: ShardId | None, argument: str = "") -> Outcome:
        """What an operator says; before the first decision nobody listens."""
        self.commands += 1
        said = OperatorCommand(ChangeId("p.commands", self.commands), TARGET, kind, shard, argument)
        if not self.state.version:
            return Outcome.IGNORED
        step = coordinator.obey(self.state, said, context=CONTEXT)
        assert step.decision is not None
        for release in step.decision.releases:
            if release.left_out:
                # Its rows keep values in the target that no schema counts.
                self.target.orphans |= numbers_of(release.shard)
        for left in step.decision.leaves:
            self.target.orphans |= numbers_of(left)
        self._decided(step.decision)
        self.state = step.state
        self.outbox.append(step.decision)
        return step.decision.outcome

    def _decided(self, decision: Decision) -> None:
        """For worlds that look at more; the state is the one before it."""

    def _send_a_decision(self) -> None:
        for fixup in self.outbox[0].fixups:
            if fixup.kind is FixupKind.SNAPSHOT:
                self._read_again(fixup.shard)
        self.ddl.append(self.outbox.pop(0))

    def _read_again(self, shard: ShardId) -> None:
        """A connector is asked for a table's rows. In this world it tells that it has read them.

        What comes of values that rows would bring is a matter of other machines.
        """
        if shard in self.sources[shard.source].schemas:
            self.sources[shard.source].tell_scanned(shard)

    def _decide_all(self, *sources: str) -> None:
        """Answer whatever can be read, of all sources or of some, and send all answers."""
        while [source for source in sources or self.sources if self._decide(source)]:
            pass
        while self.outbox:
            self._send_a_decision()

    # --- the sink

    def _start_sink(self) -> None:
        self.sink = self.sink_class(
            self.kafka, self.ddl, self.target, list(self.sources), self.batch, routes=self.routes
        )
        self.steps: Iterator[None] = self.sink.steps()


def number_of(shard: ShardId, key: int) -> int:
    """The primary key of a shard's row, which no other shard uses."""
    return SHARDS.index(shard) * 100 + key


def numbers_of(shard: ShardId) -> set[int]:
    """All primary keys that are a shard's."""
    return set(range(number_of(shard, 0), number_of(shard, 100)))


def family_of(column: Column | None) -> str:
    """What kind of values it has."""
    return FAMILIES[column.type.name] if column else ""


def _gives_up(before: TableSchema | None, after: TableSchema, lineage: Sequence[Lineage]) -> bool:
    """Whether values of the shard's rows are given up without a row event that tells."""
    if before is None:
        return False
    came = {entry.before: after.column(entry.name) for entry in lineage}
    return any(
        c.name not in came or family_of(came[c.name]) != family_of(c) for c in before.columns
    )


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
