"""First snapshots that are interrupted, and begin again with other rows: what they brought goes.

The same world as the barrier's: everything that may happen there happens while snapshots are taken.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.origin import Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.policies import Mode
from shardmerge.spark_sink.barrier.decisions import Decisions
from shardmerge.spark_sink.barrier.restarts import undone_upto
from shardmerge.spark_sink.barrier.shard_gates import ShardGates
from tests.properties.barrier_machine import SETTINGS, BarrierMachine
from tests.properties.barrier_world import SHARDS, TARGET, number_of, numbers_of
from tests.toy_first_snapshots import SnapshotSource
from tests.toy_kafka import Ddl
from tests.toy_server import ServerTarget
from tests.toy_sink import StaleSink, ToySink


class SnapshotSink(ToySink):
    """Knows, as the pipeline file says it, whether snapshots are to read rows."""

    modes: dict[str, bool]

    def brings_rows(self, shard: ShardId) -> bool:
        return self.modes[shard.source]


class StaleSnapshotSink(SnapshotSink, StaleSink):
    """With watermarks that are older than the decisions."""


class RestartMachine(BarrierMachine):
    """Two sources that take their first snapshots, and have rows by then."""

    sink_class = SnapshotSink
    source_class = SnapshotSource

    @initialize(
        partitions=st.integers(1, 2),
        batch=st.sampled_from([2, 5, 100]),
        shared=st.sampled_from(["", "t_."]),
        shards=st.sampled_from([1, 3]),
    )
    def start(self, partitions: int, batch: int, shared: str, shards: int) -> None:
        self.begin(partitions, batch, Mode.OPTIMISTIC, shards, shared=shared)
        for shard in SHARDS[:shards]:
            for key in range(4):
                self._there(shard, key)
        for name in self.sources:
            self._describe(name)

    def _there(self, shard: ShardId, key: int) -> None:
        """A row that is there before the first snapshot."""
        self.sources[shard.source].rows[shard][key] = {"id": number_of(shard, key), "a": 7}

    def _source(self, name: str) -> SnapshotSource:
        source = self.sources[name]
        assert isinstance(source, SnapshotSource)
        return source

    def _start_sink(self) -> None:
        super()._start_sink()
        assert isinstance(self.sink, SnapshotSink)
        self.sink.modes = {name: self._source(name).brings_rows for name in self.sources}

    def _describe(self, name: str, *, brings_rows: bool = True) -> None:
        source = self._source(name)
        place = source.describes(brings_rows=brings_rows)
        for shard, schema in sorted(source.schemas.items()):
            source.send(Ddl(place, ((shard, schema, ()),), snapshot=True))
        if isinstance(self.sink, SnapshotSink):
            self.sink.modes[name] = brings_rows

    @rule(source=st.sampled_from(["s1", "s2"]), count=st.integers(1, 9))
    def read_rows(self, source: str, count: int) -> None:
        self._read_on(source, count)

    @rule(source=st.sampled_from(["s1", "s2"]), quiet=st.booleans())
    def begin_again(self, source: str, quiet: bool) -> None:
        """Interrupted, or after its end: on purpose, or since its place was lost."""
        if not quiet:
            self._source(source).next_position()
        self._describe(source)

    @rule(source=st.sampled_from(["s1", "s2"]), count=st.integers(1, 9), steps=st.integers(0, 40))
    def read_and_begin_again(self, source: str, count: int, steps: int) -> None:
        """What is read is applied by then, or some of it; then rows go and change."""
        self._read_on(source, count)
        self.sources[source].commit()
        self.sources[source].finish()
        self._decide_all(source)
        self.run_the_sink(steps)
        for shard in SHARDS:
            if shard.source == source:
                self.delete(shard, 0)
        self._describe(source)
        self.run_the_sink(steps)

    @rule(source=st.sampled_from(["s1", "s2"]))
    def describe_anew_without_rows(self, source: str) -> None:
        """As with ``snapshot.mode`` ``recovery``; only where no snapshot is to be taken."""
        if self._source(source).reads is None:
            self._let_the_sources_settle()
            self._let_the_sink_rest()
            self._source(source).next_position()
            self._describe(source, brings_rows=False)
            self._read_on(source, 1)
            self._write(next(s for s in SHARDS if s.source == source))

    @rule(shard=st.sampled_from(SHARDS[2:]))
    def create_or_drop(self, shard: ShardId) -> None:
        """Not while a snapshot is taken: what is dropped then is described no more."""
        if self._source(shard.source).reads is None:
            super().create_or_drop(shard)

    def _read_on(self, source: str, count: int) -> None:
        first = self.number + 1
        self.number += count
        self._source(source).read_on(range(first, first + count))

    def _let_the_sources_settle(self) -> None:
        for name in self.sources:
            self._read_on(name, 400)
        super()._let_the_sources_settle()

    def _check_cells(self, known: Decisions) -> None:
        super()._check_cells(known)
        self._check_keys(known)

    def _check_keys(self, known: Decisions) -> None:
        """The target has the rows that the shards have, and no others.

        Rows may stay where no record tells that they have to go: behind a snapshot that had no row
        to read, in any table of its source. A table whose drop was lost is not looked at: it is
        described no more.
        """
        if TARGET not in known.targets or self.target.passed_over or self.sink.stuck:
            return
        for shard, gates in known.targets[TARGET].shards.items():
            rows = self.sources[shard.source].rows.get(shard)
            if rows is None or shard not in self.tracked or self.schema_of(shard) is None:
                continue
            if any(gate.effective_version is None or not gate.live for gate in gates.gates):
                continue
            found = {key for key in self.target.cells if key in numbers_of(shard)}
            wanted = {number_of(shard, key) for key in rows}
            assert found >= wanted if self._is_untold(shard, gates) else found == wanted, shard

    def _is_untold(self, shard: ShardId, gates: ShardGates) -> bool:
        """Whether a snapshot that had no row to read is the last that could have taken rows out."""
        upto = undone_upto(gates, self.target.executed)
        later = (gates.gates[index] for index in gates.restarts if index > upto)
        untold = self._source(shard.source).untold
        return any(gate.position in untold for gate in later)


class StaleRestartMachine(RestartMachine):
    sink_class = StaleSnapshotSink


class OriginRestartMachine(RestartMachine):
    """The target tells whose rows are whose."""

    target_class = ServerTarget
    origin = Origin((OriginColumn(OriginPart.SHARD, "_shard"),))

    def _check_cells(self, known: Decisions) -> None:
        """Statements give values too: other machines look at these."""
        self._check_keys(known)


TestRestarts = RestartMachine.TestCase
TestRestarts.settings = SETTINGS
TestStaleRestarts = StaleRestartMachine.TestCase
TestStaleRestarts.settings = SETTINGS
TestRestartsWithOrigin = OriginRestartMachine.TestCase
TestRestartsWithOrigin.settings = SETTINGS


def _played(*, other: bool) -> RestartMachine:
    """A table's only row went while a snapshot began again; ``other``: another table has a row."""
    machine = RestartMachine()
    machine.start(partitions=1, batch=100, shared="", shards=1)
    shard, beside = SHARDS[2:]
    machine.let_everything_arrive()
    machine.create_or_drop(shard)
    machine._write(shard)
    if other:
        machine.create_or_drop(beside)
    machine.let_everything_arrive()
    if other:
        machine._there(beside, 1)
    assert number_of(shard, 0) in machine.target.cells
    # The delete is lost with the worker that sent it.
    machine.read_and_begin_again("s2", 1, 0)
    machine.begin_again("s2", quiet=False)
    machine.let_everything_arrive()
    return machine


