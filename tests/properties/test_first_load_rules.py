"""Each rule of a first load has histories that end well with it and badly without it.

The control of ``load_world``: a model in which nothing can go wrong proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

import pytest

from shardmerge.spark_sink.barrier.shard_gates import ShardGates
from shardmerge.spark_sink.loading import load_rules
from shardmerge.spark_sink.loading.load_state import Load, LoadKind
from tests.properties import load_snapshots
from tests.properties.load_snapshots import Reading
from tests.properties.load_source import Ddl, Event, Image, Shape, place
from tests.properties.load_world import World

KEYED, UNIQUE, KEYLESS = Shape(), Shape(has_unique=True), Shape(has_key=False)
LATER = Shape(has_unique=True, unique_comes=True)
IGNORING = Shape(ignores_deletes=True)
LOSING = Shape(loses_key=True)
MOST = 2_000
"""Histories that are tried; each rule needs far fewer."""
ROW: Image = {"id": 1, "where": 0}
Patch: TypeAlias = pytest.MonkeyPatch


def the_stream_overtakes_the_load(patch: Patch) -> None:
    patch.setattr(load_rules, "stream_stop", lambda gates, load, orders: None)


def the_stream_passes_an_order(patch: Patch) -> None:
    real = load_rules.stream_stop
    patch.setattr(load_rules, "stream_stop", lambda gates, load, orders: real(gates, load, ()))


def a_replica_is_read_that_is_behind(patch: Patch) -> None:
    real = load_rules.may_give_out
    patch.setattr(
        load_rules,
        "may_give_out",
        lambda gates, load, blocked, **_: real(gates, load, blocked, source_has_base=True),
    )


def a_late_chunk_is_written(patch: Patch) -> None:
    patch.setattr(Load, "accepts", lambda self, attempt: attempt.chunk < len(self.chunks))


def a_chunk_of_another_schema_is_written(patch: Patch) -> None:
    patch.setattr(World, "has_schema", lambda self, reading, gate: reading.columns is not None)


def nobody_waits_for_the_schema_changes_behind_the_chunks(patch: Patch) -> None:
    patch.setattr(load_rules, "proves", lambda gates, load, known_to: load.is_read)


def statements_do_not_wait_for_a_load(patch: Patch) -> None:
    patch.setattr(load_rules, "may_have_rows_before", lambda gates, load, place: False)


def every_table_is_read_in_chunks(patch: Patch) -> None:
    patch.setattr(load_rules, "kind_of", lambda **_: LoadKind.CHUNKS)


def a_unique_key_does_not_wait(patch: Patch) -> None:
    patch.setattr(load_rules, "may_have_duplicates", lambda load, *_: False)


def a_unique_key_waits_for_the_load_alone(patch: Patch) -> None:
    patch.setattr(load_rules, "may_have_duplicates", lambda load, *_: not load.is_complete)


def rows_before_a_snapshot_are_applied(patch: Patch) -> None:
    patch.setattr(load_rules, "passed_over_to", lambda gates, load: None)


def a_load_is_of_chunks_until_the_target_has_its_table(patch: Patch) -> None:
    real = load_rules.passed_over_to
    patch.setattr(
        load_rules,
        "passed_over_to",
        lambda gates, load: real(gates, load) if load.has_begun or load.is_complete else None,
    )


def attempts_share_a_table(patch: Patch) -> None:
    def stage(world: World, reading: Reading) -> bool:
        reading.attempt = 1 if reading.attempt else 0
        known = list(world.target.staged.get(1, ()))
        ended = real(world, reading)
        if reading.attempt and world.target.attempt > 1:
            world.target.staged[1] = known + world.target.staged.pop(world.target.attempt, [])
            world.target.attempt = reading.attempt = 1
        return ended

    real = load_snapshots.stage
    patch.setattr(load_snapshots, "stage", stage)


def an_attempt_that_does_not_count_is_finished(patch: Patch) -> None:
    patch.setattr(World, "counts", lambda self, reading: True)


def a_piece_is_noted_after_its_rows(patch: Patch) -> None:
    real = World.note_copied

    def note_copied(self: World, rows: int) -> None:
        if self.random.random() < 0.3:
            self.crash()
        else:
            real(self, rows)

    patch.setattr(World, "note_copied", note_copied)


def a_load_goes_on_in_a_table_that_was_made_again(patch: Patch) -> None:
    patch.setattr(Load, "end_void", lambda self, base, dropped: self.move(base, dropped))


def an_order_does_not_reach_chunks_that_are_done(patch: Patch) -> None:
    real = Load.move
    patch.setattr(Load, "move", lambda self, base, changed, **how: real(self, base, changed))


def a_chunk_is_done_before_its_rows_are_written(patch: Patch) -> None:
    real = World.commit

    def commit(self: World, reading: Reading) -> None:
        if self.random.random() < 0.3:
            # The driver dies between two transactions.
            self.load = self.load.finish(reading.given.chunk, 0, 0, reading.read_before)
            self.crash()
        else:
            real(self, reading)

    patch.setattr(World, "commit", commit)


def chunks_go_on_without_a_key(patch: Patch) -> None:
    patch.setattr(Load, "begin_again", lambda self: self)


def rows_from_before_a_snapshot_stay(patch: Patch) -> None:
    patch.setattr(Load, "begin_again", lambda self: self.read_as(LoadKind.SNAPSHOT))


def a_lost_key_is_noticed_when_the_table_is_read(patch: Patch) -> None:
    real = load_rules.moved

    def moved(gates: ShardGates, load: Load, index: int, reread: Iterable[int]) -> Load:
        after = real(gates, load, index, reread)
        if load.kind is LoadKind.CHUNKS and after.kind is LoadKind.SNAPSHOT:
            return replace(after, kind=LoadKind.CHUNKS, clears=False)
        return after

    patch.setattr(load_rules, "moved", moved)


def a_load_is_complete_whenever_a_change_comes(patch: Patch) -> None:
    real = load_rules.moved

    def moved(gates: ShardGates, load: Load, index: int, reread: Iterable[int]) -> Load:
        return load.proven() if load.is_read else real(gates, load, index, reread)

    patch.setattr(load_rules, "moved", moved)


def an_ordered_load_is_read_at_its_gate(patch: Patch) -> None:
    patch.setattr(World, "place_of_load", place(0))


def an_ordered_load_takes_nothing_out(patch: Patch) -> None:
    patch.setattr(World, "empty", lambda self: None)


def the_base_does_not_move(patch: Patch) -> None:
    patch.setattr(load_rules, "next_base", lambda gates, load, blocked: None)


def _adds_a_column(world: World) -> None:
    """The table gets a column, and the load stands behind that."""
    world.source.ddl(Ddl(("where", "a#1"), _with_5, _with_5, fill=5))
    _all(world.decide_next)
    assert world.execute()
    assert world.move_base()
    _all(world.replicate)


def _with_5(image: Image) -> Image:
    return {**image, "a#1": 5}


def _all(step: Callable[[], bool]) -> None:
    while step():
        pass


def _drops_the_column(world: World) -> None:
    def without(image: Image) -> Image:
        return {c: v for c, v in image.items() if c != "a#1"}

    world.source.ddl(Ddl(("where",), without, without, kind="contracting"))


def converted_unseen(world: World) -> None:
    """A conversion that leaves the names as they are; all chunks are read behind it."""

    def tenfold(image: Image) -> Image:
        return {"a#2" if c == "a#1" else c: v * 10 if c == "a#1" else v for c, v in image.items()}

    _adds_a_column(world)
    world.source.ddl(Ddl(("where", "a#2"), tenfold, tenfold, kind="switching"))
    _all(world.replicate)
    _all(world.cut)
    _all(lambda: world.read() or world.write())
    world.prove()


def an_order_that_the_stream_has_passed(world: World) -> None:
    """Values that nobody knows, then a change that the server which is read does not have yet."""

    def reset(value: int | None) -> Callable[[Image], Image]:
        return lambda image: {"id": image["id"], "where": image["where"], "a#2": value}

    _adds_a_column(world)
    _all(world.cut)
    _all(lambda: world.read() or world.write())
    assert world.prove()
    world.source.ddl(
        Ddl(("where", "a#2"), reset(100), reset(None), kind="switching", orders_load=True)
    )
    _all(world.replicate)
    (old,) = world.source.now.rows
    new = {**old, "a#2": 7}
    world.source.append(Event(old, new), (new,))
    _all(world.decide_next)
    _all(lambda: world.execute() or world.apply())
    world.move_base()
    _all(world.cut)
    _all(lambda: world.read() or world.write())


def made_again_unseen(world: World) -> None:
    """The table is dropped and made again; the snapshot is taken behind that."""
    world.source.ddl(Ddl((), live=False, kind="contracting"))
    world.source.ddl(Ddl(("where",)))
    world.source.append(Event(None, ROW), (ROW,))
    _all(world.replicate)
    assert world.cut()
    assert world.read()
    _all(world.write)
    world.prove()
    _all(world.copy)


def dropped_while_a_chunk_is_read(world: World) -> None:
    """The statement is due before the chunk is written."""
    _adds_a_column(world)
    _all(world.cut)
    _all(world.read)
    _drops_the_column(world)
    _all(world.decide_next)
    world.execute()
    _all(world.write)


def dropped_before_a_chunk_is_read(world: World) -> None:
    """The column comes unseen; the chunk has it, the target has not."""
    world.source.ddl(Ddl(("where", "a#1"), _with_5, _with_5, fill=5))
    _all(world.replicate)
    _all(world.cut)
    _all(world.read)
    _all(world.write)


def overtaken_by_another_attempt(world: World) -> None:
    """A process has written all rows; another one begins, and drops its table."""
    world.cut()
    world.read()
    (first,) = world.readings
    load_snapshots.stage(world, first)
    load_snapshots.stage(world, first)
    assert load_snapshots.run_again(world)
    load_snapshots.stage(world, world.readings[-1])
    assert load_snapshots.stage(world, first)
    world.readings.remove(first)
    world.prove()
    _all(world.copy)


def ordered_behind_applied_rows(world: World) -> None:
    """The stream has passed an event that the server which is read does not have yet."""
    world.settle()
    (old,) = world.source.now.rows
    new = {**old, "where": 1}
    world.source.append(Event(old, new), (new,))
    _all(world.decide_next)
    assert world.apply()
    world.order_again()
    assert world.move_base()
    assert world.take_out()
    _all(world.cut)
    _all(lambda: world.read() or world.write())


MUTANTS: list[tuple[Callable[[Patch], None], Shape, Callable[[World], None] | None]] = [
    (the_stream_overtakes_the_load, KEYED, None),
    (the_stream_passes_an_order, KEYED, an_order_that_the_stream_has_passed),
    (a_replica_is_read_that_is_behind, KEYED, None),
    (a_late_chunk_is_written, KEYED, None),
    (a_chunk_of_another_schema_is_written, KEYED, dropped_before_a_chunk_is_read),
    (nobody_waits_for_the_schema_changes_behind_the_chunks, KEYED, converted_unseen),
    (nobody_waits_for_the_schema_changes_behind_the_chunks, KEYLESS, made_again_unseen),
    (statements_do_not_wait_for_a_load, KEYED, dropped_while_a_chunk_is_read),
    (every_table_is_read_in_chunks, UNIQUE, None),
    (every_table_is_read_in_chunks, KEYLESS, None),
    (a_unique_key_does_not_wait, LATER, None),
    (a_unique_key_waits_for_the_load_alone, LATER, None),
    (rows_before_a_snapshot_are_applied, UNIQUE, None),
    (rows_before_a_snapshot_are_applied, KEYLESS, None),
    (rows_before_a_snapshot_are_applied, IGNORING, None),
    (every_table_is_read_in_chunks, IGNORING, None),
    (a_load_is_of_chunks_until_the_target_has_its_table, KEYLESS, None),
    (attempts_share_a_table, KEYLESS, None),
    (an_attempt_that_does_not_count_is_finished, KEYLESS, overtaken_by_another_attempt),
    (a_piece_is_noted_after_its_rows, KEYLESS, None),
    (a_load_goes_on_in_a_table_that_was_made_again, KEYLESS, None),
    (an_order_does_not_reach_chunks_that_are_done, KEYED, None),
    (a_chunk_is_done_before_its_rows_are_written, KEYED, None),
    (chunks_go_on_without_a_key, LOSING, None),
    (rows_from_before_a_snapshot_stay, LOSING, None),
    (a_lost_key_is_noticed_when_the_table_is_read, LOSING, None),
    (a_load_is_complete_whenever_a_change_comes, KEYED, converted_unseen),
    (an_ordered_load_is_read_at_its_gate, KEYED, ordered_behind_applied_rows),
    (an_ordered_load_takes_nothing_out, KEYLESS, None),
    (the_base_does_not_move, KEYED, None),
]


@pytest.mark.parametrize(
    ("without", "shape", "history"),
    MUTANTS,
    ids=[f"{m.__name__}-{n}" for n, (m, *_) in enumerate(MUTANTS)],
)
def test_a_rule_that_is_taken_out_is_missed(
    without: Callable[[Patch], None],
    shape: Shape,
    history: Callable[[World], None] | None,
    monkeypatch: Patch,
) -> None:
    without(monkeypatch)
    for seed in range(1 if history else MOST):
        world = World(shape, seed, [ROW] if history else None)
        try:
            _play(world, history)
        except AssertionError:
            break
    else:
        pytest.fail("the history ends well without this rule")
    monkeypatch.undo()
    _play(World(shape, seed, [ROW] if history else None), history)


def _play(world: World, history: Callable[[World], None] | None) -> None:
    if history is None:
        world.run(100)
    else:
        history(world)
        world.settle()


@pytest.mark.parametrize("shape", [KEYED, UNIQUE, KEYLESS], ids=["keyed", "unique", "keyless"])
def test_rows_that_the_shard_does_not_have_go_with_a_load_that_is_ordered(shape: Shape) -> None:
    for seed in range(50):
        world = World(shape, seed, [ROW | ({"u": 1} if shape.has_unique else {})])
        world.settle()
        assert world.load.is_complete
        # Somebody changed rows of the target by hand.
        strays = [row | {"id": row["id"] + 100} for row in world.target.rows]
        world.target.rows = strays
        world.order_again()
        world.run(60)


def test_attempts_to_read_a_snapshot_meet_each_other() -> None:
    seen = dict.fromkeys(("late", "again"), 0)
    for seed in range(100):
        world = World(KEYLESS, seed)
        world.run(100)
        for what in seen:
            seen[what] += world.seen[what]
    assert min(seen.values()) > 0, seen


def test_histories_have_what_the_argument_is_about() -> None:
    seen = dict.fromkeys(("moved", "void", "again", "read again", "schema", "late", "ordered"), 0)
    for seed in range(100):
        world = World(KEYED, seed)
        world.run(100)
        seen["moved"] += world.load.base > world.load.version
        seen["void"] += any(load.is_void for load in world.target.loads)
        seen["again"] += len(world.target.loads) > 1
        for what, count in world.seen.items():
            seen[what] += count
    assert min(seen.values()) > 0, seen
