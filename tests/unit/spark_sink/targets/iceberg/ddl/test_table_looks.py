"""Drift of Iceberg tables: what is noticed from the metadata, when, and what is kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.model.errors import TargetError, WriterReplaced
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.drift import Difference, DriftKind
from shardmerge.spark_sink.targets.iceberg.ddl.drift_store import IcebergDriftStore
from shardmerge.spark_sink.targets.iceberg.ddl.journal import IcebergJournal
from shardmerge.spark_sink.targets.iceberg.ddl.table_looks import IcebergLooks
from shardmerge.spark_sink.targets.iceberg.texts.history import History, Snapshot
from shardmerge.spark_sink.targets.iceberg.texts.layout import Field
from tests.target_statements import written
from tests.unit.spark_sink.targets.iceberg.ddl.changed_tables import (
    CREATE,
    DONE,
    ID,
    OTHERS,
    OURS,
    A,
    N,
    T,
    World,
)


def test_every_statement_of_the_sink_leaves_no_difference(world: World) -> None:
    for version, clause in enumerate(
        [
            "ADD COLUMN `b` decimal(10,2)", "RENAME COLUMN `a` TO `text`", "ADD COLUMN `a` date",
            "ALTER COLUMN `n` TYPE bigint", "ALTER COLUMN `b` TYPE decimal(12,2)",
            "ALTER COLUMN `id` DROP NOT NULL", "ALTER COLUMN `b` COMMENT 'x'", "DROP COLUMN `n`",
            "ADD COLUMN `n` timestamp", "DROP COLUMN `gone`", "ADD COLUMN `n` timestamp",
        ],
        2,
    ):  # fmt: skip
        assert world.execute(version, f"ALTER TABLE `m`.`t` {clause}") == DONE, clause
        assert world.kinds == {}, clause
    world.start()
    assert world.kinds == {}


@pytest.mark.parametrize(
    ("fields", "kinds"),
    [
        ((ID, A), {"column:n": "missing"}),
        ((ID, A, replace(N, name="m")), {"column:n": "missing", "column:m": "harmless"}),
        ((ID, A, replace(N, type="long")), {"column:n": "harmless"}),
        ((ID, A, replace(N, type="string")), {"column:n": "values"}),
        ((ID, A, replace(N, required=True)), {"column:n": "refuses"}),
        ((replace(ID, required=False), A, N), {"column:id": "harmless"}),
        ((ID, A, Field(4, "n", "int")), {"column:n": "values"}),
        ((ID, A, N, Field(4, "x", "int")), {"column:x": "harmless"}),
        ((ID, A, N, Field(4, "x", "boolean")), {"column:x": "harmless"}),
        ((ID, A, N, Field(4, "x", "boolean", required=True)), {"column:x": "refuses"}),
        ((ID, A, replace(N, type="uuid")), {"column:n": "values"}),
        ((N, replace(A, doc="by hand"), ID), {}),
    ],
)
def test_what_a_change_by_hand_means(
    world: World, fields: tuple[Field, ...], kinds: dict[str, str]
) -> None:
    world.alter(*fields)
    assert world.kinds == kinds


def test_a_difference_is_told_as_spark_shows_columns(world: World) -> None:
    world.alter(ID, A, replace(N, type="long"), Field(4, "at", "timestamptz"))
    told = [(each.expected, each.found) for each in world.compare().differences]
    assert told == [("", "`at` timestamp"), ("`n` int", "`n` bigint")]
    world.alter(ID, A, Field(9, "n", "int"))
    [each] = world.compare().differences
    assert (each.expected, each.found) == ("`n` int, field 3", "`n` int, field 9")


def test_rows_of_others_are_told_and_upkeep_is_not(world: World) -> None:
    first = Snapshot(1, None, 1, 0, OURS)
    world.commits(first)
    assert world.kinds == {}
    world.commits(first, Snapshot(2, 1, 2, 0, {"operation": "replace"}))
    assert world.kinds == {}
    world.commits(first, Snapshot(2, 1, 2, 1_764_000_000_000, OTHERS), Snapshot(3, 2, 3, 0, OURS))
    [found] = world.compare().differences
    assert (found.subject, found.kind) == ("rows", DriftKind.VALUES)
    assert found.found == "append by spark (local-1), snapshot 2 of 2025-11-24 16:00:00 UTC"
    assert "shardmerge validate m.t" in world.heal()[0]


def test_rows_that_were_there_before_the_sink_are_not_told() -> None:
    world = World()
    other = TargetTable("m", "u")
    create = CREATE.replace("`t`", "`u`")
    world.catalog.create(other, world.layout, {})
    history = History(5, 5, {5: Snapshot(5, None, 5, 0, OTHERS)}, frozenset({5}))
    world.catalog.change(other, history=history)
    journal = IcebergJournal(world.store(), world.epoch)
    assert journal.execute(other, 1, 0, written(create)) == DONE
    assert world.comparer.compare(other).differences == ()


def test_a_table_that_was_set_back_is_told(world: World) -> None:
    first, second = Snapshot(1, None, 1, 0, OURS), Snapshot(2, 1, 2, 0, OURS)
    world.commits(first, second, current=1)
    [found] = world.compare().differences
    assert (found.subject, found.kind) == ("rollback", DriftKind.VALUES)
    assert "without the rows of snapshot 2" in found.found
    staged = replace(second, id=3)
    world.commits(first, second)
    history = world.catalog.tables[T].history
    kept = {**history.snapshots, 3: staged}
    world.catalog.change(T, history=replace(history, snapshots=kept))
    assert world.kinds == {}, "a snapshot that was only staged was never there"


def test_adopted_rows_are_told_no_more_and_the_next_ones_are(world: World) -> None:
    others = Snapshot(1, None, 1, 0, OTHERS)
    world.commits(others)
    assert world.adopt(2, "rows") == DONE
    assert world.kinds == {}
    world.commits(others, Snapshot(2, 1, 2, 0, OURS))
    assert world.kinds == {}
    world.commits(Snapshot(2, 1, 2, 0, OURS))
    assert world.kinds == {}, "the adopted one is expired"
    world.commits(Snapshot(2, 1, 2, 0, OURS), Snapshot(3, 2, 3, 0, OTHERS))
    assert world.kinds == {"rows": "values"}


def test_rows_of_others_stay_told_when_their_snapshot_expires(world: World) -> None:
    world.commits(Snapshot(1, None, 1, 0, OTHERS))
    found = world.compare().differences
    world.commits(Snapshot(2, 1, 2, 0, OURS))
    assert world.comparer.compare(T, found).differences == found
    assert world.comparer.compare(T).differences == ()


def test_a_table_of_an_earlier_version_counts_as_it_is(world: World) -> None:
    state = replace(world.store().states()[T], decided=None)
    earlier = {**world.catalog.tables[T].properties, **world.store().properties(state)}
    world.catalog.change(T, properties=earlier)
    world.commits(Snapshot(1, None, 1, 0, OTHERS))
    world.alter(ID, A)
    world.start()
    assert world.kinds == {}
    world.alter(ID)
    assert world.kinds == {"column:a": "missing"}


def test_a_look_compares_some_tables_and_the_next_one_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "shardmerge.spark_sink.targets.iceberg.ddl.table_looks.MOST_TOGETHER", 1
    )  # fmt: skip
    missing = TargetTable("m", "u")
    looks = IcebergLooks(world.comparer)
    first = looks.look({T: 0, missing: 0})
    assert (first.compared, first.left) == ({T: ()}, 1)
    second = looks.look({T: 0, missing: 0})
    assert second.left == 0
    assert [each.kind for each in second.compared[missing]] == [DriftKind.MISSING]
    looks.close()


def test_a_table_is_compared_again_only_after_a_commit_or_a_statement(world: World) -> None:
    looks = IcebergLooks(world.comparer)
    assert looks.look({T: 0}).compared == {T: ()}
    again = looks.look({T: 0})
    assert (again.compared, again.unchanged) == ({}, {T})
    assert looks.look({T: 1}).compared == {T: ()}
    world.alter(ID, A)
    [found] = looks.look({T: 1}).compared[T]
    assert found.subject == "column:n"
    del world.catalog.tables[T]
    for _ in range(2):
        assert [each.subject for each in looks.look({T: 1}).compared[T]] == ["table"]


def test_a_table_that_cannot_be_read_keeps_no_other_one_waiting(world: World) -> None:
    broken = TargetTable("m", "b")
    world.catalog.create(broken, world.layout, {"shardmerge.p.state": "{}"})
    look = IcebergLooks(world.comparer).look({T: 0, broken: 0})
    assert look.compared == {T: ()}
    assert "not readable" in str(look.failed[broken])


def test_a_look_ends_when_the_catalog_is_away(world: World) -> None:
    looks = IcebergLooks(world.comparer)

    def find(name: TargetTable) -> None:
        raise TargetError("away", retryable=True)

    find_before = world.catalog.find
    world.catalog.find = find  # type: ignore[method-assign]
    with pytest.raises(TargetError, match="away"):
        looks.look({T: 0})
    world.catalog.find = find_before  # type: ignore[method-assign]
    assert looks.look({T: 0}).compared == {T: ()}


def test_differences_are_kept_by_the_writer_alone(world: World) -> None:
    kept = IcebergDriftStore(world.store())
    assert kept.load() == {}
    found = (Difference("rows", DriftKind.VALUES, "", "x", 5, 3),)
    kept.keep(world.epoch, T, found)
    assert IcebergDriftStore(world.store()).load() == {T: found}
    kept.keep(world.epoch, T, ())
    assert kept.load() == {}
    world.start()
    with pytest.raises(WriterReplaced):
        kept.keep(world.epoch - 1, T, found)