def test_a_row_goes_when_its_snapshot_began_again_and_read_a_row_of_another_table() -> None:
    machine = _played(other=True)
    assert number_of(SHARDS[2], 0) not in machine.target.cells
    assert number_of(SHARDS[3], 1) in machine.target.cells


def test_a_row_stays_behind_a_snapshot_that_found_no_row_and_the_next_one_waits() -> None:
    """No record says that the snapshot read: to a sink it is as one that was to read no rows."""
    machine = _played(other=False)
    assert number_of(SHARDS[2], 0) in machine.target.cells
    taken = machine.target.all_taken
    machine._write(SHARDS[2])
    machine.let_everything_arrive()
    assert machine.sink.stuck == {SHARDS[2]}
    assert machine.target.all_taken == taken


def test_a_table_whose_drop_was_lost_is_described_no_more() -> None:
    """Its rows stay, as docs/explanation/limits.md says; what the drop lost does not come."""
    machine = RestartMachine()
    machine.start(partitions=1, batch=100, shared="", shards=1)
    shard = SHARDS[2]
    machine.let_everything_arrive()
    machine.create_or_drop(shard)
    machine.let_everything_arrive()
    machine._write(shard)
    machine.create_or_drop(shard)
    machine.begin_again("s2", quiet=True)
    machine.begin_again("s2", quiet=True)
    machine.let_everything_arrive()
    assert machine.schema_of(shard) is None
    assert shard in machine.tracked
    assert number_of(shard, 0) not in machine.target.cells


