"""Drift of Iceberg tables is healed: columns come back, and what cannot be healed is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.model.errors import TargetError
from shardmerge.spark_sink.targets.iceberg.ddl.healing_runs import heal, plan_of
from shardmerge.spark_sink.targets.iceberg.texts.history import Snapshot
from shardmerge.spark_sink.targets.iceberg.texts.layout import Field
from tests.unit.spark_sink.targets.iceberg.ddl.changed_tables import DONE, ID, OURS, A, N, T, World


def test_identifier_fields_do_no_harm(world: World) -> None:
    world.alter(ID, A, N, identifiers=(1,))
    assert world.kinds == {"identifier": "harmless"}
    assert world.heal() == ["ALTER TABLE `m`.`t` DROP IDENTIFIER FIELDS `id`"]
    assert world.kinds == {}


def test_a_dropped_column_comes_back_with_its_id_and_so_with_its_values(world: World) -> None:
    world.commits(Snapshot(1, None, 1, 0, OURS))
    world.alter(ID, N)
    assert world.heal() == ["restore the column `a` string, field 2"]
    assert world.kinds == {}
    assert world.layout.fields == (ID, A, N), "and where it stood"


def test_a_restored_column_is_not_null_only_if_every_row_has_it(world: World) -> None:
    world.commits(Snapshot(1, None, 1, 0, OURS))
    world.alter(A, N)
    world.heal()
    assert world.layout.field("id") == ID
    world.alter(A, N)
    world.commits(Snapshot(1, None, 1, 0, OURS))
    [step], _ = plan_of(world.compare(), T)
    assert "written or compacted since" in step.loses
    world.heal()
    assert world.layout.field("id") == replace(ID, required=False)
    assert world.kinds == {"column:id": "harmless"}


def test_a_renamed_column_gets_its_name_back(world: World) -> None:
    world.alter(ID, replace(A, name="b"), N)
    rename = "ALTER TABLE `m`.`t` RENAME COLUMN `b` TO `a`"
    assert world.heal() == [rename, rename]
    assert world.kinds == {}
    assert world.layout.field("a") == A
    noted = world.catalog.tables[T].properties["shardmerge.p.healed"]
    assert noted == f'["{rename} (healed by ann)"]'


def test_a_column_that_was_renamed_and_adopted_is_not_made_twice(world: World) -> None:
    world.alter(ID, replace(A, name="b"), N)
    assert world.adopt(2, "column:b") == DONE
    assert world.kinds == {"column:a": "missing"}
    assert world.heal() == ["rename the column b back: it was adopted"]
    assert world.layout.fields == (ID, replace(A, name="b"), N)


def test_a_column_that_took_the_name_of_another_is_replaced_by_it(world: World) -> None:
    world.alter(ID, A, Field(7, "n", "int"))
    assert world.heal() == [
        "ALTER TABLE `m`.`t` DROP COLUMN `n`", "restore the column `n` int, field 3"
    ]  # fmt: skip
    assert world.kinds == {}
    assert world.layout.last_id == 7, "the id of the dropped column is not given again"


@pytest.mark.parametrize(
    ("fields", "steps", "left"),
    [
        ((ID, A, replace(N, required=True)), ["ALTER COLUMN `n` DROP NOT NULL"], {}),
        ((ID, A, N, Field(4, "x", "uuid")), ["DROP COLUMN `x`"], {}),
        (
            (ID, A, replace(N, type="long")),
            ["Iceberg does not change n from bigint to int"],
            {"column:n": "harmless"},
        ),
        (
            (replace(ID, required=False), A, N),
            ["Iceberg does not make the nullable column id NOT NULL"],
            {"column:id": "harmless"},
        ),
    ],
)
def test_what_heals_and_what_cannot(
    world: World, fields: tuple[Field, ...], steps: list[str], left: dict[str, str]
) -> None:
    world.alter(*fields)
    alter = "ALTER TABLE `m`.`t` "
    assert [step.removeprefix(alter) for step in world.heal()] == steps
    assert world.kinds == left


def test_healing_is_refused_when_the_table_has_changed_since(world: World) -> None:
    world.alter(ID, A)
    steps, _ = plan_of(world.compare(), T)
    world.alter(ID)
    with pytest.raises(TargetError, match="has changed since"):
        heal(world.comparer, T, steps, ("column:a", "column:n"), "ann")
    assert world.layout.fields == (ID,)


def test_healing_goes_on_when_the_sink_commits_between(world: World) -> None:
    world.alter(ID, A)
    steps, _ = plan_of(world.compare(), T)
    world.catalog.between = [lambda: world.catalog.change(T, snapshot=9)]
    heal(world.comparer, T, steps, ("column:n",), "ann")
    assert world.kinds == {}
    assert world.catalog.tables[T].snapshot == 9
