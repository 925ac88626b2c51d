"""A source, its binlog, a sink that loads a shard, and everything that can happen meanwhile.

The rules are the real ones (``spark_sink.loading``), and so are the gates. The rest is a model:

* The source has one table. Each event has a position; ``states`` has the table after each event.
* A chunk is read in one transaction, from the source or from a replica that is behind, and written
  at any later time, or never: its process can die, and a process of a dead driver can come late.
* The target refuses what a real one refuses: a row with a column that it does not have, a unique
  value that is there already, a removal of a row that is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

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

SHARD, TARGET = ShardId("s1", "app", "t"), TargetTable("merged", "t")
Image: TypeAlias = dict[str, Any]
"""Identity of a column → its value: ``id`` is the key, ``u`` is unique."""
KEYS = 9
MOST_ROUNDS = 1_000
"""Each round of a history that comes to its end brings it on by an event or a chunk."""


class Refused(AssertionError):
    """The target refuses something: that must never happen."""


class Standstill(AssertionError):
    """Something waits, and nothing moves."""


@dataclass(frozen=True)
class Ddl:
    """A schema change.

    Attributes:
        columns: Identities of the columns besides ``id`` and ``u`` after it.
        change: What it does to the rows that are there.
        target_change: What the target's statement does to its own rows.
        kind: Of that statement.
        live: False for DROP TABLE.
        orders_load: Whether the target cannot know the new values.
        fill: What the target gives a row that lacks the column which the change adds.
    """

    columns: tuple[str, ...]
    change: Callable[[Image], Image] = dict
    target_change: Callable[[Image], Image] = dict
    kind: str = "expanding"
    live: bool = True
    orders_load: bool = False
    fill: int | None = None


@dataclass(frozen=True)
class Event:
    """An event of the binlog: a row that went, a row that came, or both; TRUNCATE; a DDL."""

    before: Image | None = None
    after: Image | None = None
    truncates: bool = False
    ddl: Ddl | None = None


@dataclass(frozen=True)
class State:
    """The table after some events; ``columns`` is None when it is gone."""

    rows: tuple[Image, ...]
    columns: tuple[str, ...] | None


@dataclass
class Reading:
    """A chunk, or a snapshot, that some process has read."""

    epoch: int
    load: int
    number: int
    base: int
    rows: tuple[Image, ...]
    columns: tuple[str, ...] | None
    position: SourcePosition
    read_before: SourcePosition


@dataclass
class Shape:
    """What kind of table it is.

    Attributes:
        has_unique: Whether its column ``u`` is unique.
        unique_comes: Whether the target gets the unique key later.
        condition: What ``where`` must be below for a row to be merged; None for all rows.
    """

    has_key: bool = True
    has_unique: bool = False
    unique_comes: bool = False
    condition: int | None = None

    def keeps(self, image: Image) -> bool:
        return self.condition is None or image["where"] < self.condition


def place(index: int) -> SourcePosition:
    """Where the event with that index begins; the binlog's end for the number of events."""
    return SourcePosition(0, "binlog.000001", 4 + 10 * index, 0)


