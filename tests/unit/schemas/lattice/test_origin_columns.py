"""A shard's schema with origin columns, and without them again."""

from __future__ import annotations

import pytest

from shardmerge.schemas.lattice.joined import ShardSchema
from shardmerge.schemas.lattice.origin_columns import of_shard, own_schema, with_origin
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.origin import Origin, OriginColumn, OriginPart
from tests.strategies import table

SHARD, PLACE = OriginColumn(OriginPart.SHARD, "_S"), OriginColumn(OriginPart.POSITION, "_P")
KEYED = "CREATE TABLE t (id INT PRIMARY KEY, a INT, UNIQUE u (a))"
KEYLESS = "CREATE TABLE t (id INT, a INT, UNIQUE u (a))"


@pytest.mark.parametrize("in_keys", [False, True])
@pytest.mark.parametrize("columns", [KEYED, KEYLESS])
@pytest.mark.parametrize("parts", [(), (SHARD,), (PLACE,), (PLACE, SHARD)])
def test_what_origin_columns_add_can_be_taken_away(
    parts: tuple[OriginColumn, ...], columns: str, in_keys: bool
) -> None:
    plain = ShardSchema(table(columns), ("id#1", "a#1"))
    counted = with_origin(plain, Origin(parts, in_keys))
    assert own_schema(counted) == plain.schema
    assert of_shard(counted.columns) == plain.columns
    assert with_origin(counted, Origin(parts, in_keys)) == counted


def test_the_position_is_the_key_of_what_has_none() -> None:
    for columns, key in ((KEYED, ("id",)), (KEYLESS, ("_P",))):
        counted = with_origin(ShardSchema(table(columns), ("id#1", "a#1")), Origin((PLACE,)))
        found = counted.schema.primary_key
        assert found is not None
        assert found.columns == key


def test_each_row_has_a_position_of_its_own() -> None:
    with pytest.raises(ValueError, match="of their own"):
        OriginPart.POSITION.value_in(ShardId("s1", "app", "t"))


def test_only_columns_that_name_the_shard_tell_shards_apart() -> None:
    source, database, name = (
        OriginColumn(part, part.value)
        for part in (OriginPart.SOURCE, OriginPart.DATABASE, OriginPart.TABLE)
    )
    assert Origin((source, name, PLACE, database)).tells_shards_apart
    assert not Origin((source, name, PLACE)).tells_shards_apart
    of_two = Origin((PLACE, source)).condition(ShardId("s1", "app", "t"))
    assert of_two == "`source` = 's1'"
