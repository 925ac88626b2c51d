"""Renames in an order in which each is legal."""

from __future__ import annotations

from shardmerge.schemas.lattice.copied_columns import NO_MOVES
from shardmerge.schemas.lattice.type_join import WIDE
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column, TableSchema
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.target.dialects.mysql_dialect import MYSQL_8
from shardmerge.schemas.target.renames import Rename, renames
from shardmerge.schemas.target.target_change import TargetChange
from shardmerge.schemas.target.target_table import TargetSchema


def columns(**names: str) -> tuple[ShardColumn, ...]:
    return tuple(ShardColumn(i, Column(name, ColumnType("int"))) for i, name in names.items())


def ordered(before: dict[str, str], after: dict[str, str]) -> list[Rename]:
    """What is done to columns of these names, by identity."""
    from_columns, to_columns = columns(**before), columns(**after)
    schema = TableSchema(tuple(c.column for c in to_columns))
    change = TargetChange.of(
        TableSchema(tuple(c.column for c in from_columns)), from_columns,
        TargetSchema(schema, to_columns), MYSQL_8,
        copies=NO_MOVES, renewed=lambda column_id: False, types=WIDE,
    )  # fmt: skip
    return list(renames(change, change.before, change.goes))


def test_a_name_must_be_free_before_another_column_takes_it() -> None:
    found = ordered({"x": "a", "y": "b", "z": "c"}, {"x": "b", "y": "c", "z": "d"})
    assert found == [Rename("z", "d"), Rename("y", "c"), Rename("x", "b")]


def test_names_are_swapped_by_a_third_one() -> None:
    found = ordered({"x": "a", "y": "b"}, {"x": "b", "y": "a"})
    assert found == [Rename("x", "_shardmerge_a"), Rename("y", "a"), Rename("x", "b")]


def test_a_column_that_goes_makes_room_for_its_name() -> None:
    assert ordered({"x": "a", "y": "b"}, {"y": "a"}) == [Rename("x", None), Rename("y", "a")]
    assert ordered({"x": "a", "y": "b"}, {"y": "b", "z": "A"}) == [Rename("x", None)]
    assert ordered({"x": "a", "y": "b"}, {"y": "b"}) == []


def test_the_last_column_is_renamed_instead_of_dropped() -> None:
    assert ordered({"x": "a"}, {"z": "a"}) == [Rename("x", "_shardmerge_a")]
    assert ordered({"x": "a" * 64}, {"z": "a" * 64}) == [
        Rename("x", ("_shardmerge_" + "a" * 64)[:60])
    ]
