"""Statements on Iceberg tables that people changed: some adopt, none overwrites a change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.model.actions import Adoption
from shardmerge.schemas.records.decisions import StatementKind, TargetStatement
from shardmerge.schemas.records.drift import MET_CODE
from shardmerge.spark_sink.targets.iceberg.ddl.journal import IcebergJournal
from shardmerge.spark_sink.targets.iceberg.texts.decided import written_columns
from shardmerge.spark_sink.targets.iceberg.texts.layout import Field
from tests.unit.spark_sink.targets.iceberg.ddl.changed_tables import (
    CREATE,
    DONE,
    ID,
    A,
    N,
    T,
    World,
)


@pytest.mark.parametrize(
    ("fields", "subject"),
    [
        ((ID, A, N, Field(4, "x", "int")), "column:x"),
        ((ID, A, N, Field(4, "x", "boolean")), "column:x"),
        ((ID, A, replace(N, type="long")), "column:n"),
        ((ID, A, Field(4, "n", "int")), "column:n"),
        ((ID, A, replace(N, required=True)), "column:n"),
    ],
)
def test_what_is_adopted_counts_as_decided(
    world: World, fields: tuple[Field, ...], subject: str
) -> None:
    world.alter(*fields)
    assert world.adopt(2, subject) == DONE
    assert world.kinds == {}
    world.alter(ID, A)
    assert world.kinds[subject] == "missing"


def test_a_column_of_others_is_written_only_when_a_statement_adds_it(world: World) -> None:
    more, must = Field(4, "x", "int"), Field(5, "y", "int", required=True)
    world.alter(ID, A, N, more, must)

    def written_now() -> tuple[Field, ...]:
        return written_columns(world.layout, world.store().states()[T].decided)

    assert written_now() == (ID, A, N, must)
    assert world.adopt(2, "column:x") == DONE
    assert written_now() == (ID, A, N, must)
    assert world.execute(3, "ALTER TABLE `m`.`t` ADD COLUMN `x` int") == DONE
    assert written_now() == (ID, A, N, more, must)
    assert written_columns(world.layout, None) == world.layout.fields


def test_identifier_fields_are_adopted(world: World) -> None:
    world.alter(ID, A, N, identifiers=(1,))
    assert world.adopt(2, "identifier") == DONE
    assert world.kinds == {}


def test_what_was_changed_again_since_is_not_adopted(world: World) -> None:
    world.alter(ID, A, replace(N, type="long"))
    adoption = Adoption("column:n", "`n` string")
    said = TargetStatement("adopt", StatementKind.EXPANDING, "", (), (), None, (adoption,))
    assert world.run(2, said) == DONE
    assert world.kinds == {"column:n": "harmless"}


@pytest.mark.parametrize(
    ("fields", "clause"),
    [
        ((ID, replace(A, name="b"), N), "RENAME COLUMN `a` TO `c`"),
        ((ID, A, replace(N, type="string")), "ALTER COLUMN `n` TYPE bigint"),
        ((ID, A, replace(N, type="string")), "DROP COLUMN `n`"),
        ((ID, A, Field(4, "n", "int")), "DROP COLUMN `n`"),
    ],
)
def test_a_statement_overwrites_no_change_by_hand(
    world: World, fields: tuple[Field, ...], clause: str
) -> None:
    world.alter(*fields)
    before = world.layout
    entry = world.execute(2, f"ALTER TABLE `m`.`t` {clause}")
    assert (entry.state, entry.code) == ("refused", MET_CODE), entry
    assert "shardmerge drift heal m.t" in entry.error
    assert world.layout == before
    journal = IcebergJournal(world.store(), world.epoch)
    assert journal.load()[T, 2, 0] == entry, "a sink that starts knows the code, too"
    world.heal()
    if world.kinds == {}:
        assert world.execute(2, f"ALTER TABLE `m`.`t` {clause}") == DONE
        assert world.kinds == {}


@pytest.mark.parametrize(
    ("fields", "clause", "left"),
    [
        ((ID, A, replace(N, type="long")), "ALTER COLUMN `n` TYPE bigint", {}),
        ((ID, A, replace(N, type="long")), "DROP COLUMN `n`", {}),
        ((ID, A), "DROP COLUMN `n`", {}),
        ((ID, A, N, Field(4, "b", "int")), "ADD COLUMN `b` int", {}),
        ((ID, A, N, Field(4, "b", "long")), "ADD COLUMN `b` int", {"column:b": "harmless"}),
        ((ID, A, N, Field(4, "x", "int")), "RENAME COLUMN `a` TO `c`", {"column:x": "harmless"}),
    ],
)
def test_a_statement_that_overwrites_nothing_is_executed(
    world: World, fields: tuple[Field, ...], clause: str, left: dict[str, str]
) -> None:
    world.alter(*fields)
    assert world.execute(2, f"ALTER TABLE `m`.`t` {clause}") == DONE
    assert world.kinds == left


def test_columns_that_are_wider_than_a_statement_makes_them_stay(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    assert world.execute(2, "ALTER TABLE `m`.`t` ADD COLUMN `d` decimal(10,2)") == DONE
    wide = Field(4, "d", "decimal(20, 2)")
    world.alter(ID, A, N, wide)
    assert world.execute(3, "ALTER TABLE `m`.`t` ALTER COLUMN `d` TYPE decimal(12,2)") == DONE
    assert world.layout.field("d") == wide
    assert world.kinds == {"column:d": "harmless"}
    assert [r.__dict__["event"] for r in caplog.records] == ["wider_columns_kept"]
    assert world.execute(4, "ALTER TABLE `m`.`t` DROP COLUMN `d`") == DONE
    assert [r.__dict__["event"] for r in caplog.records][1:] == ["wider_columns_replaced"]


def test_a_dropped_table_is_told_and_not_made_again_without_a_command(world: World) -> None:
    dropped = world.catalog.tables.pop(T)
    assert world.kinds == {"table": "missing"}
    world.start()
    entry = world.execute(1, CREATE)
    assert (entry.state, entry.code) == ("refused", "SM-3106")
    assert "somebody dropped it" in entry.error and T not in world.catalog.tables
    world.catalog.tables[T] = dropped
    assert world.kinds == {}, "somebody restored it"
    del world.catalog.tables[T]
    assert world.heal() == [
        "forget this table: the sink makes it anew when it is started again"
    ]  # fmt: skip
    assert world.store().made() == []
    world.start()
    assert world.execute(1, CREATE) == DONE
    assert world.kinds == {}
    assert world.store().made() == [T]


def test_another_table_with_the_same_name_is_not_taken_for_the_sinks(world: World) -> None:
    world.catalog.create(T, world.layout, {})
    assert world.kinds == {"table": "missing"}
    world.start()
    assert world.kinds == {"table": "missing"}
    entry = world.execute(1, CREATE)
    assert entry.state == "refused" and "is not the table that the sink made" in entry.error