def test_a_snapshots_null_keeps_its_column_from_not_null() -> None:
    """A server refuses that, and so must the toy: else its target meets what cannot be."""
    machine = RestartMachine()
    machine.start(partitions=1, batch=100, shared="", shards=1)
    [shard] = SHARDS[:1]
    machine.let_everything_arrive()
    machine.alter(shard, "c", "INT", "c", "DROP", both=False)
    machine.begin_again("s1", quiet=False)
    machine.let_everything_arrive()
    machine.alter(shard, "c", "INT NOT NULL", "c", "MODIFY", both=False)
    machine.let_everything_arrive()
    schema = machine.schema_of(shard)
    assert schema is not None
    column = schema.column("c")
    assert column is not None
    assert column.nullable


def test_rows_of_a_snapshot_stand_before_the_hold_of_one_that_began_again_at_its_place() -> None:
    machine = RestartMachine()
    machine.start(partitions=1, batch=100, shared="", shards=3)
    one, two = SHARDS[:2]
    machine.let_everything_arrive()
    machine.alter(one, "c", "DATE", "c", "DROP", both=False)
    machine.alter(two, "c", "INT", "c", "DROP", both=False)
    machine.begin_again("s1", quiet=False)
    machine.let_everything_arrive()
    machine.begin_again("s1", quiet=True)
    machine.speak_about_a_held_shard(two, "leave", "b", "")
    machine.let_everything_arrive()
    assert two in machine.state.held


def test_a_sink_that_dies_while_rows_are_taken_back_takes_back_all_of_them() -> None:
    """It comes back with watermarks that are older than the decisions, so without partitions."""
    machine = StaleRestartMachine()
    machine.start(partitions=1, batch=100, shared="", shards=3)
    machine.read_and_begin_again("s1", 5, 28)
    machine.read_and_begin_again("s1", 5, 10)
    machine.kill_the_sink()
    machine.let_everything_arrive()
    assert number_of(SHARDS[1], 0) not in machine.target.cells


def test_a_column_gets_narrower_where_a_shard_renamed_its_wider_one_to_another() -> None:
    """Its rows keep the wide values there, under the name that the shard has no more."""
    machine = OriginRestartMachine()
    machine.start(partitions=1, batch=2, shared="", shards=1)
    shard = SHARDS[3]
    machine.let_everything_arrive()
    machine.create_or_drop(shard)
    machine.hold_a_shard_and_speak_about_it(shard, "a", "BIGINT", "MODIFY", "skip", "", False)
    machine.alter(shard, "a", "INT", "b", "RENAME", both=False)
    machine.alter(SHARDS[0], "b", "INT", "a", "DROP", both=False)
    machine.let_everything_arrive()
    assert machine.target.schema is not None
    column = machine.target.schema.column("a")
    assert column is not None
    assert column.type.name == "int"
