"""Validation in a model with traffic: what it tells is true, and what was planted is told.

Each query happens at a moment of its own: between any two of them the shards' rows change and the
target applies some of what has happened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from shardmerge.schemas.model.names import ShardId
from shardmerge.spark_sink.loading.chunk_ranges import KeyRange
from shardmerge.spark_sink.loading.key_order import Boundary
from shardmerge.spark_sink.validation.compared_table import ComparedTable, Side, compared_table
from shardmerge.spark_sink.validation.doubts import DifferenceKind, Key, SeenRow
from shardmerge.spark_sink.validation.table_validation import Digests, TableValidation
from tests.unit.spark_sink.validation.facts import RULE, S1, S2, shard, target

OWN = "CREATE TABLE t (id int PRIMARY KEY, a int)"
KEYED = compared_table(target(OWN), [shard(S1, OWN), shard(S2, OWN)])
BARE = "CREATE TABLE t (a int)"
COUNTED = compared_table(target(BARE), [shard(S1, BARE), shard(S2, BARE)])
ONES = replace(RULE, where="a LIKE '1%'")
"""SQL cannot express it; in the model only rows with the value 1 fulfil it."""
FILTERED = compared_table(target(BARE), [shard(S1, BARE, ONES), shard(S2, BARE, ONES)])
QUIET = 100
"""Keys from here on are not changed by traffic."""


@dataclass
class World:
    """Shards, their binlogs, and a target that applies them; the moves say what happens meanwhile.

    A move is the id of a row, its new value (None deletes it), and how many changes are applied.
    """

    moves: list[tuple[int, int | None, int]]
    shards: dict[ShardId, dict[int, int]] = field(default_factory=lambda: {S1: {}, S2: {}})
    log: list[tuple[int, int | None]] = field(default_factory=list)
    applied: int = 0
    target: dict[int, int] = field(default_factory=dict)

    def write(self, row: int, value: int | None) -> None:
        rows = self.shards[S1 if row % 2 else S2]
        if value is None:
            rows.pop(row, None)
        else:
            rows[row] = value
        self.log.append((row, value))

    def apply(self, changes: int) -> None:
        for row, value in self.log[self.applied : self.applied + changes]:
            if value is None:
                self.target.pop(row, None)
            else:
                self.target[row] = value
        self.applied = min(len(self.log), self.applied + changes)

    def pass_time(self) -> None:
        if self.moves:
            row, value, applied = self.moves.pop()
            self.write(row, value)
            self.apply(applied)

    # --- the line ------------------------------------------------------------------------------

    def note(self) -> object:
        self.pass_time()
        return len(self.log)

    def passed(self, noted: object) -> bool:
        assert isinstance(noted, int)
        self.apply(max(0, noted - self.applied))
        self.pass_time()
        return True

    # --- servers -------------------------------------------------------------------------------

    def of(self, side: Side) -> dict[int, int]:
        self.pass_time()
        return dict(self.target if side.shard is None else self.shards[side.shard])

    def within(self, side: Side, of: KeyRange) -> list[tuple[int, int]]:
        low = -1 if of.low is None else int(of.low[0])
        high = 10**6 if of.high is None else int(of.high[0])
        return [(row, v) for row, v in sorted(self.of(side).items()) if low < row <= high]

    def range_digests(self, sides: Sequence[Side], of: KeyRange) -> list[tuple[int, int]]:
        found = []
        for side in sides:
            rows = self.within(side, of)
            digest = 0
            for row, value in rows:
                one = hash((row, value)) if side.key else hash(("v", value))
                digest = digest ^ one if side.key else digest + one
            found.append((len(rows), digest))
        return found

    def next_boundary(self, side: Side, after: Boundary | None, rows: int) -> Boundary | None:
        found = self.within(side, KeyRange(after))
        return (str(found[rows - 1][0]),) if len(found) >= rows else None

    def row_digests(self, sides: Sequence[Side], of: KeyRange) -> list[Digests]:
        return [
            [((str(row),), hash((row, value)), ()) for row, value in self.within(side, of)]
            for side in sides
        ]

    def digest_counts(self, sides: Sequence[Side]) -> list[Mapping[Key, int]]:
        found: list[Mapping[Key, int]] = []
        for side in sides:
            values = [v for v in self.of(side).values() if v == 1 or not side.where]
            found.append({(str(v),): values.count(v) for v in values})
        return found

    def rows(self, sides: Sequence[Side], keys: Sequence[Key]) -> list[list[tuple[Key, SeenRow]]]:
        found = []
        for side in sides:
            rows = self.of(side)
            found.append(
                [
                    (key, SeenRow(side.shard, (key[0].encode(), str(rows[int(key[0])]).encode())))
                    for key in keys
                    if int(key[0]) in rows
                ]
            )
        return found


def validated(world: World, table: ComparedTable, rows_a_range: int) -> TableValidation:
    found = TableValidation(table, world, world, rows_a_range)
    while not found.is_compared:
        found.compare_next()
    for _ in range(100):
        if not found.doubts:
            break
        found.settle()
    assert not found.doubts
    return found


VALUES = st.none() | st.integers(0, 2)
WRITES = st.lists(st.tuples(st.integers(0, 9), VALUES), max_size=12)
MOVES = st.lists(st.tuples(st.integers(0, 9), st.none() | st.integers(0, 10**9), st.integers(0, 3)))
QUIET_ROWS = st.dictionaries(st.integers(QUIET, QUIET + 9), st.integers(0, 2), max_size=8)


def world_of(writes: list[tuple[int, int | None]], moves: object, quiet: dict[int, int]) -> World:
    assert isinstance(moves, list)
    world = World(moves)
    for row, value in [*writes, *quiet.items()]:
        world.write(row, value)
    world.apply(len(quiet) + len(writes) // 2)
    return world


@settings(max_examples=300)
@given(WRITES, MOVES, QUIET_ROWS, st.integers(1, 5))
def test_rows_on_their_way_are_no_difference(
    writes: list[tuple[int, int | None]], moves: object, quiet: dict[int, int], rows: int
) -> None:
    world = world_of(writes, moves, quiet)
    assert validated(world, KEYED, rows).differences == []


@settings(max_examples=300)
@given(
    WRITES,
    MOVES,
    QUIET_ROWS,
    st.dictionaries(st.integers(QUIET, QUIET + 9), VALUES, max_size=5),
    st.integers(1, 5),
)
def test_every_row_that_was_changed_by_hand_is_told_and_no_other(
    writes: list[tuple[int, int | None]],
    moves: object,
    quiet: dict[int, int],
    planted: dict[int, int | None],
    rows: int,
) -> None:
    world = world_of(writes, moves, quiet)
    world.apply(len(world.log))
    expected = {}
    for row, value in planted.items():
        if value is None:
            world.target.pop(row, None)
        else:
            world.target[row] = value
        own = quiet.get(row)
        if own != value:
            expected[(str(row),)] = (
                DifferenceKind.EXTRA if own is None
                else DifferenceKind.MISSING if value is None
                else DifferenceKind.DIFFERS
            )  # fmt: skip
    found = validated(world, KEYED, rows)
    assert {d.key: d.kind for d in found.differences} == expected


@settings(max_examples=200)
@given(QUIET_ROWS, st.dictionaries(st.integers(QUIET, QUIET + 9), VALUES, max_size=5))
def test_equal_rows_without_a_key_are_told_by_their_number(
    quiet: dict[int, int], planted: dict[int, int | None]
) -> None:
    world = world_of([], [], quiet)
    world.apply(len(world.log))
    for row, value in planted.items():
        if value is None:
            world.target.pop(row, None)
        else:
            world.target[row] = value
    found = validated(world, COUNTED, 5)
    mine, theirs = [*quiet.values()], [*world.target.values()]
    expected = {
        (str(v),): (mine.count(v), theirs.count(v))
        for v in {*mine, *theirs}
        if mine.count(v) != theirs.count(v)
    }
    assert {d.key: d.counts for d in found.differences} == expected


@settings(max_examples=200)
@given(QUIET_ROWS, st.lists(st.integers(0, 2), max_size=4))
def test_a_condition_that_sql_cannot_express_holds_for_rows_without_a_key(
    quiet: dict[int, int], planted: list[int]
) -> None:
    world = world_of([], [], quiet)
    world.target = {row: v for row, v in quiet.items() if v == 1}
    world.target |= dict(enumerate(planted))
    found = validated(world, FILTERED, 5)
    ones, theirs = [*quiet.values()].count(1), [*world.target.values()]
    expected = {(str(v),): (ones if v == 1 else 0, theirs.count(v)) for v in planted}
    assert {d.key: d.counts for d in found.differences} == expected
    assert found.rows == ones


# --- a proof under traffic, and the rows that have changed since


@dataclass
class FaultySink(World):
    """A sink that now and then loses a change, or writes another value.

    A record that is applied again, as by an incremental snapshot, is a write like others.
    """

    faults: list[int] = field(default_factory=list)

    def apply(self, changes: int) -> None:
        for _ in range(min(changes, len(self.log) - self.applied)):
            fault = self.faults.pop() if self.faults else 0
            row, value = self.log[self.applied]
            if fault == 0:
                super().apply(1)
                continue
            if fault == 1 and value is not None:
                self.target[row] = value + 10**12
            self.applied += 1

    def merged(self) -> dict[int, int]:
        return {**self.shards[S1], **self.shards[S2]}


def proved(world: FaultySink, since: int | None) -> tuple[TableValidation, int]:
    """Compare everything, or the rows with a record at or behind an offset.

    Returns:
        The comparison, and what the sink had applied when it began.
    """
    begun = world.applied
    if since is None:
        return validated(world, KEYED, 3), begun
    found = TableValidation(KEYED, world, world, 3, scanned=True)
    world.pass_time()
    found.compare_keys(sorted({(str(row),) for row, _ in world.log[since:]}))
    for _ in range(100):
        if not found.doubts:
            break
        found.settle()
    return found, begun


FAULTS = st.lists(st.sampled_from([0, 0, 0, 0, 1, 2]), max_size=40)


@settings(max_examples=500)
@given(WRITES, MOVES, QUIET_ROWS, FAULTS, st.integers(0, 3))
def test_a_proof_and_the_rows_that_changed_since_prove_all_rows(
    writes: list[tuple[int, int | None]],
    moves: object,
    quiet: dict[int, int],
    faults: list[int],
    rounds: int,
) -> None:
    world = world_of(writes, moves, quiet)
    faulty = FaultySink(**{f.name: getattr(world, f.name) for f in fields(World)}, faults=faults)
    since: int | None = None
    for _ in range(rounds + 1):
        found, begun = proved(faulty, since)
        if found.differences or found.unsettled:
            return
        since = begun
    faulty.moves.clear()  # the writes stop
    faulty.apply(len(faulty.log))
    found, _ = proved(faulty, since)
    assert bool(found.differences) == (faulty.target != faulty.merged())
