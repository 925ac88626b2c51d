"""Who may change an Iceberg table while a rebuilt one takes its place. No Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from shardmerge.schemas.model.errors import TargetClosed, TargetError, WriterReplaced
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.drift import Difference, DriftKind
from shardmerge.spark_sink.barrier.closing import Closing, Marks
from shardmerge.spark_sink.planning.ranges import Advance
from shardmerge.spark_sink.rebuilding.rebuild_record import Stage
from shardmerge.spark_sink.targets.iceberg.ddl.drift_store import IcebergDriftStore
from shardmerge.spark_sink.targets.iceberg.ddl.journal import IcebergJournal
from shardmerge.spark_sink.targets.iceberg.load_store import IcebergLoadStore
from shardmerge.spark_sink.targets.iceberg.rebuild_store import IcebergRebuildStore
from shardmerge.spark_sink.targets.iceberg.store import IcebergStore
from shardmerge.spark_sink.targets.iceberg.texts.stored import StoredState
from tests.iceberg_catalog import LakeCatalog
from tests.target_statements import written
from tests.unit.spark_sink.rebuilding.test_rebuild_record import RECORD, TARGET
from tests.unit.spark_sink.targets.iceberg.texts.test_stored_loads import LOAD

CREATE = f"CREATE TABLE {TARGET.sql} (`id` int NOT NULL) USING iceberg"
OTHER = TargetTable("merged", "other")
ROWS = Difference("rows", DriftKind.VALUES, "", "append by spark")


class World:
    """A catalog with one table, whose rebuild is told by its records alone."""

    def __init__(self) -> None:
        self.catalog, self.store = LakeCatalog(), self.opened()
        self.store.prepare()
        self.epoch = self.store.take_epoch()
        self.execute(1, CREATE, self.epoch)
        self.rebuilds = IcebergRebuildStore(self.opened())

    def opened(self) -> IcebergStore:
        return IcebergStore(lambda: cast(Any, self.catalog), TargetTable("control", "p"), "p")

    def execute(self, version: int, sql: str, epoch: int) -> None:
        IcebergJournal(self.opened(), epoch).execute(TARGET, version, 0, written(sql))

    def move(self, epoch: int) -> None:
        self.opened().move(epoch, [Advance("topic", 0, 0, 5, TARGET, 0, 0, 0)])

    @property
    def state(self) -> StoredState:
        return self.store.state_of(self.store.catalog.load(TARGET))

    def exchanged(self) -> None:
        """The part of a swap that writers notice."""
        later = self.store.properties(replace(self.state, epoch=self.state.epoch + 1))
        properties = {**self.catalog.tables[TARGET].properties, **later}
        self.catalog.change(TARGET, properties=properties)

    def placed(self) -> None:
        self.rebuilds.keep_placed(replace(RECORD, stage=Stage.SWAPPED))


@pytest.fixture
def world() -> World:
    return World()


def test_a_closed_table_is_changed_by_nobody_until_it_is_open_again(world: World) -> None:
    world.rebuilds.close_for_swap(TARGET)
    later = world.opened().take_epoch()
    assert world.state.closed is Closing.SWAPPING
    with pytest.raises(TargetClosed, match=str(TARGET)) as closed:
        world.move(later)
    assert (closed.value.code, closed.value.retryable) == ("SM-6510", True)
    with pytest.raises(TargetClosed):
        world.execute(2, f"ALTER TABLE {TARGET.sql} ADD COLUMN `a` int", later)
    with pytest.raises(WriterReplaced):
        world.move(world.epoch)
    world.rebuilds.reopen(TARGET)
    world.move(later)


def test_a_writer_that_missed_the_swap_is_told_to_wait_and_not_that_it_is_replaced(
    world: World,
) -> None:
    world.exchanged()
    for act in (
        lambda: world.move(world.epoch),
        lambda: world.execute(2, f"ALTER TABLE {TARGET.sql} ADD COLUMN `a` int", world.epoch),
    ):
        with pytest.raises(TargetError) as closed:
            act()
        assert isinstance(closed.value, TargetClosed)
    # Another writer took over, too.
    world.opened().take_epoch()
    with pytest.raises(WriterReplaced):
        world.move(world.epoch)


def test_a_writer_that_starts_after_swaps_has_the_latest_epoch(world: World) -> None:
    world.exchanged()
    world.exchanged()
    epoch = world.opened().take_epoch()
    assert epoch > world.epoch + 2
    world.move(epoch)


def test_a_swap_behind_the_epoch_of_a_writer_is_told_to_it(world: World) -> None:
    store = world.opened()
    store.take_epoch()
    world.exchanged()
    world.placed()
    assert store.marks() == Marks({}, 0)
    assert store.marks() == Marks({}, RECORD.number)
    later = world.opened()
    later.take_epoch()
    assert later.marks() == Marks({}, RECORD.number)


def test_drift_from_before_a_swap_is_forgotten_and_not_brought_back(world: World) -> None:
    drift = IcebergDriftStore(world.store)
    assert drift.load() == {}
    drift.keep(world.epoch, TARGET, (ROWS,))
    drift.keep(world.epoch, OTHER, (ROWS,))
    world.placed()
    assert IcebergDriftStore(world.opened()).load() == {OTHER: (ROWS,)}
    # What a look found before, and the driver takes only now.
    drift.keep(world.epoch, TARGET, (ROWS,))
    assert IcebergDriftStore(world.opened()).load() == {OTHER: (ROWS,)}
    drift.load()
    drift.keep(world.epoch, TARGET, (ROWS,))
    assert drift.load() == {TARGET: (ROWS,), OTHER: (ROWS,)}


def test_a_load_is_not_stored_by_a_writer_that_missed_the_swap(world: World) -> None:
    world.exchanged()
    with pytest.raises(TargetClosed):
        IcebergLoadStore(world.opened()).keep(world.epoch, [(None, replace(LOAD, target=TARGET))])