class Source:
    """The shard's server."""

    def __init__(self, shape: Shape, random: Random) -> None:
        self.shape, self.random = shape, random
        self.events: list[Event] = []
        self.states = [State((), ("where",))]
        self.generation = 0
        self.replica = 0

    @property
    def now(self) -> State:
        return self.states[-1]

    def happens(self) -> None:
        """One event, as far as the table allows it."""
        if self.now.columns is None:
            self.ddl(Ddl(("where",), lambda image: image))
            return
        dice = self.random.random()
        if dice < 0.12:
            self.alters()
        elif dice < 0.14:
            self.append(Event(truncates=True), ())
        elif dice < 0.16:
            self.ddl(Ddl((), live=False, kind="contracting"))
        else:
            self.writes()

    def writes(self) -> None:
        rows, columns = self.now.rows, self.now.columns
        assert columns is not None
        old = self.random.choice(rows) if rows and self.random.random() < 0.6 else None
        if old is not None and self.random.random() < 0.4:
            self._put(old, None)
            return
        new = {c: self.random.randint(0, 99) for c in columns}
        new |= {"where": self.random.randint(0, 9)}
        new["id"] = self.random.randint(1, KEYS)
        if old is not None and self.random.random() < 0.6:
            new["id"] = old["id"]
        if self.shape.has_unique:
            new["u"] = self.random.randint(1, KEYS)
        if not self.shape.has_key:
            new = {"where": new["where"] % 3, "id": new["id"] % 3} | dict.fromkeys(columns[1:], 0)
        others = [row for row in rows if row is not old]
        taken = self.shape.has_key and any(row["id"] == new["id"] for row in others)
        taken |= self.shape.has_unique and any(row["u"] == new["u"] for row in others)
        if not taken:
            self._put(old, new)

    def _put(self, old: Image | None, new: Image | None) -> None:
        kept = tuple(row for row in self.now.rows if row is not old)
        self.append(Event(old, new), kept if new is None else (*kept, new))

    def alters(self) -> None:
        """A column comes, goes, is converted, or is reset to values that nobody knows."""
        columns = self.now.columns
        assert columns is not None
        extra = next((c for c in columns if c != "where"), None)
        self.generation += 1
        new, value = f"a#{self.generation}", self.random.randint(0, 99)
        if not self.shape.has_key:
            value = 0
        if extra is None:
            fill = _adding(new, lambda _: value)
            self.ddl(Ddl((*columns, new), fill, fill, fill=value))
            return
        kind = self.random.choice(
            ["drop", "convert", "convert" if self.shape.has_unique else "reset"]
        )
        rest = tuple(c for c in columns if c != extra)
        if kind == "drop" or not self.shape.has_key:
            without = _without(extra)
            self.ddl(Ddl(rest, without, without, kind="contracting"))
        elif kind == "convert":
            convert = _converting(extra, new)
            self.ddl(Ddl((*rest, new), convert, convert, kind="switching"))
        else:
            known = _adding(new, lambda image: 100 + image["id"] * self.generation)
            self.ddl(
                Ddl(
                    (*rest, new),
                    lambda image: known(_without(extra)(image)),
                    lambda image: _adding(new, lambda _: None)(_without(extra)(image)),
                    kind="switching",
                    orders_load=True,
                )
            )

    def ddl(self, ddl: Ddl) -> None:
        rows = tuple(ddl.change(row) for row in self.now.rows) if ddl.live else ()
        self.append(Event(ddl=ddl), rows, ddl.columns if ddl.live else None)

    def append(
        self, event: Event, rows: tuple[Image, ...], columns: tuple[str, ...] | None = ("?",)
    ) -> None:
        self.events.append(event)
        self.states.append(State(rows, self.now.columns if columns == ("?",) else columns))


def _adding(column: str, value: Callable[[Image], Any]) -> Callable[[Image], Image]:
    return lambda image: {**image, column: value(image)}


def _without(column: str) -> Callable[[Image], Image]:
    return lambda image: {c: v for c, v in image.items() if c != column}


def _converting(old: str, new: str) -> Callable[[Image], Image]:
    return lambda image: {
        new if c == old else c: None if v is None else v * 10 if c == old else v
        for c, v in image.items()
    }


@dataclass
class Target:
    """What is stored in the target; nothing of it is lost."""

    shape: Shape
    columns: dict[str, int | None] = field(default_factory=dict)
    rows: list[Image] = field(default_factory=list)
    staged: list[Image] = field(default_factory=list)
    loads: list[Load] = field(default_factory=list)
    applied: int = 0
    executed: set[int] = field(default_factory=set)
    epoch: int = 1
    is_unique: bool = False

    def __post_init__(self) -> None:
        self.is_unique = self.shape.has_unique and not self.shape.unique_comes

    def put(self, image: Image) -> None:
        """Write a row, over the one with its key; or take that one out if it is not merged."""
        if unknown := set(image) - {"id", "u", *self.columns}:
            raise Refused(f"no column {unknown}")
        if self.shape.has_key:
            self.rows = [row for row in self.rows if row["id"] != image["id"]]
        if not self.shape.keeps(image):
            return
        if self.is_unique and any(row["u"] == image["u"] for row in self.rows):
            raise Refused(f"the unique value {image['u']} is there")
        self.rows.append({**self.columns, **image})

    def remove(self, image: Image) -> None:
        if self.shape.has_key:
            self.rows = [row for row in self.rows if row["id"] != image["id"]]
            return
        if not self.shape.keeps(image):
            return
        full = {**self.columns, **image}
        if full not in self.rows:
            raise Refused(f"no row {full} to remove")
        self.rows.remove(full)


