"""The types of origin columns that hold what a route's named groups match."""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.origin import (
    Origin,
    OriginColumn,
    OriginPart,
    group_cell,
    group_of,
    group_type,
    origin_part,
)

REGION = OriginColumn(OriginPart.GROUP, "_region", "region", "varchar(3)")
SHARD = OriginColumn(OriginPart.SHARD, "_shard")


@pytest.mark.parametrize(
    ("kind", "text", "cell"),
    [
        ("varchar(3)", "eu€", "eu€"),
        ("varchar(3)", "", ""),
        ("int", "0042", "42"),
        ("TINYINT", "-128", "-128"),
        ("bigint unsigned", str((1 << 64) - 1), str((1 << 64) - 1)),
    ],
)
def test_a_value_that_fits_is_as_the_column_has_it(kind: str, text: str, cell: str) -> None:
    assert group_cell(text, group_type(kind)) == cell


@pytest.mark.parametrize(
    ("kind", "text", "told"),
    [
        ("varchar(3)", "asia", "'asia' has more than 3 characters"),
        ("int", "", "'' is no whole number"),
        ("int", "1e3", "'1e3' is no whole number"),
        ("int", "٣", "is no whole number"),
        ("tinyint", "128", "128 is not from -128 to 127"),
        ("tinyint unsigned", "-1", "-1 is not from 0 to 255"),
    ],
)
def test_a_value_that_does_not_fit_is_told(kind: str, text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        group_cell(text, group_type(kind))


@pytest.mark.parametrize("kind", ["varchar", "varchar(0)", "varchar(192)", "date", "int(3)", ""])
def test_other_types_are_refused(kind: str) -> None:
    with pytest.raises(ValueError, match=r"is not varchar|must have 1 to 191"):
        group_type(kind)


def test_a_groups_column_has_an_identity_of_its_own_and_finds_no_rows() -> None:
    assert REGION.column_id == "@group:region"
    assert origin_part(REGION.column_id) is OriginPart.GROUP
    assert (group_of(REGION.column_id), group_of("@shard")) == ("region", "")
    origin = Origin((REGION, SHARD), in_keys=True)
    assert origin.of_shard == (REGION, SHARD)
    assert origin.condition(ShardId("s1", "app", "t")) == "`_shard` = 's1/app.t'"
    assert str(origin) == "_region (group region, varchar(3)), _shard (shard), in keys"
    assert not Origin((REGION,)).tells_shards_apart
