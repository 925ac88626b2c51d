"""The agents and the sink of ``load_world``, with the real rules.

The rules are the real ones (``spark_sink.loading``), and so are the gates. The rest is a model:

* A chunk is read in one transaction, from the source or from a replica that is behind, and written
  at any later time, or never: its process can die, and a process of a dead driver can come late.
* An operator can order that the shard is loaded again, by a gate that the stream has passed.
* A snapshot is written in pieces into a table beside the target. Its task can run twice, since a
  process that was taken for dead can go on. Then its rows are copied in pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import BEGINNING, SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import Outcome
from shardmerge.schemas.records.plain import from_plain, to_plain
from shardmerge.spark_sink.barrier.shard_gates import Gate, ShardGates
from shardmerge.spark_sink.loading import load_rules
from shardmerge.spark_sink.loading.chunk_ranges import KeyRange
from shardmerge.spark_sink.loading.load_state import ChunkState, Load, LoadKind
from shardmerge.spark_sink.loading.load_turns import LoadLimits, next_chunks

from . import load_snapshots
from .load_snapshots import Reading
from .load_source import KEYS, Ddl, Event, Image, Shape, Source, place
from .load_target import Refused, Target

SHARD, TARGET = ShardId("s1", "app", "t"), TargetTable("merged", "t")


class Sink:
    """A source, its agents, and a sink; each step is drawn.

    Args:
        shape: Of the table.
        seed: For all draws.
        rows: What the table has when the connector starts; None for drawn rows.
    """

    def __init__(self, shape: Shape, seed: int, rows: Sequence[Image] | None = None) -> None:
        self.random = Random(seed)
        self.shape = shape
        self.source = Source(shape, self.random)
        for row in rows or ():
            self.source.append(Event(None, row), (*self.source.now.rows, row))
        for _ in range(self.random.randint(0, 12) if rows is None else 0):
            self.source.writes()
        self.start = len(self.source.events)
        self.source.replica = self.random.randint(0, self.start)
        self.target = Target(shape, {"where": None}, applied=self.start)
        self.gates = ShardGates(SHARD)
        self.decided: dict[int, Ddl] = {}
        self.orders: list[int] = []
        self.readings: list[Reading] = []
        self.read_to = BEGINNING
        self.seen = dict.fromkeys(("read again", "schema", "late", "again", "ordered"), 0)
        # Versions by which the shard's rows are to be taken out of the target, and are not yet.
        self.removals: list[int] = []
        self.known = self.start
        self._decide(Ddl(("where",), is_keyed=self.shape.has_key), BEGINNING)
        self.target.executed.add(1)
        self.target.loads.append(Load(SHARD, TARGET, 1, LoadKind.SNAPSHOT, 1))

    # --- the agents -------------------------------------------------------------

    def _decide(self, ddl: Ddl, position: SourcePosition) -> None:
        version = len(self.gates.gates) + 1
        names = ("id", *(("u",) if self.shape.has_unique else ()), *ddl.columns)
        columns = tuple(ShardColumn(c, Column(c, ColumnType("int"))) for c in names)
        self.gates.append(
            Gate(
                version, position, Outcome.EMIT, columns if ddl.live else (),
                ("id",) if ddl.is_keyed else (), ddl.live, version,
            )
        )  # fmt: skip
        self.decided[version] = ddl
        if ddl.orders_load:
            self.orders.append(version)

    def decide_next(self) -> bool:
        """The next schema change of the binlog is decided, and the sink knows it."""
        before = self.known
        while self.known < len(self.source.events):
            index = self.known
            self.known += 1
            if (ddl := self.source.events[index].ddl) is not None:
                self._decide(ddl, place(index))
                break
        return self.known > before

    def order_again(self) -> None:
        """An operator orders a load, by a gate at the place of the last one."""
        last = self.gates.gates[-1]
        if not last.live or self.shape.ignores_deletes:
            return
        version = len(self.gates.gates) + 1
        self.gates.append(
            replace(last, version=version, outcome=Outcome.NOOP, reloads=True, loads=True)
        )
        self.decided[version] = replace(
            self.decided[last.version], change=dict, target_change=dict, kind="expanding"
        )
        self.target.executed.add(version)
        self.orders.append(version)
        self.removals.append(version)
        self.seen["ordered"] += self.load.is_complete

    # --- the sink's view ----------------------------------------------------------

    @property
    def load(self) -> Load:
        return self.target.loads[-1]

    @load.setter
    def load(self, load: Load) -> None:
        self.target.loads[-1] = load

    @property
    def frontier(self) -> int:
        """The lowest version that is not executed, of those that rows wait for."""
        return next(
            (
                version
                for version, ddl in self.decided.items()
                if version not in self.target.executed and ddl.kind != "contracting"
            ),
            len(self.decided) + 1,
        )

    @property
    def first_blocked(self) -> int:
        first = self.gates.first_blocked(self.frontier)
        # Rows wait at a gate until the rows from before it are taken out (``barrier.restarts``).
        return min(first, *(v - 1 for v in self.removals)) if self.removals else first

    @property
    def place_of_load(self) -> SourcePosition:
        """Up to where the stream was applied when an ordered load began: it stands there."""
        return place(self.target.applied)

    def take_out(self) -> bool:
        """The shard's rows go from the target, as soon as no chunk from before can be written."""
        if not self.removals:
            return False
        load, version = self.load, self.removals[0]
        if (load.version if load.is_complete else load.base) < version:
            return False
        self.empty()
        self.removals.pop(0)
        return True

    def empty(self) -> None:
        self.target.rows = []

    def is_applied_before(self, position: SourcePosition) -> bool:
        """Whether no row of the stream before a position is left."""
        left = range(self.target.applied, len(self.source.events))
        return not any(self.source.events[n].ddl is None for n in left if place(n) < position)

    @property
    def may_give_out(self) -> bool:
        base = self.gates.gates[load_rules.base_index(self.gates, self.load)].position
        read = place(self.source.replica)
        # A gate's position is where its schema change begins.
        has_base = read >= place(self.start) if base == BEGINNING else read > base
        if self.gates.gates[self.base_index].loads:
            has_base &= read >= self.place_of_load
        return load_rules.may_give_out(
            self.gates,
            self.load,
            self.first_blocked,
            source_has_base=has_base,
        )

    # --- the sink's steps -----------------------------------------------------------

    def execute(self) -> bool:
        """The first statement that is due."""
        for version, ddl in self.decided.items():
            if version in self.target.executed:
                continue
            gate = self.gates.gates[version - 1]
            waits = ddl.kind != "expanding" and (
                any(removal <= version for removal in self.removals)
                or not self.is_applied_before(gate.position)
                or load_rules.may_have_rows_before(self.gates, self.load, gate.position)
            )
            if waits:
                return False
            self.target.executed.add(version)
            if not ddl.live:
                self.target.rows = []
            else:
                self.target.rows = [ddl.target_change(row) for row in self.target.rows]
                known = self.target.columns
                self.target.columns = {c: known.get(c, ddl.fill) for c in ddl.columns}
            return True
        return False

    def add_unique_key(self) -> bool:
        """The target gets its unique key; it is a debt, so nothing waits for it."""
        if self.target.is_unique or not self.shape.has_unique or self.removals:
            return False
        if load_rules.may_have_duplicates(self.load, place(self.target.applied), self.read_to):
            return False
        values = [row["u"] for row in self.target.rows]
        if len(set(values)) < len(values):
            raise Refused(f"the values {values} are not unique")
        self.target.is_unique = True
        return True

    def move_base(self) -> bool:
        index = load_rules.next_base(self.gates, self.load, self.first_blocked)
        if index is not None:
            done = sum(c.read_before is not None for c in self.load.chunks)
            self.load = load_rules.moved(self.gates, self.load, index, self.orders)
            self.seen["read again"] += (
                sum(c.read_before is not None for c in self.load.chunks) < done
            )
            return True
        version = load_rules.next_order(self.load, self.orders)
        if not self.load.is_complete or version is None:
            return False
        if version not in self.removals:
            # The shard's earlier rows are removed first (``barrier.restarts``).
            self.target.rows = []
        self.target.loads.append(Load(SHARD, TARGET, version, LoadKind.SNAPSHOT, version))
        return True

    def cut(self) -> bool:
        """Plan chunks, all at once or one after the other."""
        if self.load.is_planned or self.load.is_complete or not self.may_give_out:
            return False
        self.load = load_rules.chosen(
            self.gates,
            self.load,
            has_other_unique_key=self.target.is_unique,
            applies_every_operation=not self.shape.ignores_deletes,
        )
        if self.load.kind is LoadKind.SNAPSHOT:
            self.load = self.load.plan()
        elif not self.load.chunks and self.random.random() < 0.5:
            edges = sorted(self.random.sample(range(1, KEYS), self.random.randint(0, 3)))
            self.load = self.load.plan(*((str(edge),) for edge in edges))
        else:
            last = self.load.planned_to
            first = 1 if last is None else int(last[0]) + 1
            end = first + self.random.randint(0, 3)
            self.load = self.load.plan_next(None if end > KEYS else (str(end),))
        return True

    def read(self) -> bool:
        """Give a chunk out, and read it."""
        limits = {"s1": LoadLimits(connections=2)}
        turns = next_chunks([self.load], [self.may_give_out], limits, {}, 8)
        if not turns:
            return False
        number = turns[0].number
        self.load = self.load.begin(number)
        at, self.read_to = self.source.replica, place(len(self.source.events))
        state = self.source.states[at]
        rows = tuple(row for row in state.rows if _is_in(row, self.load.chunks[number].range))
        self.readings.append(
            Reading(
                self.target.epoch, len(self.target.loads) - 1, self.load.chunks[number].given, rows,
                state.columns, state.is_keyed, place(at), self.read_to,
            )
        )  # fmt: skip
        return True

    def write(self) -> bool:
        """What a reading brought is written, if the target still wants it."""
        if not self.readings:
            return False
        reading = self.random.choice(self.readings)
        if not self.is_current(reading) and not reading.attempt:
            self.readings.remove(reading)
            return True
        if self.load.kind is LoadKind.SNAPSHOT or reading.attempt:
            if load_snapshots.stage(self, reading):
                self.readings.remove(reading)
            return True
        self.readings.remove(reading)
        if not self.load.accepts(reading.given):
            self.seen["late"] += 1
            return True
        if not self.has_schema(reading, self.gates.gates[self.base_index]):
            self.seen["schema"] += 1
            self.give_back(reading)
            return True
        self.commit(reading)
        return True

    def is_current(self, reading: Reading) -> bool:
        """Whether the driver that gave a chunk out is still the writer, and its load the latest."""
        return reading.epoch == self.target.epoch and reading.load == len(self.target.loads) - 1

    def give_back(self, reading: Reading) -> None:
        """The driver hears that a chunk was not written, if its process was the last one."""
        others = [one for one in self.readings if one is not reading and self.is_current(one)]
        if not self.is_current(reading) or any(o.given == reading.given for o in others):
            return
        if self.load.accepts(reading.given):
            self.load = self.load.give_back(reading.given.chunk)

    @property
    def base_index(self) -> int:
        return load_rules.base_index(self.gates, self.load)

    @property
    def place_of_server(self) -> SourcePosition:
        """Up to where the server that is read has got."""
        return place(self.source.replica)

    # Rules of snapshots, which tests take out.
    def new_attempt(self) -> int:
        return load_snapshots.new_attempt(self)

    def counts(self, reading: Reading) -> bool:
        return load_snapshots.counts(self, reading)

    def note_copied(self, rows: int) -> None:
        self.target.copied_to[self.target.attempt] = rows

    def has_schema(self, reading: Reading, gate: Gate) -> bool:
        """Whether the table had the schema of the load's gate."""
        if reading.columns is None or reading.is_keyed != bool(gate.key):
            return False
        own = [c.column.name for c in gate.columns if c.id not in ("id", "u")]
        # Only names and types can be compared: a column that was made anew has the same.
        return [c.partition("#")[0] for c in own] == [c.partition("#")[0] for c in reading.columns]

    def images(self, reading: Reading) -> list[Image]:
        """What is written of a reading's rows. Rows that are not merged are not read."""
        gate = self.gates.gates[self.gates.upto(reading.given.base) - 1]
        extra = [c.id for c in gate.columns if c.id.startswith("a#")]
        return [
            {extra[0] if extra and c.startswith("a#") else c: v for c, v in row.items()}
            for row in reading.rows
            if self.shape.keeps(row)
        ]

    def commit(self, reading: Reading) -> None:
        """A chunk's rows and its state, in one transaction."""
        images = self.images(reading)
        for image in images:
            self.target.put(image, is_keyed=True)
        self.load = self.load.finish(reading.given.chunk, len(images), 0, reading.read_before)

    def prove(self) -> bool:
        """It is known that no chunk was read behind a schema change."""
        if self.load.is_proven or not load_rules.proves(self.gates, self.load, place(self.known)):
            return False
        self.load = self.load.proven()
        return True

    def copy(self) -> bool:
        """A piece of a snapshot's rows goes into the target."""
        return load_snapshots.copy(self)

    def apply(self) -> bool:
        """The stream's next event."""
        index = self.target.applied
        if index >= self.known:
            return False
        stops = [self.first_blocked]
        if (waits := load_rules.stream_stop(self.gates, self.load, self.orders)) is not None:
            stops.append(waits)
        stop = min(stops)
        if stop < len(self.gates.gates) and self.gates.gates[stop].position <= place(index):
            return False
        self.target.applied += 1
        event = self.source.events[index]
        skipped_to = load_rules.passed_over_to(self.gates, self.load)
        if skipped_to is not None and place(index) < skipped_to:
            return True
        if event.truncates:
            self.target.rows = []
        is_deleted = event.before is not None and event.after is None
        if is_deleted and self.shape.ignores_deletes:
            return True
        is_keyed = self.source.states[index].is_keyed
        if event.before is not None:
            self.target.remove(event.before, is_keyed=is_keyed)
        if event.after is not None:
            self.target.put(event.after, is_keyed=is_keyed)
        return True

    def split(self) -> None:
        """A chunk is too large; the boundary can be any."""
        numbers = [c.number for c in self.load.chunks if c.state is not ChunkState.DONE]
        if numbers and self.load.kind is LoadKind.CHUNKS:
            boundary = (str(self.random.randint(1, KEYS)),)
            self.load = self.load.split(self.random.choice(numbers), boundary)

    def crash(self) -> bool:
        """Another driver takes over; readings of the dead one may still come."""
        self.target.epoch += 1
        # All that the new driver knows is what is stored.
        self.load = from_plain(Load, to_plain(self.load)).give_all_back()
        return True

    def replicate(self) -> bool:
        """The server that is read gets on."""
        if self.source.replica == len(self.source.events):
            return False
        self.source.replica += 1
        return True

    def lose(self) -> bool:
        """A process dies with what it has read."""
        if not self.readings:
            return False
        reading = self.readings.pop()
        self.give_back(reading)
        return True


def _is_in(row: Image, of: KeyRange) -> bool:
    low, high = of.low, of.high
    return (low is None or row["id"] > int(low[0])) and (high is None or row["id"] <= int(high[0]))
