"""A shard's schema and the joined one, as of a version, time or position."""

from __future__ import annotations

import pytest

from shardmerge.cli.views.schema import joined_schema, shard_schema
from shardmerge.cli.views.target_log import AsOf
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.position import SourcePosition
from tests.recorded import Recorded

from .pictures import ONE, TWO, conflicting, log, recorded


@pytest.fixture(scope="module")
def grown() -> Recorded:
    """The first shard adds b at position 150 (version 3) and c at 200 (version 4)."""
    return recorded(("s1", "ALTER TABLE tbl1 ADD b INT"), ("s1", "ALTER TABLE tbl1 ADD c INT"))


def names(text: str) -> list[str]:
    return [name for name in ("id", "a", "b", "c") if f"`{name}`" in text]


def test_the_joined_schema_tells_which_shards_lack_a_column(grown: Recorded) -> None:
    found = joined_schema(log(grown))
    assert (found.version, names(found.create_table)) == (4, ["id", "a", "b", "c"])
    assert {column.name: column.missing_on for column in found.columns} == {
        "id": (), "a": (), "b": (str(TWO),), "c": (str(TWO),),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("as_of", "version", "columns"),
    [
        (AsOf(version=3), 3, ["id", "a", "b"]),
        (AsOf(version=2), 2, ["id", "a"]),
        (AsOf(version=99), 4, ["id", "a", "b", "c"]),
        (AsOf(time_ms=1), 0, []),
        (AsOf(time_ms=2_000_000_000_000), 4, ["id", "a", "b", "c"]),
    ],
)
def test_a_joined_schema_as_of_then(
    grown: Recorded, as_of: AsOf, version: int, columns: list[str]
) -> None:
    found = joined_schema(log(grown, as_of))
    assert (found.version, names(found.create_table)) == (version, columns)


def test_the_time_is_that_of_the_change_itself(grown: Recorded) -> None:
    then = log(grown, AsOf(version=3)).versions[3]
    assert joined_schema(log(grown, AsOf(time_ms=then))).version == 3
    assert joined_schema(log(grown, AsOf(time_ms=then - 1))).version == 2


@pytest.mark.parametrize(
    ("pos", "row", "columns"),
    [
        (149, 0, ["id", "a"]),
        (150, 0, ["id", "a", "b"]),
        (150, 3, ["id", "a", "b"]),
        (199, 0, ["id", "a", "b"]),
        (9_999, 0, ["id", "a", "b", "c"]),
    ],
)
def test_a_shard_as_of_a_position_of_its_source(
    grown: Recorded, pos: int, row: int, columns: list[str]
) -> None:
    place = SourcePosition(0, "binlog.000001", pos, row)
    found = shard_schema(log(grown, AsOf(position=place), ONE), ONE)
    assert names(found.create_table) == columns


def test_a_held_shard_shows_what_it_has_and_how_that_differs_from_what_counts() -> None:
    found = shard_schema(log(conflicting()), TWO)
    assert "CREATE TABLE `shop`.`tbl2` (" in found.create_table
    assert "`a` date" in found.create_table
    assert found.counts == ("- `a` int", "+ `a` date")


def test_a_shard_that_was_none_then_is_an_error(grown: Recorded) -> None:
    with pytest.raises(ConfigError, match=r"s2/shop.tbl2 is no live shard .* version 1"):
        shard_schema(log(grown, AsOf(version=1)), TWO)
