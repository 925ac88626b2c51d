"""Each rule of a first load has histories that end well with it and badly without it.

The control of ``load_world``: a model in which nothing can go wrong proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from shardmerge.spark_sink.loading import load_rules
from shardmerge.spark_sink.loading.load_state import Load, LoadKind
from tests.properties.load_world import Reading, Shape, World
from tests.properties.test_first_loads import SHAPES

KEYED, UNIQUE, KEYLESS = Shape(), Shape(has_unique=True), Shape(has_key=False)
MOST = 4_000
"""Histories that are tried; each rule needs far fewer."""
Patch: TypeAlias = pytest.MonkeyPatch


def the_stream_overtakes_the_load(patch: Patch) -> None:
    patch.setattr(load_rules, "stream_stop", lambda gates, load: None)


def a_replica_is_read_that_is_behind(patch: Patch) -> None:
    real = load_rules.may_give_out
    patch.setattr(
        load_rules,
        "may_give_out",
        lambda gates, load, blocked, **_: real(gates, load, blocked, source_has_base=True),
    )


def a_late_chunk_is_written(patch: Patch) -> None:
    patch.setattr(Load, "accepts", lambda self, number, base: number < len(self.chunks))


def a_chunk_of_another_schema_is_written(patch: Patch) -> None:
    patch.setattr(World, "has_schema", lambda self, reading, gate: reading.columns is not None)


def nobody_waits_for_the_schema_changes_behind_the_chunks(patch: Patch) -> None:
    patch.setattr(load_rules, "proves", lambda gates, load, known_to: load.is_read)


def statements_do_not_wait_for_a_load(patch: Patch) -> None:
    patch.setattr(load_rules, "may_have_rows_before", lambda gates, load, place: False)


def every_table_is_read_in_chunks(patch: Patch) -> None:
    patch.setattr(load_rules, "kind_of", lambda **_: LoadKind.CHUNKS)


def rows_before_a_snapshot_are_applied(patch: Patch) -> None:
    patch.setattr(load_rules, "passes_over", lambda load, place: False)


def a_load_goes_on_in_a_table_that_was_made_again(patch: Patch) -> None:
    patch.setattr(Load, "end_void", lambda self, base, dropped: self.move(base, dropped))


def an_order_does_not_reach_chunks_that_are_done(patch: Patch) -> None:
    real = Load.move
    patch.setattr(
        Load, "move", lambda self, base, changed, **how: real(self, base, changed)
    )


def a_chunk_is_done_before_its_rows_are_written(patch: Patch) -> None:
    real = World.commit

    def commit(self: World, reading: Reading) -> None:
        if self.random.random() < 0.3:
            # The driver dies between two transactions.
            self.load = self.load.finish(reading.number, 0, 0, reading.read_before)
            if self.load.kind is LoadKind.SNAPSHOT:
                self.load = self.load.taken_at(reading.position)
            self.crash()
        else:
            real(self, reading)

    patch.setattr(World, "commit", commit)


def the_base_does_not_move(patch: Patch) -> None:
    patch.setattr(load_rules, "next_base", lambda gates, load, blocked: None)


MUTANTS: list[tuple[Callable[[Patch], None], Shape]] = [
    (the_stream_overtakes_the_load, KEYED),
    (a_replica_is_read_that_is_behind, KEYED),
    (a_late_chunk_is_written, KEYED),
    (a_chunk_of_another_schema_is_written, KEYED),
    (nobody_waits_for_the_schema_changes_behind_the_chunks, KEYED),
    (nobody_waits_for_the_schema_changes_behind_the_chunks, KEYLESS),
    (statements_do_not_wait_for_a_load, KEYED),
    (every_table_is_read_in_chunks, UNIQUE),
    (every_table_is_read_in_chunks, KEYLESS),
    (rows_before_a_snapshot_are_applied, UNIQUE),
    (rows_before_a_snapshot_are_applied, KEYLESS),
    (a_load_goes_on_in_a_table_that_was_made_again, KEYLESS),
    (an_order_does_not_reach_chunks_that_are_done, KEYED),
    (a_chunk_is_done_before_its_rows_are_written, KEYED),
    (the_base_does_not_move, KEYED),
]


@pytest.mark.parametrize(
    ("without", "shape"), MUTANTS, ids=[f"{m.__name__}-{n}" for n, (m, _) in enumerate(MUTANTS)]
)
def test_a_rule_that_is_taken_out_is_missed(
    without: Callable[[Patch], None], shape: Shape, monkeypatch: Patch
) -> None:
    without(monkeypatch)
    for seed in range(MOST):
        try:
            World(shape, seed).run(100)
        except AssertionError:
            break
    else:
        pytest.fail(f"{MOST} histories end well without this rule")
    monkeypatch.undo()
    World(shape, seed).run(100)


def test_histories_have_what_the_argument_is_about() -> None:
    seen = {"moved": 0, "void": 0, "again": 0, "read again": 0, "schema": 0, "late": 0}
    for seed in range(200):
        world = World(SHAPES["keyed"], seed)
        world.run(100)
        seen["moved"] += world.load.base > world.load.version
        seen["void"] += any(load.is_void for load in world.target.loads)
        seen["again"] += len(world.target.loads) > 1
        for what, count in world.seen.items():
            seen[what] += count
    assert min(seen.values()) > 10, seen