class World:
    """Everything together; each step is drawn.

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
        self.seen = dict.fromkeys(("read again", "schema", "late"), 0)
        self.known = self.start
        self._decide(Ddl(("where",)), BEGINNING)
        self.target.executed.add(1)
        kind = load_rules.kind_of(
            has_key=shape.has_key,
            has_other_unique_key=self.target.is_unique,
            applies_every_operation=True,
        )
        self.target.loads.append(Load(SHARD, TARGET, 1, kind, 1))

    # --- the agents -------------------------------------------------------------

    def _decide(self, ddl: Ddl, position: SourcePosition) -> None:
        version = len(self.gates.gates) + 1
        names = ("id", *(("u",) if self.shape.has_unique else ()), *ddl.columns)
        columns = tuple(ShardColumn(c, Column(c, ColumnType("int"))) for c in names)
        self.gates.append(
            Gate(
                version, position, Outcome.EMIT, columns if ddl.live else (),
                ("id",) if self.shape.has_key else (), ddl.live, version,
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
        return self.gates.first_blocked(self.frontier)

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
                not self.is_applied_before(gate.position)
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
        if self.target.is_unique or not self.shape.has_unique:
            return False
        if load_rules.may_have_duplicates(self.load, place(self.target.applied)):
            return False
        values = [row["u"] for row in self.target.rows]
        if len(set(values)) < len(values):
            raise Refused(f"the values {values} are not unique")
        self.target.is_unique = True
        return True

    def move_base(self) -> bool:
        index = load_rules.next_base(self.gates, self.load, self.first_blocked)
        if index is not None:
            if self.load.kind is LoadKind.SNAPSHOT:
                self.target.staged = []
            done = sum(c.read_before is not None for c in self.load.chunks)
            self.load = load_rules.moved(self.gates, self.load, index, self.orders)
            self.seen["read again"] += (
                sum(c.read_before is not None for c in self.load.chunks) < done
            )
            return True
        version = load_rules.next_order(self.load, self.orders)
        if not self.load.is_complete or version is None:
            return False
        self.target.loads.append(Load(SHARD, TARGET, version, LoadKind.CHUNKS, version))
        return True

    def cut(self) -> bool:
        """Plan chunks, all at once or one after the other."""
        if self.load.is_planned or self.load.is_complete or not self.may_give_out:
            return False
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
        at = self.source.replica
        state = self.source.states[at]
        rows = tuple(row for row in state.rows if _is_in(row, self.load.chunks[number].range))
        self.readings.append(
            Reading(
                self.target.epoch, len(self.target.loads) - 1, number, self.load.base, rows,
                state.columns, place(at), place(len(self.source.events)),
            )
        )  # fmt: skip
        return True

    def write(self) -> bool:
        """What a reading brought is written, if the target still wants it."""
        if not self.readings:
            return False
        reading = self.readings.pop(self.random.randrange(len(self.readings)))
        if reading.epoch != self.target.epoch or reading.load != len(self.target.loads) - 1:
            return True
        if not self.load.accepts(reading.number, reading.base):
            self.seen["late"] += 1
            return True
        gate = self.gates.gates[load_rules.base_index(self.gates, self.load)]
        if not self.has_schema(reading, gate):
            self.seen["schema"] += 1
            self.load = self.load.give_back(reading.number)
            return True
        self.commit(reading)
        return True

    def has_schema(self, reading: Reading, gate: Gate) -> bool:
        """Whether the table had the schema of the load's gate."""
        if reading.columns is None:
            return False
        own = [c.column.name for c in gate.columns if c.id not in ("id", "u")]
        # Only names and types can be compared: a column that was made anew has the same.
        return [c.partition("#")[0] for c in own] == [c.partition("#")[0] for c in reading.columns]

    def commit(self, reading: Reading) -> None:
        """Rows and the chunk's state, in one transaction."""
        gate = self.gates.gates[load_rules.base_index(self.gates, self.load)]
        extra = [c.id for c in gate.columns if c.id.startswith("a#")]
        images = [
            {extra[0] if extra and c.startswith("a#") else c: v for c, v in row.items()}
            for row in reading.rows
            # Rows that are not merged are not read; what the target has of them stays.
            if self.shape.keeps(row)
        ]
        if self.load.kind is LoadKind.CHUNKS:
            for image in images:
                self.target.put(image)
            self.load = self.load.finish(reading.number, len(images), 0, reading.read_before)
        else:
            self.target.staged = images
            # On a replica, too, the snapshot's position is known.
            self.load = self.load.finish(reading.number, len(images), 0, reading.position)

    def prove(self) -> bool:
        """It is known that no chunk was read behind a schema change."""
        if self.load.is_proven or not load_rules.proves(self.gates, self.load, place(self.known)):
            return False
        self.load = self.load.proven()
        return True

    def copy(self) -> bool:
        """A snapshot is read: its rows go into the target, in one transaction."""
        if self.load.kind is not LoadKind.SNAPSHOT or self.load.is_copied or self.load.is_void:
            return False
        if not self.load.is_proven:
            return False
        for image in self.target.staged:
            self.target.put(image)
        self.target.staged = []
        self.load = self.load.copied()
        return True

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
        if load_rules.passes_over(self.load, place(index)):
            return True
        if event.truncates:
            self.target.rows = []
        if event.before is not None:
            self.target.remove(event.before)
        if event.after is not None:
            self.target.put(event.after)
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
        is_current = reading.epoch == self.target.epoch
        is_current &= reading.load == len(self.target.loads) - 1
        if is_current and self.load.accepts(reading.number, reading.base):
            self.load = self.load.give_back(reading.number)
        return True

    # --- a history --------------------------------------------------------------------

    @property
    def calm(self) -> list[Callable[[], bool]]:
        """Steps that only bring things on."""
        return [
            self.replicate, self.decide_next, self.execute, self.move_base, self.cut, self.read,
            self.write, self.prove, self.copy, self.apply, self.add_unique_key,
        ]  # fmt: skip

    def run(self, steps: int) -> None:
        """Random steps, then everything that is left."""
        calm = self.calm
        # Each history has its own slow and fast parts.
        weights = [self.random.choice((1, 2, 6)) for _ in calm]
        traffic = self.random.choice((0.1, 0.25, 0.4))
        for _ in range(steps):
            dice = self.random.random()
            if dice < 0.03:
                self.crash()
            elif dice < 0.05:
                self.lose()
            elif dice < 0.06:
                self.split()
            elif dice < 0.06 + traffic:
                self.source.happens()
            else:
                self.random.choices(calm, weights)[0]()
        self.settle()

    def settle(self) -> None:
        """Everything that is left to be done; then the target must be the source."""
        for _ in range(MOST_ROUNDS):
            # A step that did something may have made another one possible.
            if not sum(step() for step in self.random.sample(self.calm, len(self.calm))):
                break
        self.check()

    def check(self) -> None:
        if not self.load.is_complete or self.target.applied < len(self.source.events):
            raise Standstill(str(self.load))
        if len(self.target.executed) < len(self.decided):
            raise Standstill(f"statements {set(self.decided) - self.target.executed}")
        if self.shape.has_unique and not self.target.is_unique:
            raise Standstill("the unique key")
        wanted = [row for row in self.source.now.rows if self.shape.keeps(row)]
        assert sorted(map(_plain, self.target.rows)) == sorted(map(_plain, wanted))


def _plain(image: Image) -> str:
    return str(sorted(image.items()))


def _is_in(row: Image, of: KeyRange) -> bool:
    low, high = of.low, of.high
    return (low is None or row["id"] > int(low[0])) and (high is None or row["id"] <= int(high[0]))
