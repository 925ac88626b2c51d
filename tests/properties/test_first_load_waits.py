"""Loads, streams and statements of several shards never wait for each other in a circle.

Only waiting is played here; ``load_world`` has the rows. Shards make schema changes, some of which
are held and released later. A statement waits for rows of every shard as ``barrier`` says: before
the shard's last change that counts, or before the gate at which the shard is held.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import BEGINNING, SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import Outcome, Release, StatementKind
from shardmerge.spark_sink.barrier.shard_gates import Gate, ShardGates
from shardmerge.spark_sink.loading import load_rules
from shardmerge.spark_sink.loading.load_state import Load, LoadKind

COLUMNS = (ShardColumn("id#1", Column("id", ColumnType("int"))),)


@dataclass
class Lane:
    """A shard: its gates, its load, and the gate up to which its stream is applied."""

    gates: ShardGates
    load: Load
    applied: int = 0
    held: list[int] = field(default_factory=list)

    def blocked(self, frontier: int) -> int:
        return self.gates.first_blocked(frontier)

    def place(self, version: int) -> int:
        """Index of the gate before which a statement of that version waits for rows."""
        for index, gate in enumerate(self.gates.gates[: self.gates.upto(version)]):
            effective = gate.effective_version
            if effective is None or effective > version or gate.released_by == version:
                return index
        return max(0, self.gates.upto(version) - 1)


class Waits:
    """All shards of one target."""

    def __init__(self, seed: int, shards: int) -> None:
        self.random = Random(seed)
        self.kinds: dict[int, StatementKind] = {}
        self.executed: set[int] = set()
        self.lanes: list[Lane] = []
        for number in range(shards):
            shard = ShardId(f"s{number}", "app", "t")
            kind = self.random.choice(list(LoadKind))
            gates = ShardGates(shard)
            version = len(self.kinds) + 1
            load = Load(shard, TargetTable("merged", "t"), version, kind, version)
            self.lanes.append(Lane(gates, load))
            self.decide(self.lanes[-1], StatementKind.EXPANDING)

    def decide(self, lane: Lane, kind: StatementKind, *, hold: bool = False) -> None:
        version, place = len(self.kinds) + 1, len(lane.gates.gates)
        position = SourcePosition(0, "binlog.000001", place * 10, 0) if place else BEGINNING
        hold = hold or bool(lane.held)
        outcome = Outcome.HOLD if hold else Outcome.EMIT
        lane.gates.append(Gate(version, position, outcome, COLUMNS, ("id",), True, version))
        self.kinds[version] = StatementKind.EXPANDING if hold else kind
        if hold:
            lane.held.append(version)
            self.executed.add(version)

    def release(self, lane: Lane) -> None:
        version = len(self.kinds) + 1
        self.kinds[version] = self.random.choice(
            [StatementKind.SWITCHING, StatementKind.EXPANDING, StatementKind.CONTRACTING]
        )
        lane.gates.release(version, Release(lane.gates.shard, lane.held[-1]))
        lane.held.clear()

    @property
    def frontier(self) -> int:
        waited_for = (
            version
            for version, kind in self.kinds.items()
            if version not in self.executed and kind is not StatementKind.CONTRACTING
        )
        return next(waited_for, len(self.kinds) + 1)

    # --- steps --------------------------------------------------------------------------

    def happen(self) -> None:
        lane = self.random.choice(self.lanes)
        if lane.held and self.random.random() < 0.4:
            self.release(lane)
        else:
            hold = self.random.random() < 0.3
            self.decide(lane, self.random.choice(list(StatementKind)[:3]), hold=hold)

    def execute(self) -> bool:
        """One statement that is due; they need no order among each other here."""
        due = [version for version in self.kinds if self.is_due(version)]
        if due:
            self.executed.add(self.random.choice(due))
        return bool(due)

    def is_due(self, version: int) -> bool:
        if version in self.executed:
            return False
        if self.kinds[version] is StatementKind.EXPANDING:
            return True
        for lane in self.lanes:
            index = lane.place(version)
            position = lane.gates.gates[index].position
            if lane.applied < index:
                return False
            if load_rules.may_have_rows_before(lane.gates, lane.load, position):
                return False
        return True

    def stream(self) -> bool:
        moved = False
        for lane in self.lanes:
            stop = load_rules.stream_stop(lane.gates, lane.load, ())
            reachable = min(
                lane.blocked(self.frontier), len(lane.gates.gates) if stop is None else stop
            )
            if reachable > lane.applied:
                lane.applied += 1
                moved = True
        return moved

    def base(self) -> bool:
        for lane in self.lanes:
            index = load_rules.next_base(lane.gates, lane.load, lane.blocked(self.frontier))
            if index is not None:
                lane.load = load_rules.moved(lane.gates, lane.load, index, ())
                return True
        return False

    def load(self) -> bool:
        """Read, prove or copy something; a snapshot is taken where the base is."""
        for lane in self.lanes:
            load, frontier = lane.load, lane.blocked(self.frontier)
            now = lane.gates.gates[-1].position
            if load.is_complete:
                continue
            if load.is_proven:
                lane.load = load.copied()
                return True
            if load_rules.proves(lane.gates, load, now):
                lane.load = load.proven()
                return True
            may = load_rules.may_give_out(lane.gates, load, frontier, source_has_base=True)
            # Only a table that is behind the last gate has the schema of the base.
            if may and load_rules.base_index(lane.gates, load) == len(lane.gates.gates) - 1:
                if not load.is_planned:
                    lane.load = load.plan(("5",)) if load.kind is LoadKind.CHUNKS else load.plan()
                    return True
                for chunk in load.chunks:
                    if chunk.read_before is None:
                        done = load.begin(chunk.number).finish(chunk.number, 1, 1, now)
                        lane.load = done
                        return True
        return False

    def run(self, steps: int) -> None:
        calm = [self.execute, self.stream, self.base, self.load]
        for _ in range(steps):
            if self.random.random() < 0.2:
                self.happen()
            else:
                self.random.choice(calm)()
        for lane in self.lanes:
            if lane.held:
                self.release(lane)
        while sum(step() for step in calm):
            pass
        assert len(self.executed) == len(self.kinds), "statements wait"
        for lane in self.lanes:
            assert lane.load.is_complete
            assert lane.applied == len(lane.gates.gates)


@given(seed=st.integers(0, 1 << 32), shards=st.integers(1, 3), steps=st.sampled_from((30, 90)))
def test_everything_comes_to_its_end(seed: int, shards: int, steps: int) -> None:
    Waits(seed, shards).run(steps)


def the_base_does_not_move(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(load_rules, "next_base", lambda gates, load, blocked: None)


def statements_wait_until_loads_are_complete(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        load_rules, "may_have_rows_before", lambda gates, load, place: not load.is_complete
    )


def the_stream_waits_at_the_first_gate(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        load_rules, "stream_stop", lambda gates, load, orders: None if load.is_complete else 0
    )


@pytest.mark.parametrize(
    "other",
    [
        the_base_does_not_move,
        statements_wait_until_loads_are_complete,
        the_stream_waits_at_the_first_gate,
    ],
)
def test_simpler_rules_stand_still(
    other: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    other(monkeypatch)
    for seed in range(50):
        try:
            Waits(seed, 2).run(90)
        except AssertionError:
            return
    pytest.fail("50 histories come to their end")
